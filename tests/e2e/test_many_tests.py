"""Many tests with the fixture neither grow the process nor meet each other, in one process or in four.

`make test-many` runs a thousand of each; here it is a few.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from workersai_emulator import Emulator

if TYPE_CHECKING:
    from pathlib import Path

COUNT = int(os.environ.get("MANY_TESTS", "60"))
TESTS = """
import gc
import tracemalloc
import pytest
from workersai_client import Client

COUNT = {count}

@pytest.mark.parametrize("number", range(COUNT))
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
    if number in {COUNT // 3, COUNT - 1}:
        gc.collect()
        print(f"MEGABYTES {tracemalloc.get_traced_memory()[0] / 1e6:.1f}")
"""
CONFIGURATION = "[pytest]\nasyncio_default_fixture_loop_scope = function\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "test_many.py").write_text(TESTS.replace("{count}", str(COUNT)))
    (tmp_path / "pytest.ini").write_text(CONFIGURATION)
    return tmp_path


def run(project: Path, *options: str) -> str:
    command = [sys.executable, "-X", "tracemalloc", "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    ran = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode == 0, ran.stdout[-3000:]
    return ran.stdout


def test_many_tests_do_not_grow_the_process(project: Path) -> None:
    printed = run(project, "-rP")
    early, late = (float(megabytes) for megabytes in re.findall(r"MEGABYTES ([\d.]+)", printed))
    # What pytest itself keeps of a test is some 5 kB.
    assert late - early < 1 + COUNT * 0.01


def test_four_processes_with_frozen_clocks_share_a_server_and_never_meet(project: Path) -> None:
    with Emulator() as emulator:
        printed = run(project, "-n", "4", f"--workersai-target={emulator.url}")
    assert f"{COUNT} passed" in printed
