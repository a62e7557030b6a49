"""Streams of events (`text/event-stream`): taken apart, and each event held to its schema."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from workersai_contracts.mismatch import Mismatch, differs, mismatches, moved

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What a stream is made of: Workers AI's own events, OpenAI's chunks, or the Responses API's events.
Streams = Literal["native", "chat", "responses"]

STREAM_TYPE: Final = "text/event-stream"
STREAM_EVENTS: Final[dict[Streams, str]] = {
    "native": "run/stream.event",
    "chat": "openai/chat.chunk",
    "responses": "openai/responses.event",
}
ENDINGS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
DONE: Final = "[DONE]"


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its name, where it has one, and the text of its data."""

    name: str | None
    data: str


def stream_mismatches(content: bytes, form: Streams) -> tuple[str, list[Mismatch]]:
    """Hold a whole stream to its form: the name of the first schema it breaks, or its own, and the differences.

    It is made of events, ends in `[DONE]` or, in the form of the Responses API, in the event that says how it
    ended. An event may be an error, which is then the last. The places are `events[3].choices`, and so on.
    Facts: `head.sse`, `stream.native`, `stream.choices`, `openai.stream`, `stream.responses`.
    """
    try:
        events = parse_events(content)
    except ValueError as fault:
        return STREAM_EVENTS[form], [differs("events", str(fault), "events")]
    told: list[tuple[str, Any]] = []
    for number, event in enumerate(events):
        if event.data == DONE:
            if number + 1 < len(events):
                return STREAM_EVENTS[form], [differs("the end", "an event comes after [DONE]", "events")]
            break
        try:
            body = json.loads(event.data)
        except (ValueError, RecursionError):
            return STREAM_EVENTS[form], [differs("JSON", "the data is not JSON", f"events[{number}]")]
        told.append((_schema_of(body, form), body))
    found = [
        (name, moved(one, f"events[{number}]"))
        for number, (name, body) in enumerate(told)
        for one in mismatches(body, name)
    ]
    found += [(STREAM_EVENTS[form], one) for one in _ending(events, told, form)]
    return found[0][0] if found else STREAM_EVENTS[form], [one for _, one in found]


def parse_events(content: bytes) -> list[Event]:
    """The events of a stream, in order. Raises ValueError, in one line, for what is none."""
    text = content.decode("utf-8").replace("\r\n", "\n")
    if text and not text.endswith("\n\n"):
        raise ValueError("the stream ends inside an event")
    return [_event(block) for block in text.split("\n\n") if block]


def _event(block: str) -> Event:
    name, data = None, []
    for line in block.split("\n"):
        field, colon, value = line.partition(":")
        if field == "data" and colon:
            data.append(value.removeprefix(" "))
        elif field == "event" and colon:
            name = value.removeprefix(" ")
        elif field:
            raise ValueError(f"a line of an event is neither data nor its name: {line[:60]!r}")
    if not data:
        raise ValueError("an event has no data")
    return Event(name, "\n".join(data))


def _schema_of(body: Any, form: Streams) -> str:
    """The schema of one event; a model's own stream may be made of the events of the other forms.

    Facts: `stream.choices`, `stream.responses`.
    """
    if not isinstance(body, dict):
        return STREAM_EVENTS[form]
    if "errors" in body:
        return "run/stream.error"
    if form == "responses" and "error" in body and "type" not in body:
        return "openai/error.reply"
    if form == "native" and "choices" in body:
        return STREAM_EVENTS["chat"]
    if form == "native" and "type" in body:
        return STREAM_EVENTS["responses"]
    return STREAM_EVENTS[form]


def _ending(events: Sequence[Event], told: Sequence[tuple[str, Any]], form: Streams) -> list[Mismatch]:
    """What is wrong with how a stream ends, or with the names of its events."""
    found = [
        differs(body.get("type", ""), f"the event is called {event.name!r}", f"events[{number}].event")
        for number, (event, (name, body)) in enumerate(zip(events, told, strict=False))
        if name == STREAM_EVENTS["responses"] and isinstance(body, dict) and event.name != body.get("type")
    ]
    failed = [
        number for number, (name, _) in enumerate(told) if name in {"run/stream.error", "openai/error.reply"}
    ]
    if failed:
        after = failed[0] + 1 < len(events)
        return [*found, differs("the end", "an event comes after an error", "events")] if after else found
    if form == "responses":
        last = told[-1][1] if told else None
        ended = isinstance(last, dict) and last.get("type") in ENDINGS
        return found if ended else [*found, differs("response.completed", "the stream just stops", "events")]
    if not events or events[-1].data != DONE:
        found.append(differs(DONE, "the stream does not end in [DONE]", "events"))
    return found
