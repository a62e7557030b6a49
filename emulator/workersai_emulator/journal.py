"""The journal: every exchange of the dialects, without its bodies and without its credentials, and their counts.

It is bounded by bytes and by number; beyond that the oldest exchange goes, whichever account's it is.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, NamedTuple, Protocol

from workersai_emulator.clock import parse_time, system_now
from workersai_emulator.counts import Counts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workersai_emulator.api.exchange import Exchange
    from workersai_emulator.counts import Durations, Series

MAX_BYTES = 32_000_000
MAX_EXCHANGES = 100_000
#: What an exchange takes beside its own texts, as measured.
ENTRY_BYTES = 800
#: What a gateway's log of it takes beside that, with all its marks.
LOG_BYTES = 3_000
#: The most that is kept of a text that the client has a say in.
LONGEST_TEXT = 4_000


class Filter(NamedTuple):
    """Which exchanges are asked for; what is left out matches all.

    `after` is the number of an exchange, itself not asked for; `since` a time by the machine's clock.
    """

    operation: str | None = None
    model: str | None = None
    status: int | None = None
    code: int | None = None
    after: int = 0
    since: float = 0.0

    @classmethod
    def parse(cls, said: Mapping[str, object]) -> Filter:
        """Read the filters of a query; `since` is a number or a time. Raises ValueError that names the key."""
        after, since = 0, 0.0
        if (start := said.get("since")) is not None:
            if isinstance(start, int) or (isinstance(start, str) and start.isdecimal()):
                after = int(start)
            else:
                try:
                    since = parse_time(start)
                except ValueError:
                    raise ValueError(f"since: {start!r} is neither a seq nor an RFC 3339 time") from None
        return cls(
            operation=_text(said, "operation"),
            model=_text(said, "model"),
            status=_number(said, "status"),
            code=_number(said, "code"),
            after=after,
            since=since,
        )

    def takes(self, exchange: Exchange) -> bool:
        """Whether this exchange is asked for."""
        return (
            exchange.seq > self.after
            and exchange.time >= self.since
            and self.operation in {None, exchange.operation}
            and self.model in {None, exchange.model}
            and self.status in {None, exchange.status}
            and self.code in {None, exchange.code}
        )


class Journal(Protocol):
    """The exchanges of one emulator, in the order in which they ended, each counted from 1 on (`seq`)."""

    async def add(self, exchange: Exchange) -> None:
        """Keep an exchange that is over."""

    async def amend(self, exchange: Exchange) -> None:
        """Keep what was changed of an exchange's gateway log."""

    async def find(self, account_id: str | None, wanted: Filter | None = None) -> list[Exchange]:
        """An account's exchanges, or all, in their order; those of a filter where one is given."""

    async def wait(
        self, account_id: str | None, wanted: Filter, count: int, seconds: float
    ) -> list[Exchange]:
        """The exchanges of a filter as soon as there are `count`; those that there are when time is up."""

    async def clear(self, account_id: str | None) -> None:
        """Forget an account's exchanges, or all; they stay counted."""

    async def counted(self) -> Mapping[Series, Durations]:
        """All exchanges that there ever were, by series."""


class MemoryJournal:
    """The journal in memory: of one process, for as long as it runs."""

    def __init__(self, *, max_bytes: int = MAX_BYTES, max_exchanges: int = MAX_EXCHANGES) -> None:
        self._max_bytes = max_bytes
        self._max_exchanges = max_exchanges
        self._bytes = 0
        self._told = 0
        self._kept: OrderedDict[int, Exchange] = OrderedDict()
        self._of_account: dict[str, deque[Exchange]] = {}
        self._news = asyncio.Event()
        self._counts = Counts()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size(self) -> int:
        """How many bytes it takes, about."""
        return self._bytes

    async def add(self, exchange: Exchange) -> None:
        """Keep an exchange that is over; it is not changed any more."""
        self._told += 1
        exchange.seq = self._told
        self._bytes += end(exchange)
        self._counts.count(exchange)
        self._kept[exchange.seq] = exchange
        own = self._of_account.get(exchange.account_id)
        if own is None:
            own = self._of_account[exchange.account_id] = deque()
        own.append(exchange)
        while len(self._kept) > 1 and (
            self._bytes > self._max_bytes or len(self._kept) > self._max_exchanges
        ):
            self._forget_oldest()
        self._news.set()

    async def amend(self, exchange: Exchange) -> None:
        """Keep what was changed of an exchange's gateway log."""

    async def find(self, account_id: str | None, wanted: Filter | None = None) -> list[Exchange]:
        """An account's exchanges, or all, in their order; those of a filter where one is given."""
        return self._find(account_id, wanted)

    def _find(self, account_id: str | None, wanted: Filter | None) -> list[Exchange]:
        kept = self._kept.values() if account_id is None else self._of_account.get(account_id, ())
        return list(kept) if wanted is None else [exchange for exchange in kept if wanted.takes(exchange)]

    async def wait(
        self, account_id: str | None, wanted: Filter, count: int, seconds: float
    ) -> list[Exchange]:
        """The exchanges of a filter as soon as there are `count`; those that there are when time is up."""
        found = self._find(account_id, wanted)
        try:
            async with asyncio.timeout(seconds):
                while len(found) < count:
                    self._news.clear()
                    await self._news.wait()
                    found = self._find(account_id, wanted)
        except TimeoutError:
            pass  # who asked counts them
        return found

    async def clear(self, account_id: str | None) -> None:
        """Forget an account's exchanges, or all."""
        if account_id is None:
            self._kept.clear()
            self._of_account.clear()
            self._bytes = 0
            return
        for exchange in self._of_account.pop(account_id, ()):
            self._bytes -= _reckoned(self._kept.pop(exchange.seq))

    async def counted(self) -> Mapping[Series, Durations]:
        """All exchanges that there ever were, by series."""
        return self._counts

    def _forget_oldest(self) -> None:
        _, oldest = self._kept.popitem(last=False)
        self._bytes -= _reckoned(oldest)
        own = self._of_account[oldest.account_id]
        own.popleft()
        if not own:
            del self._of_account[oldest.account_id]


def end(exchange: Exchange) -> int:
    """Write down when an exchange was that is over, and cut what is too long to be kept; how many bytes it takes."""
    exchange.time = system_now() - exchange.seconds
    exchange.clock = exchange.clock or exchange.time
    taken = _reckoned(exchange)
    if taken > LONGEST_TEXT:  # most are shorter than that in all
        exchange.path, exchange.model = _cut(exchange.path), _cut(exchange.model)
        exchange.why, exchange.nearly = _cut(exchange.why), _cut(exchange.nearly)
        return _reckoned(exchange)
    return taken


def _reckoned(exchange: Exchange) -> int:
    logged = 0 if exchange.gateway_log is None else LOG_BYTES
    texts = len(exchange.path) + len(exchange.model) + len(exchange.why) + len(exchange.nearly)
    return ENTRY_BYTES + logged + texts


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def _text(said: Mapping[str, object], key: str) -> str | None:
    value = said.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{key}: {value!r} is not a text")
    return value


def _number(said: Mapping[str, object], key: str) -> int | None:
    value = said.get(key)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    raise ValueError(f"{key}: {value!r} is not a number")
