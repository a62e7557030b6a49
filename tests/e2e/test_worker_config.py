"""`worker-config`: a project's wrangler file with the emulator in place of its AI binding, and nothing else changed."""

from __future__ import annotations

import copy
import io
import json
import subprocess
import sys
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workersai_emulator.cli import main
from workersai_emulator.worker_config import parse_jsonc, with_emulator, write_config

if TYPE_CHECKING:
    from pathlib import Path

URL = "http://127.0.0.1:8799"
NOTHING = "there is no wrangler.json, wrangler.jsonc or wrangler.toml in ."


def emulator(name: str, url: str = URL) -> dict[str, Any]:
    plugin = {"package": "workersai-emulator", "name": "workersai-emulator"}
    return {"name": name, "type": "workersai-emulator", "dev": {"plugin": plugin, "options": {"url": url}}}


@dataclass(frozen=True)
class Ran:
    returncode: int
    stdout: str
    stderr: str


def run(folder: Path, *arguments: str) -> Ran:
    """The command in a folder, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["workersai-emulator", "worker-config", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    return Ran(ended.value.code, out.getvalue(), err.getvalue())


def written(folder: Path, *arguments: str) -> Any:
    """What is written by a run that must go well."""
    ran = run(folder, *arguments)
    assert (ran.returncode, ran.stderr) == (0, ""), ran
    return parse_jsonc((folder / "wrangler.emulator.jsonc").read_text())


def refused(folder: Path, *arguments: str) -> str:
    """The one line that a run says that must fail, and that writes nothing."""
    before = {path: path.read_bytes() for path in folder.iterdir()}
    ran = run(folder, *arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    said = ran.stderr
    assert said.startswith("workersai-emulator: ")
    assert said.count("\n") == 1
    return said.removeprefix("workersai-emulator: ").rstrip("\n")


JSONC = """\
{
  // The Worker
  "$schema": "./node_modules/wrangler/config-schema.json",
  "name": "shelf", /* its name,
     over two lines */
  "main": "src/index.ts",
  "ai": { "binding": "AI", },
  "vars": { "PAGE": "https://example.com//a, ]/*b*/", "QUOTED": "say \\"hi\\" // so", },
  "kv_namespaces": [{ "binding": "KV", "id": "1" }, /* last */ ],
}
"""
TOML = """\
name = "shelf"
main = "src/index.ts" # the Worker
compatibility_date = "2026-11-01"

[ai]
binding = "AI"

[vars]
PAGE = "https://example.com"
SINCE = 2026-11-01T00:00:00Z

[[kv_namespaces]]
binding = "KV"
id = "1"

[env.staging.ai]
binding = "MODELS"
"""


def test_jsonc_is_kept_but_for_its_comments_and_its_ai_block(tmp_path):
    (tmp_path / "wrangler.jsonc").write_text(JSONC)

    assert written(tmp_path) == {
        "$schema": "./node_modules/wrangler/config-schema.json",
        "name": "shelf",
        "main": "src/index.ts",
        "unsafe": {"bindings": [emulator("AI")]},
        "vars": {"PAGE": "https://example.com//a, ]/*b*/", "QUOTED": 'say "hi" // so'},
        "kv_namespaces": [{"binding": "KV", "id": "1"}],
    }
    assert (tmp_path / "wrangler.jsonc").read_text() == JSONC


def test_toml_is_kept_with_its_environments(tmp_path):
    (tmp_path / "wrangler.toml").write_text(TOML)

    assert written(tmp_path) == {
        "name": "shelf",
        "main": "src/index.ts",
        "compatibility_date": "2026-11-01",
        "unsafe": {"bindings": [emulator("AI")]},
        "vars": {"PAGE": "https://example.com", "SINCE": "2026-11-01T00:00:00+00:00"},
        "kv_namespaces": [{"binding": "KV", "id": "1"}],
        "env": {"staging": {"unsafe": {"bindings": [emulator("MODELS")]}}},
    }


def test_binding_of_one_environment_alone_is_enough(tmp_path):
    (tmp_path / "wrangler.json").write_text('{"env":{"a":{"ai":{"binding":"AI"}},"b":{"name":"b"}}}')

    assert written(tmp_path) == {"env": {"a": {"unsafe": {"bindings": [emulator("AI")]}}, "b": {"name": "b"}}}


def test_unsafe_bindings_that_were_there_are_kept_before_it(tmp_path):
    unsafe = {"bindings": [{"name": "X", "type": "ratelimit"}], "metadata": {"a": 1}}
    (tmp_path / "wrangler.json").write_text(json.dumps({"unsafe": unsafe, "ai": {"binding": "AI"}}))

    assert written(tmp_path) == {
        "unsafe": {"bindings": [{"name": "X", "type": "ratelimit"}, emulator("AI")], "metadata": {"a": 1}}
    }


def test_url_is_where_the_emulator_is(tmp_path):
    (tmp_path / "wrangler.json").write_text('{"ai":{"binding":"AI"}}')

    found = written(tmp_path, "--url", "http://emulator:9000/")

    assert found == {"unsafe": {"bindings": [emulator("AI", "http://emulator:9000")]}}


def test_command_says_what_it_wrote_and_what_to_run(tmp_path):
    (tmp_path / "wrangler.jsonc").write_text(JSONC)

    assert run(tmp_path).stdout == (
        "wrote wrangler.emulator.jsonc; never deploy it\n"
        "once  npm install --save-dev workersai-emulator\n"
        "run   npx wrangler dev -c wrangler.emulator.jsonc\n"
        "      (wrangler pages dev takes no -c: there, put it in place of your own file and keep that aside)\n"
    )
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "wrangler.toml").write_text(TOML)
    told = run(tmp_path, "a b/wrangler.toml").stdout.splitlines()
    assert told[0] == "wrote a b/wrangler.emulator.jsonc; never deploy it"
    assert told[2] == "run   npx wrangler dev -c 'a b/wrangler.emulator.jsonc'"


def test_command_runs_as_a_process_of_its_own(tmp_path):
    (tmp_path / "wrangler.toml").write_text(TOML)
    command = [
        sys.executable,
        "-m",
        "workersai_emulator.cli",
        "worker-config",
        str(tmp_path / "wrangler.toml"),
    ]

    ran = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)

    assert ran.stdout.startswith(f"wrote {tmp_path}/wrangler.emulator.jsonc; never deploy it\n")


def test_head_of_the_file_warns_and_names_its_source(tmp_path):
    (tmp_path / "wrangler.jsonc").write_text(JSONC)
    run(tmp_path)

    head = (tmp_path / "wrangler.emulator.jsonc").read_text().splitlines()[:2]

    assert all(line.startswith("// ") for line in head)
    assert "wrangler.jsonc" in head[0]
    assert "MUST NOT BE DEPLOYED" in head[1]


def test_file_is_made_again_but_one_of_another_make_is_left_alone(tmp_path):
    (tmp_path / "wrangler.json").write_text('{"ai":{"binding":"AI"}}')
    written(tmp_path)
    assert written(tmp_path, "--url", "http://b") == {"unsafe": {"bindings": [emulator("AI", "http://b")]}}

    (tmp_path / "wrangler.emulator.jsonc").write_text("{}")

    assert refused(tmp_path) == "wrangler.emulator.jsonc was not made by worker-config; move it away"


def test_wrangler_s_order_decides_between_several(tmp_path):
    for name in ("wrangler.toml", "wrangler.jsonc", "wrangler.json"):
        quoted = '[ai]\nbinding = "toml"' if name.endswith("toml") else json.dumps({"ai": {"binding": name}})
        (tmp_path / name).write_text(quoted)

    assert written(tmp_path)["unsafe"]["bindings"][0]["name"] == "wrangler.json"
    (tmp_path / "wrangler.json").unlink()
    assert written(tmp_path)["unsafe"]["bindings"][0]["name"] == "wrangler.jsonc"
    (tmp_path / "wrangler.jsonc").unlink()
    assert written(tmp_path)["unsafe"]["bindings"][0]["name"] == "toml"


def test_without_a_file_all_three_names_are_told(tmp_path):
    assert refused(tmp_path) == f"worker-config: {NOTHING}"
    assert refused(tmp_path, "other.toml") == "worker-config: there is no other.toml"


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("wrangler.json", "", "cannot be read: line 1, column 1: Expecting value"),
        ("wrangler.jsonc", '{\n  // a\n  "a": nope\n}', "cannot be read: line 3, column 8: Expecting value"),
        ("wrangler.jsonc", '{"a": 1 /* open', "cannot be read: line 1, column 9: Expecting ',' delimiter"),
        ("wrangler.json", '{"a": NaN}', "cannot be read: NaN is not JSON"),
        ("wrangler.json", "[]", "cannot be read: it is no object"),
        ("wrangler.json", "[" * 100_000, "cannot be read: nested too deep"),
        ("wrangler.toml", "a = ", "cannot be read: Invalid value (at end of document)"),
        ("wrangler.json", "{}", 'it has no AI binding, such as "ai": {"binding": "AI"}'),
        ("wrangler.toml", "[env.a]\nname = 'a'", 'it has no AI binding, such as "ai": {"binding": "AI"}'),
        ("wrangler.json", '{"ai": {}}', '"ai" has no "binding"'),
        ("wrangler.json", '{"ai": "AI"}', '"ai" has no "binding"'),
        ("wrangler.json", '{"env": {"a": {"ai": {"binding": ""}}}}', '"ai" has no "binding"'),
        (
            "wrangler.json",
            '{"ai": {"binding": "AI"}, "unsafe": {"bindings": {}}}',
            '"unsafe" has no list of "bindings"',
        ),
        ("wrangler.json", '{"ai": {"binding": "AI"}, "unsafe": 1}', '"unsafe" has no list of "bindings"'),
        (
            "wrangler.toml",
            "a = nan\n[ai]\nbinding = 'AI'",
            "Out of range float values are not JSON compliant",
        ),
    ],
)
def test_file_that_cannot_be_used_is_told_in_one_line(tmp_path, name, text, complaint):
    (tmp_path / name).write_text(text)

    assert refused(tmp_path).startswith(f"{name}{' ' if complaint.startswith('cannot') else ': '}{complaint}")


def test_file_that_is_no_text_is_told_in_one_line(tmp_path):
    (tmp_path / "wrangler.json").write_bytes(b"\xff\xfe{}")

    assert refused(tmp_path).startswith("wrangler.json cannot be read: 'utf-8' codec can't decode")


@pytest.mark.parametrize("url", ["", "localhost:8799", "ftp://a", "http://"])
def test_url_that_is_none_is_told_in_one_line(tmp_path, url):
    (tmp_path / "wrangler.json").write_text('{"ai":{"binding":"AI"}}')

    told = url.rstrip("/")
    assert refused(tmp_path, "--url", url) == f"--url: {told!r} is no http:// or https:// address"


def test_byte_order_mark_is_no_fault(tmp_path):
    (tmp_path / "wrangler.json").write_bytes(b'\xef\xbb\xbf{"ai":{"binding":"AI"}}')

    assert written(tmp_path) == {"unsafe": {"bindings": [emulator("AI")]}}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(['//", /*', "*/ ,]", ",}", "\\", '"', "\ud800", "\u2028"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.text(min_size=1)
OTHERS = st.dictionaries(NAMES.filter(lambda key: key not in {"ai", "unsafe", "env"}), JSON, max_size=4)
UNSAFE = st.fixed_dictionaries(
    {},
    optional={"bindings": st.lists(st.dictionaries(NAMES, JSON, max_size=2), max_size=2), "metadata": JSON},
)


@st.composite
def blocks(draw: st.DrawFn, *, ai: bool) -> dict[str, Any]:
    """One environment: its own keys in any order, with an AI binding or without."""
    block = draw(OTHERS)
    if ai:
        block["ai"] = {"binding": draw(NAMES)}
    if draw(st.booleans()):
        block["unsafe"] = draw(UNSAFE)
    return {key: block[key] for key in draw(st.permutations(list(block)))}


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    config = draw(blocks(ai=True))
    if draw(st.booleans()):
        ai = st.booleans()
        names = draw(st.lists(NAMES, max_size=3, unique=True))
        config["env"] = {name: draw(blocks(ai=draw(ai))) for name in names}
    return config


def undone(block: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """One environment as it was, from what became of it."""
    block = copy.deepcopy(block)
    if "ai" not in before:
        return block
    assert "ai" not in block
    binding = block["unsafe"]["bindings"].pop()
    assert binding == emulator(binding["name"])
    if not block["unsafe"]["bindings"] and "bindings" not in before.get("unsafe", {}):
        del block["unsafe"]["bindings"]
    if "unsafe" not in before:
        assert block.pop("unsafe") == {}
    return {**block, "ai": {"binding": binding["name"]}}


@given(configs())
def test_everything_else_is_kept_whatever_it_is(config):
    before = copy.deepcopy(config)

    changed = with_emulator(config, URL)

    assert config == before
    restored = undone(changed, before)
    if "env" in before:
        assert list(changed["env"]) == list(before["env"])
        restored["env"] = {name: undone(changed["env"][name], before["env"][name]) for name in before["env"]}
    assert restored == before


@given(configs())
def test_what_is_written_reads_as_what_was_meant(tmp_path_factory, config):
    folder = tmp_path_factory.mktemp("worker")
    (folder / "wrangler.json").write_text(json.dumps(config))

    path = write_config(folder / "wrangler.json", URL)

    assert parse_jsonc(path.read_text(encoding="utf-8")) == with_emulator(config, URL)


COMMENTS = st.sampled_from(["", " ", "\n", '// "a": [1,], \n', "/* } // ] */", "/**/", "/*\n,\n*/"])


def decorated(draw: st.DrawFn, value: Any) -> str:
    """JSON with comments wherever they may be, and commas behind the last members."""
    between = lambda: draw(COMMENTS)  # noqa: E731 - as short as what it stands for
    if isinstance(value, dict):
        members = [
            f"{between()}{json.dumps(key)}{between()}:{decorated(draw, one)}" for key, one in value.items()
        ]
        brackets = "{}"
    elif isinstance(value, list):
        members, brackets = [decorated(draw, one) for one in value], "[]"
    else:
        return f"{between()}{json.dumps(value)}{between()}"
    last = "," if members and draw(st.booleans()) else ""
    return f"{between()}{brackets[0]}{','.join(members)}{last}{between()}{brackets[1]}{between()}"


@given(st.data(), JSON)
def test_comments_and_last_commas_change_nothing(data, value):
    @st.composite
    def texts(draw: st.DrawFn) -> str:
        return decorated(draw, value)

    assert parse_jsonc(data.draw(texts())) == value


@pytest.mark.parametrize(
    "text", ["[1,,]", "[,]", "{,}", '{"a":1,,}', "[1 2]", "/", "[1]//a\n]", "['a']", "{a:1}"]
)
def test_what_is_no_jsonc_is_refused(text):
    with pytest.raises(ValueError, match=r"line \d, column"):
        parse_jsonc(text)


def test_toml_and_json_of_the_same_make_the_same(tmp_path):
    (tmp_path / "wrangler.toml").write_text(TOML.replace("SINCE = 2026-11-01T00:00:00Z\n", ""))
    told = tomllib.loads((tmp_path / "wrangler.toml").read_text())
    of_toml = write_config(tmp_path / "wrangler.toml", URL).read_bytes().split(b"\n", 1)[1]
    (tmp_path / "wrangler.json").write_text(json.dumps(told))

    assert write_config(tmp_path / "wrangler.json", URL).read_bytes().split(b"\n", 1)[1] == of_toml
