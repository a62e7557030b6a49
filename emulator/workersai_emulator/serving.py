"""A server in a process of its own, until it is told to stop."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import sys
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import click

from workersai_emulator import __version__
from workersai_emulator.console import formatter, greeting, json_line, json_printer, printer
from workersai_emulator.options import Options, url_of
from workersai_emulator.server import Server

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine
    from typing import Any

_TURN_SECONDS = 0.0001
_KEPT_BYTES = 16 << 20
SIGNALS = (signal.SIGINT, signal.SIGTERM)

Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result], options: Options) -> Result:
    """Run a server's coroutine as the whole of this process."""
    sys.setswitchinterval(_TURN_SECONDS)  # the worker thread must not keep a poll waiting
    keep_memory()
    logged = logging.StreamHandler(sys.stderr)
    logged.setFormatter(formatter(options.log))
    logging.basicConfig(level=logging.WARNING, handlers=[logged])
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


def keep_memory() -> None:
    """Have glibc keep pieces of memory up to some size, which it does once one of that size was given back.

    Else it gives each back to the system, and having it cleared again takes longer than to write vectors into it.
    """
    bytes(_KEPT_BYTES)


async def serve(
    options: Options,
    ready: Callable[[str, int], object] | None = None,
    watched: int | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; the URL is the one line on stdout. Raises ValueError that names a flag.

    One of several workers tells its URL and seed to `ready` instead, and ends with the pipe that it watches.
    """
    terminal = sys.stderr.isatty()
    stopped, hurried = asyncio.Event(), asyncio.Event()
    on_signals(lambda _: (hurried if stopped.is_set() else stopped).set())
    colour = terminal and "NO_COLOR" not in os.environ
    if watched is not None:
        asyncio.get_running_loop().add_reader(watched, stopped.set)
    async with listening(options, hurried, every=terminal, colour=colour) as (url, server):
        if ready is not None:
            ready(url, server.seed)
        else:
            if options.log == "text":
                say(greeting(url, server.seed, strict=bool(options.tokens)))
            click.echo(url)
        await stopped.wait()


def on_signals(tell: Callable[[signal.Signals], object]) -> None:
    """Have SIGINT and SIGTERM told instead of obeyed."""
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError):  # where a loop takes no signals, Ctrl-C interrupts it
        for number in SIGNALS:
            loop.add_signal_handler(number, tell, number)


@asynccontextmanager
async def listening(
    options: Options, hurried: asyncio.Event, *, every: bool, colour: bool
) -> AsyncGenerator[tuple[str, Server]]:
    """A server that listens, until its replies under way are out, or for as long as nobody is `hurried`."""
    as_json = options.log == "json"
    server = Server(options, json_printer(say) if as_json else printer(say, every=every, colour=colour))
    try:
        await server.start()
    except OSError as fault:
        raise cannot_listen(options, fault) from None
    url = url_of(options.host, server.port)
    if as_json:
        say(json_line("start", url=url, version=__version__, seed=server.seed))
    try:
        yield url, server
    finally:
        await server.stop(hurried.is_set)
    if as_json:
        say(json_line("end"))


def cannot_listen(options: Options, fault: OSError) -> ValueError:
    """Why the address cannot be had, by its flags."""
    if fault.errno == errno.EADDRINUSE:
        return ValueError(f"--port: {options.port} is in use on {options.host}; 0 takes a free one")
    return ValueError(f"--host, --port: cannot listen on {options.host}:{options.port}: {fault.strerror}")


def say(line: str) -> None:
    """Print a line for a person; stdout is for programs."""
    click.echo(line, err=True)
