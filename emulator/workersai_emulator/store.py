"""Where batches are kept: the one interface, and the store that keeps them in memory."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from workersai_emulator.lifecycle import Life

RETENTION_SECONDS = 24 * 3600.0
_log = logging.getLogger(__name__)

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Batch:
    """What one submit queued, without its body.

    `form` is `requests` for a list of them and `bare` for a single input without one; `items` counts them.
    `number` is that of the submit among its account's. `outputs` and `failures` say of items, by index, what a
    rule chose: the answer, as JSON, or the row of the catalogue that they fail with.
    """

    account_id: str
    request_id: str
    number: int
    model: str
    form: Literal["requests", "bare"]
    items: int
    size: int
    submitted_at: float
    life: Life
    outputs: Mapping[int, bytes] = field(default_factory=dict)
    failures: Mapping[int, str] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """What the batch is found by; another account's is not found."""
        return self.account_id, self.request_id

    def lived(self, life: Life) -> Batch:
        """The same batch, so much later."""
        return Batch(
            self.account_id,
            self.request_id,
            self.number,
            self.model,
            self.form,
            self.items,
            self.size,
            self.submitted_at,
            life,
            self.outputs,
            self.failures,
        )

    def expires_at(self) -> float:
        """When it is forgotten: 24 h after it was done, or after the submit if it never was.

        Fact: `poll.retention`.
        """
        ended, given_up = self.life.entry.since, self.submitted_at + RETENTION_SECONDS
        # One that ended too late had been forgotten by then, whether or not anybody looked.
        return given_up if self.life.waiting or ended >= given_up else ended + RETENTION_SECONDS


class Store(Protocol):
    """Batches by account and `request_id`, each with the bytes of its request."""

    async def next_number(self, account_id: str) -> int:
        """The number of the account's next submit, counted from 1."""

    async def put(self, batch: Batch, payload: bytes) -> None:
        """Keep a new batch and its request."""

    async def get(self, key: Key) -> Batch | None:
        """The batch, if it is known."""

    async def poll(self, key: Key, change: Callable[[Batch], Batch | None]) -> Batch | None:
        """Change a batch at one stroke and give what it became; None forgets it, or says it is unknown."""

    async def payload(self, key: Key) -> bytes | None:
        """The bytes of the batch's request, as they came."""

    async def forget(self, key: Key) -> None:
        """Drop one batch."""

    async def list(self, account_id: str | None) -> list[Batch]:
        """The batches of an account, or of all, in the order of their submits."""

    async def reset(self, account_id: str | None) -> None:
        """Drop the batches and counts of an account, or of all."""


class MemoryStore:
    """Batches in memory, bounded by bytes and number: over the bound the one polled longest ago goes."""

    def __init__(self, *, max_bytes: int, max_batches: int) -> None:
        self._max_bytes = max_bytes
        self._max_batches = max_batches
        self._bytes = 0
        self._kept: dict[Key, tuple[Batch, bytes]] = {}
        self._numbers: dict[str, int] = {}

    async def next_number(self, account_id: str) -> int:
        """See `Store`."""
        number = self._numbers[account_id] = self._numbers.get(account_id, 0) + 1
        return number

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

    async def poll(self, key: Key, change: Callable[[Batch], Batch | None]) -> Batch | None:
        """See `Store`. The batch goes to the end of the line in which batches leave."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        batch = change(kept[0])
        await self.forget(key)
        if batch is not None:
            self._kept[key] = batch, kept[1]
            self._bytes += batch.size
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
        if account_id is None:
            self._numbers.clear()
        else:
            self._numbers.pop(account_id, None)
