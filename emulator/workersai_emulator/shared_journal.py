"""The journal in a Redis: the exchanges of all processes that share it, as one stream."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from workersai_emulator import redis_scripts
from workersai_emulator.clock import stopwatch
from workersai_emulator.counts import MOST_SERIES, Durations, beyond, bucket_of, series_of
from workersai_emulator.journal import end
from workersai_emulator.json_text import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workersai_emulator.api.exchange import Exchange
    from workersai_emulator.counts import Series
    from workersai_emulator.journal import Filter
    from workersai_emulator.redis_link import RedisLink

#: Beyond this the oldest exchange goes, whichever account's it is.
MAX_EXCHANGES: Final = 20_000
#: A series has a count for each bucket that it needs, and the sum of its durations in microseconds.
_MOST_COUNTS: Final = MOST_SERIES * 4
_A_SECOND: Final = 1_000_000


class SharedJournal:
    """The journal of several processes."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    async def add(self, exchange: Exchange) -> None:
        """See `Journal`."""
        end(exchange)
        series = series_of(exchange)
        exchange.seq = await self._link.run(
            redis_scripts.NOTE,
            exchange.account_id,
            _written(exchange),
            MAX_EXCHANGES,
            dumps(series),
            dumps(beyond(series)),
            bucket_of(exchange.seconds),
            round(exchange.seconds * _A_SECOND),
            _MOST_COUNTS,
        )

    async def amend(self, exchange: Exchange) -> None:
        """See `Journal`."""
        await self._link.ask("HSET", "opinions", f"{exchange.seq}-0", _written(exchange))

    async def find(self, account_id: str | None, wanted: Filter | None = None) -> list[Exchange]:
        """See `Journal`."""
        after = 0 if wanted is None else wanted.after
        entries = await self._link.ask("XRANGE", "journal", f"({after}-0", "+")
        amended = await self._link.ask("HGETALL", "opinions")
        return _read(entries, account_id, wanted, amended)

    async def wait(
        self, account_id: str | None, wanted: Filter, count: int, seconds: float
    ) -> list[Exchange]:
        """See `Journal`."""
        found, last, until = [], f"{wanted.after}-0", stopwatch() + seconds
        while True:
            left = until - stopwatch()
            entries = await self._link.news("journal", last, max(left, 0.0))
            if entries:
                last = entries[-1][0].decode()
                found += _read(entries, account_id, wanted, {})
            if len(found) >= count or left <= 0:
                return found

    async def clear(self, account_id: str | None) -> None:
        """See `Journal`."""
        await self._link.run(redis_scripts.CLEAR, account_id or "")

    async def counted(self) -> Mapping[Series, Durations]:
        """See `Journal`."""
        counted: dict[Series, Durations] = {}
        for name, number in (await self._link.ask("HGETALL", "durations")).items():
            series, _, place = name.rpartition(b" ")
            durations = counted.setdefault(tuple(loads(series)), Durations())
            if place == b"us":
                durations.seconds = int(number) / _A_SECOND
            else:
                durations.counts[int(place)] = int(number)
        return counted


def _written(exchange: Exchange) -> bytes:
    said = {each.name: getattr(exchange, each.name) for each in fields(exchange)}
    log = exchange.gateway_log
    if log is not None:
        said["gateway_log"] = {each.name: getattr(log, each.name) for each in fields(log)}
    return dumps(said)


def _read(entries: Any, account_id: str | None, wanted: Filter | None, amended: Any) -> list[Exchange]:
    """The exchanges of entries, each an id and its fields."""
    found = []
    for entry_id, members in entries:
        if account_id is not None and members[b"account"].decode() != account_id:
            continue
        exchange = _exchange(amended.get(entry_id) or members[b"exchange"])
        exchange.seq = int(entry_id.partition(b"-")[0])
        if wanted is None or wanted.takes(exchange):
            found.append(exchange)
    return found


def _exchange(record: bytes) -> Exchange:
    from workersai_emulator.api.exchange import Exchange
    from workersai_emulator.api.gateway_log import GatewayLog

    said = loads(record)
    log = said.pop("gateway_log")
    return Exchange(
        **{**said, "slips": tuple(said["slips"])}, gateway_log=None if log is None else GatewayLog(**log)
    )
