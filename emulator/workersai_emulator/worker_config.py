"""A wrangler configuration whose AI binding is the emulator's, made from a project's own.

Fact: `remote.unsafe-binding`.
"""

from __future__ import annotations

import json
import re
import tomllib
from datetime import date, time
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from pathlib import Path

#: In the order in which wrangler looks for them.
NAMES: Final = ("wrangler.json", "wrangler.jsonc", "wrangler.toml")
WRITTEN_NAME: Final = "wrangler.emulator.jsonc"
PACKAGE: Final = "workersai-emulator"

_MADE = "// Made by `workersai-emulator worker-config`"
_HEAD = """\
{made} from {name}: change that one and make this one again.
// It is for `wrangler dev` alone and MUST NOT BE DEPLOYED: its AI binding is a local emulator's.
"""
#: A string, to be kept, or a comment.
_STRING_OR_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
#: A string or commas that part nothing, to be kept, or a comma with nothing behind it.
_KEPT_OR_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\\n])*"|[\[{,]\s*,)|,(?=\s*[}\]])')


def find_config(folder: Path) -> Path:
    """Return the configuration that wrangler would take in a folder. Raises ValueError that names all three."""
    for name in NAMES:
        if (folder / name).is_file():
            return folder / name
    raise ValueError(f"worker-config: there is no {NAMES[0]}, {NAMES[1]} or {NAMES[2]} in {folder}")


def write_config(source: Path, url: str) -> Path:
    """Write the emulator's configuration beside the project's own, and return its path.

    Everything but comments is kept. Raises ValueError in one line, or OSError.
    """
    if not re.match(r"https?://[^/]", url):
        raise ValueError(f"--url: {url!r} is no http:// or https:// address")
    config = _read(source)
    try:
        changed = with_emulator(config, url)
        text = _text(changed)
    except ValueError as fault:
        raise ValueError(f"{source}: {fault}") from None
    written = source.with_name(WRITTEN_NAME)
    if written.exists() and not written.read_bytes().startswith(_MADE.encode()):
        raise ValueError(f"{written} was not made by worker-config; move it away")
    written.write_bytes(_HEAD.format(made=_MADE, name=source.name).encode() + text)
    return written


def with_emulator(config: dict[str, Any], url: str) -> dict[str, Any]:
    """Return the configuration with the emulator in place of each `ai` block, those of named environments too.

    Raises ValueError when there is none.
    """
    environments = config.get("env")
    environments = environments if isinstance(environments, dict) else {}
    blocks = [config, *(block for block in environments.values() if isinstance(block, dict))]
    if not any("ai" in block for block in blocks):
        raise ValueError('it has no AI binding, such as "ai": {"binding": "AI"}')
    changed = _without_ai(config, url)
    if environments:
        changed["env"] = {
            name: _without_ai(block, url) if isinstance(block, dict) else block
            for name, block in environments.items()
        }
    return changed


def _without_ai(block: dict[str, Any], url: str) -> dict[str, Any]:
    """One environment with an unsafe binding in place of its `ai` block; what was unsafe before is kept."""
    if "ai" not in block:
        return dict(block)
    name = block["ai"].get("binding") if isinstance(block["ai"], dict) else None
    if not isinstance(name, str) or not name:
        raise ValueError('"ai" has no "binding"')
    unsafe = block.get("unsafe", {})
    bindings = unsafe.get("bindings", []) if isinstance(unsafe, dict) else None
    if not isinstance(bindings, list):
        raise ValueError('"unsafe" has no list of "bindings"')
    plugin = {"package": PACKAGE, "name": PACKAGE}
    emulator = {"name": name, "type": PACKAGE, "dev": {"plugin": plugin, "options": {"url": url}}}
    unsafe = {**unsafe, "bindings": [*bindings, emulator]}
    if "unsafe" in block:
        return {key: unsafe if key == "unsafe" else value for key, value in block.items() if key != "ai"}
    return {
        ("unsafe" if key == "ai" else key): unsafe if key == "ai" else value for key, value in block.items()
    }


def parse_jsonc(text: str) -> Any:
    """Return what a JSON text stands for that may have comments and commas before closing brackets.

    Raises ValueError that says where it goes wrong.
    """
    plain = _STRING_OR_COMMENT.sub(lambda found: found[1] or _blank(found[0]), text)
    plain = _KEPT_OR_LAST_COMMA.sub(lambda found: found[1] or " ", plain)
    try:
        return json.loads(plain, parse_constant=_refuse)
    except json.JSONDecodeError as fault:
        raise ValueError(f"line {fault.lineno}, column {fault.colno}: {fault.msg}") from None
    except RecursionError:
        raise ValueError("nested too deep") from None


def _read(source: Path) -> dict[str, Any]:
    try:
        text = source.read_text(encoding="utf-8-sig")
        config = tomllib.loads(text) if source.suffix == ".toml" else parse_jsonc(text)
    except FileNotFoundError:
        raise ValueError(f"worker-config: there is no {source}") from None
    except ValueError as fault:
        raise ValueError(f"{source} cannot be read: {fault}") from None
    if not isinstance(config, dict):
        raise ValueError(f"{source} cannot be read: it is no object")
    return config


def _text(config: dict[str, Any]) -> bytes:
    try:
        told = json.dumps(config, indent=2, ensure_ascii=False, allow_nan=False, default=_told)
        return told.encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can tell
        return json.dumps(config, indent=2, allow_nan=False, default=_told).encode() + b"\n"


def _told(moment: object) -> str:
    """A date or time of TOML, which JSON has no form for."""
    assert isinstance(moment, date | time)
    return moment.isoformat()


def _blank(comment: str) -> str:
    """As many lines and columns of nothing, so that a fault is told where it is."""
    return re.sub(r"[^\r\n]", " ", comment)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
