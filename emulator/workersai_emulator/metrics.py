"""What monitoring is told: the counts of exchanges that the journal keeps, and what else there is when it asks.

The library that writes the format, prometheus-client, is imported with the first question.
"""

from __future__ import annotations

from collections import Counter
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from workersai_emulator.counts import BUCKETS, Durations
from workersai_emulator.journal import MemoryJournal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from prometheus_client.core import Metric

    from workersai_emulator.counts import Series
    from workersai_emulator.service import Service
    from workersai_emulator.store import Batch

CONTENT_TYPE: Final = "text/plain; version=1.0.0; charset=utf-8"
_LABELS: Final = ("dialect", "operation", "model", "status", "code")
_PREFIX: Final = "workersai_emulator"


class Metrics:
    """The numbers of an emulator; those of requests that did not get in are of one process since it started."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._refusals: Counter[str] = Counter()

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
        counted = await self._service.accounts.journal.counted()
        told = [*_of_exchanges(counted), self._of_refusals(), *_of_batches(batches), *self._of_journal()]
        registry.register(_Told(told))
        ProcessCollector(registry=registry)
        return generate_latest(registry)

    def _of_refusals(self) -> Metric:
        from prometheus_client.core import CounterMetricFamily

        refused = CounterMetricFamily(f"{_PREFIX}_refused", "Requests that did not get in.", labels=("door",))
        for door, number in sorted(self._refusals.items()):
            refused.add_metric((door,), number)
        return refused

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


def _of_exchanges(counted: Mapping[Series, Durations]) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

    exchanges = CounterMetricFamily(f"{_PREFIX}_exchanges", "Exchanges that are over.", labels=_LABELS)
    kinds: dict[tuple[str, str], Durations] = {}
    for series, taken in sorted(counted.items(), key=itemgetter(0)):
        exchanges.add_metric(series, sum(taken.counts))
        kinds.setdefault(series[:2], Durations()).take_in(taken)
    yield exchanges
    durations = HistogramMetricFamily(
        f"{_PREFIX}_exchange_duration_seconds", "How long exchanges took.", labels=_LABELS[:2]
    )
    for kind, taken in kinds.items():
        durations.add_metric(kind, _cumulative(taken.counts), taken.seconds)
    yield durations


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
