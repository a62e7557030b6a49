"""Hypothesis profiles: `default` finds the same each time, `long` looks elsewhere each time, and longer.

And states that outlive a process: a file, or a name of its own in a Redis that runs for the session.
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

from redis_server import redis_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_names = count(1)

settings.register_profile("default", derandomize=True, deadline=None)
# A shell without job control starts what is in the background deaf to Ctrl-C, and so would be all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("long", deadline=None, max_examples=20 * settings().max_examples)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

#: Run by tests/e2e/test_sample_project.py, with the installed wheel.
collect_ignore = ["sample_project"]


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis for the session. Skips where the machine has none."""
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server.url


@pytest.fixture(scope="session")
def new_state(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], str | None]:
    """What `--state` is for a new state of a kind: memory, file or redis."""

    def make(kind: str) -> str | None:
        if kind == "redis":
            return f"{request.getfixturevalue('redis_url')}?prefix=test-{next(_names)}"
        return str(tmp_path_factory.mktemp("state") / "state.db") if kind == "file" else None

    return make
