"""What one poller and the server's memory see of a 10 MB batch that is submitted, computed and downloaded.

A poller in a process of its own polls another batch without pause, all the while. Run it with `make bench`.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import threading
from time import perf_counter, sleep
from typing import TYPE_CHECKING

from wire import Wire, emulator, request, running

if TYPE_CHECKING:
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


def main() -> None:
    """Print what was seen."""
    texts = 2_000 if "--short" in sys.argv else 20_000
    requests = [{"text": f"{number} " + "lorem ipsum dolor sit amet " * 17} for number in range(texts)]
    body = json.dumps({"requests": requests}).encode()
    with running(emulator("--script", "queued:0, done")) as server:
        held = _held_batch(server.url)
        sleep(0.3)
        idle = server.megabytes()
        ours, theirs = multiprocessing.Pipe()
        poller = multiprocessing.Process(
            target=poll_without_pause, args=(server.url, held, theirs), daemon=True
        )
        poller.start()
        peak = _Peak(server.megabytes)
        began = perf_counter()
        size, first_byte = _through_the_queue(server.url, body)
        seconds = perf_counter() - began
        ours.send("stop")
        took = sorted(ours.recv())
        poller.join()
        print(
            f"{texts} texts, {len(body) / 1e6:.1f} MB in, {size / 1e6:.0f} MB out, in {seconds:.2f} s; "
            f"first byte of the result after {first_byte * 1000:.1f} ms\n"
            f"one closed-loop poller meanwhile: {len(took)} polls, median {took[len(took) // 2] * 1000:.2f} ms, "
            f"p99 {took[len(took) * 99 // 100] * 1000:.2f} ms, worst {took[-1] * 1000:.2f} ms\n"
            f"memory: {idle:.0f} MB idle, at most {peak.end() - idle:.0f} MB above it"
        )


def _held_batch(url: str) -> bytes:
    """A poll of a batch that stays queued."""
    wire = Wire(url)
    held = request({"requests": [{"text": "held"}]}, {"x-emulator-script": "queued:hold, done"})
    queued = json.loads(wire.send(held))
    wire.close()
    return request({"request_id": queued["result"]["request_id"]})


def _through_the_queue(url: str, body: bytes) -> tuple[int, float]:
    """Submit a body and download its result; its size, and the seconds from the poll to its first byte."""
    wire = Wire(url)
    queued = json.loads(wire.send(request(body)))
    polled = perf_counter()
    size, first_byte = wire.download(request({"request_id": queued["result"]["request_id"]}))
    wire.close()
    return size, first_byte - polled


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


if __name__ == "__main__":
    main()
