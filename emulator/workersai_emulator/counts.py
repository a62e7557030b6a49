"""Counts of exchanges that are over: how many there were of each series, and how long they took."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from workersai_contracts import model

if TYPE_CHECKING:
    from workersai_emulator.api.exchange import Exchange

#: Upper ends of the durations told apart, in seconds.
BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
#: Names that a client makes up are all `other`, and so is what comes when there are as many series as this.
MOST_SERIES: Final = 5_000
OTHER: Final = "other"

#: A dialect, an operation, a model, a status and a code.
Series = tuple[str, str, str, str, str]


@dataclass(slots=True)
class Durations:
    """How long exchanges took: how many in each bucket, the last for those beyond, and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.counts[bucket_of(seconds)] += 1
        self.seconds += seconds

    def take_in(self, other: Durations) -> None:
        """Count all that another has counted."""
        self.counts = [ours + theirs for ours, theirs in zip(self.counts, other.counts, strict=True)]
        self.seconds += other.seconds


class Counts(dict[Series, Durations]):
    """The counts of one process, bounded."""

    def count(self, exchange: Exchange) -> None:
        """Count an exchange that is over."""
        series = series_of(exchange)
        durations = self.get(series)
        if durations is None:
            if len(self) >= MOST_SERIES:
                series = beyond(series)
            durations = self.setdefault(series, Durations())
        durations.add(exchange.seconds)


def bucket_of(seconds: float) -> int:
    """The place of the bucket for a duration."""
    return bisect_left(BUCKETS, seconds)


def series_of(exchange: Exchange) -> Series:
    """The series that an exchange belongs to."""
    named = exchange.model
    known = named if not named or model(named) is not None else OTHER
    return _series(exchange.dialect, exchange.operation, known, exchange.status, exchange.code)


def beyond(series: Series) -> Series:
    """Where one is counted for which there is no room."""
    return (series[0], series[1], OTHER, OTHER, OTHER)


@lru_cache(maxsize=1024)
def _series(dialect: str, operation: str, model_name: str, status: int, code: int | None) -> Series:
    return dialect, operation, model_name, str(status), "" if code is None else str(code)
