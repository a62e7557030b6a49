"""A thousand tests with the fixture neither grow the process nor meet each other, in one process or in four."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from workersai_emulator import Emulator

if TYPE_CHECKING:
    from pathlib import Path

TESTS = """
import psutil
import pytest
from workersai_client import Client

KEPT = []

@pytest.mark.parametrize("number", range(1000))
def test_a_batch_of_my_own(workersai, number):
    workersai.clock.freeze()
    before = workersai.clock.now()
    with Client(workersai.account_id, workersai.token, workersai.base_url) as client:
        handle = client.submit("@cf/baai/bge-m3", [{"text": f"text {number}"}])
        assert client.poll(handle).status == "queued"
        workersai.clock.advance("1h")
        workersai.fail("poll", 3040, times=1) if number % 2 else None
        assert [batch.polls for batch in workersai.batches.list()] == [1]
        assert len(workersai.rules.list()) == number % 2
    assert (workersai.clock.now() - before).total_seconds() == 3600
    if number in {300, 999}:
        KEPT.append(psutil.Process().memory_info().rss)
        print(f"MEGABYTES {KEPT[-1] / 1e6:.1f}")
"""
CONFIGURATION = "[pytest]\nasyncio_default_fixture_loop_scope = function\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "test_many.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text(CONFIGURATION)
    return tmp_path


def run(project: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    ran = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=250, check=False)
    assert ran.returncode == 0, ran.stdout[-3000:]
    return ran.stdout


def test_a_thousand_tests_do_not_grow_the_process(project: Path) -> None:
    printed = run(project, "-rP")
    early, late = (float(megabytes) for megabytes in re.findall(r"MEGABYTES ([\d.]+)", printed))
    assert late - early < 10


def test_four_processes_with_frozen_clocks_share_a_server_and_never_meet(project: Path) -> None:
    with Emulator() as emulator:
        printed = run(project, "-n", "4", f"--workersai-target={emulator.url}", "-k", "1 or 5 or 9")
    assert " passed" in printed
    assert " failed" not in printed
