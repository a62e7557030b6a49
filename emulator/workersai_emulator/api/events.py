"""Server-sent events: a text on its way, in the form that the service streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workersai_emulator.spoiling import ConnectionSpoiled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from workersai_emulator.inference import Event
    from workersai_emulator.outcome import Streamed
    from workersai_emulator.refusals import Refused

EVENT_STREAM = "text/event-stream"
_DONE = b"data: [DONE]\n\n"


async def events(
    streamed: Streamed, error: Callable[[Refused, int], Event], *, closing: bool = True
) -> AsyncGenerator[bytes]:
    """The events, at first each a piece of its own, and `[DONE]` after them where `closing` says so.

    A stream that turns into a refusal ends with what `error` makes of it and of the
    number of events before; one that breaks ends the connection.
    Raises ConnectionSpoiled. Fact: `head.sse`.
    """
    told = 0
    async for slice_ in streamed.slices():
        told += len(slice_)
        yield b"".join(map(_framed, slice_))
    if streamed.broken:
        raise ConnectionSpoiled
    if streamed.refused is not None:
        yield _framed(error(streamed.refused, told))
    elif closing:
        yield _DONE


def _framed(event: Event) -> bytes:
    named = b"" if event.name is None else b"event: " + event.name.encode() + b"\n"
    return named + b"data: " + event.data + b"\n\n"
