"""What was kept is all there for another process: after the end of the first (a file), or beside it (a Redis)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workersai_contracts import model
from workersai_emulator.batches import Batches
from workersai_emulator.clock import Clock
from workersai_emulator.lifecycle import begin, decide, go_on, hold
from workersai_emulator.records import read_batch, written_life, written_submit
from workersai_emulator.rules import Rules
from workersai_emulator.scripts import Script, Step
from workersai_emulator.settings import Settings
from workersai_emulator.store import Batch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from opened_stores import Opened

    Again = Callable[[], Awaitable[Opened]]

A = "a" * 32
M3 = "@cf/baai/bge-m3"


async def submitted(
    world: Opened, script: str = "queued:1, running:1, done", payload: bytes = b"{}"
) -> Batch:
    return await Batches(world.store, world.seed).submit(
        world.account,
        M3,
        payload,
        Script.parse(script),
        form="bare",
        items=3,
        outputs={0: b'"\xed\xa0\x80"', 2: b"5"},
        failures={1: "capacity"},
    )


async def polled(world: Opened, batch: Batch) -> Batch:
    found = await Batches(world.store, world.seed).poll(
        world.account, world.account.settings, batch.request_id, M3
    )
    assert found is not None
    return found


@pytest.mark.parametrize("size", [0, 2, 256 * 1024, 256 * 1024 + 1, 1_500_000])
async def test_a_batch_is_found_with_all_that_it_has(kept_world: Opened, again: Again, size: int) -> None:
    put = await submitted(kept_world, payload=b"x" * size)
    there = await again()
    assert await there.store.get(put.key) == put
    assert await there.store.payload(put.key) == b"x" * size


async def test_a_life_goes_on_where_it_was(kept_world: Opened, again: Again) -> None:
    put = await submitted(kept_world)
    assert (await polled(kept_world, put)).life.state == "queued"
    there = await again()
    assert (await polled(there, put)).life.state == "running"
    once_more = await again()
    assert (await polled(once_more, put)).life.state == "done"


async def test_a_life_that_was_decided_by_hand_stays_decided(kept_world: Opened, again: Again) -> None:
    put = await submitted(kept_world, "queued:hold, done")
    await Batches(kept_world.store, 5).act(kept_world.account, put.request_id, "fail", "3050")
    there = await again()
    found = await polled(there, put)
    assert (found.life.state, found.life.decided, found.life.step.error) == ("failed", True, "3050")


async def test_numbers_and_the_seed_go_on(kept_world: Opened, again: Again) -> None:
    first = await submitted(kept_world)
    await kept_world.store.arrive(kept_world.account)
    there = await again()
    assert there.seed == kept_world.seed
    second = await submitted(there)
    assert (second.number, await there.store.arrive(there.account)) == (first.number + 1, 2)
    assert second.request_id != first.request_id


async def test_what_was_forgotten_stays_forgotten(kept_world: Opened, again: Again) -> None:
    kept, gone = await submitted(kept_world), await submitted(kept_world, payload=b"x" * 600_000)
    await kept_world.store.forget(gone.key)
    there = await again()
    assert [batch.request_id for batch in await there.store.list(None)] == [kept.request_id]
    assert await there.store.payload(gone.key) is None


@pytest.mark.parametrize("whose", ["account", "server"])
async def test_settings_rules_and_how_often_they_fired(kept_world: Opened, again: Again, whose: str) -> None:
    owner: Any = kept_world.account if whose == "account" else kept_world.accounts.defaults
    said = {
        "script": "queued:20s, done",
        "scripts": {M3: "lost"},
        "assumptions": {"done.order": "request"},
        "limits": {"payload_bytes": None, "text_tokens": 7, "body_bytes": "documented"},
        "plan": "paid",
        "worker_binding": False,
    }
    await kept_world.store.say(owner, lambda: owner.change_settings(Settings.parse(said)))
    spelled = {"match": {"nth": 3}, "effect": {"error": 3040, "retry_after": 2}, "probability": 1}
    await kept_world.store.say(owner, lambda: owner.rules.add(spelled))
    for _ in range(3):
        await kept_world.store.count(
            kept_world.account, lambda: owner.rules.fire("run", M3, {}, lambda *_: 0.0)
        )
    shown, settings = [rule.as_json() for rule in owner.rules], owner.settings
    assert shown[0]["fired"] == 1
    there = await again()
    same: Any = there.account if whose == "account" else there.accounts.defaults
    await there.store.refresh(same)
    assert [rule.as_json() for rule in same.rules] == shown
    assert [(rule.seen, rule.fired) for rule in same.rules] == [(3, 1)]
    assert same.settings == settings
    assert (await there.store.say(same, lambda: same.rules.add({"effect": {"error": 3040}}))).id.endswith("2")


async def test_clocks_show_the_same_and_go_on_as_they_did(kept_world: Opened, again: Again) -> None:
    server = kept_world.accounts.defaults
    frozen, fast = kept_world.account, kept_world.accounts.get("b" * 32)
    await kept_world.store.say(server, lambda: server.clock.advance(3600))
    await kept_world.store.say(frozen, lambda: frozen.own_clock().freeze())
    await kept_world.store.say(fast, lambda: fast.own_clock().rescale(1e5))
    before = fast.clock.now()
    there = await again()
    for account_id in (A, "b" * 32):
        await there.store.refresh(there.accounts.get(account_id))
    assert there.account.clock.said() == frozen.clock.said()
    assert there.accounts.get("b" * 32).clock.now() > before
    assert there.accounts.defaults.clock.said() == server.clock.said()


async def test_a_clock_that_a_poll_moved_is_kept_with_the_poll(kept_world: Opened, again: Again) -> None:
    account = kept_world.account

    def set_to_jump() -> None:
        account.own_clock().freeze()
        account.own_clock().jump = True

    await kept_world.store.say(account, set_to_jump)
    await kept_world.store.kept()
    began = account.clock.now()
    put = await submitted(kept_world, "queued:20s, running:40s, done")
    assert (await polled(kept_world, put)).life.state == "running"
    there = await again()
    await there.store.refresh(there.account)
    assert there.account.clock.now() == began + 20
    assert (await polled(there, put)).life.state == "done"
    assert there.account.clock.now() == began + 60


async def test_usage_of_the_day_and_the_minute(kept_world: Opened, again: Again) -> None:
    account, card = kept_world.account, model(M3)
    assert card is not None
    await kept_world.store.count(account, lambda: account.own_clock().freeze())
    await kept_world.store.say(account, lambda: account.own_clock().freeze())
    await kept_world.store.count(account, lambda: account.usage.add(card, 1000, 7))
    await kept_world.store.count(account, lambda: account.minute.take(M3, 2))
    there = await again()
    same = there.account
    await there.store.refresh(same)
    assert same.usage.today == account.usage.today
    assert await there.store.count(same, lambda: same.minute.take(M3, 2))
    assert not await there.store.count(same, lambda: same.minute.take(M3, 2))


async def test_a_reset_is_kept(kept_world: Opened, again: Again) -> None:
    await submitted(kept_world)
    account = kept_world.account
    await kept_world.store.say(account, lambda: account.rules.add({"effect": {"error": 3040}}))
    await kept_world.accounts.reset(None)
    there = await again()
    await there.store.refresh(there.account)
    assert (await there.store.list(None), len(there.account.rules)) == ([], 0)
    assert (await submitted(there)).number == 1


@st.composite
def lives(draw: st.DrawFn) -> Any:
    steps = draw(
        st.lists(st.sampled_from(["queued:1", "running:3", "queued:1.5s", "running:hold"]), max_size=4)
    )
    last = draw(st.sampled_from(["done", "failed", "failed:3040", "lost"]))
    life = begin(Script.parse(", ".join([*steps, last])), draw(st.floats(0, 4e9)))
    for action in draw(st.lists(st.sampled_from(["go", "hold", "end"]), max_size=4)):
        now = draw(st.floats(0, 4e9))
        life = {
            "go": lambda life=life, now=now: go_on(life, now),
            "hold": lambda life=life: hold(life),
            "end": lambda life=life, now=now: decide(life, Step("failed", error="5001"), now),
        }[action]()
    return life


@given(
    lives(),
    st.dictionaries(st.integers(0, 10**6), st.binary()),
    st.dictionaries(st.integers(0, 9), st.text()),
)
def test_any_batch_is_read_as_it_was_written(life: Any, outputs: Any, failures: Any) -> None:
    batch = Batch(A, "r", 7, M3, "bare", 1, 10**7, 1.1, life, outputs, failures)
    assert read_batch(A, "r", written_submit(batch), written_life(batch.life)) == batch
    assert read_batch(A, "r", written_submit(batch.lived(hold(life))), written_life(life)) == batch


@pytest.mark.parametrize(
    "effect",
    [
        {"error": 3040, "retry_after": "1500ms"},
        {"script": "queued:2m, failed:5001"},
        {"output": {"x": [1, None, "\ud800", 10**30]}},
        {"items": {"indexes": [3, 0], "code": 3030}},
        {"items": {"share": 0.25}},
        {"items": {"text": "a"}},
        {"reply": {"status": 502, "headers": {"x-a": "b"}, "body": {"a": 1}}},
        {"delay": "2s"},
        {"busy": 0.001},
        {"stream": {"after": 2, "error": 3040}},
        {"stream": {"after": 0}},
        {"assume": {"poll.retention": "once"}},
        {"transport": "reset-after"},
    ],
    ids=str,
)
def test_any_rule_is_read_as_it_was_written(effect: Any) -> None:
    rules, read = Rules(), Rules()
    rules.add({"match": {"operation": "submit", "nth": 2}, "effect": effect, "times": 3}, scenario="stuck")
    read.take(rules.said())
    assert [each.as_json() for each in read] == [each.as_json() for each in rules]
    assert [each.effect for each in read] == [each.effect for each in rules]


@given(st.booleans(), st.booleans(), st.floats(1e-3, 1e6), st.none() | st.floats(0, 4e9), st.floats(0, 4e9))
def test_any_clock_is_read_as_it_was_written(
    frozen: bool, jump: bool, scale: float, at: float | None, since: float
) -> None:
    clock = Clock(frozen, scale, jump, at, since)
    assert Clock.of(clock.said()) == clock


def test_settings_that_say_nothing_are_written_as_nothing() -> None:
    assert Settings().said() == {}
    assert Settings.parse({"limits": {"body_bytes": None}}).said() == {"limits": {"body_bytes": None}}
