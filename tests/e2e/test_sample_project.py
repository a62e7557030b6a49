"""A project of a user's, `tests/sample_project`, with nothing but the installed wheel and pytest."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from built_distribution import REPO, Built, Installed, install, run

if TYPE_CHECKING:
    from pathlib import Path

ALL_PASS = "12 passed"


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(built.wheel, tmp_path_factory.mktemp("users"), "pytest", "pytest-xdist")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return shutil.copytree(REPO / "tests" / "sample_project", tmp_path / "project")


def test_its_tests_pass_with_the_plugin(installed: Installed, project: Path) -> None:
    assert ALL_PASS in run(installed.python, "-m", "pytest", cwd=project)


def test_they_pass_in_four_processes_with_a_server_each(installed: Installed, project: Path) -> None:
    assert ALL_PASS in run(installed.python, "-m", "pytest", "-n", "4", cwd=project)


def test_they_pass_in_four_processes_against_one_url(installed: Installed, project: Path) -> None:
    pytest_there = f'"{installed.python}" -m pytest -n 4 --workersai-target="$WORKERS_AI_EMULATOR_URL"'
    assert ALL_PASS in run(installed.command, "exec", "--", "sh", "-c", pytest_there, cwd=project)


def test_its_program_runs_beside_the_emulator(installed: Installed, project: Path) -> None:
    ran = subprocess.run(
        [installed.command, "exec", "--", installed.python, "shelf.py", "who sells fresh bread?"],
        input="a bakery sells fresh bread\na garage repairs cars\n",
        capture_output=True,
        text=True,
        cwd=project,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "a bakery sells fresh bread\n"), ran.stderr
