"""What the tests of real clients share: an emulator in a process of its own, and what each client got from it.

Its modules are found beside this file.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from client_environments import NEWEST, NotInstalled, Unavailable, versions
from client_run import Failed, Ran, run_client

from workersai_emulator.plane import HttpPlane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from client_roster import Client

SEED = 7


@pytest.fixture(scope="session")
def plane() -> Iterator[HttpPlane]:
    """The control plane of an emulator that runs as anybody's does."""
    serve = [sys.executable, "-m", "workersai_emulator.cli", "serve", "--port", "0", "--seed", str(SEED)]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        control = HttpPlane(process.stdout.readline().strip())
        try:
            yield control
        finally:
            control.close()
            process.kill()


@pytest.fixture(scope="session")
def run(plane: HttpPlane) -> Callable[[Client], Ran]:
    """Run a client's program, once however many tests look at what it got, or at why there is nothing."""

    @cache
    def once(client: Client) -> Ran | Exception:
        try:
            return run_client(plane, SEED, client)
        except (Unavailable, NotInstalled, Failed, TimeoutExpired) as why:
            return why

    def ran(client: Client) -> Ran:
        match once(client):
            case Unavailable() as missing:
                pytest.skip(str(missing))
            case Exception() as why:
                pytest.fail(str(why), pytrace=False)
            case told:
                return told

    return ran


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which clients the newest are."""
    if NEWEST:
        terminalreporter.write_line(f"the newest: {', '.join(versions())}")
