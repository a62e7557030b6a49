"""The control plane as Python drives it, against a real server."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

from workersai_client import AsyncClient, BatchFailed, Client, Done, Handle, Pending, RateLimited
from workersai_emulator import Emulator, WorkersAI
from workersai_emulator.ids import fresh_account

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BGE_M3 = "@cf/baai/bge-m3"
NOON = datetime(2126, 11, 29, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def server() -> Iterator[Emulator]:
    with Emulator(seed=1) as emulator:
        yield emulator


@pytest.fixture
def account(server: Emulator, request: pytest.FixtureRequest) -> WorkersAI:
    fresh = server.account(fresh_account(1, request.node.nodeid))
    fresh.clock.freeze()
    return fresh


@pytest.fixture
def client(account: WorkersAI) -> Iterator[Client]:
    with Client(account.account_id, account.token, account.base_url, max_retries=0) as made:
        yield made


def submit(client: Client) -> Handle:
    return client.submit(BGE_M3, [{"text": "orange cloud"}, {"text": "a llama"}])


def test_a_script_that_is_assigned_is_how_the_next_batches_live(account: WorkersAI, client: Client) -> None:
    assert account.script == "queued:1, running:1, done"
    account.script = "instant"
    assert account.script == "done"
    assert isinstance(client.poll(submit(client)), Done)


def test_a_batch_is_seen_as_it_is_and_does_not_change_in_the_hand(account: WorkersAI, client: Client) -> None:
    account.clock.set(NOON)
    handle = submit(client)
    (seen,) = account.batches.list()
    client.poll(handle)
    assert (seen.request_id, seen.account_id, seen.model) == (
        handle.request_id,
        account.account_id,
        BGE_M3,
    )
    assert (seen.state, seen.script, seen.items, seen.polls) == ("queued", "queued:1, running:1, done", 2, 0)
    assert (seen.bytes, seen.submitted_at, seen.request) == (57, NOON, None)
    assert account.batches.get(handle.request_id).polls == 1
    with pytest.raises(FrozenInstanceError):
        seen.polls = 3  # type: ignore[misc]


def test_a_single_batch_comes_with_its_request(account: WorkersAI, client: Client) -> None:
    seen = account.batches.get(submit(client).request_id)
    assert seen.request == {"requests": [{"text": "orange cloud"}, {"text": "a llama"}]}


def test_batches_are_listed_by_state_and_model(account: WorkersAI, client: Client) -> None:
    first, second = submit(client), submit(client)
    account.batches.go_on(second.request_id)
    assert [batch.request_id for batch in account.batches.list()] == [first.request_id, second.request_id]
    assert [batch.request_id for batch in account.batches.list(state="running")] == [second.request_id]
    assert account.batches.list(model="@cf/meta/m2m100-1.2b") == []


def test_a_batch_goes_on_holds_fails_and_is_lost_by_hand(account: WorkersAI, client: Client) -> None:
    request_id = (handle := submit(client)).request_id
    assert account.batches.go_on(request_id).state == "running"
    assert account.batches.hold(request_id).script == "queued:1, running:hold, done"
    for _ in range(3):
        assert client.poll(handle) == Pending("running")
    assert account.batches.fail(request_id).state == "failed"
    with pytest.raises(BatchFailed) as failed:
        client.poll(handle)
    assert failed.value.code == 5001
    assert account.batches.fail(request_id, code=3030).script.endswith("failed:3030")
    with pytest.raises(BatchFailed) as failed:
        client.wait(handle, timeout=10)
    assert failed.value.code == 3030
    assert account.batches.lose(request_id).state == "lost"


@pytest.mark.parametrize("duration", ["5m", 300, timedelta(minutes=5)], ids=["text", "seconds", "timedelta"])
def test_time_is_moved_instead_of_waited_for(
    account: WorkersAI, client: Client, duration: str | float | timedelta
) -> None:
    account.script = "queued:5m, done"
    handle = submit(client)
    before = account.clock.now()
    assert isinstance(client.poll(handle), Pending)
    assert account.clock.advance(duration) == before + timedelta(minutes=5) == account.clock.now()
    assert isinstance(client.poll(handle), Done)


def test_the_clock_stands_still_until_it_is_let_go(account: WorkersAI) -> None:
    stood = account.clock.set(NOON)
    assert account.clock.now() == stood == NOON
    account.clock.unfreeze()
    account.clock.scale(1e6)
    gone = account.clock.freeze()
    assert gone > NOON
    assert account.clock.now() == gone


def test_the_clock_jumps_to_a_waiting_batch_s_next_change_at_its_poll(
    account: WorkersAI, client: Client
) -> None:
    account.script = "queued:20s, running:40s, done"
    account.clock.jump()
    handle = submit(client)
    assert client.poll(handle) == Pending("running")
    assert isinstance(client.poll(handle), Done)
    account.clock.jump(False)
    waiting = submit(client)
    assert client.poll(waiting) == client.poll(waiting) == Pending("queued")


def test_a_moment_may_be_told_in_any_zone_but_not_without_one(account: WorkersAI) -> None:
    assert account.clock.set(NOON.astimezone(timezone(timedelta(hours=2)))) == NOON
    with pytest.raises(ValueError, match="has no time zone"):
        account.clock.set(datetime(2127, 1, 1))  # noqa: DTZ001 - the point
    with pytest.raises(ValueError, match="a clock never goes back"):
        account.clock.set(NOON - timedelta(seconds=1))


def test_the_next_requests_of_a_kind_are_refused_as_often_as_was_said(
    account: WorkersAI, client: Client
) -> None:
    rule = account.fail("submit", 3040, times=2, retry_after="2s")
    assert (rule.match, rule.effect) == ({"operation": "submit"}, {"error": "capacity", "retry_after": 2.0})
    for _ in range(2):
        with pytest.raises(RateLimited) as refused:
            submit(client)
        assert (refused.value.code, refused.value.retry_after) == (3040, 2.0)
    assert isinstance(submit(client), Handle)
    assert [(kept.id, kept.times, kept.fired) for kept in account.rules.list()] == [(rule.id, 2, 2)]


def test_a_failure_is_for_once_unless_said_otherwise(account: WorkersAI) -> None:
    assert account.fail("poll", "quota.daily").times == 1
    assert account.fail("run", 5001, times=None, retry_after=timedelta(seconds=3)).times is None


def test_rules_are_added_listed_deleted_and_cleared(account: WorkersAI, client: Client) -> None:
    scripted = account.rules.add(match={"text": "llama"}, effect={"script": "done"})
    drawn = account.rules.add(effect={"error": 5001}, probability=0.0)
    assert (scripted.match, scripted.times, drawn.probability) == ({"text": "llama"}, None, 0.0)
    assert isinstance(client.poll(submit(client)), Done)
    account.rules.delete(scripted.id)
    assert [rule.id for rule in account.rules.list()] == [drawn.id]
    account.rules.clear()
    assert account.rules.list() == []


def test_settings_are_looked_at_and_changed(account: WorkersAI) -> None:
    changed = account.settings.patch(assumptions={"done.order": "request"}, worker_binding=False)
    assert changed == account.settings.get()
    assert (changed["assumptions"]["done.order"], changed["worker_binding"]) == ("request", False)


def test_a_reset_forgets_the_account_and_no_other(
    server: Emulator, account: WorkersAI, client: Client
) -> None:
    other = server.account("ef" * 16)
    other.script = account.script = "instant"
    first = submit(client)
    account.fail("poll", 3040)
    account.reset()
    assert (account.batches.list(), account.rules.list()) == ([], [])
    assert account.script == "queued:1, running:1, done"
    assert other.script == "done"
    assert submit(client) == first, "ids are counted anew"


def test_what_sleeps_can_be_handed_a_function_that_moves_the_clock(account: WorkersAI) -> None:
    account.script = "queued:10m, done"
    with Client(account.account_id, account.token, account.base_url, sleep=account.sleep) as client:
        before = account.clock.now()
        assert isinstance(client.wait(submit(client), timeout=3600), Done)
        assert account.clock.now() >= before + timedelta(minutes=10)


async def test_what_sleeps_asynchronously_can_be_handed_one_too(account: WorkersAI) -> None:
    account.script = "queued:10m, done"
    async with AsyncClient(
        account.account_id, account.token, account.base_url, sleep=account.asleep
    ) as client:
        handle = await client.submit(BGE_M3, [{"text": "a"}])
        assert isinstance(await client.wait(handle, timeout=3600), Done)


@pytest.mark.parametrize(
    ("attempt", "kind", "line"),
    [
        (lambda it: setattr(it, "script", "bogus"), ValueError, "script: 'bogus' is no step"),
        (lambda it: it.clock.advance("soon"), ValueError, "'soon' is not a duration"),
        (lambda it: it.clock.scale(0), ValueError, "scale: 0 is not a number over 0"),
        (lambda it: it.fail("poll", 1), ValueError, "effect: error: "),
        (lambda it: it.rules.add(effect={}), ValueError, "effect: give one of error, script, output"),
        (lambda it: it.rules.delete("../settings"), LookupError, "no rule '../settings'"),
        (lambda it: it.batches.get("a/b?c"), LookupError, "no batch 'a/b"),
        (lambda it: it.batches.fail("none", code=7), LookupError, "no batch 'none'"),
        (lambda it: it.account("short").reset(), ValueError, "account_id: 'short' is not 32 hex digits"),
        (lambda it: it.plane.ask("GET", "nonsense", {}), LookupError, "is not in the control plane"),
        (lambda it: it.plane.ask("PUT", "clock", {}), ValueError, "takes GET and POST, not PUT"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_is_an_exception_with_the_server_s_own_line(
    account: WorkersAI, attempt: Callable[[WorkersAI], object], kind: type[Exception], line: str
) -> None:
    with pytest.raises(kind) as refused:
        attempt(account)
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)
