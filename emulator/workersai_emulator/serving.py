"""A server in a process of its own: until it is told to stop, or for as long as a command runs beside it."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import click

from workersai_emulator import __version__
from workersai_emulator.api_tokens import credentials
from workersai_emulator.console import formatter, greeting, json_line, json_printer, printer
from workersai_emulator.environment import variables
from workersai_emulator.options import Options, url_of
from workersai_emulator.plane import HttpPlane
from workersai_emulator.server import Server
from workersai_emulator.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
    from typing import Any

#: The exit code where the verdict has found something.
FOUND = 1
_TURN_SECONDS = 0.0001
SIGNALS = (signal.SIGINT, signal.SIGTERM)

Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result], options: Options) -> Result:
    """Run a server's coroutine as the whole of this process."""
    sys.setswitchinterval(_TURN_SECONDS)  # the worker thread must not keep a poll waiting
    logged = logging.StreamHandler(sys.stderr)
    logged.setFormatter(formatter(options.log))
    logging.basicConfig(level=logging.WARNING, handlers=[logged])
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


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
    _on_signals(lambda _: (hurried if stopped.is_set() else stopped).set())
    colour = terminal and "NO_COLOR" not in os.environ
    if watched is not None:
        asyncio.get_running_loop().add_reader(watched, stopped.set)
    async with _listening(options, hurried, every=terminal, colour=colour) as (url, server):
        if ready is not None:
            ready(url, server.seed)
        else:
            if options.log == "text":
                _say(greeting(url, server.seed, strict=bool(options.tokens)))
            click.echo(url)
        await stopped.wait()


async def serve_for(command: Sequence[str], options: Options, *, verdict: bool = False) -> int:
    """Serve while a command runs whose environment points every client here, and give its exit code.

    SIGINT and SIGTERM are passed on; a command that a signal ended gives 128 and the signal's number. With
    `verdict`, what the command did to the service is judged on stderr, and errors and warnings turn a 0 into
    a 1. Raises OSError for a command that cannot be run.
    """
    hurried = asyncio.Event()
    child = _Child(hurried)
    _on_signals(child.pass_on)
    async with _listening(options, hurried, every=False, colour=False) as (url, server):
        account_id, token = credentials(options.tokens)
        if options.log == "text":
            _say(f"workersai-emulator: {url}, seed {server.seed}")
        child.start(command, {**os.environ, **variables(url, account_id, token)})
        code = await asyncio.to_thread(child.wait)
        judged = await asyncio.to_thread(_verdict, url, options.control_token) if verdict else Verdict(())
    for line in _told(judged) if verdict else ():
        _say(f"workersai-emulator: {line}")
    if code == 0 and not judged.clean:
        return FOUND
    return code if code >= 0 else 128 - code


def _verdict(url: str, control_token: str | None) -> Verdict:
    plane = HttpPlane(url, control_token)
    try:
        return Verdict.read(plane.ask("GET", "verdict", {}))
    finally:
        plane.close()


def _told(judged: Verdict) -> list[str]:
    return [*map(str, judged.findings), f"the verdict is {'clean' if judged.clean else 'not clean'}"]


class _Child:
    """A command and the signals on their way to it, those too that come before it runs.

    One that comes after its end sets `hurried`.
    """

    def __init__(self, hurried: asyncio.Event) -> None:
        self._hurried = hurried
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[signal.Signals] = []

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        # In one go: while the loop waited for it, Ctrl-C could reach it and be taken for an early one as well.
        self._process = subprocess.Popen(command, env=environment)  # noqa: S603 - what the user asked for
        for number in self._early:
            self._process.send_signal(number)

    def pass_on(self, number: signal.Signals) -> None:
        if self._process is None:
            self._early.append(number)
        elif self._process.returncode is not None:
            self._hurried.set()
        elif not (number == signal.SIGINT and _in_foreground()):
            self._process.send_signal(number)

    def wait(self) -> int:
        assert self._process is not None
        return self._process.wait()


def _in_foreground() -> bool:
    """Whether Ctrl-C at the terminal reaches the command by itself, as it reaches us.

    A second one would make many a program drop what it is cleaning up.
    """
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _on_signals(tell: Callable[[signal.Signals], object]) -> None:
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError):  # where a loop takes no signals, Ctrl-C interrupts it
        for number in SIGNALS:
            loop.add_signal_handler(number, tell, number)


@asynccontextmanager
async def _listening(
    options: Options, hurried: asyncio.Event, *, every: bool, colour: bool
) -> AsyncGenerator[tuple[str, Server]]:
    """A server that listens, until its replies under way are out, or for as long as nobody is `hurried`."""
    as_json = options.log == "json"
    server = Server(options, json_printer(_say) if as_json else printer(_say, every=every, colour=colour))
    try:
        await server.start()
    except OSError as fault:
        raise cannot_listen(options, fault) from None
    url = url_of(options.host, server.port)
    if as_json:
        _say(json_line("start", url=url, version=__version__, seed=server.seed))
    try:
        yield url, server
    finally:
        await server.stop(hurried.is_set)
    if as_json:
        _say(json_line("end"))


def cannot_listen(options: Options, fault: OSError) -> ValueError:
    """Why the address cannot be had, by its flags."""
    if fault.errno == errno.EADDRINUSE:
        return ValueError(f"--port: {options.port} is in use on {options.host}; 0 takes a free one")
    return ValueError(f"--host, --port: cannot listen on {options.host}:{options.port}: {fault.strerror}")


def _say(line: str) -> None:
    click.echo(line, err=True)
