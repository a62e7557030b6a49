"""Polls and submits, one after the other over one connection, beside a bare aiohttp server.

The two servers take turns, so that a machine whose speed drifts does not favour one. CPU is the server's own
processor time for one exchange.
"""

from __future__ import annotations

import json
from time import perf_counter
from typing import TYPE_CHECKING

from figures import Figure
from wire import BARE, BARE_IS, TEXT, ServerProcess, Wire, emulator, request, running

if TYPE_CHECKING:
    from collections.abc import Iterator


def figures(*, short: bool) -> Iterator[Figure]:
    """Microseconds of an exchange, and of the server's processor in it."""
    count = 300 if short else 3000
    with running(emulator("--script", "queued:hold, done")) as ours, running(BARE) as bare:
        yield from _compared("poll", (ours, bare), (_poll(ours), _poll(bare)), count)
        for texts, times in ((1, count), (100, count // 3), (5000, count // 50)):
            submit = request({"requests": [{"text": TEXT} for _ in range(texts)]})
            name = f"submit of {texts} text{'s' * (texts > 1)}"
            yield from _compared(name, (ours, bare), (submit, submit), times)


def _compared(
    name: str, pair: tuple[ServerProcess, ServerProcess], prepared: tuple[bytes, bytes], count: int
) -> Iterator[Figure]:
    rounds = [[_measured(*side, count) for side in zip(pair, prepared, strict=True)] for _ in range(5)]
    for place, measure in enumerate((name, f"{name}, CPU")):
        ours, bare = ([one[side][place] for one in rounds] for side in (0, 1))
        if min(bare) > 0:  # the system counts a process's time in ticks: too few exchanges may take none
            yield Figure.of(measure, "µs", ours, bare, BARE_IS)


def _measured(server: ServerProcess, prepared: bytes, count: int) -> tuple[float, float]:
    """Microseconds for each exchange: of time, and of the server's processor."""
    wire = Wire(server.url)
    began, cpu = perf_counter(), server.cpu_seconds()
    for _ in range(count):
        wire.send(prepared)
    seconds, used = perf_counter() - began, server.cpu_seconds() - cpu
    wire.close()
    return seconds / count * 1e6, used / count * 1e6


def _poll(server: ServerProcess) -> bytes:
    wire = Wire(server.url)
    queued = json.loads(wire.post({"requests": [{"text": TEXT}]}))
    wire.close()
    return request({"request_id": queued["result"]["request_id"]})
