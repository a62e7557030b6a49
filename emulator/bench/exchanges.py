"""Polls and submits, one after the other over one connection, beside a bare aiohttp server.

The two servers share one core, and take short turns, so that a machine whose speed drifts does not favour one. CPU is
the server's own processor time for one exchange.
"""

from __future__ import annotations

import json
import os
from time import perf_counter
from typing import TYPE_CHECKING

from figures import Figure
from wire import BARE, BARE_IS, TEXT, ServerProcess, Wire, apart, emulator, request, running

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS, TURNS = 5, 10
#: What an exchange may take of the processor, as a ratio to the bare server's.
MOST_CPU = 1.4


def figures(*, short: bool) -> Iterator[Figure]:
    """Microseconds of an exchange, and of the server's processor in it."""
    free = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    count = 40 if short else 200
    with running(emulator("--script", "queued:hold, done")) as ours, running(BARE) as bare:
        apart(ours, bare)
        yield from _compared("poll", (ours, bare), (_poll(ours), _poll(bare)), count, MOST_CPU)
        for texts, times, most in ((1, count, None), (100, count // 2, MOST_CPU), (5000, count // 20, None)):
            submit = request({"requests": [{"text": TEXT} for _ in range(texts)]})
            name = f"submit of {texts} text{'s' * (texts > 1)}"
            yield from _compared(name, (ours, bare), (submit, submit), times, most)
    if free is not None:
        os.sched_setaffinity(0, free)


def _compared(
    name: str,
    pair: tuple[ServerProcess, ServerProcess],
    prepared: tuple[bytes, bytes],
    count: int,
    most_cpu: float | None,
) -> Iterator[Figure]:
    rounds = [_round(pair, prepared, count) for _ in range(ROUNDS + 1)][1:]
    for place, measure in enumerate((name, f"{name}, CPU")):
        ours, bare = ([one[side][place] for one in rounds] for side in (0, 1))
        yield Figure.of(measure, "µs", ours, bare, BARE_IS, most_ratio=most_cpu if place else None)


def _round(
    pair: tuple[ServerProcess, ServerProcess], prepared: tuple[bytes, bytes], count: int
) -> list[list[float]]:
    """Microseconds for each exchange with either server: of time, and of the server's processor."""
    spent = [[0.0, 0.0], [0.0, 0.0]]
    for _ in range(TURNS):
        for place, (server, asked) in enumerate(zip(pair, prepared, strict=True)):
            wire = Wire(server.url)
            began, cpu = perf_counter(), server.cpu_seconds()
            for _ in range(count):
                wire.send(asked)
            spent[place][0] += perf_counter() - began
            spent[place][1] += server.cpu_seconds() - cpu
            wire.close()
    return [[seconds / (count * TURNS) * 1e6 for seconds in one] for one in spent]


def _poll(server: ServerProcess) -> bytes:
    wire = Wire(server.url)
    queued = json.loads(wire.post({"requests": [{"text": TEXT}]}))
    wire.close()
    return request({"request_id": queued["result"]["request_id"]})
