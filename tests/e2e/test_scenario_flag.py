"""`serve --scenario`: a server that begins with scenarios, for all accounts."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from workersai_client import Client, Pending, RateLimited

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

MODEL = "@cf/baai/bge-m3"


def test_serve_begins_with_the_scenarios_it_is_given(
    serve: Callable[..., AbstractContextManager[subprocess.Popen[str]]],
) -> None:
    with serve("--scenario", "out-of-capacity", "--scenario", "stuck") as process:
        for account_id in ("a" * 32, "b" * 32):
            with Client(account_id, "any", process.url, max_retries=0) as client:  # type: ignore[attr-defined]
                with pytest.raises(RateLimited) as refused:
                    client.run(MODEL, {"text": "a"})
                handle = client.submit(MODEL, [{"text": "a"}])
                seen = [client.poll(handle) for _ in range(4)]

            assert refused.value.code == 3040
            assert seen == [Pending("queued"), *[Pending("running")] * 3]


def test_unknown_scenario_is_a_usage_error_that_names_what_there_is(clean_environment: None) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "workersai_emulator.cli", "serve", "--scenario", "rain"],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )

    assert ended.returncode == 2
    assert "--scenario: no scenario 'rain'; there are out-of-capacity, busy, rate-limited, " in ended.stderr
