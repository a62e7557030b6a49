from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from workersai_emulator.accounts import Account, Accounts
from workersai_emulator.batches import Batches
from workersai_emulator.clock import parse_time
from workersai_emulator.ids import request_id
from workersai_emulator.memory_store import MemoryStore
from workersai_emulator.scripts import Script
from workersai_emulator.settings import Settings

if TYPE_CHECKING:
    from workersai_emulator.store import Batch

A, B = "a" * 32, "b" * 32
M3, BASE = "@cf/baai/bge-m3", "@cf/baai/bge-base-en-v1.5"
DAY = 24 * 3600.0
SEED = 5


@pytest.fixture
def accounts(system: Any) -> Accounts:
    """Accounts that go by a clock which stands still."""
    accounts = Accounts(Settings())
    accounts.defaults.clock.freeze()
    return accounts


@pytest.fixture
def account(accounts: Accounts) -> Account:
    return accounts.get(A)


@pytest.fixture
def batches() -> Batches:
    return Batches(MemoryStore(max_bytes=10**6, max_batches=1000), SEED)


async def submit(batches: Batches, account: Account, script: str = "default") -> str:
    batch = await batches.submit(
        account, M3, b"{}", Script.parse(script), form="requests", items=3, outputs={}, failures={}
    )
    return batch.request_id


async def seen(batches: Batches, account: Account, wanted: str, model: str = M3) -> str | None:
    batch = await batches.poll(account, account.settings, wanted, model)
    return None if batch is None else batch.life.state


async def test_submit_is_numbered_named_and_kept(batches: Batches, account: Account, system: Any) -> None:
    await submit(batches, account)
    batch = await batches.submit(
        account,
        M3,
        b'{"requests":[]}',
        Script.parse("lost"),
        form="bare",
        items=1,
        outputs={0: b"5"},
        failures={},
    )
    assert (batch.number, batch.size, batch.submitted_at, batch.form) == (2, 15, system.now, "bare")
    assert batch.request_id == request_id(SEED, A, 2)
    assert await batches.get(account, batch.request_id) == batch
    assert await batches.store.payload(batch.key) == b'{"requests":[]}'


async def test_same_bytes_twice_are_two_batches(batches: Batches, account: Account) -> None:
    assert await submit(batches, account) != await submit(batches, account)


async def test_polls_show_the_states_of_the_script(batches: Batches, account: Account) -> None:
    wanted = await submit(batches, account)
    assert [await seen(batches, account, wanted) for _ in range(4)] == ["queued", "running", "done", "done"]


async def test_another_accounts_batch_is_unknown(batches: Batches, accounts: Accounts) -> None:
    wanted = await submit(batches, accounts.get(A), "instant")
    assert await seen(batches, accounts.get(B), wanted) is None
    assert await batches.get(accounts.get(B), wanted) is None
    assert await batches.act(accounts.get(B), wanted, "lose", None) is None
    assert await batches.list(accounts.get(B)) == []
    assert await seen(batches, accounts.get(A), wanted) == "done"


@pytest.mark.parametrize(
    ("script", "at_once"),
    [("instant", True), ("queued:10h, done", False)],
    ids=["at once", "after ten hours"],
)
async def test_finished_batch_can_be_read_for_a_day_and_no_longer(
    batches: Batches, account: Account, script: str, at_once: bool
) -> None:
    wanted = await submit(batches, account, script)
    account.clock.advance(DAY - 0.5 + (0 if at_once else 36000))
    assert [await seen(batches, account, wanted) for _ in range(3)] == ["done"] * 3
    account.clock.advance(0.5)
    assert await batches.get(account, wanted) is None
    assert await seen(batches, account, wanted) is None


async def test_reading_a_finished_batch_does_not_lengthen_its_day(batches: Batches, account: Account) -> None:
    wanted = await submit(batches, account, "instant")
    account.clock.advance(DAY / 2)
    assert await seen(batches, account, wanted) == "done"
    account.clock.advance(DAY / 2)
    assert await seen(batches, account, wanted) is None


@pytest.mark.parametrize(
    "script", ["queued:hold, done", "queued:2, done", "queued:25h, done", "queued:24h, done"]
)
@pytest.mark.parametrize("looked_at", [True, False], ids=["looked at", "left alone"])
async def test_batch_that_is_not_done_a_day_after_its_submit_is_forgotten(
    batches: Batches, account: Account, script: str, looked_at: bool
) -> None:
    wanted = await submit(batches, account, script)
    account.clock.advance(DAY - 0.5)
    assert await seen(batches, account, wanted) == "queued"
    account.clock.advance(0.5)
    if looked_at:
        assert await batches.get(account, wanted) is None
    account.clock.advance(7200)
    assert await batches.list(account) == []
    assert await seen(batches, account, wanted) is None
    assert await batches.act(account, wanted, "go-on", None) is None


async def test_expired_batch_leaves_the_store_when_it_is_polled(batches: Batches, account: Account) -> None:
    wanted = await submit(batches, account, "instant")
    account.clock.advance(DAY)
    await seen(batches, account, wanted)
    assert await batches.store.get((A, wanted)) is None


async def test_batch_read_once_is_then_unknown(batches: Batches, account: Account) -> None:
    account.change_settings(Settings().assume({"poll.retention": "once"}))
    wanted = await submit(batches, account, "queued:1, done")
    assert [await seen(batches, account, wanted) for _ in range(3)] == ["queued", "done", None]
    assert await batches.store.get((A, wanted)) is None


async def test_failed_batch_can_be_read_again_where_a_done_one_cannot(
    batches: Batches, account: Account
) -> None:
    account.change_settings(Settings().assume({"poll.retention": "once"}))
    wanted = await submit(batches, account, "failed")
    assert [await seen(batches, account, wanted) for _ in range(2)] == ["failed", "failed"]


async def test_poll_under_another_model_is_unknown_and_not_counted(
    batches: Batches, account: Account
) -> None:
    wanted = await submit(batches, account)
    assert await seen(batches, account, wanted, BASE) is None
    assert await seen(batches, account, wanted) == "queued"
    account.change_settings(Settings().assume({"poll.other-model": "answered"}))
    assert await seen(batches, account, wanted, BASE) == "running"


async def test_lost_batch_is_unknown_to_polls_and_shown_to_who_looks(
    batches: Batches, account: Account
) -> None:
    wanted = await submit(batches, account, "queued:1, lost")
    assert [await seen(batches, account, wanted) for _ in range(3)] == ["queued", None, None]
    batch = await batches.get(account, wanted)
    assert batch is not None
    assert batch.life.state == "lost"


async def test_looking_moves_time_and_counts_no_poll(batches: Batches, account: Account) -> None:
    wanted = await submit(batches, account, "queued:10s, running:1, done")
    account.clock.advance(10)
    for _ in range(3):
        batch = await batches.get(account, wanted)
        assert batch is not None
        assert (batch.life.state, batch.life.polls) == ("running", 0)
    assert [batch.life.state for batch in await batches.list(account)] == ["running"]


async def acted(
    batches: Batches, account: Account, wanted: str, action: Any, error: str | None = None
) -> Batch:
    batch = await batches.act(account, wanted, action, error)
    assert batch is not None
    return batch


async def test_held_batch_waits_until_told_to_go_on(batches: Batches, account: Account) -> None:
    wanted = await submit(batches, account, "queued:10s, done")
    assert str((await acted(batches, account, wanted, "hold")).life.script) == "queued:hold, done"
    account.clock.advance(60)
    assert [await seen(batches, account, wanted) for _ in range(3)] == ["queued"] * 3
    assert (await acted(batches, account, wanted, "go-on")).life.state == "done"


async def test_time_passes_before_an_action(batches: Batches, account: Account) -> None:
    wanted = await submit(batches, account, "queued:10s, running:10s, done")
    account.clock.advance(15)
    assert (await acted(batches, account, wanted, "hold")).life.state == "running"


async def test_failed_and_lost_by_hand(batches: Batches, account: Account) -> None:
    wanted = await submit(batches, account, "instant")
    failed = await acted(batches, account, wanted, "fail", "capacity")
    assert (failed.life.state, failed.life.step.error) == ("failed", "capacity")
    assert await seen(batches, account, wanted) == "failed"
    assert (await acted(batches, account, wanted, "lose")).life.state == "lost"
    assert await seen(batches, account, wanted) is None


async def test_deciding_a_finished_batch_does_not_lengthen_its_day(
    batches: Batches, account: Account
) -> None:
    wanted = await submit(batches, account, "queued:20h, done")
    account.clock.advance(30 * 3600)
    await acted(batches, account, wanted, "fail")
    account.clock.advance(14 * 3600 - 1)
    assert await seen(batches, account, wanted) == "failed"
    account.clock.advance(1)
    assert await seen(batches, account, wanted) is None


async def test_action_on_an_unknown_batch_is_none(batches: Batches, account: Account) -> None:
    assert await batches.act(account, "nobody", "go-on", None) is None


async def test_jumping_clock_moves_to_each_change_as_it_is_polled(
    batches: Batches, account: Account, system: Any
) -> None:
    wanted = await submit(batches, account, "realistic")
    account.own_clock().jump = True
    assert await seen(batches, account, wanted) == "running"
    assert account.clock.now() == system.now + 20
    assert await seen(batches, account, wanted) == "done"
    assert account.clock.now() == system.now + 60
    assert await seen(batches, account, wanted) == "done"
    assert account.clock.now() == system.now + 60


async def test_jump_of_one_account_leaves_the_servers_clock_alone(
    batches: Batches, accounts: Accounts, system: Any
) -> None:
    accounts.defaults.clock.jump = True
    wanted = await submit(batches, accounts.get(A), "realistic")
    assert await seen(batches, accounts.get(A), wanted) == "running"
    assert accounts.get(A).clock.now() == system.now + 20
    assert accounts.get(B).clock.now() == system.now


@pytest.mark.parametrize("script", ["default", "queued:hold, done"])
async def test_clock_does_not_jump_where_time_changes_nothing(
    batches: Batches, account: Account, system: Any, script: str
) -> None:
    wanted = await submit(batches, account, script)
    account.own_clock().jump = True
    assert await seen(batches, account, wanted) == "queued"
    assert account.clock.now() == system.now


@pytest.mark.parametrize("wait", ["24h", "70000000h"], ids=["a day", "more than the calendar has"])
async def test_jump_goes_no_farther_than_the_batch_is_kept(
    batches: Batches, account: Account, system: Any, wait: str
) -> None:
    wanted = await submit(batches, account, f"queued:{wait}, done")
    account.own_clock().jump = True
    assert await seen(batches, account, wanted) is None
    assert account.clock.now() == system.now + DAY


async def test_jump_at_the_end_of_the_calendar_is_no_fault(batches: Batches, account: Account) -> None:
    account.own_clock().set(parse_time("9998-12-31T23:00:00Z"))
    wanted = await submit(batches, account, "queued:2h, done")
    account.own_clock().jump = True
    assert await seen(batches, account, wanted) == "queued"
