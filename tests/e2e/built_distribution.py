"""The distribution as a stranger gets it: built, and installed into an environment with nothing but what it asks for.

The registry is not asked: what it depends on is taken from the environment that runs the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

REPO = Path(__file__).parents[2]
_NOT_INHERITED = ("PYTHON", "PYTEST", "WORKERSAI_EMULATOR_", "CLOUDFLARE_", "OPENAI_")


@dataclass(frozen=True)
class Built:
    """What is published."""

    wheel: Path
    sdist: Path


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel in it."""

    folder: Path

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    @property
    def command(self) -> str:
        return str(self.folder / "bin" / "workersai-emulator")

    @property
    def packages(self) -> Path:
        return Path(sysconfig.get_path("purelib", vars={"base": str(self.folder)}))


def build(folder: Path) -> Built:
    """Build the sdist, and from it the wheel."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(REPO))
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Built(wheel, sdist)


def install(wheel: Path, folder: Path, *tools: str) -> Installed:
    """Make an environment of the wheel, what it requires, and these tools with what they require."""
    run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    installed = Installed(folder)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", installed.python)
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel))
    (ours,) = metadata.distributions(path=[str(installed.packages)])
    lent = folder / "lent"
    lent.mkdir()
    for name in _required([*(ours.requires or []), *tools]):
        _lend(metadata.distribution(name), lent)
    (installed.packages / "lent.pth").write_text(f"{lent}\n")
    return installed


def run(*command: str, cwd: Path | None = None) -> str:
    """What a command prints that has to succeed; where it does not, all that it said is shown."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
    ran = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def _required(requirements: list[str]) -> set[str]:
    """The names of all distributions that these requirements bring in."""
    found: set[str] = set()
    to_look_at = [Requirement(text) for text in requirements]
    while to_look_at:
        wanted = to_look_at.pop()
        if wanted.name in found or not _applies(wanted):
            continue
        found.add(wanted.name)
        to_look_at += [Requirement(text) for text in metadata.requires(wanted.name) or []]
    return found


def _applies(wanted: Requirement) -> bool:
    return wanted.marker is None or wanted.marker.evaluate({"extra": ""})


def _lend(distribution: metadata.Distribution, folder: Path) -> None:
    for name in {file.parts[0] for file in distribution.files or []} - {"..", "__pycache__"}:
        link = folder / name
        if not link.exists():
            link.symlink_to(Path(str(distribution.locate_file(name))))
