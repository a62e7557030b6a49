"""A server for each test: started in a thread, asked once and stopped, beside a bare aiohttp server in a thread."""

from __future__ import annotations

import asyncio
import threading
from time import perf_counter
from typing import TYPE_CHECKING

import uvloop
from bare_server import started
from figures import Figure, in_turns
from wire import TEXT, Wire

from workersai_emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator


def figures(*, short: bool) -> Iterator[Figure]:
    """Milliseconds of one server's life."""
    _emulated(), _bare()
    ours, bare = in_turns(_emulated, _bare, 30 if short else 300)
    yield Figure.of("a server per test", "ms", ours, bare, "bare aiohttp in a thread")


def _emulated() -> float:
    began = perf_counter()
    with Emulator() as emulator:
        _ask(emulator.base_url)
    return (perf_counter() - began) * 1000


def _bare() -> float:
    began = perf_counter()
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    runner, url = asyncio.run_coroutine_threadsafe(started(), loop).result()
    _ask(url)
    asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    return (perf_counter() - began) * 1000


def _ask(url: str) -> None:
    wire = Wire(url)
    wire.post({"requests": [{"text": TEXT}]})
    wire.close()
