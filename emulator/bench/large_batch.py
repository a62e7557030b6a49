"""A 10 MB batch from end to end, and what one poller and the server's memory see of it.

A poller in a process of its own polls another batch without pause, all the while.
"""

from __future__ import annotations

import json
import multiprocessing
import threading
from contextlib import contextmanager
from time import perf_counter, sleep
from typing import TYPE_CHECKING

from figures import Figure, in_turns
from wire import BARE, Wire, emulator, request, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection


def poll_without_pause(url: str, prepared: bytes, stop: Connection) -> None:
    """Poll until told to stop, then hand over how long each poll took, in seconds."""
    wire = Wire(url)
    took = []
    while not stop.poll():
        began = perf_counter()
        wire.send(prepared)
        took.append(perf_counter() - began)
    stop.send(took)


def figures(*, short: bool) -> Iterator[Figure]:
    """Seconds from end to end, what a poller waits meanwhile, and memory above the idle server's."""
    texts = 2_000 if short else 20_000
    requests = [{"text": f"{number} " + "lorem ipsum dolor sit amet " * 17} for number in range(texts)]
    body = json.dumps({"requests": requests}).encode()
    name = f"{len(body) / 1e6:.0f} MB batch"
    with running(emulator("--script", "queued:0, done")) as server, running(BARE) as bare:
        held = _held_batch(server.url)
        with _polling(server.url, held) as alone:
            sleep(0.5 if short else 2)
        idle, peak = server.megabytes(), _Peak(server.megabytes)
        with _polling(server.url, held) as beside:
            size = _through_the_queue(server.url, body)
        memory = peak.end() - idle
        seconds, limit = in_turns(
            lambda: _seconds(server.url, body), lambda: _seconds(bare.url, body, {"bytes": size}), 3
        )
    carried = f"bare server: {len(body) / 1e6:.1f} MB in, {size / 1e6:.0f} MB out, none computed"
    yield Figure.of(f"{name}, end to end", "s", seconds, limit, carried)
    for share in (50, 99):
        waits = [took[len(took) * share // 100] * 1000 for took in (beside, alone)]
        yield Figure.of(f"poll beside it, p{share}", "ms", waits[:1], waits[1:], "the same poll alone")
    yield Figure.of(f"{name}, memory at its peak", "MB", [memory], [len(body) / 1e6], "its payload's bytes")


@contextmanager
def _polling(url: str, prepared: bytes) -> Iterator[list[float]]:
    """Poll in a process of its own; how long each poll took, in order of length, is there at the end."""
    ours, theirs = multiprocessing.Pipe()
    poller = multiprocessing.Process(target=poll_without_pause, args=(url, prepared, theirs), daemon=True)
    poller.start()
    took: list[float] = []
    yield took
    ours.send("stop")
    took += sorted(ours.recv())
    poller.join()


def _held_batch(url: str) -> bytes:
    """A poll of a batch that stays queued."""
    wire = Wire(url)
    held = request({"requests": [{"text": "held"}]}, {"x-emulator-script": "queued:hold, done"})
    queued = json.loads(wire.send(held))
    wire.close()
    return request({"request_id": queued["result"]["request_id"]})


def _seconds(url: str, body: bytes, more: dict[str, int] | None = None) -> float:
    began = perf_counter()
    _through_the_queue(url, body, more)
    return perf_counter() - began


def _through_the_queue(url: str, body: bytes, more: dict[str, int] | None = None) -> int:
    """Submit a body and download its result; its size on the wire."""
    wire = Wire(url)
    queued = json.loads(wire.send(request(body)))
    size = wire.download(request({"request_id": queued["result"]["request_id"], **(more or {})}))
    wire.close()
    return size


class _Peak:
    """Looks at a figure a few hundred times a second and keeps its highest."""

    def __init__(self, look: object) -> None:
        assert callable(look)
        self._look, self._highest, self._over = look, 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(0.004):
            self._highest = max(self._highest, self._look())

    def end(self) -> float:
        """Stop looking, and give the highest."""
        self._over.set()
        self._thread.join()
        return self._highest
