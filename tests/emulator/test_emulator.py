"""`Emulator`, in a program of its own and in a running loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime

import httpx
import pytest

from workersai_client import AsyncClient, Client, Done, RateLimited
from workersai_emulator import Emulator
from workersai_emulator.options import Options

BGE_M3 = "@cf/baai/bge-m3"
REQUESTS = [{"text": "orange cloud"}]


def client_of(emulator: Emulator, account_id: str | None = None) -> Client:
    return Client(account_id or emulator.account_id, emulator.token, emulator.base_url, max_retries=0)


def test_what_an_emulator_is_told_holds_for_every_account() -> None:
    with Emulator(seed=1) as emulator:
        emulator.script = "instant"
        emulator.clock.set(datetime(2126, 1, 1, tzinfo=UTC))
        for account_id in ("aa" * 16, "bb" * 16):
            with client_of(emulator, account_id) as client:
                handle = client.submit(BGE_M3, REQUESTS)
                emulator.fail("poll", 3040)
                with pytest.raises(RateLimited):
                    client.poll(handle)
                assert isinstance(client.poll(handle), Done)
        batches = emulator.batches.list()
        assert [batch.account_id for batch in batches] == ["aa" * 16, "bb" * 16]
        assert {batch.submitted_at.year for batch in batches} == {2126}
        emulator.reset()
        assert emulator.batches.list() == []


async def test_in_a_running_loop_it_does_the_same_though_the_calls_block() -> None:
    async with (
        Emulator(script="queued:5m, done") as emulator,
        AsyncClient(emulator.account_id, emulator.token, emulator.base_url) as client,
    ):
        handle = await client.submit(BGE_M3, REQUESTS)
        emulator.clock.advance("5m")
        assert isinstance(await client.poll(handle), Done)
        assert emulator.batches.get(handle.request_id).state == "done"
        with client_of(emulator) as blocking:
            assert isinstance(blocking.poll(handle), Done)
    with pytest.raises(ConnectionError, match="no answer from"):
        emulator.clock.now()


async def test_many_run_in_one_loop_at_the_same_time() -> None:
    async def seen() -> tuple[str, str]:
        async with Emulator(seed=4) as emulator:
            async with AsyncClient(emulator.account_id, emulator.token, emulator.base_url) as client:
                handle = await client.submit(BGE_M3, REQUESTS)
            return emulator.url, handle.request_id

    found = await asyncio.gather(*(seen() for _ in range(5)))
    assert len({url for url, _ in found}) == 5
    assert len({request_id for _, request_id in found}) == 1


def test_it_can_be_started_again_and_stopped_twice() -> None:
    emulator = Emulator().start()
    assert emulator.clock.now().tzinfo is UTC
    emulator.stop()
    emulator.stop()
    with emulator:
        assert emulator.batches.list() == []


def test_its_token_is_one_that_it_takes() -> None:
    with Emulator(tokens=frozenset({"b-token", "a-token"})) as emulator, client_of(emulator) as client:
        assert emulator.token == "a-token"
        assert client.submit(BGE_M3, REQUESTS).request_id


def test_its_own_control_token_is_sent() -> None:
    with Emulator(control_token="sesame") as emulator:
        assert emulator.script == "queued:1, running:1, done"
        assert httpx.get(f"{emulator.url}/__emulator__/clock").status_code == 403


def test_beyond_loopback_it_is_reached_here_and_says_what_its_control_plane_asks_for() -> None:
    with Emulator(host="0.0.0.0") as emulator:
        assert emulator.url.startswith("http://127.0.0.1:")
        with client_of(emulator) as client:
            assert client.submit(BGE_M3, REQUESTS).request_id
        with pytest.raises(PermissionError, match="beyond loopback the control plane needs --control-token"):
            emulator.clock.now()


def test_it_runs_as_options_say() -> None:
    with Emulator.of(Options(port=0, seed=9)) as emulator:
        assert emulator.seed == 9
        assert not emulator.url.endswith(":8799")


def test_what_its_control_plane_leaves_behind_is_nothing() -> None:
    """Its connections and threads end with it: an interpreter that takes warnings for errors says nothing."""
    program = (
        "import threading\n"
        "from workersai_emulator import Emulator\n"
        "with Emulator() as emulator:\n    emulator.clock.freeze()\n"
        "del emulator\nimport gc; gc.collect()\n"
        "print(threading.active_count())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stdout, ran.stderr, ran.returncode) == ("1\n", "", 0)
