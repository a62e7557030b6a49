"""What the command prints: results as lines of JSON on stdout, everything else as lines on stderr."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
import orjson

from workersai_client.errors import UnexpectedReply, WorkersAIError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from workersai_client.batches import Done, Handle

NAME = "workersai-batch"


def say(message: str) -> None:
    """One line on stderr, whatever the message holds."""
    line = "".join(character if character.isprintable() else " " for character in message)
    click.echo(f"{NAME}: {' '.join(line.split())}", err=True)


def say_host(base_url: str) -> None:
    """Tell whom the command talks to, before anything is sent."""
    say(f"talking to {urlsplit(base_url).netloc}")


def say_handle(handle: Handle) -> None:
    """A handle on stderr as its bare JSON, so that it survives whatever becomes of stdout."""
    click.echo(handle.to_json(), err=True)


def leave_stdout() -> None:
    """Let what stdout did not take go nowhere, or the interpreter would complain of it once more at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def print_json(value: Any) -> None:
    """One line of JSON on stdout. Raises OSError where stdout takes no more."""
    try:
        line = orjson.dumps(value)
    except orjson.JSONEncodeError:
        # More than 64 bits, or deeper than orjson goes.
        line = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    click.echo(line)


def print_handle(handle: Handle) -> None:
    """The handle of what was submitted; on stderr where stdout takes nothing, since it must not be lost."""
    try:
        click.echo(handle.to_json())
    except OSError:
        say_handle(handle)
        raise


def print_pending(status: str | None, handle: Handle) -> None:
    """A batch that waits: its status, and its handle, so that the line is a handle again."""
    print_json({"status": status, **json.loads(handle.to_json())})


def print_done(done: Done) -> None:
    """A finished batch: its items in the order of the requests, failed ones with their errors, and usage."""
    items = [
        {
            "id": item.id,
            "success": item.success,
            "result": item.result,
            "external_reference": item.external_reference,
            "error": None if item.error is None else asdict(item.error),
        }
        for item in done.items
    ]
    print_json(
        {"status": "done", "items": items, "usage": None if done.usage is None else asdict(done.usage)}
    )


def print_vectors(vectors: Iterable[NDArray[np.float32]]) -> None:
    """One JSON array a line, for each vector in turn, its numbers to the last digit as they were sent.

    Fact: `models.precision`.
    """
    for vector in vectors:
        click.echo(orjson.dumps(vector.tolist()))


def described(error: WorkersAIError) -> str:
    """An error in one line: its kind, its text with status and code, where it is, and the id to quote."""
    parts = [f"{type(error).__name__}: {error}"]
    if isinstance(error, UnexpectedReply) and error.path:
        parts.append(f"at {error.path}")
    if error.cf_request_id:
        parts.append(f"request {error.cf_request_id}")
    if error.retry_after:
        parts.append(f"asks to wait {error.retry_after:g} s")
    return "; ".join([*parts, *getattr(error, "__notes__", ())])
