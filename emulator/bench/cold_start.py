"""From starting the process to its first answer, beside a bare aiohttp server."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from figures import Figure, in_turns
from wire import BARE, BARE_IS, TEXT, Wire, emulator, running

if TYPE_CHECKING:
    from collections.abc import Iterator


def figures(*, short: bool) -> Iterator[Figure]:
    """Milliseconds until the first submit is answered."""
    (
        _first_answer(emulator()),
        _first_answer(BARE),
    )  # what the system and Python keep of files is there from now on
    ours, bare = in_turns(lambda: _first_answer(emulator()), lambda: _first_answer(BARE), 3 if short else 15)
    yield Figure.of("cold start to the first answer", "ms", ours, bare, BARE_IS, most_ratio=1.5)


def _first_answer(command: list[str]) -> float:
    began = perf_counter()
    with running(command) as server:
        wire = Wire(server.url)
        wire.post({"requests": [{"text": TEXT}]})
        took = perf_counter() - began
        wire.close()
    return took * 1000
