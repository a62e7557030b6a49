"""`workersai-verify proxy --upstream URL`: checks what passes between a client and a server, both ways."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from workersai_contracts.recording import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

#: The exit code where something departed from the contract.
FOUND = 1


@click.command()
@click.option(
    "--upstream", required=True, help="The server to pass requests on to: its root, or …/client/v4."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Where to listen on 127.0.0.1; 0 takes a free one.",
)
@click.option(
    "--record", type=click.Path(path_type=Path, file_okay=False), help="Keep every exchange in a new folder."
)
@click.option("--redact-texts", is_flag=True, help="Hide in the recording what was said, on both sides.")
@click.pass_context
def proxy(
    context: click.Context, *, upstream: str, port: int, record: Path | None, redact_texts: bool
) -> None:
    """Pass requests on, and tell on stderr where they or their replies depart from the contract.

    The URL to point clients at is the one line on stdout. Ends with Ctrl-C or SIGTERM: 1 where something departed.
    """
    from workersai_contracts.proxy import Proxy, is_root

    if not is_root(upstream):
        raise click.UsageError(f"--upstream {upstream}: give a URL such as http://127.0.0.1:8799")
    recorder = None if record is None else Recorder(upstream, record, hide_texts=redact_texts)
    passing = Proxy(upstream, lambda line: click.echo(line, err=True), port=port, recorder=recorder)
    _until_signal(passing.stop)
    click.echo(passing.url)
    passing.serve()
    passing.close()
    click.echo(f"workersai-verify: {passing.passed} exchanges, {passing.breaches} departures", err=True)
    context.exit(FOUND if passing.breaches else 0)


def _until_signal(stop: Callable[[], None]) -> None:
    def end(number: int, frame: FrameType | None) -> None:
        threading.Thread(target=stop, daemon=True).start()  # serve waits in this thread

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
