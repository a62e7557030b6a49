"""A server beside a command: for as long as the command runs, with the environment that points it there."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from typing import TYPE_CHECKING

from workersai_emulator.api_tokens import credentials
from workersai_emulator.environment import variables
from workersai_emulator.plane import HttpPlane
from workersai_emulator.serving import listening, on_signals, say
from workersai_emulator.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workersai_emulator.options import Options

#: The exit code where the verdict has found something.
FOUND = 1


async def serve_for(command: Sequence[str], options: Options, *, verdict: bool = False) -> int:
    """Serve while a command runs whose environment points every client here, and give its exit code.

    SIGINT and SIGTERM are passed on; a command that a signal ended gives 128 and the signal's number. With
    `verdict`, what the command did to the service is judged on stderr, and errors and warnings turn a 0 into
    a 1. Raises OSError for a command that cannot be run.
    """
    hurried = asyncio.Event()
    child = _Child(hurried)
    on_signals(child.pass_on)
    async with listening(options, hurried, every=False, colour=False) as (url, server):
        account_id, token = credentials(options.tokens)
        if options.log == "text":
            say(f"workersai-emulator: {url}, seed {server.seed}")
        child.start(command, {**os.environ, **variables(url, account_id, token)})
        code = await asyncio.to_thread(child.wait)
        judged = await asyncio.to_thread(_verdict, url, options.control_token) if verdict else Verdict(())
    for line in _told(judged) if verdict else ():
        say(f"workersai-emulator: {line}")
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
