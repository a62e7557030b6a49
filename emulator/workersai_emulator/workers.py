"""`serve --workers N`: several processes on one port over a shared state, as one emulator.

The system spreads connections over them (SO_REUSEPORT). The process that was started answers nothing itself: it
starts the workers, passes signals on, and starts another worker in the place of one that died.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import click

from workersai_emulator import serving
from workersai_emulator.console import greeting
from workersai_emulator.ids import new_seed
from workersai_emulator.service import Service
from workersai_emulator.state import is_shared, store_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from workersai_emulator.options import Options


def serve_with_workers(options: Options) -> int:
    """Serve until told to stop; the URL is the one line on stdout. Raises ValueError that names a flag.

    Gives 0, or the exit code of a worker that could not start.
    """
    _check(options)
    asyncio.run(_look_at_state(options))
    with _reserved(options) as port:
        return _Workers(replace(options, port=port)).run()


def _check(options: Options) -> None:
    if not is_shared(options.state):
        raise ValueError(
            "--workers: several processes need a state that they share, --state redis://…; a file has one writer"
        )
    if options.replay is not None:
        raise ValueError("--workers: a recording (--replay) is played by one process")
    if not hasattr(os, "fork") or not hasattr(socket, "SO_REUSEPORT"):
        raise ValueError("--workers: this system cannot share a port between processes; run one")


async def _look_at_state(options: Options) -> None:
    """Find what is wrong with the state before any worker does, and have its seed agreed upon."""
    seed = new_seed() if options.seed is None else options.seed
    service = Service(store_of(options), options.settings, seed, options.scenarios)
    await service.open(options.seed)
    await service.close()


@contextmanager
def _reserved(options: Options) -> Iterator[int]:
    """The port, held for the workers and for nobody else."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        with socket.socket(family) as alone:
            alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            alone.bind((options.host, options.port))
            port = int(alone.getsockname()[1])
        holding = socket.socket(family)
        holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holding.bind((options.host, port))
    except OSError as fault:
        raise serving.cannot_listen(options, fault) from None
    with holding:
        yield port


class _Workers:
    """The processes by their ids, each with its number."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._numbers: dict[int, int] = {}
        self._ending = False
        # Workers end when this pipe does: they must not outlive the process that has them, however it ends.
        self._watched, self._held = os.pipe()

    def run(self) -> int:
        """Start all, and wait for their end."""
        for passed_on in serving.SIGNALS:
            signal.signal(passed_on, self._pass_on)
        for number in range(1, self._options.workers + 1):
            told = self._start(number)
            if told is None:
                return self._end()
        assert told is not None
        url, seed = told
        if self._options.log == "text":
            click.echo(greeting(url, int(seed), strict=bool(self._options.tokens)), err=True)
        click.echo(url)
        while self._numbers:
            pid, status = os.wait()
            number = self._numbers.pop(pid)
            if not self._ending:
                _say(f"worker {number} ended {_how(status)}; another takes its place")
                if self._start(number) is None:
                    return self._end()
        return 0

    def _start(self, number: int) -> list[str] | None:
        """Start one, and wait until it listens; its URL and seed, or None where it ended instead."""
        reads, writes = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reads)
            os.close(self._held)
            _be_worker(self._options, writes, self._watched)
        os.close(writes)
        self._numbers[pid] = number
        with os.fdopen(reads) as said:
            told = said.readline().split()
        return told or None

    def _end(self) -> int:
        """End all, since one could not start; its exit code."""
        self._pass_on(signal.SIGTERM, None)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in self._numbers]
        return next((code for code in codes if code > 0), 1)

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        self._ending = True
        for pid in self._numbers:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def _be_worker(options: Options, ready: int, watched: int) -> NoReturn:
    os.setpgid(0, 0)  # Ctrl-C reaches it once, through the process that started it
    for number in serving.SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    code = 1
    try:
        serving.run(serving.serve(options, partial(_tell, ready), watched), options)
        code = 0
    except (ValueError, OSError) as fault:
        _say(str(fault))
        code = 2
    except BaseException:  # noqa: BLE001 - this process ends here, whatever it is
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(code)


def _tell(ready: int, url: str, seed: int) -> None:
    os.write(ready, f"{url} {seed}\n".encode())
    os.close(ready)


def _how(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"with {code}" if code >= 0 else f"by {signal.Signals(-code).name}"


def _say(line: str) -> None:
    click.echo(f"workersai-emulator: {line}", err=True)
