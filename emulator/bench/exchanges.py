"""Polls and submits a second, as ratios to a bare aiohttp server measured in the same run.

The two servers take turns, so that a machine whose speed drifts does not favour one. CPU is the server's own
processor time for one exchange. Run it with `make bench`.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from wire import BARE, ServerProcess, Wire, emulator, request, running

TEXT = "a text of about one hundred characters, as a search over the titles of a catalogue would embed them"


@dataclass(frozen=True)
class Figure:
    """One round of one server: exchanges a second, and microseconds of its processor time for each."""

    rate: float
    cpu: float


def measure(server: ServerProcess, prepared: bytes, count: int) -> Figure:
    """Send a prepared request so many times over one connection, one after the other."""
    wire = Wire(server.url)
    began, cpu = perf_counter(), server.cpu_seconds()
    for _ in range(count):
        wire.send(prepared)
    seconds, used = perf_counter() - began, server.cpu_seconds() - cpu
    wire.close()
    return Figure(count / seconds, used / count * 1e6)


def compare(
    name: str, pair: tuple[ServerProcess, ServerProcess], prepared: tuple[bytes, bytes], count: int
) -> None:
    """Let the emulator and the bare server take turns, and print the medians and their ratios."""
    rounds = [
        [measure(server, each, count) for server, each in zip(pair, prepared, strict=True)] for _ in range(5)
    ]
    ours, bare = (
        Figure(median(f.rate for f in side), median(f.cpu for f in side))
        for side in zip(*rounds, strict=True)
    )
    rates = median(a.rate / b.rate for a, b in rounds)
    print(
        f"{name:<22}{ours.rate:>9.0f}/s{bare.rate:>9.0f}/s{rates:>8.2f}"
        f"{ours.cpu:>10.0f} µs{bare.cpu:>8.0f} µs{ours.cpu / bare.cpu:>8.2f}"
    )


def main() -> None:
    """Print the table."""
    count = 500 if "--short" in sys.argv else 3000
    submit = {"requests": [{"text": TEXT} for _ in range(100)]}
    with running(emulator("--script", "queued:hold, done")) as ours, running(BARE) as bare:
        pair = ours, bare
        print(
            "five rounds, medians".ljust(22)
            + f"{'emulator':>11}{'bare':>11}{'ratio':>8}{'CPU':>13}{'bare':>11}{'ratio':>8}"
        )
        compare("poll", pair, (_poll(ours), _poll(bare)), count)
        compare("submit of 100 texts", pair, (request(submit), request(submit)), count // 3)


def _poll(server: ServerProcess) -> bytes:
    wire = Wire(server.url)
    queued = json.loads(wire.post({"requests": [{"text": TEXT}]}))
    wire.close()
    return request({"request_id": queued["result"]["request_id"]})


if __name__ == "__main__":
    main()
