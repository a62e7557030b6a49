"""The npm package: what is published, its own tests, its types, and its control of a real emulator."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from typing import TYPE_CHECKING

import pytest
from worker_environments import PACKAGE, node_of
from worker_runs import COMMAND, PROGRAMS, clean_environment, run_program

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.workers, pytest.mark.workers_short]
PUBLISHED = """
LICENSE README.md ai.d.ts index.d.ts index.js package.json preload.cjs
src/ai.js src/control.js src/plugin.js src/start.js src/url.js src/version.js
""".split()


def test_what_is_published_is_the_package_and_nothing_else(tarball: Path) -> None:
    with tarfile.open(tarball) as packed:
        assert sorted(packed.getnames()) == sorted(f"package/{name}" for name in PUBLISHED)


@pytest.mark.parametrize("end", ["newest", "oldest"])
def test_its_own_tests_pass(end: str, environments: dict[str, Path]) -> None:
    files = sorted(str(path) for path in (PACKAGE / "test").glob("*.test.js"))
    command = [node_of(environments[end]), "--test", *files]
    ran = subprocess.run(command, capture_output=True, text=True, env=clean_environment(), check=False)
    assert ran.returncode == 0, ran.stdout[-3000:]


def test_its_types_hold(environments: dict[str, Path]) -> None:
    folder = _project(environments["newest"], "types", PROGRAMS / "types")
    compiler = environments["newest"] / "node_modules" / "typescript" / "bin" / "tsc"
    command = [node_of(environments["newest"]), str(compiler), "--project", str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, env=clean_environment(), check=False)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize("end", ["newest", "oldest"])
def test_it_starts_drives_and_stops_a_real_emulator(end: str, environments: dict[str, Path]) -> None:
    ran = run_program(environments[end], "control.mjs", EMULATOR_COMMAND=json.dumps(COMMAND))
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout.partition("TOLD ")[2])
    assert told == {
        "before": "queued",
        "moved": True,
        "after": 1,
        "batches": [{"state": "done", "items": 1}],
        "request": {"requests": [{"text": "a llama"}]},
        "refused": {
            "name": "AiError",
            "message": "3040: Capacity temporarily exceeded, please try again.",
        },
        "failed": told["failed"],
        "output": told["output"],
        "rules": [1, 1],
        "unknown": {"name": "ControlError", "message": "no batch 'nothing'"},
        "forgotten": [[], []],
        "stopped": True,
    }
    assert told["failed"]["message"].startswith("5001: ")
    assert told["output"]["response"] == "billing"


def _project(environment: Path, name: str, source: Path) -> Path:
    folder = environment / "runs" / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    return folder
