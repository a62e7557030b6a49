"""A 10 MB batch from end to end, and what others see of the server meanwhile.

Its limit is what its vectors take to be computed and written by themselves, in a process that does nothing else. A
poller in a process of its own polls another batch all the while: without pause, or two hundred times a second, whether
or not the poll before was answered.
"""

from __future__ import annotations

import json
import multiprocessing
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter, sleep
from typing import TYPE_CHECKING

from figures import Figure
from wire import BARE, ServerProcess, Wire, emulator, request, running

from workersai_contracts import model
from workersai_emulator import inference
from workersai_emulator.finished import SLICE_VECTORS
from workersai_emulator.serving import keep_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection

POLLS_A_SECOND = 200
WARMING = json.dumps({"requests": [{"text": f"a text of {words} words"} for words in range(100)]}).encode()
ALONE_IS = "its vectors computed and written alone"
POLL_ALONE_IS = "the same poll alone"


@dataclass
class Seen:
    """What was measured while the batch went through: seconds, megabytes, and how long each poll took."""

    total: float
    first_byte: float
    size: int
    memory: float = 0.0
    polls: list[float] = field(default_factory=list)

    def poll(self, share: float) -> float:
        """Milliseconds that so large a share of the polls stayed within."""
        return self.polls[min(int(len(self.polls) * share), len(self.polls) - 1)] * 1000


def figures(*, short: bool) -> Iterator[Figure]:
    """Seconds from end to end, what pollers wait meanwhile, and memory above the idle server's."""
    texts, rounds = (2_000, 1) if short else (20_000, 3)
    requests = [{"text": f"{number} " + "lorem ipsum dolor sit amet " * 17} for number in range(texts)]
    body = json.dumps({"requests": requests}).encode()
    name = f"{len(body) / 1e6:.0f} MB batch"
    keep_memory()  # as the server does, so that the limit is as low as it can be
    _alone(requests[:SLICE_VECTORS])
    alone, steady, greedy = [], [], []
    for _ in range(rounds):
        alone.append(_alone(requests))
        steady.append(_seen(body, _polls_at_a_rate))
        greedy.append(_seen(body, _polls_without_pause))
    seen = (*steady, *greedy)

    def totals(those: Sequence[Seen]) -> list[float]:
        return [one.total for one in those]

    paced = f"{POLLS_A_SECOND} polls a second beside it"
    yield Figure.of(f"{name}, {paced}", "s", totals(steady), alone, ALONE_IS, most_ratio=2)
    yield Figure.of(f"{name}, polled without pause", "s", totals(greedy), alone, ALONE_IS)
    with running(BARE) as bare:
        carried = [_through(bare, body, seen[0].size).total for _ in range(rounds)]
    carrying = f"bare server: {len(body) / 1e6:.1f} MB in, {seen[0].size / 1e6:.0f} MB out, none computed"
    yield Figure.of(f"{name}, end to end", "s", totals(steady), carried, carrying)
    first = [max(pair.first_byte for pair in both) * 1000 for both in zip(steady, greedy, strict=True)]
    yield Figure.of(
        "first byte of its result", "ms", first, [time * 1000 for time in alone], ALONE_IS, most=20
    )
    with running(emulator()) as server, _polling(_polls_without_pause, server.url) as without_pause:
        sleep(0.5)
    with running(emulator()) as server, _polling(_polls_at_a_rate, server.url) as at_a_rate:
        sleep(0.5)
    limits = (Seen(0, 0, 0, polls=without_pause), Seen(0, 0, 0, polls=at_a_rate))
    for what, share, those, limit, most in (
        ("poll without pause, p50", 0.5, greedy, limits[0], None),
        ("poll without pause, p99", 0.99, greedy, limits[0], 3),
        (f"{POLLS_A_SECOND} polls a second, p99", 0.99, steady, limits[1], 20),
        (f"{POLLS_A_SECOND} polls a second, worst", 1, steady, limits[1], 50),
    ):
        waits = [one.poll(share) for one in those]
        yield Figure.of(what, "ms", waits, [limit.poll(share)] * rounds, POLL_ALONE_IS, most=most)
    memory = [max(pair.memory for pair in both) for both in zip(steady, greedy, strict=True)]
    payload = [len(body) / 1e6] * rounds
    yield Figure.of("memory at its peak, above idle", "MB", memory, payload, "its payload's bytes", most=120)


def _alone(requests: Sequence[dict[str, str]]) -> float:
    """Seconds that the answers take, as many together as in the server."""
    card = model("@cf/baai/bge-m3")
    assert card is not None
    began = perf_counter()
    for start in range(0, len(requests), SLICE_VECTORS):
        inference.answers(card, requests[start : start + SLICE_VECTORS])
    return perf_counter() - began


def _seen(body: bytes, polls: Callable[[str, bytes, Connection], None]) -> Seen:
    """A server of its own takes the batch and gives its result, while it is polled so."""
    with running(emulator("--script", "queued:0, done")) as server:
        _through(server, WARMING)  # what is loaded with the first vectors is there
        with _polling(polls, server.url) as took:
            idle, peak = server.megabytes(), _Peak(server.megabytes)
            seen = _through(server, body)
            seen.memory = peak.end() - idle
        seen.polls = took
    return seen


def _through(server: ServerProcess, body: bytes, size: int | None = None) -> Seen:
    """Submit a body and download its result; a bare server is told how large that is to be."""
    wire = Wire(server.url)
    began = perf_counter()
    queued = json.loads(wire.send(request(body)))
    polled = perf_counter()
    more = {} if size is None else {"bytes": size}
    got, first = wire.download(request({"request_id": queued["result"]["request_id"], **more}))
    seen = Seen(perf_counter() - began, first - polled, got)
    wire.close()
    return seen


@contextmanager
def _polling(polls: Callable[[str, bytes, Connection], None], url: str) -> Iterator[list[float]]:
    """Poll a batch that stays queued; how long each poll took, in order of length, is there at the end."""
    wire = Wire(url)
    held = request({"requests": [{"text": "held"}]}, {"x-emulator-script": "queued:hold, done"})
    queued = json.loads(wire.send(held))
    wire.close()
    prepared = request({"request_id": queued["result"]["request_id"]})
    ours, theirs = multiprocessing.Pipe()
    poller = multiprocessing.Process(target=polls, args=(url, prepared, theirs), daemon=True)
    poller.start()
    ours.recv()
    took: list[float] = []
    yield took
    ours.send("stop")
    took += sorted(ours.recv())
    poller.join()


def _polls_without_pause(url: str, prepared: bytes, stop: Connection) -> None:
    """Poll until told to stop, then hand over how long each poll took, in seconds."""
    wire = Wire(url)
    took = []
    stop.send("begun")
    while not stop.poll():
        began = perf_counter()
        wire.send(prepared)
        took.append(perf_counter() - began)
    stop.send(took)


def _polls_at_a_rate(url: str, prepared: bytes, stop: Connection) -> None:
    """The same at a rate of its own: a poll that comes late, since the one before it took long, has waited too."""
    wire = Wire(url)
    took: list[float] = []
    stop.send("begun")
    began = perf_counter()
    while not stop.poll():
        due = began + len(took) / POLLS_A_SECOND
        sleep(max(0.0, due - perf_counter()))
        wire.send(prepared)
        took.append(perf_counter() - due)
    stop.send(took)


class _Peak:
    """Looks at a figure a few hundred times a second and keeps its highest."""

    def __init__(self, look: Callable[[], float]) -> None:
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
