"""`{"delay": …}`: the request is taken up later, by the machine's own clock."""

from __future__ import annotations

import time
from typing import Any

import cloudflare
import pytest

from workersai_client import Client, TransportError

M3 = "@cf/baai/bge-m3"


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that the emulator makes, each over at once."""
    made: list[float] = []

    async def pause(seconds: float) -> None:
        made.append(seconds)

    monkeypatch.setattr("workersai_emulator.service.pause", pause)
    return made


def test_reply_comes_so_much_later_and_is_the_same(world: Any) -> None:
    plain = world.send({"text": "a"}).content
    world.rule({"delay": "50ms"}, times=1)

    started = time.perf_counter()
    reply = world.send({"text": "a"})

    assert time.perf_counter() - started >= 0.05
    assert reply.content == plain
    assert world.fired() == [1]


def test_frozen_clock_shortens_no_delay(world: Any) -> None:
    world.control("POST", "clock", freeze=True)
    world.rule({"delay": "50ms"})

    started = time.perf_counter()
    world.send({"text": "a"})

    assert time.perf_counter() - started >= 0.05


@pytest.mark.parametrize(("said", "seconds"), [("2s", 2.0), (0.25, 0.25), ("5m", 300.0), (0, 0.0)], ids=repr)
def test_delay_is_a_duration(world: Any, pauses: list[float], said: Any, seconds: float) -> None:
    world.rule({"delay": said}, {"operation": "run"})

    world.send({"text": "a"})
    world.submit("a")

    assert pauses == [seconds]


@pytest.mark.parametrize("operation", ["run", "submit", "poll"])
def test_every_operation_can_be_delayed(world: Any, pauses: list[float], operation: str) -> None:
    world.rule({"delay": "2s"}, {"operation": operation})

    world.send({"text": "a"})
    world.poll(world.submit("a"))

    assert pauses == [2.0]


def test_others_are_served_meanwhile(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    async def pause(seconds: float) -> None:
        from asyncio import to_thread

        other = world.emulator.account("f" * 32)
        await to_thread(other.clock.now)
        seen.append(1)

    monkeypatch.setattr("workersai_emulator.service.pause", pause)
    world.rule({"delay": "2s"})

    assert world.send({"text": "a"}).status_code == 200
    assert seen == [1]


def test_client_that_gives_up_has_queued_its_batch_all_the_same(world: Any, tasks: Any) -> None:
    world.rule({"delay": "200ms"}, {"operation": "submit"}, times=1)

    with (
        Client(world.id, "a", world.emulator.base_url, timeout=0.05) as client,
        pytest.raises(TransportError, match="ReadTimeout") as caught,
    ):
        client.submit(M3, [{"text": "a"}])

    assert caught.value.may_have_arrived
    assert tasks.left() == []
    assert world.batches() == 1


def test_official_sdk_times_out(world: Any) -> None:
    world.rule({"delay": "200ms"}, times=1)

    with pytest.raises(cloudflare.APITimeoutError):
        world.sdk.with_options(timeout=0.05).ai.run(M3, account_id=world.id, text="a")
