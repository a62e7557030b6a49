"""Server-sent events: a text on its way, in the form that the service streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workersai_emulator.spoiling import ConnectionSpoiled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from workersai_emulator.outcome import Streamed

EVENT_STREAM = "text/event-stream"
_DONE = b"data: [DONE]\n\n"


async def events(streamed: Streamed, error: bytes, *, closing: bool = True) -> AsyncGenerator[bytes]:
    """The events, each a piece of its own, and `[DONE]` after them where `closing` says so.

    A stream that turns into a refusal ends with `error` as its last event; one that breaks ends the connection.
    Raises ConnectionSpoiled. Fact: `head.sse`.
    """
    for event in streamed.events:
        named = b"" if event.name is None else b"event: " + event.name.encode() + b"\n"
        yield named + b"data: " + event.data + b"\n\n"
    if streamed.broken:
        raise ConnectionSpoiled
    if streamed.refused is not None:
        yield b"data: " + error + b"\n\n"
    elif closing:
        yield _DONE
