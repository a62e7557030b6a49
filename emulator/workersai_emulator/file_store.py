"""The store over a file: all in memory, and each change in the file before a reply tells of it.

Requests alone are read back from the file when they are needed. The journal is in memory: it begins anew with the
process.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from workersai_emulator import state_file
from workersai_emulator.accounts import SERVER
from workersai_emulator.json_text import dumps
from workersai_emulator.memory_store import MemoryStore
from workersai_emulator.records import read_batch, read_record, written_life, written_submit
from workersai_emulator.state_file import StateFile, Statement
from workersai_emulator.store import NotKept

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from workersai_emulator.accounts import Account, Accounts, Defaults
    from workersai_emulator.store import Batch, Counter, Key, Told

#: A larger request is written in parts of this size, so that other changes need not wait for the whole.
PART_BYTES: Final = 256 * 1024
#: A stroke with more than this of requests is written in the thread.
SMALL_BYTES: Final = 64 * 1024
#: So many small strokes are written between two looks at the length of the log.
STROKES_A_LOOK: Final = 64

_log = logging.getLogger(__name__)
Part = Literal["said", "counts"]
Made = TypeVar("Made")


class FileStore(MemoryStore):
    """The memory's store with a file behind it.

    A change is noted when it is made, and `kept` writes all that is noted at one stroke. A small stroke takes less
    time than the way to a thread; large ones, and copying the log into the file, are done in a thread of their own,
    and whoever waits meanwhile goes with the next stroke.
    """

    def __init__(self, path: Path, *, max_bytes: int = 1_000_000_000, max_batches: int = 100_000) -> None:
        super().__init__(max_bytes=max_bytes, max_batches=max_batches)
        self._path = path
        self._file: StateFile | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="state-file")
        self._rows: dict[Key, int] = {}
        self._last_row = self._last_turn = 0
        # What is to be written: statements in their order, then what has changed since.
        self._statements: list[Statement] = []
        self._changed_owners: dict[tuple[str, Part], Account | Defaults] = {}
        self._changed_numbers: dict[tuple[str, Counter], None] = {}
        self._changed_lives: dict[Key, int] = {}
        self._changes = self._safe = 0
        self._writing: asyncio.Task[None] | None = None
        self._copying: asyncio.Task[None] | None = None
        self._jobs = self._strokes = self._noted_bytes = 0
        self._failed = False

    async def open(self, accounts: Accounts, seed: int | None, fresh: int) -> int:
        """See `Store`. The file is made where there is none."""
        self._file = file = await self._aside(partial(StateFile, self._path))
        try:
            kept = await self._aside(partial(self._load, file, accounts))
        except BaseException:
            await self.close()
            raise
        holds = next(number for number in (seed, kept, fresh) if number is not None)
        self._note((state_file.SEED, (holds,)))
        await self.kept()
        return holds

    async def close(self) -> None:
        """See `Store`."""
        if self._file is not None:
            try:
                await self.kept()
            except NotKept as fault:
                _log.error("%s", fault)  # no reply told of what is lost now
            if self._copying is not None:
                await self._copying
            await self._aside(self._file.close)
            self._file = None
        self._thread.shutdown(wait=False)

    async def kept(self) -> None:
        """See `Store`."""
        wanted = self._changes
        while self._safe < wanted:
            if self._jobs == 0 and self._noted_bytes <= SMALL_BYTES and not self._failed:
                self._write_at_once()
                return
            if self._writing is None:
                self._writing = asyncio.create_task(self._write())
            await asyncio.shield(self._writing)

    async def refresh(self, owner: Account | Defaults) -> None:
        """See `Store`. What could not be written is tried again before anything else is changed."""
        if self._failed:
            await self.kept()

    async def arrive(self, account: Account) -> int:
        """See `Store`."""
        if self._failed:
            await self.kept()
        return await self.next(account.id, "exchange")

    async def next(self, account_id: str, counter: Counter) -> int:
        """See `Store`."""
        self._changed_numbers[account_id, counter] = None
        self._changes += 1
        return await super().next(account_id, counter)

    async def say(self, owner: Account | Defaults, do: Callable[[], Told]) -> Told:
        """See `Store`."""
        told = do()
        self._change(owner, "said")
        return told

    async def count(self, account: Account, do: Callable[[], Told]) -> Told:
        """See `Store`."""
        told = do()
        self._change(account, "counts")
        if account.defaults.rules:
            self._change(account.defaults, "counts")
        return told

    def drop(self, account_id: str) -> None:
        """See `Store`."""
        super().drop(account_id)
        self._forget_owner(account_id)
        self._note((state_file.FORGET_EXCHANGES, (account_id,)))

    async def put(self, batch: Batch, payload: bytes) -> None:
        """See `Store`. A large request is in the file before the batch is known to anybody."""
        self._last_row += 1
        row = self._last_row
        parts = [payload[start : start + PART_BYTES] for start in range(0, len(payload), PART_BYTES)]
        written: list[Statement] = [
            (state_file.PART, (row, number, part)) for number, part in enumerate(parts)
        ]
        if len(parts) > 1:
            await self._write_aside(row, written)
            written = []
        self._last_turn += 1
        self._rows[batch.key] = row
        values = (*batch.key, self._last_turn, written_submit(batch), written_life(batch.life))
        self._noted_bytes += sum(map(len, parts)) if written else 0
        self._note(*written, (state_file.BATCH, (row, *values)))
        await super().put(batch, b"")

    async def poll(
        self, account: Account, wanted: str, change: Callable[[Batch], Batch | None]
    ) -> Batch | None:
        """See `Store`."""
        key = account.id, wanted
        if key not in self._rows:
            return None
        batch = await super().poll(account, wanted, change)
        if batch is None:
            self._forget_row(key)
            return None
        self._last_turn += 1
        self._changed_lives[key] = self._last_turn
        self._changes += 1
        if account.clock.jump:
            self._change(account, "said")
        return batch

    async def payload(self, key: Key) -> bytes | None:
        """See `Store`."""
        row = self._rows.get(key)
        if row is None or self._file is None:
            return None
        await self.kept()
        return await self._aside(partial(self._file.payload, row))

    async def forget(self, key: Key) -> None:
        """See `Store`."""
        await super().forget(key)
        if key in self._rows:
            self._forget_row(key)

    async def reset(self, account_id: str | None) -> None:
        """See `Store`."""
        await super().reset(account_id)
        if account_id is not None:
            self._forget_owner(account_id)
            self._note((state_file.FORGET_NUMBERS, (account_id,)))
            return
        self._changed_owners.clear()
        self._changed_numbers.clear()
        self._note(*((sql, ()) for sql in state_file.FORGET_ALL))

    def _change(self, owner: Account | Defaults, part: Part) -> None:
        self._changed_owners[owner.id, part] = owner
        self._changes += 1

    def _note(self, *statements: Statement) -> None:
        self._statements += statements
        self._changes += 1

    def _forget_owner(self, account_id: str) -> None:
        for part in ("said", "counts"):
            self._changed_owners.pop((account_id, part), None)
        for numbered in [numbered for numbered in self._changed_numbers if numbered[0] == account_id]:
            if numbered not in self._numbers:
                del self._changed_numbers[numbered]
        self._note((state_file.FORGET_OWNER, (account_id,)))

    def _forget_row(self, key: Key) -> None:
        row = self._rows.pop(key)
        self._changed_lives.pop(key, None)
        self._note((state_file.FORGET_BATCH, (row,)), (state_file.FORGET_PARTS, (row,)))

    def _write_at_once(self) -> None:
        assert self._file is not None
        statements, upto = self._collected(), self._changes
        try:
            self._file.write(statements)
        except NotKept:
            self._statements, self._failed = statements, True
            raise
        self._safe = upto
        self._strokes += 1
        if self._strokes % STROKES_A_LOOK == 0:
            self._look_at_log()

    def _look_at_log(self) -> None:
        """Have a long log copied into the file."""
        assert self._file is not None
        if (self._copying is None or self._copying.done()) and self._file.log_is_long():
            self._copying = asyncio.create_task(self._aside(self._file.copy_log))

    async def _write(self) -> None:
        """Write all that has changed so far, at one stroke; where that fails, it stays to be written."""
        assert self._file is not None
        statements, upto = self._collected(), self._changes
        try:
            await self._aside(partial(self._file.write, statements))
        except NotKept:
            self._statements[:0] = statements
            self._failed = True
            raise
        finally:
            self._writing = None
        self._safe, self._failed = upto, False
        self._look_at_log()

    def _collected(self) -> list[Statement]:
        statements = self._statements
        for account_id, counter in self._changed_numbers:
            number = self._numbers[account_id, counter]
            statements.append((state_file.NUMBER, (account_id, counter, number)))
        for (owner_id, part), owner in self._changed_owners.items():
            if part == "said":
                statements.append((state_file.SAID, (owner_id, dumps(owner.said()))))
            else:
                statements.append((state_file.COUNTS, (owner_id, dumps(owner.counts()))))
        for key, turn in self._changed_lives.items():
            batch, _ = self._kept[key]
            statements.append((state_file.LIFE, (turn, written_life(batch.life), self._rows[key])))
        self._statements, self._noted_bytes = [], 0
        self._changed_numbers.clear()
        self._changed_owners.clear()
        self._changed_lives.clear()
        return statements

    async def _write_aside(self, row: int, parts: list[Statement]) -> None:
        assert self._file is not None
        try:
            for part in parts:
                await self._aside(partial(self._file.write, [part]))
        except BaseException:
            self._note((state_file.FORGET_PARTS, (row,)))
            raise

    def _load(self, file: StateFile, accounts: Accounts) -> int | None:
        for account_id, counter, number in file.numbers():
            self._numbers[account_id, counter] = number
            accounts.get(account_id)
        for row, account_id, request_id, submit, life in file.batches():
            batch = read_batch(account_id, request_id, submit, life)
            self._kept[batch.key] = batch, b""
            self._bytes += batch.size
            self._rows[batch.key] = row
            self._last_row = max(self._last_row, row)
            self._last_turn += 1
            accounts.get(account_id)
        for owner_id, said, counts in file.owners():
            owner = accounts.defaults if owner_id == SERVER else accounts.get(owner_id)
            owner.take_said(read_record(said))
            owner.take_counts(read_record(counts))
        return file.seed

    async def _aside(self, job: Callable[[], Made]) -> Made:
        """Do a job in the thread, to its end even where nobody waits for it any more."""
        under_way = asyncio.get_running_loop().run_in_executor(self._thread, job)
        self._jobs += 1
        under_way.add_done_callback(self._job_ended)
        return await asyncio.shield(under_way)

    def _job_ended(self, _: object) -> None:
        self._jobs -= 1
