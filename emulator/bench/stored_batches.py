"""What memory a stored batch of one text takes: beside its payload's bytes, and beside a bare server that keeps it.

The emulator's is with what the journal keeps of the submit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from figures import Figure
from wire import BARE, TEXT, Wire, emulator, request, running

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What is laid out once is there before the first look.
_BEFORE = 2_000


def figures(*, short: bool) -> Iterator[Figure]:
    """Bytes of the server's memory for each batch."""
    count = 5_000 if short else 50_000
    message = {"requests": [{"text": TEXT}]}
    payload = len(request(message).partition(b"\r\n\r\n")[2])
    ours, bare = (
        _growth(command, request(message), count)
        for command in (emulator("--script", "queued:hold, done"), BARE)
    )
    yield Figure.of("memory of a batch of one text", "B", [ours], [payload], "its payload's bytes")
    yield Figure.of("memory of a batch, beside a dict", "B", [ours], [bare], "bare server, parsed in a dict")


def _growth(command: list[str], prepared: bytes, count: int) -> float:
    with running(command) as server:
        wire = Wire(server.url)
        for _ in range(_BEFORE):
            wire.send(prepared)
        before = server.megabytes()
        for _ in range(count):
            wire.send(prepared)
        grown = server.megabytes() - before
        wire.close()
    return grown * 1e6 / count
