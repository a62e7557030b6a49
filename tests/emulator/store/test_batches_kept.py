"""What every store keeps to of batches."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import pytest

from workersai_emulator.accounts import Accounts
from workersai_emulator.lifecycle import begin, decide, go_on
from workersai_emulator.scripts import Script, Step
from workersai_emulator.settings import Settings
from workersai_emulator.store import Batch, Store

A, B = "a" * 32, "b" * 32
DAY = 24 * 3600.0
ACCOUNTS = Accounts(Settings())
ACCOUNT = ACCOUNTS.get(A)

MakeStore = Callable[[int, int], Awaitable[Store]]


def batch(number: int, *, account_id: str = A, size: int = 10, script: str = "queued:1, done") -> Batch:
    return Batch(
        account_id=account_id,
        request_id=f"request-{number}",
        number=number,
        model="@cf/baai/bge-m3",
        form="requests",
        items=1,
        size=size,
        submitted_at=1000.0,
        life=begin(Script.parse(script), 1000.0),
    )


async def kept(store: Store, *numbers: int, size: int = 10) -> None:
    for number in numbers:
        await store.put(batch(number, size=size), b"x" * size)


async def ids(store: Store, account_id: str | None = None) -> list[str]:
    return [found.request_id for found in await store.list(account_id)]


def test_a_batch_that_lived_is_the_same_but_for_its_life() -> None:
    young = batch(1)
    old = young.lived(go_on(young.life, 2000.0))
    assert old.life != young.life
    assert old._replace(life=young.life) == young


async def test_numbers_count_each_accounts_submits_from_one(store: Store) -> None:
    numbers = [await store.next(account_id, "submit") for account_id in (A, A, B, A, B)]
    assert numbers == [1, 2, 1, 3, 2]


async def test_batch_and_its_bytes_come_back_as_they_were_put(store: Store) -> None:
    put = batch(1, script="queued:1500ms, running:hold, failed:3040")
    await store.put(put, b'{"requests":[\xff')
    assert await store.get(put.key) == put
    assert await store.payload(put.key) == b'{"requests":[\xff'


async def test_life_with_its_entries_and_decision_comes_back(store: Store) -> None:
    put = batch(1)
    await store.put(put, b"")
    decided = put.lived(decide(put.life, Step("failed", error="3040"), 1234.5678))
    assert await store.poll(ACCOUNT, put.request_id, lambda _: decided) == decided
    assert await store.get(put.key) == decided


@pytest.mark.parametrize(
    "key",
    [(B, "request-1"), (A, "request-2"), ("", ""), (A, "\ud800")],
    ids=["account", "id", "empty", "surrogate"],
)
async def test_unknown_key_is_none_everywhere(store: Store, key: tuple[str, str]) -> None:
    await kept(store, 1)
    assert await store.get(key) is None
    assert await store.payload(key) is None
    assert await store.poll(ACCOUNTS.get(key[0]), key[1], lambda found: found) is None
    await store.forget(key)
    assert await ids(store) == ["request-1"]


async def test_poll_keeps_what_the_change_makes_of_the_batch(store: Store) -> None:
    await kept(store, 1)
    changed = await store.poll(ACCOUNT, "request-1", lambda found: found.lived(go_on(found.life, 1002.5)))
    assert changed is not None
    assert changed.life.state == "done"
    assert await store.get((A, "request-1")) == changed
    assert await store.payload((A, "request-1")) == b"x" * 10


async def test_poll_that_makes_nothing_of_the_batch_forgets_it(store: Store) -> None:
    await kept(store, 1)
    assert await store.poll(ACCOUNT, "request-1", lambda _: None) is None
    assert await store.get((A, "request-1")) is None
    assert await store.payload((A, "request-1")) is None


async def test_poll_whose_change_fails_keeps_the_batch_as_it_was(store: Store) -> None:
    await kept(store, 1)

    def fail(found: Batch) -> Batch:
        raise ArithmeticError(found.request_id)

    with pytest.raises(ArithmeticError, match="request-1"):
        await store.poll(ACCOUNT, "request-1", fail)
    assert await store.get((A, "request-1")) == batch(1)
    assert await store.payload((A, "request-1")) == b"x" * 10


async def test_forgotten_batch_is_gone_with_its_bytes(store: Store) -> None:
    await kept(store, 1, 2)
    await store.forget((A, "request-1"))
    assert await ids(store) == ["request-2"]
    assert await store.payload((A, "request-1")) is None


async def test_list_is_in_the_order_of_submits_whatever_was_polled(store: Store) -> None:
    await kept(store, 1, 2, 3)
    await store.put(batch(1, account_id=B), b"")
    await store.poll(ACCOUNT, "request-1", lambda found: found)
    assert await ids(store, A) == ["request-1", "request-2", "request-3"]
    assert [(found.account_id, found.number) for found in await store.list(None)] == [
        (A, 1),
        (A, 2),
        (A, 3),
        (B, 1),
    ]


async def test_same_id_in_two_accounts_is_two_batches(store: Store) -> None:
    await store.put(batch(1), b"of a")
    await store.put(batch(1, account_id=B), b"of b")
    assert await store.payload((A, "request-1")) == b"of a"
    await store.forget((A, "request-1"))
    assert await store.payload((B, "request-1")) == b"of b"


async def test_reset_of_an_account_drops_its_batches_and_counts_alone(store: Store) -> None:
    for account_id in (A, B):
        await store.put(batch(await store.next(account_id, "submit"), account_id=account_id), b"")
    await store.reset(A)
    assert [found.account_id for found in await store.list(None)] == [B]
    assert (await store.next(A, "submit"), await store.next(B, "submit")) == (1, 2)


async def test_reset_of_all_drops_everything(store: Store) -> None:
    for account_id in (A, B):
        await store.put(batch(await store.next(account_id, "submit"), account_id=account_id), b"")
    await store.reset(None)
    assert await store.list(None) == []
    assert (await store.next(A, "submit"), await store.next(B, "submit")) == (1, 1)


async def test_too_many_batches_push_out_the_one_polled_longest_ago(
    make_store: MakeStore, caplog: pytest.LogCaptureFixture
) -> None:
    store = await make_store(10**9, 3)
    await kept(store, 1, 2, 3)
    await store.poll(ACCOUNT, "request-1", lambda found: found)
    with caplog.at_level(logging.WARNING, "workersai_emulator"):
        await kept(store, 4)
    assert await ids(store) == ["request-1", "request-3", "request-4"]
    assert [record.getMessage() for record in caplog.records] == [
        f"out of room: batch request-2 of account {A} is forgotten"
    ]


async def test_too_many_bytes_push_out_as_many_as_it_takes(make_store: MakeStore) -> None:
    store = await make_store(100, 10**9)
    await kept(store, 1, 2, 3, 4, size=25)
    await store.poll(ACCOUNT, "request-2", lambda found: found)
    await kept(store, 5, size=50)
    assert await ids(store) == ["request-2", "request-4", "request-5"]
    assert await store.payload((A, "request-1")) is None


async def test_looking_and_listing_is_not_polling(make_store: MakeStore) -> None:
    store = await make_store(10**9, 2)
    await kept(store, 1, 2)
    await store.get((A, "request-1"))
    await store.payload((A, "request-1"))
    await store.list(A)
    await kept(store, 3)
    assert await ids(store) == ["request-2", "request-3"]


async def test_batch_over_the_bound_alone_is_kept_by_itself(make_store: MakeStore) -> None:
    store = await make_store(100, 10)
    await kept(store, 1, 2)
    await kept(store, 3, size=500)
    assert await ids(store) == ["request-3"]


@pytest.mark.parametrize("way", ["forget", "poll", "reset"])
async def test_room_of_what_is_gone_is_free_again(make_store: MakeStore, way: str) -> None:
    store = await make_store(100, 10)
    await kept(store, 1, size=90)
    if way == "forget":
        await store.forget((A, "request-1"))
    elif way == "poll":
        await store.poll(ACCOUNT, "request-1", lambda _: None)
    else:
        await store.reset(A)
    await kept(store, 2, 3, size=50)
    assert await ids(store) == ["request-2", "request-3"]


async def test_polling_often_takes_no_room(make_store: MakeStore) -> None:
    store = await make_store(100, 10)
    await kept(store, 1, 2, size=50)
    for _ in range(20):
        await store.poll(ACCOUNT, "request-1", lambda found: found)
    assert await ids(store) == ["request-1", "request-2"]


@pytest.mark.parametrize(
    ("script", "ended", "expires"),
    [
        ("queued:hold, done", None, 1000 + DAY),
        ("done", 1000.0, 1000 + DAY),
        ("done", 5000.0, 5000 + DAY),
        ("failed", 5000.0, 5000 + DAY),
        ("done", 1000 + DAY - 1, 999 + 2 * DAY),
        ("done", 1000 + DAY, 1000 + DAY),
        ("done", 1000 + 3 * DAY, 1000 + DAY),
    ],
    ids=["never done", "at once", "later", "failed", "just in time", "too late", "days late"],
)
def test_batch_expires_a_day_after_its_end_or_its_submit(
    script: str, ended: float | None, expires: float
) -> None:
    life = begin(Script.parse(script), 1000.0 if ended is None else ended)
    assert batch(1).lived(life).expires_at() == expires
