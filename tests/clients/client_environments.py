"""Environments for clients, under `.clients/` at the root: each is made once for the versions that it is of.

`python/environments/NAME.in` has the clients of one virtual environment and `NAME.txt` all that came with them;
`npm/NAME/` has a package.json and its lock file. With CLIENTS_NEWEST=1 the pins are set aside, and each client is
the newest that there is, fetched anew every day.

python tests/clients/client_environments.py lock NAME     pins anew all that comes with the clients
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
NEWEST = os.environ.get("CLIENTS_NEWEST", "") not in {"", "0"}
CACHE = HERE.parents[1] / ".clients" / ("newest" if NEWEST else "pinned")
OLDEST_NODE = (20, 19)
LONGEST_INSTALLATION = 900


class Unavailable(Exception):
    """What an environment needs is not on this machine; the text says what."""


class NotInstalled(Exception):
    """An installation failed; the text has its last words."""


def python_of(name: str) -> Path:
    """The interpreter of a Python environment, made now where it is missing. Raises NotInstalled."""
    wanted = HERE / "python" / "environments" / f"{name}.in"
    pins = wanted.with_suffix(".txt")
    texts = [wanted.read_text(), pins.read_text() if pins.exists() else "", sys.version]
    with _made(CACHE / "python", name, texts) as (folder, is_new):
        interpreter = folder / "bin" / "python"
        if is_new:
            _run(sys.executable, "-m", "venv", "--without-pip", str(folder))
            _run(*_pip(interpreter), "install", "--quiet", *_requirements(wanted, pins))
    return interpreter


def node_folder_of(name: str) -> Path:
    """The folder with a client's packages, made now where it is missing. Raises Unavailable, NotInstalled."""
    _need_node()
    source = HERE / "npm" / name
    manifest, pins = source / "package.json", source / "package-lock.json"
    with _made(CACHE / "npm", name, [manifest.read_text(), pins.read_text()]) as (folder, is_new):
        if is_new:
            folder.mkdir()
            npm = ("npm", "--prefix", str(folder), "--no-audit", "--no-fund", "--loglevel=error")
            if NEWEST:
                (folder / "package.json").write_text(_unpinned(json.loads(manifest.read_text())))
                _run(*npm, "install")
            else:
                shutil.copy(manifest, folder)
                shutil.copy(pins, folder)
                _run(*npm, "ci")
    shutil.copy(HERE / "npm" / "reporting.mjs", folder)
    shutil.copy(_program(source), folder)
    return folder


def _program(source: Path) -> Path:
    """A client's program: its own, or one that it shares with its other major versions: `openai-6`, `openai`."""
    own = source / "check.mjs"
    return own if own.exists() else source.with_name(source.name.rpartition("-")[0]) / own.name


def lock(name: str) -> None:
    """Write down every version that comes with the clients of an environment, for all later installations."""
    source = HERE / "npm" / name
    if source.exists():
        _need_node()
        (source / "package-lock.json").unlink(missing_ok=True)
        only = ("--package-lock-only", "--omit-lockfile-registry-resolved=true")
        _run("npm", "--prefix", str(source), "install", *only, "--no-audit", "--no-fund")
        return
    pins = HERE / "python" / "environments" / f"{name}.txt"
    pins.unlink(missing_ok=True)
    pins.write_text(_run(*_pip(python_of(name)), "freeze"))


def versions() -> list[str]:
    """The clients that are installed, each with its version."""
    found = []
    for folder in sorted(CACHE.glob("python/*/lib/python*/site-packages")):
        wanted = HERE / "python" / "environments" / f"{folder.parts[-4].rsplit('-', 1)[0]}.in"
        names = {re.sub(r"[\[=].*", "", line) for line in wanted.read_text().split()}
        packages = {package.name: package.version for package in metadata.distributions(path=[str(folder)])}
        found += [f"{name} {packages[name]} (PyPI)" for name in sorted(names)]
    for manifest in sorted(CACHE.glob("npm/*/package.json")):
        for name in json.loads(manifest.read_text())["dependencies"]:
            package = json.loads((manifest.parent / "node_modules" / name / "package.json").read_text())
            found.append(f"{name} {package['version']} (npm)")
    return found


@contextmanager
def _made(parent: Path, name: str, texts: list[str]) -> Iterator[tuple[Path, bool]]:
    """The folder for these texts, and whether it is still to be filled; that of other texts goes.

    Only one process fills it; it counts as filled when the block ends well.
    """
    day = time.strftime("%Y-%m-%d") if NEWEST else ""
    key = hashlib.sha256("\0".join([*texts, day]).encode()).hexdigest()[:12]
    folder = parent / f"{name}-{key}"
    ready = folder / ".ready"
    parent.mkdir(parents=True, exist_ok=True)
    with (parent / f"{name}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        is_new = not ready.exists()
        if is_new:
            for old in parent.iterdir():
                if re.fullmatch(rf"{re.escape(name)}-[0-9a-f]{{12}}", old.name):
                    shutil.rmtree(old)
        yield folder, is_new
        ready.touch()


def _requirements(wanted: Path, pins: Path) -> list[str]:
    if NEWEST:
        return [re.sub("==.*", "", line) for line in wanted.read_text().split()]
    return ["-r", str(wanted), *(["-c", str(pins)] if pins.exists() else [])]


def _unpinned(manifest: dict[str, Any]) -> str:
    """The same without its pins; of the major version in `config` where it is there for that."""
    version = manifest.get("config", {}).get("major", "latest")
    return json.dumps({**manifest, "dependencies": dict.fromkeys(manifest["dependencies"], version)})


def _pip(interpreter: Path) -> tuple[str, ...]:
    return (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(interpreter))


def _need_node() -> None:
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        raise Unavailable("node and npm are not here")
    told = _run(node, "--version").strip()
    if tuple(int(part) for part in told.removeprefix("v").split(".")[:2]) < OLDEST_NODE:
        raise Unavailable(f"node is {told}; the clients need {'.'.join(map(str, OLDEST_NODE))} or newer")


def _run(*command: str) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_INSTALLATION, check=False)
    if ran.returncode:
        raise NotInstalled(f"{' '.join(command[:6])} … failed:\n{(ran.stdout + ran.stderr)[-3000:]}")
    return ran.stdout


if __name__ == "__main__":
    assert sys.argv[1] == "lock", __doc__
    lock(sys.argv[2])
