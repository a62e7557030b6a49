"""The command `workersai-batch`: submit, poll, wait, run and embed from a shell, JSON in and JSON out.

Exit codes: 0 done, 1 final failure (a failed item is one), 2 usage, 3 still pending, 75 worth retrying, 130
interrupted.
"""

from __future__ import annotations

import sys
import time
from typing import IO, TYPE_CHECKING, Any

import click

from workersai_client import command_input as reading
from workersai_client import command_output as writing
from workersai_client.batches import Handle, Pending
from workersai_client.client import Client
from workersai_client.deadline import Deadline
from workersai_client.embedding import DEFAULT_MODEL, batches_of
from workersai_client.errors import ConfigurationError, WaitTimeout, WorkersAIError
from workersai_client.queued import IN_FLIGHT
from workersai_client.retrying import FIRST_PAUSE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

FINAL, USAGE, STILL_PENDING, WORTH_RETRYING, INTERRUPTED = 1, 2, 3, 75, 130
DEFAULT_TIMEOUT = 600.0

_FILE = click.argument("file", type=click.File("rb"), default="-")
_HANDLE_FILE = click.argument("handle_file", type=click.File("rb"), required=False)
_REQUEST_ID = click.option("--request-id", help="The batch, instead of a handle; with --model.")
_MODEL_OF_IT = click.option("--model", help="The model of --request-id.")
_LINES = click.option("--lines", is_flag=True, help="The input is not JSON: each line is a text.")
_TIMEOUT = click.option(
    "--timeout", type=float, default=DEFAULT_TIMEOUT, show_default=True, help="How long to wait, in seconds."
)


@click.group()
@click.version_option(
    package_name="workersai-emulator", prog_name=writing.NAME, message="%(prog)s %(version)s"
)
def cli() -> None:
    """Queue batches at Cloudflare Workers AI and collect them.

    Account, token and server come from CLOUDFLARE_ACCOUNT_ID, CLOUDFLARE_API_TOKEN and CLOUDFLARE_BASE_URL.
    FILE is a name, or - for stdin.

    Exit codes: 0 done, 1 final failure, 2 usage, 3 still pending, 75 worth retrying.
    """


@cli.command()
@click.argument("model")
@_FILE
@_LINES
@click.option("--allow-duplicates", is_flag=True, help="Retry even where that may queue the batch twice.")
def submit(model: str, file: IO[bytes], *, lines: bool, allow_duplicates: bool) -> None:
    """Queue the requests of FILE as one batch, and print its handle.

    FILE has {"requests": […]}, a list of requests, or a request a line, as JSON; or, with --lines, texts.
    """
    requests = reading.requests_in(file.read(), lines=lines)
    with _client() as client:
        handle = client.submit(model, requests, allow_duplicates=allow_duplicates)
    writing.print_handle(handle)


@cli.command()
@_HANDLE_FILE
@_REQUEST_ID
@_MODEL_OF_IT
def poll(**batch: Any) -> int:
    """Look at a batch once: exit code 3 and its status while it is pending, else its items.

    HANDLE_FILE, by default stdin, has what submit printed.
    """
    handle = _handle(**batch)
    with _client(handle) as client:
        found = client.poll(handle)
    if isinstance(found, Pending):
        writing.print_pending(found.status, handle)
        return STILL_PENDING
    writing.print_done(found)
    found.raise_for_items()
    return 0


@cli.command()
@_HANDLE_FILE
@_REQUEST_ID
@_MODEL_OF_IT
@_TIMEOUT
@click.option(
    "--interval",
    type=float,
    default=FIRST_PAUSE,
    show_default=True,
    help="The first, in seconds; it doubles.",
)
def wait(timeout: float, interval: float, **batch: Any) -> int:
    """Look at a batch until it is done, and print its items; exit code 3 when the time is up before.

    HANDLE_FILE, by default stdin, has what submit printed. The handle is on stderr meanwhile.
    """
    handle = _handle(**batch)
    with _client(handle) as client:
        writing.say_handle(handle)
        try:
            done = client.wait(handle, timeout=timeout, interval=interval)
        except WaitTimeout as passed:
            writing.print_pending(passed.last_status, handle)
            raise
    writing.print_done(done)
    done.raise_for_items()
    return 0


@cli.command()
@click.argument("model")
@_FILE
def run(model: str, file: IO[bytes]) -> None:
    """Ask a model at once with the JSON object of FILE, and print its result."""
    inputs = reading.inputs_in(file.read())
    with _client() as client:
        writing.print_json(client.run(model, inputs))


@cli.command()
@_FILE
@_LINES
@click.option("--model", default=DEFAULT_MODEL, show_default=True)
@click.option("--batch/--no-batch", help="Through the queue, or by synchronous calls.  [default: no-batch]")
@_TIMEOUT
@click.option(
    "--resume", type=click.File("rb"), help="What an earlier run over the same FILE said on stderr."
)
def embed(
    file: IO[bytes], *, lines: bool, model: str, batch: bool, timeout: float, resume: IO[bytes] | None
) -> None:
    """Embed the texts of FILE: a JSON array a line, in their order.

    FILE has a JSON list of strings, or a string a line; or, with --lines, plain texts. With --batch the handles
    of its batches go to stderr, and --timeout bounds it all.
    """
    if resume and not batch:
        raise click.UsageError("--resume goes with --batch")
    texts = reading.texts_in(file.read(), lines=lines)
    handles = reading.handles_in(resume.read()) if resume else []
    deadline = Deadline(timeout, time.monotonic)
    with _client() as client:
        if batch:
            writing.print_vectors(_embedded(client, texts, model, deadline, handles))
        else:
            writing.print_vectors(client.embed(texts, model=model))


def _embedded(
    client: Client, texts: list[str], model: str, deadline: Deadline, known: Sequence[Handle]
) -> Iterator[NDArray[np.float32]]:
    """Embed through the queue, a few batches at a time, each said on stderr as soon as it is queued."""
    batches = batches_of(texts)
    _check_resumed(known, batches, model)
    for first in range(0, len(batches), IN_FLIGHT):
        group = batches[first : first + IN_FLIGHT]
        handles = list(known[first : first + IN_FLIGHT])
        for handle in handles:
            writing.say_handle(handle)
        for batch in group[len(handles) :]:
            handles.append(client.submit(model, [{"text": texts[number]} for number in batch]))
            writing.say_handle(handles[-1])
        part = texts[group[0].start : group[-1].stop]
        yield from client.embed_batch(part, model=model, timeout=deadline.remaining, resume=handles)


def _check_resumed(known: Sequence[Handle], batches: Sequence[range], model: str) -> None:
    """Refuse handles of other texts before anything is queued."""
    if len(known) > len(batches):
        raise ConfigurationError(
            f"--resume has {len(known)} handles, but the texts make {len(batches)} batches"
        )
    for handle, batch in zip(known, batches, strict=False):
        if handle.model != model or handle.items not in (None, len(batch)):
            raise ConfigurationError(f"--resume: batch {handle.request_id} is not of these texts and {model}")


def _client(handle: Handle | None = None) -> Client:
    """A client of the environment's account, or of a handle's own; whom it talks to is said on stderr."""
    client = Client(account_id=handle.account_id if handle else None)
    writing.say_host(client.base_url)
    return client


def _handle(handle_file: IO[bytes] | None, request_id: str | None, model: str | None) -> Handle:
    """The batch that is meant: a handle's JSON, or an id with its model in the environment's account."""
    if request_id is None and model is None:
        return Handle.from_json((handle_file or sys.stdin.buffer).read())
    if request_id is None or model is None or handle_file is not None:
        raise click.UsageError("give a handle, or --request-id and --model")
    with Client() as client:
        return Handle(client.account_id, model, request_id)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its code; whatever goes wrong is one line on stderr."""
    code = _code_of(arguments)
    writing.leave_stdout()
    sys.exit(code)


def _code_of(arguments: Sequence[str] | None) -> int:
    try:
        code = cli.main(arguments, prog_name=writing.NAME, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as asked:
        click.echo(asked.format_message(), err=True)
        return USAGE
    except (click.ClickException, WorkersAIError, OSError) as fault:
        return _failure(fault)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _failure(fault: click.ClickException | WorkersAIError | OSError) -> int:
    """Say what went wrong, and hand back what to exit with."""
    if isinstance(fault, OSError):
        writing.say(f"cannot read or write: {fault.strerror or fault}")
        return FINAL
    if isinstance(fault, click.ClickException | ConfigurationError):
        writing.say(str(fault) if isinstance(fault, ConfigurationError) else fault.format_message())
        return USAGE
    writing.say(writing.described(fault))
    if isinstance(fault, WaitTimeout):
        return STILL_PENDING
    return WORTH_RETRYING if fault.retryable else FINAL


if __name__ == "__main__":
    main()
