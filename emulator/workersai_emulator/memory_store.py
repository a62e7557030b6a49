"""The store in memory: one process, for as long as it runs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from workersai_emulator.journal import MemoryJournal

if TYPE_CHECKING:
    from collections.abc import Callable

    from workersai_emulator.accounts import Account, Accounts, Defaults
    from workersai_emulator.journal import Journal
    from workersai_emulator.store import Batch, Counter, Key, Told

_log = logging.getLogger(__name__)


class MemoryStore:
    """Batches in memory, bounded by bytes and number: over the bound the one polled longest ago goes.

    An owner's object is all that there is of it: nothing has to be fetched, and nothing to be kept.
    """

    def __init__(self, *, max_bytes: int = 1_000_000_000, max_batches: int = 100_000) -> None:
        self._max_bytes = max_bytes
        self._max_batches = max_batches
        self._bytes = 0
        self._kept: dict[Key, tuple[Batch, bytes]] = {}
        self._numbers: dict[tuple[str, Counter], int] = {}
        self._journal: Journal = MemoryJournal()

    @property
    def journal(self) -> Journal:
        """See `Store`."""
        return self._journal

    async def open(self, accounts: Accounts, seed: int | None, fresh: int) -> int:
        """See `Store`."""
        return fresh if seed is None else seed

    async def close(self) -> None:
        """See `Store`."""

    async def kept(self) -> None:
        """See `Store`."""

    async def refresh(self, owner: Account | Defaults) -> None:
        """See `Store`."""

    async def arrive(self, account: Account) -> int:
        """See `Store`."""
        return await self.next(account.id, "exchange")

    async def next(self, account_id: str, counter: Counter) -> int:
        """See `Store`."""
        number = self._numbers[account_id, counter] = self._numbers.get((account_id, counter), 0) + 1
        return number

    async def say(self, owner: Account | Defaults, do: Callable[[], Told]) -> Told:
        """See `Store`."""
        return do()

    async def count(self, account: Account, do: Callable[[], Told]) -> Told:
        """See `Store`."""
        return do()

    async def account_ids(self) -> list[str]:
        """See `Store`."""
        return []

    def drop(self, account_id: str) -> None:
        """See `Store`. The number of its submits stays: batches have their ids from it."""
        self._numbers.pop((account_id, "exchange"), None)
        self._numbers.pop((account_id, "demo"), None)

    async def put(self, batch: Batch, payload: bytes) -> None:
        """See `Store`."""
        self._kept[batch.key] = batch, payload
        self._bytes += batch.size
        while len(self._kept) > 1 and (self._bytes > self._max_bytes or len(self._kept) > self._max_batches):
            oldest = next(iter(self._kept))
            _log.warning("out of room: batch %s of account %s is forgotten", oldest[1], oldest[0])
            await self.forget(oldest)

    async def get(self, key: Key) -> Batch | None:
        """See `Store`."""
        kept = self._kept.get(key)
        return None if kept is None else kept[0]

    async def poll(
        self, account: Account, wanted: str, change: Callable[[Batch], Batch | None]
    ) -> Batch | None:
        """See `Store`. The batch goes to the end of the line in which batches leave."""
        kept = self._kept.get((account.id, wanted))
        if kept is None:
            return None
        batch = change(kept[0])
        del self._kept[account.id, wanted]
        if batch is None:
            self._bytes -= kept[0].size
        else:
            self._kept[account.id, wanted] = batch, kept[1]
        return batch

    async def payload(self, key: Key) -> bytes | None:
        """See `Store`."""
        kept = self._kept.get(key)
        return None if kept is None else kept[1]

    async def forget(self, key: Key) -> None:
        """See `Store`."""
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._bytes -= kept[0].size

    async def list(self, account_id: str | None) -> list[Batch]:
        """See `Store`."""
        batches = [batch for batch, _ in self._kept.values() if account_id in {None, batch.account_id}]
        return sorted(batches, key=lambda batch: (batch.account_id, batch.number))

    async def reset(self, account_id: str | None) -> None:
        """See `Store`."""
        for key in [key for key in self._kept if account_id in {None, key[0]}]:
            await self.forget(key)
        for numbered in [numbered for numbered in self._numbers if account_id in {None, numbered[0]}]:
            del self._numbers[numbered]
