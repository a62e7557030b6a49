"""What monitoring is told: counts of exchanges, kept while they end, and the rest when it is asked for.

The library that writes the format, prometheus-client, is imported with the first question.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from workersai_contracts import model
from workersai_emulator.journal import MemoryJournal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.core import Metric

    from workersai_emulator.api.exchange import Exchange
    from workersai_emulator.service import Service
    from workersai_emulator.store import Batch

CONTENT_TYPE: Final = "text/plain; version=1.0.0; charset=utf-8"
#: Upper ends of the durations told apart, in seconds.
BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
#: Names that a client makes up are all `other`, and so is what comes when there are as many series as this.
MOST_SERIES: Final = 5_000
OTHER: Final = "other"
_LABELS: Final = ("dialect", "operation", "model", "status", "code")
_PREFIX: Final = "workersai_emulator"

Series = tuple[str, ...]


@dataclass(slots=True, eq=False)
class Durations:
    """How long exchanges of one kind took: how many in each bucket, the last for those beyond, and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds

    def take_in(self, other: Durations) -> None:
        """Count all that another has counted."""
        self.counts = [ours + theirs for ours, theirs in zip(self.counts, other.counts, strict=True)]
        self.seconds += other.seconds


class Metrics:
    """The numbers of one server process since it started."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._exchanges: dict[Series, Durations] = {}
        self._refusals: Counter[str] = Counter()

    def count(self, exchange: Exchange) -> None:
        """Count an exchange that is over."""
        named = exchange.model
        known = named if not named or model(named) is not None else OTHER
        series = _series(exchange.dialect, exchange.operation, known, exchange.status, exchange.code)
        durations = self._exchanges.get(series)
        if durations is None:
            if len(self._exchanges) >= MOST_SERIES:
                series = (exchange.dialect, exchange.operation, OTHER, OTHER, OTHER)
            durations = self._exchanges.setdefault(series, Durations())
        durations.add(exchange.seconds)

    def count_refusal(self, door: str) -> None:
        """Count a request that did not get in: by its `origin`, or to the `control` plane."""
        self._refusals[door] += 1

    async def text(self) -> bytes:
        """All of it in the text format that Prometheus reads."""
        from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

        batches: list[Batch] = []
        for account in await self._service.accounts.all():
            batches += await self._service.batches.list(account)
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Told([*self._of_exchanges(), *_of_batches(batches), *self._of_journal()]))
        ProcessCollector(registry=registry)
        return generate_latest(registry)

    def _of_exchanges(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        exchanges = CounterMetricFamily(f"{_PREFIX}_exchanges", "Exchanges that are over.", labels=_LABELS)
        kinds: dict[Series, Durations] = {}
        for series, taken in sorted(self._exchanges.items(), key=itemgetter(0)):
            exchanges.add_metric(series, sum(taken.counts))
            kinds.setdefault(series[:2], Durations()).take_in(taken)
        yield exchanges
        durations = HistogramMetricFamily(
            f"{_PREFIX}_exchange_duration_seconds", "How long exchanges took.", labels=_LABELS[:2]
        )
        for kind, taken in kinds.items():
            durations.add_metric(kind, _cumulative(taken.counts), taken.seconds)
        yield durations
        refused = CounterMetricFamily(f"{_PREFIX}_refused", "Requests that did not get in.", labels=("door",))
        for door, number in sorted(self._refusals.items()):
            refused.add_metric((door,), number)
        yield refused

    def _of_journal(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        journal = self._service.accounts.journal
        if not isinstance(journal, MemoryJournal):
            return  # it is not in this process
        size = journal.size
        yield GaugeMetricFamily(f"{_PREFIX}_journal_bytes", "What the journal holds in memory.", value=size)


class _Told:
    """A collector, in the library's sense, of what is known already."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


@lru_cache(maxsize=1024)
def _series(dialect: str, operation: str, model_name: str, status: int, code: int | None) -> Series:
    return dialect, operation, model_name, str(status), "" if code is None else str(code)


def _of_batches(batches: Iterable[Batch]) -> Iterator[Metric]:
    from prometheus_client.core import GaugeMetricFamily

    states: Counter[str] = Counter()
    size = 0
    for batch in batches:
        states[batch.life.state] += 1
        size += batch.size
    kept = GaugeMetricFamily(f"{_PREFIX}_batches", "Batches that are kept, by state.", labels=("state",))
    for state, number in sorted(states.items()):
        kept.add_metric((state,), number)
    yield kept
    yield GaugeMetricFamily(f"{_PREFIX}_store_bytes", "The requests of kept batches.", value=size)


def _cumulative(counts: list[int]) -> list[tuple[str, float]]:
    ends = [*map(str, BUCKETS), "+Inf"]
    total, told = 0, []
    for end, number in zip(ends, counts, strict=True):
        total += number
        told.append((end, float(total)))
    return told
