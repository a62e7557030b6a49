# ruff: noqa: ASYNC240 - small files, and nobody else in the loop
"""A state file that is not ours, not whole, not alone or not writable; and what a stroke writes."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import TYPE_CHECKING

import pytest
from opened_stores import A, Opened, opened

from workersai_emulator import accounts as accounts_module
from workersai_emulator import state_file
from workersai_emulator.lifecycle import begin
from workersai_emulator.scripts import Script
from workersai_emulator.store import Batch, NotKept

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def batch(number: int, size: int = 2) -> Batch:
    life = begin(Script.parse("queued:hold, done"), 1000.0)
    return Batch(A, f"request-{number}", number, "@cf/baai/bge-m3", "requests", 1, size, 1000.0, life)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


async def refusal(path: Path) -> str:
    """The line that a state is refused with."""
    with pytest.raises(ValueError, match="--state: ") as refused:
        await opened(str(path))
    assert "\n" not in str(refused.value)
    return str(refused.value).removeprefix(f"--state: {path} ")


async def kept(path: Path, *numbers: int) -> None:
    world = await opened(str(path))
    for number in numbers:
        await world.store.put(batch(number), b"{}")
    await world.store.close()


@pytest.mark.parametrize(
    "content", [b"a list of things to do", b"x" * 5000, b"SQLite format 3\0" + b"\0" * 50]
)
async def test_what_is_no_state_is_left_as_it_was(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert await refusal(path) == "is not the state of an emulator; it is left as it was"
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


async def test_another_programs_database_is_left_as_it_was(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("create table books (title text)")
    database.close()
    before = path.read_bytes()
    assert await refusal(path) == "is not the state of an emulator; it is left as it was"
    assert path.read_bytes() == before


async def test_a_newer_state_is_left_as_it_was(path: Path) -> None:
    await kept(path, 1)
    database = sqlite3.connect(path)
    database.execute("pragma user_version = 2")
    database.close()
    before = path.read_bytes()
    assert await refusal(path) == (
        "has version 2, of a newer emulator; this one knows 1. It is left as it was"
    )
    assert path.read_bytes() == before


async def test_a_damaged_state_is_refused_in_one_line(path: Path) -> None:
    await kept(path, *range(200))
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    assert "malformed" in await refusal(path)


async def test_one_emulator_has_a_file_at_a_time(path: Path) -> None:
    world = await opened(str(path))
    assert await refusal(path) == (
        "is in use by another emulator: a file has one, and --state redis://… is for several"
    )
    await world.store.close()
    again = await opened(str(path))
    await again.store.close()


@pytest.mark.parametrize("place", ["nowhere/state.db", "."])
async def test_a_place_that_cannot_hold_it_is_told(tmp_path: Path, place: str) -> None:
    assert "cannot be opened: " in await refusal(tmp_path / place)


async def test_an_empty_file_becomes_a_state(path: Path) -> None:
    path.touch()
    await kept(path, 1)
    world = await opened(str(path))
    assert [found.request_id for found in await world.store.list(None)] == ["request-1"]
    await world.store.close()


async def test_after_its_end_there_is_the_one_file(path: Path) -> None:
    await kept(path, 1)
    assert list(path.parent.iterdir()) == [path]


async def test_another_seed_is_taken_and_stays(path: Path) -> None:
    for said, holds in ((None, 5), (8, 8), (None, 8), (9, 9), (None, 9)):
        world = await opened(str(path), seed=said)
        assert world.seed == holds
        await world.store.close()


async def test_parts_of_a_request_that_never_was_are_removed(path: Path) -> None:
    await kept(path, 1)
    database = sqlite3.connect(path)
    database.execute("insert into payloads values (99 << 20, 'orphan')")
    database.commit()
    database.close()
    world = await opened(str(path))
    await world.store.close()
    database = sqlite3.connect(path)
    assert database.execute("select id >> 20, bytes from payloads").fetchall() == [(1, b"{}")]
    database.close()


async def test_other_changes_need_not_wait_for_the_whole_of_a_large_request(path: Path) -> None:
    world = await opened(str(path), max_bytes=10**9)
    large = asyncio.create_task(world.store.put(batch(1, 20_000_000), b"x" * 20_000_000))
    await asyncio.sleep(0)  # noqa: TID251 - it has begun
    await world.store.put(batch(2), b"{}")
    await world.store.kept()
    assert not large.done()
    assert [found.request_id for found in await world.store.list(None)] == ["request-2"]
    await large
    assert len(await world.store.payload((A, "request-1")) or b"") == 20_000_000
    await world.store.close()


async def test_who_waits_goes_with_the_next_stroke(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strokes: list[int] = []
    write = state_file.StateFile.write

    def counted(file: state_file.StateFile, statements: list[state_file.Statement]) -> None:
        strokes.append(len(statements))
        write(file, statements)

    world = await opened(str(path), max_bytes=10**9, max_batches=10**4)
    monkeypatch.setattr(state_file.StateFile, "write", counted)
    heavy = asyncio.create_task(world.store.put(batch(0, 300_000), b"x" * 300_000))
    await asyncio.sleep(0)  # noqa: TID251 - the thread is at work

    async def submit(number: int) -> None:
        await world.store.put(batch(number), b"{}")
        await world.store.kept()

    await asyncio.gather(*map(submit, range(1, 101)))
    await heavy
    assert len(strokes) < 10
    await world.store.close()


async def test_a_long_log_is_copied_into_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_file, "LONG_LOG_BYTES", 200_000)
    world = await opened(str(path))
    longest = 0
    for _ in range(1000):
        await world.store.arrive(world.account)
        await world.store.kept()
        await asyncio.sleep(0)  # noqa: TID251 - the thread's turn
        longest = max(longest, path.with_name("state.db-wal").stat().st_size)
    assert 200_000 < longest < 2_000_000
    await world.store.close()


async def full(world: Opened, spare: int = 0) -> Callable[[], None]:
    """Let the file grow no more, or so many pages; what comes back lets it again."""
    database = world.store._file._database  # type: ignore[attr-defined]
    (pages,) = database.execute("pragma page_count").fetchone()
    database.execute(f"pragma max_page_count = {pages + spare}")
    return lambda: database.execute("pragma max_page_count = 1000000")


async def test_where_there_is_no_room_nothing_is_said_to_be_kept_and_nothing_else_changes(path: Path) -> None:
    world = await opened(str(path), max_bytes=10**9)
    make_room = await full(world)
    await world.store.put(batch(1, 40_000), b"x" * 40_000)
    with pytest.raises(
        NotKept, match=r"the state file .*state.db cannot be written: database or disk is full"
    ):
        await world.store.kept()
    with pytest.raises(NotKept, match="full"):
        await world.store.arrive(world.account)
    make_room()
    assert await world.store.arrive(world.account) == 1
    await world.store.close()
    again = await opened(str(path))
    assert await again.store.payload((A, "request-1")) == b"x" * 40_000
    await again.store.close()


async def test_a_large_request_without_room_is_no_batch_and_leaves_nothing(path: Path) -> None:
    world = await opened(str(path), max_bytes=10**9)
    make_room = await full(world, spare=300)
    with pytest.raises(NotKept, match="full"):
        await world.store.put(batch(1, 2_000_000), b"x" * 2_000_000)
    make_room()
    assert await world.store.list(None) == []
    await world.store.close()
    database = sqlite3.connect(path)
    assert database.execute("select count(*) from payloads").fetchone() == (0,)
    database.close()


async def test_an_account_that_was_unused_for_long_keeps_its_submits_numbers(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts_module, "ACCOUNTS_KEPT", 1)
    world = await opened(str(path))
    account, _ = await world.accounts.arrive(A)
    await world.store.say(account, lambda: account.rules.add({"effect": {"error": 3040}}))
    await world.store.next(A, "submit")
    await world.accounts.arrive("b" * 32)
    await world.store.close()
    monkeypatch.undo()
    again = await opened(str(path))
    account, number = await again.accounts.arrive(A)
    assert (number, len(account.rules), await again.store.next(A, "submit")) == (1, 0, 2)
    await again.store.close()
