"""Environments for real Worker runtimes, under `.workers/` at the root: each is made once for what it holds.

`npm/NAME/` has a package.json and its lock file: the runtimes, and the Node that runs them. With WORKERS_NEWEST=1
both are set aside for all but the older end, and each package but Node is the newest that there is, fetched anew
every day.

python tests/workers/worker_environments.py     makes them all, so that the tests need no network
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CACHE = ROOT / ".workers"
PACKAGE = ROOT / "emulator" / "npm"
NEWEST = os.environ.get("WORKERS_NEWEST", "") not in {"", "0"}
#: How the environments with the oldest versions that are proved are called: these stay what they are.
OLDER_END = "oldest"
LONGEST_INSTALLATION = 900
#: What npm may not be told: the machine's own settings and anybody's credentials.
NOT_INHERITED = ("CLOUDFLARE_", "CF_", "WORKERS", "NODE_OPTIONS", "MINIFLARE_", "WRANGLER_", "OPENAI_")


class NotInstalled(Exception):
    """An installation failed; the text has its last words."""


def names() -> list[str]:
    """The environments that there are."""
    return sorted(path.name for path in (HERE / "npm").iterdir())


def is_newest(name: str) -> bool:
    """Whether an environment has the newest packages of today in place of those that are listed."""
    return NEWEST and not name.endswith(OLDER_END)


def folder_of(name: str) -> Path:
    """The folder of an environment, made now where it is missing. Raises NotInstalled."""
    source = HERE / "npm" / name
    manifest, lock = source / "package.json", source / "package-lock.json"
    newest = is_newest(name)
    day = time.strftime("%Y-%m-%d") if newest else ""
    folder = CACHE / f"{name}-{_key(manifest.read_text(), lock.read_text(), day)}"
    if (folder / ".ready").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    npm = ("npm", "--prefix", str(folder), "--no-audit", "--no-fund", "--loglevel=error")
    if newest:
        (folder / "package-lock.json").unlink()
        (folder / "package.json").write_text(_unpinned(json.loads(manifest.read_text())))
    # Not `npm ci`: a locked package has an optional dependency that is nowhere, and `ci` wants it in the lock file.
    run(*npm, "install")
    (folder / ".ready").touch()
    return folder


def node_of(folder: Path) -> str:
    """The Node that an environment brought."""
    return str(folder / "node_modules" / "node" / "bin" / "node")


def version_of(folder: Path, package: str) -> str:
    """The version of a package in an environment."""
    manifest = folder / "node_modules" / package / "package.json"
    told: str = json.loads(manifest.read_text())["version"]
    return told


def pack(into: Path) -> Path:
    """Our own package as npm would publish it: a tarball in this folder."""
    told = run("npm", "pack", "--json", "--silent", "--pack-destination", str(into), str(PACKAGE))
    return into / json.loads(told)[0]["filename"]


def install(tarball: Path, folder: Path) -> None:
    """Put our own package, as it is packed, beside the runtimes of an environment."""
    place = folder / "node_modules" / "workersai-emulator"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    run("tar", "-xzf", str(tarball), "--strip-components=1", "-C", str(place))


def run(*command: str) -> str:
    """What a command prints. Raises NotInstalled with what it complained about."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_INSTALLATION, check=False)
    if ran.returncode:
        raise NotInstalled(f"{' '.join(command[:6])} … failed:\n{(ran.stdout + ran.stderr)[-3000:]}")
    return ran.stdout


def _unpinned(manifest: dict[str, dict[str, str]]) -> str:
    wanted = {name: at if name == "node" else "latest" for name, at in manifest["dependencies"].items()}
    return json.dumps({**manifest, "dependencies": wanted})


def _key(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


if __name__ == "__main__":
    if shutil.which("npm") is None:
        sys.exit("npm is not here")
    for each in names():
        folder_of(each)
