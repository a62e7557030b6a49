"""A Redis as the state of several processes, which are one emulator."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import pytest
from opened_stores import A, Opened, opened

from redis_server import redis_server
from workersai_emulator import shared_journal
from workersai_emulator.api.exchange import Exchange
from workersai_emulator.api.gateway_log import GatewayLog
from workersai_emulator.batches import Batches
from workersai_emulator.counts import OTHER
from workersai_emulator.journal import Filter
from workersai_emulator.lifecycle import begin
from workersai_emulator.scripts import Script
from workersai_emulator.settings import Settings
from workersai_emulator.store import Batch, NotKept

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

M3 = "@cf/baai/bge-m3"


@pytest.fixture
def state(new_state: Callable[[str], str | None]) -> str:
    return str(new_state("redis"))


@pytest.fixture
async def three(state: str) -> AsyncIterator[list[Opened]]:
    """One state as three processes have it."""
    worlds = [await opened(state, max_bytes=10**9) for _ in range(3)]
    yield worlds
    for world in worlds:
        await world.store.close()


def fire(world: Opened) -> Callable[[], str | None]:
    def first() -> str | None:
        fired = (rules.fire("run", M3, {}, lambda *_: 0.0) for rules in world.account.rule_sets)
        return next((rule.id for rule in fired if rule is not None), None)

    return first


@pytest.mark.parametrize("times", [1, 7])
@pytest.mark.parametrize("whose", ["account", "server"])
async def test_a_rule_fires_so_many_times_in_all_processes_together(
    three: list[Opened], times: int, whose: str
) -> None:
    owner: Any = three[0].account if whose == "account" else three[0].accounts.defaults
    await three[0].store.say(owner, lambda: owner.rules.add({"effect": {"error": 3040}, "times": times}))
    fired = await asyncio.gather(
        *(world.store.count(world.account, fire(world)) for world in three for _ in range(20))
    )
    assert len([each for each in fired if each is not None]) == times


async def test_each_number_is_given_once(three: list[Opened]) -> None:
    numbers = await asyncio.gather(
        *(world.store.arrive(world.account) for world in three for _ in range(20)),
        *(world.store.next(A, "exchange") for world in three for _ in range(20)),
    )
    assert sorted(numbers) == list(range(1, 121))


async def test_no_poll_of_a_batch_is_lost(three: list[Opened]) -> None:
    life = begin(Script.parse("queued:25, running:25, done"), 1000.0)
    put = Batch(A, "r", 1, M3, "requests", 1, 2, 2e9, life)
    await three[0].store.put(put, b"{}")
    polls = [
        Batches(world.store, 5).poll(world.account, world.account.settings, "r", M3)
        for world in three
        for _ in range(17)
    ]
    found = await asyncio.gather(*polls)
    states = [batch.life.state for batch in found if batch is not None]
    assert [states.count(state) for state in ("queued", "running", "done")] == [25, 25, 1]


async def test_a_jumping_clock_is_moved_by_one_poll_at_a_time(three: list[Opened]) -> None:
    account = three[0].account

    def set_to_jump() -> None:
        account.own_clock().freeze()
        account.own_clock().jump = True

    await three[0].store.say(account, set_to_jump)
    began = account.clock.now()
    life = begin(Script.parse(", ".join(["queued:10s"] * 30 + ["done"])), began)
    await three[0].store.put(Batch(A, "r", 1, M3, "requests", 1, 2, began, life), b"{}")
    for world in three:
        await world.store.refresh(world.account)
    await asyncio.gather(
        *(
            Batches(world.store, 5).poll(world.account, world.account.settings, "r", M3)
            for world in three
            for _ in range(5)
        )
    )
    await three[1].store.refresh(three[1].account)
    assert three[1].account.clock.now() == pytest.approx(began + 150, abs=1e-6)


async def test_a_poll_that_moves_the_clock_overwrites_nothing_that_was_said_meanwhile(
    three: list[Opened],
) -> None:
    account = three[0].account

    def set_to_jump() -> None:
        account.own_clock().freeze()
        account.own_clock().jump = True

    await three[0].store.say(account, set_to_jump)
    began = account.clock.now()
    life = begin(Script.parse("queued:10s, done"), began)
    for number in range(30):
        await three[0].store.put(Batch(A, f"r{number}", number, M3, "requests", 1, 2, began, life), b"{}")
    polls = [
        Batches(three[0].store, 5).poll(account, account.settings, f"r{number}", M3) for number in range(30)
    ]

    async def add(world: Opened) -> None:
        other = world.account
        await world.store.say(other, lambda: other.rules.add({"effect": {"error": 3040}}))

    await asyncio.gather(*polls, *(add(world) for world in three[1:] for _ in range(15)))
    await three[0].store.refresh(account)
    assert len(account.rules) == 30
    assert account.clock.now() == began + 10


async def test_a_reset_that_did_not_come_through_changed_nothing(
    three: list[Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = three[0]
    server: Any = world.accounts.defaults
    await world.store.say(server, lambda: server.change_settings(Settings.parse({"script": "lost"})))

    async def out_of_reach(*_: object) -> None:
        raise NotKept("out of reach")

    with monkeypatch.context() as patched:
        patched.setattr("workersai_emulator.redis_link.RedisLink.run", out_of_reach)
        with pytest.raises(NotKept):
            await world.accounts.reset(None)
    await world.store.refresh(server)
    assert str(server.settings.script) == "lost"


async def test_changes_of_several_at_once_are_all_there(three: list[Opened]) -> None:
    async def add(world: Opened) -> str:
        account = world.account
        added = await world.store.say(account, lambda: account.rules.add({"effect": {"error": 3040}}))
        return added.id

    added = await asyncio.gather(*(add(world) for world in three for _ in range(10)))
    await three[0].store.refresh(three[0].account)
    assert sorted(added) == sorted(f"rule-{number}" for number in range(1, 31))
    assert {rule.id for rule in three[0].account.rules} == set(added)


async def test_what_one_says_the_others_go_by_at_once(three: list[Opened]) -> None:
    server: Any = three[0].accounts.defaults
    await three[0].store.say(server, lambda: server.change_settings(Settings.parse({"script": "lost"})))
    for world in three:
        account, _ = await world.accounts.arrive(A)
        assert str(account.settings.script) == "lost"
    await three[1].accounts.reset(None)
    for world in three:
        account, number = await world.accounts.arrive(A)
        assert account.settings.script is None
    assert number == 3


def over(operation: str = "poll", account_id: str = A, **known: Any) -> Exchange:
    return Exchange("POST", "/path", 0.0, account_id=account_id, operation=operation, **known)


async def test_the_journal_is_one_and_counts_on(three: list[Opened]) -> None:
    for world, operation in zip(three, ("submit", "poll", "run"), strict=True):
        await world.store.journal.add(over(operation, slips=("bare-body",), retry_after=1.5))
    await three[0].store.journal.add(over(account_id="b" * 32))
    for world in three:
        found = await world.store.journal.find(A)
        assert [(each.seq, each.operation) for each in found] == [(1, "submit"), (2, "poll"), (3, "run")]
        assert (found[0].slips, found[0].retry_after, found[0].path) == (("bare-body",), 1.5, "/path")
        assert [each.seq for each in await world.store.journal.find(None, Filter(after=2))] == [3, 4]
    await three[2].store.journal.clear(A)
    assert [each.seq for each in await three[0].store.journal.find(None)] == [4]
    await three[0].store.journal.add(over())
    assert [each.seq for each in await three[1].store.journal.find(A)] == [5]


async def test_exchanges_of_all_processes_are_counted_together(three: list[Opened]) -> None:
    for number, world in enumerate(three):
        for seconds in (0.0005, 0.3, 99.0):
            exchange = Exchange(
                "POST", "/", 0.0, "rest", A, "run", M3, status=200, seconds=seconds + number / 1e4
            )
            await world.store.journal.add(exchange)
    await three[0].store.journal.add(
        Exchange("POST", "/", 0.0, "rest", A, "run", "@cf/made/up", status=400, code=7000)
    )
    await three[0].accounts.reset(None)

    counted = await three[1].store.journal.counted()

    durations = counted["rest", "run", M3, "200", ""]
    assert (durations.counts[0], durations.counts[8], durations.counts[-1], sum(durations.counts)) == (
        3,
        3,
        3,
        9,
    )
    assert durations.seconds == pytest.approx(3 * 99.3005 + 3 * 0.0003, abs=1e-6)
    assert sum(counted["rest", "run", OTHER, "400", "7000"].counts) == 1
    assert len(counted) == 2


async def test_a_series_for_which_there_is_no_room_is_counted_with_others(
    three: list[Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_journal, "_MOST_COUNTS", 4)
    for status in (200, 201, 202, 203, 200):
        exchange = Exchange("POST", "/", 0.0, "rest", A, "run", M3, status=status)
        await three[0].store.journal.add(exchange)

    counted = await three[1].store.journal.counted()

    assert {series[3]: sum(durations.counts) for series, durations in counted.items()} == {
        "200": 2,
        "201": 1,
        OTHER: 2,
    }


async def test_a_waiter_hears_of_exchanges_of_other_processes(three: list[Opened]) -> None:
    await three[1].store.journal.add(over())
    waiting = asyncio.create_task(three[0].store.journal.wait(A, Filter(operation="poll"), 2, 30))
    for exchange in (over("submit"), over(account_id="b" * 32), over()):
        await three[2].store.journal.add(exchange)
    assert [each.seq for each in await waiting] == [1, 4]


async def test_a_waiter_gets_what_there_is_when_time_is_up(three: list[Opened]) -> None:
    await three[1].store.journal.add(over())
    found = await three[0].store.journal.wait(A, Filter(), 2, 0.01)
    assert [each.seq for each in found] == [1]


async def test_what_is_said_of_a_gateway_log_is_seen_by_all(three: list[Opened]) -> None:
    await three[0].store.journal.add(over(gateway_log=GatewayLog("01A", "g", metadata={"a": 1})))
    (found,) = await three[1].store.journal.find(A)
    assert found.gateway_log is not None
    found.gateway_log.patch({"score": 7})
    await three[1].store.journal.amend(found)
    (seen,) = await three[2].store.journal.find(A)
    assert seen.gateway_log is not None
    assert (seen.gateway_log.opinion, seen.gateway_log.metadata, seen.seq) == ({"score": 7}, {"a": 1}, 1)


async def test_all_have_the_seed_of_the_first(state: str) -> None:
    first = await opened(state, seed=8)
    second = await opened(state)
    assert (first.seed, second.seed) == (8, 8)
    with pytest.raises(ValueError, match="has the seed 8, which all who share it have; leave --seed out"):
        await opened(state, seed=9)
    for world in (first, second):
        await world.store.close()


async def test_two_prefixes_are_two_states(new_state: Callable[[str], str | None]) -> None:
    one, other = [await opened(new_state("redis")) for _ in range(2)]
    await one.store.arrive(one.account)
    await other.accounts.reset(None)
    assert (await one.store.arrive(one.account), await other.store.arrive(other.account)) == (2, 1)
    for world in (one, other):
        await world.store.close()


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("redis://me:secret@127.0.0.1:1/0", r"the state at redis://127.0.0.1:1/0 is out of reach: .*"),
        ("redis://127.0.0.1:1?prefix=*", r"the prefix '\*' may have letters, digits and _ . - alone"),
        ("postgres://me:secret@host/x", "postgres:// is not known; give a file, or redis://…"),
        ("redis://127.0.0.1:port", "redis://127.0.0.1:port: .*"),
    ],
)
async def test_a_state_that_cannot_be_opened_is_told_in_one_line_without_its_password(
    url: str, line: str
) -> None:
    with pytest.raises(ValueError, match=f"^--state: {line}$") as refused:
        await opened(url)
    assert "secret" not in str(refused.value)


async def test_many_waiters_keep_nobody_from_the_state(three: list[Opened]) -> None:
    journal = three[0].store.journal
    waiting = [asyncio.create_task(journal.wait(A, Filter(), 1, 30)) for _ in range(80)]
    await asyncio.sleep(0.05)  # noqa: TID251 - all listen
    for number in range(1, 4):
        assert await three[0].store.arrive(three[0].account) == number
    await journal.add(over())
    assert [len(found) for found in await asyncio.gather(*waiting)] == [1] * 80


async def test_without_the_library_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(
        ValueError, match=r"^--state: a Redis needs the extra redis: pip install '.*\[redis\]'$"
    ):
        await opened("redis://127.0.0.1")


async def test_a_redis_that_went_away_is_told_and_found_again(tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:
        world = await opened(server.url)
        await world.store.arrive(world.account)
        server.stop()
        for _ in range(3):
            with pytest.raises(NotKept, match=f"the state at {server.url} is out of reach: "):
                await world.store.arrive(world.account)
        server.start()
        assert await world.store.arrive(world.account) == 1
        await world.store.close()
