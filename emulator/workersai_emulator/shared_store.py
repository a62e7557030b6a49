"""The store in a Redis: several processes are one emulator.

An owner's object in a process is what it last saw. Each exchange brings it up to date first; a change is made to what
was brought, and kept unless somebody else changed it meanwhile, in which case it is made again.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from workersai_emulator import redis_scripts
from workersai_emulator.accounts import SERVER
from workersai_emulator.json_text import dumps
from workersai_emulator.records import read_batch, read_record, written_life, written_submit
from workersai_emulator.redis_link import RedisLink
from workersai_emulator.shared_journal import SharedJournal
from workersai_emulator.store import NotKept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from workersai_emulator.accounts import Account, Accounts, Defaults
    from workersai_emulator.journal import Journal
    from workersai_emulator.store import Batch, Counter, Key, Told

#: How records are written; another emulator that writes them otherwise cannot share them.
FORMAT: Final = b"1"
_UNKNOWN: Final = ("", "")
_log = logging.getLogger(__name__)


class SharedStore:
    """Everything in Redis, under a prefix."""

    def __init__(self, url: str, *, max_bytes: int = 1_000_000_000, max_batches: int = 100_000) -> None:
        self._link = RedisLink(url)
        self._bounds = max_bytes, max_batches
        self._journal: Journal = SharedJournal(self._link)
        self._accounts: Accounts | None = None
        #: The versions of both records that the objects here are of, and the last of all when they were brought.
        self._versions: WeakKeyDictionary[Account | Defaults, tuple[str, str]] = WeakKeyDictionary()
        self._brought: WeakKeyDictionary[Account | Defaults, int] = WeakKeyDictionary()
        # In one process one change is made after the other: only other processes' have to be made again.
        self._turn = asyncio.Lock()

    @property
    def journal(self) -> Journal:
        """See `Store`."""
        return self._journal

    async def open(self, accounts: Accounts, seed: int | None, fresh: int) -> int:
        """See `Store`. All that share a state have one seed: the first one's."""
        self._accounts = accounts
        self._link.open()
        try:
            return await self._agree(seed, fresh)
        except NotKept as fault:
            await self.close()
            raise ValueError(f"--state: {fault}") from None
        except ValueError:
            await self.close()
            raise

    async def close(self) -> None:
        """See `Store`."""
        await self._link.close()

    async def kept(self) -> None:
        """See `Store`. What was changed was kept then."""

    async def refresh(self, owner: Account | Defaults) -> None:
        """See `Store`."""
        await self._bring(owner)

    async def arrive(self, account: Account) -> int:
        """See `Store`."""
        return await self._bring(account, counted=True)

    async def next(self, account_id: str, counter: Counter) -> int:
        """See `Store`."""
        return int(await self._link.ask("HINCRBY", f"numbers:{account_id}", counter, 1))

    async def say(self, owner: Account | Defaults, do: Callable[[], Told]) -> Told:
        """See `Store`."""
        async with self._turn:
            while True:
                await self._bring(owner)
                with self._changing(owner):
                    told = do()
                    said = dumps(owner.said())
                before, counts = self._versions[owner]
                saved = await self._save(owner, (f"said:{owner.id}", before, said))
                if saved is not None:
                    self._versions[owner] = saved[0], counts
                    return told
                self._versions.pop(owner, None)

    async def count(self, account: Account, do: Callable[[], Told]) -> Told:
        """See `Store`."""
        server = account.defaults
        async with self._turn:
            while True:
                await self._bring(account)
                with self._changing(account, server):
                    before = dumps(server.counts())
                    told = do()
                    counts, after = dumps(account.counts()), dumps(server.counts())
                said, own = self._versions[account]
                server_said, shared = self._versions[server]
                saved = await self._save(
                    account,
                    (f"counts:{account.id}", own, counts),
                    (f"counts:{SERVER}", shared, b"" if after == before else after),
                )
                if saved is not None:
                    self._versions[account] = said, saved[0]
                    # Another account's exchange may have brought the server's up to date meanwhile.
                    if self._versions.get(server) == (server_said, shared):
                        self._versions[server] = server_said, saved[1]
                    return told
                self._versions.pop(account, None)
                self._versions.pop(server, None)

    async def account_ids(self) -> list[str]:
        """See `Store`."""
        found = {name.decode() for name in await self._link.ask("SMEMBERS", "accounts")}
        return sorted(found - {SERVER})

    def drop(self, account_id: str) -> None:
        """See `Store`. Another process may know the account: it stays."""

    async def put(self, batch: Batch, payload: bytes) -> None:
        """See `Store`."""
        record = batch.number, written_submit(batch), written_life(batch.life), batch.size, payload
        for gone in await self._link.run(redis_scripts.PUT, *batch.key, *record, *self._bounds):
            account_id, _, request_id = gone.decode().partition(" ")
            _log.warning("out of room: batch %s of account %s is forgotten", request_id, account_id)

    async def get(self, key: Key) -> Batch | None:
        """See `Store`."""
        found = await self._found(key)
        return None if found is None else found[1]

    async def poll(
        self, account: Account, wanted: str, change: Callable[[Batch], Batch | None]
    ) -> Batch | None:
        """See `Store`."""
        if not account.clock.jump:
            return await self._poll(account, wanted, change)
        async with self._turn:
            return await self._poll(account, wanted, change)

    async def _poll(
        self, account: Account, wanted: str, change: Callable[[Batch], Batch | None]
    ) -> Batch | None:
        while True:
            found = await self._found((account.id, wanted))
            if found is None:
                return None
            jumps = account.clock.jump
            if jumps:
                await self._bring(account)
            with self._changing(*([account] if jumps else [])):
                batch = change(found[1])
                said = dumps(account.said()) if jumps else b""
            before = self._versions[account][0] if jumps else ""
            life = b"" if batch is None else written_life(batch.life)
            saved = await self._link.run(redis_scripts.LIVE, account.id, wanted, found[0], life, before, said)
            if jumps:
                self._versions.pop(account, None)  # with its clock the account has another version
            if saved is not None:
                return batch

    async def payload(self, key: Key) -> bytes | None:
        """See `Store`."""
        found: bytes | None = await self._link.ask("GET", f"payload:{key[0]} {key[1]}")
        return found

    async def forget(self, key: Key) -> None:
        """See `Store`."""
        await self._link.run(redis_scripts.FORGET, *key)

    async def list(self, account_id: str | None) -> list[Batch]:
        """See `Store`."""
        accounts = await self.account_ids() if account_id is None else [account_id]
        batches = []
        for each in accounts:
            for name in await self._link.ask("ZRANGE", f"batches:{each}", 0, -1):
                found = await self._found((each, name.decode()))
                if found is not None:
                    batches.append(found[1])
        return batches

    async def reset(self, account_id: str | None) -> None:
        """See `Store`."""
        self._versions.clear()
        await self._link.run(redis_scripts.RESET, account_id or "")

    async def _agree(self, seed: int | None, fresh: int) -> int:
        """The one seed of all."""
        if not await self._link.ask("SETNX", "format", FORMAT):
            found = await self._link.ask("GET", "format")
            if found != FORMAT:
                raise ValueError(
                    f"--state: {self._link.shown} is of another version of the emulator; give ?prefix=… a new name"
                )
        await self._link.ask("SETNX", "seed", fresh if seed is None else seed)
        kept = int(await self._link.ask("GET", "seed"))
        if seed not in {None, kept}:
            raise ValueError(
                f"--state: {self._link.shown} has the seed {kept}, which all who share it have; "
                "leave --seed out, or give ?prefix=… a new name"
            )
        return kept

    async def _bring(self, owner: Account | Defaults, *, counted: bool = False) -> int:
        """Bring an owner and the server up to date; where it is counted, the number of the account's exchange."""
        assert self._accounts is not None
        owners = dict.fromkeys((owner, self._accounts.defaults))
        known = {each: self._versions.get(each, _UNKNOWN) for each in owners}
        asked = [text for each in owners for text in (each.id, *known[each])]
        number, last, *brought = await self._link.run(
            redis_scripts.BRING, owner.id, "1" if counted else "0", *asked
        )
        for each, records in zip(owners, brought, strict=True):
            # An answer that was overtaken by a later one is of no use.
            if records is not None and last >= self._brought.get(each, 0):
                self._brought[each] = last
                self._take(each, records)
        return int(number)

    def _take(self, owner: Account | Defaults, records: Sequence[Any]) -> None:
        said_version, said, counts_version, counts = records
        self._versions.pop(owner, None)
        owner.take_said(read_record(said))
        owner.take_counts(read_record(counts))
        self._versions[owner] = said_version.decode(), counts_version.decode()

    @contextmanager
    def _changing(self, *owners: Account | Defaults) -> Iterator[None]:
        """What fails on the way leaves objects that are of no version: they are brought anew."""
        try:
            yield
        except BaseException:
            for owner in owners:
                self._versions.pop(owner, None)
            raise

    async def _save(
        self, owner: Account | Defaults, *records: tuple[str, str, bytes]
    ) -> Sequence[str] | None:
        flat = [text for record in records for text in record]
        try:
            saved = await self._link.run(redis_scripts.SAVE, owner.id, *flat)
        except BaseException:
            self._versions.clear()  # nobody knows whether it was done
            raise
        return None if saved is None else [version.decode() for version in saved]

    async def _found(self, key: Key) -> tuple[bytes, Batch] | None:
        version, submit, life = await self._link.ask(
            "HMGET", f"batch:{key[0]} {key[1]}", "v", "submit", "life"
        )
        return None if version is None else (version, read_batch(*key, submit, life))
