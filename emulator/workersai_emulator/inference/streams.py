"""Text generation as a stream: the events that carry it word by word."""

from __future__ import annotations

import hashlib
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from workersai_emulator.inference.chosen import NOTHING, read_chosen
from workersai_emulator.inference.event import Event
from workersai_emulator.inference.forms import (
    TextForm,
    chat_calls,
    choices_wanted,
    completion_head,
    fingerprint,
    native_calls,
    output_items,
    response,
    response_head,
    shape_of,
    usage_of,
)
from workersai_emulator.inference.generation import Written, written
from workersai_emulator.inference.inputs import prompt_of
from workersai_emulator.inference.text import pieces
from workersai_emulator.inference.tokens import Usage, estimate
from workersai_emulator.json_text import dumps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from workersai_contracts import ModelCard

#: So many characters of a tool call's arguments come in one event.
ARGUMENT_CHARACTERS: Final = 12

_PADDING = "abdefghijklmnoprstuvxyz1234567890"


class Stream(NamedTuple):
    """The events of a stream in order, made when they are asked for, and the tokens it takes.

    The `[DONE]` at its end is not among them.
    """

    events: Iterator[Event]
    usage: Usage


def stream(card: ModelCard, inputs: Mapping[str, Any], form: TextForm, chosen: Any = NOTHING) -> Stream:
    """Return one text generation as a stream, in one form.

    A `chosen` output is streamed in that form too; one that is no text generation is the only event. Facts:
    `head.sse`, `stream.native`, `stream.choices`, `stream.json-mode`. Raises CannotMeet as `generate` does.
    """
    new = written(card, inputs) if chosen is NOTHING else read_chosen(inputs, chosen)
    if new is None:
        return Stream(iter([Event(dumps(chosen))]), Usage(sum(map(estimate, prompt_of(inputs).texts))))
    shape = shape_of(card, inputs, form)
    if shape == "output":
        return Stream(_response_events(card, inputs, new), new.usage)
    if shape == "choices":
        asked = choices_wanted(inputs) if chosen is NOTHING else 1
        usage = usage_of(new, asked)
        told = _chunks(card, inputs, new, asked, usage, native=form == "native")
        return Stream((Event(dumps(chunk)) for chunk in told), usage)
    return Stream((Event(dumps(event)) for event in _native_events(new)), new.usage)


def _native_events(new: Written) -> Iterator[dict[str, Any]]:
    """Yield the text word by word, tool calls whole, and last the usage. Fact: `stream.native`."""
    for number, piece in enumerate(pieces(new.text)):
        yield {"response": piece, "p": _padding(number, piece)}
    if new.calls:
        yield {"response": "", "tool_calls": native_calls(new.calls)}
    yield _last(new.usage)


def _last(usage: Usage) -> dict[str, Any]:
    return {"response": "", "usage": usage.as_json()}


def _padding(number: int, piece: str) -> str:
    """Return the filler that hides how long a word is: the beginning of a fixed text, 5 to 36 characters."""
    drawn = hashlib.sha256(b"%d %b" % (number, piece.encode("utf-8", "surrogatepass"))).digest()
    return (_PADDING * 2)[: 5 + drawn[0] % 32]


def _chunks(
    card: ModelCard, item: Mapping[str, Any], new: Written, asked: int, usage: Usage, *, native: bool
) -> Iterator[dict[str, Any]]:
    """Yield OpenAI's chunks, one choice after the other.

    A model that streams them by itself ends with the usage unasked, and then as older models do. Facts:
    `stream.choices`, `openai.stream`.
    """
    mark = fingerprint(card, item)
    head = completion_head(card, mark, "chat.completion.chunk")
    for index in range(asked):
        for delta, finish in _deltas(mark, new, index):
            yield {**head, "choices": [{"index": index, "delta": delta, "finish_reason": finish}]}
    options = item.get("stream_options")
    if native or (isinstance(options, dict) and options.get("include_usage") is True):
        yield {**head, "choices": [], "usage": usage.as_json()}
    if native:
        yield _last(usage)


def _deltas(mark: str, new: Written, index: int) -> Iterator[tuple[dict[str, Any], str | None]]:
    yield {"role": "assistant", "content": ""}, None
    for piece in pieces(new.text):
        yield {"content": piece}, None
    for number, call in enumerate(chat_calls(mark, new, index) if new.calls else ()):
        arguments: str = call["function"]["arguments"]
        opened = {**call, "function": {**call["function"], "arguments": ""}}
        yield {"tool_calls": [{"index": number, **opened}]}, None
        for part in _cut(arguments):
            yield {"tool_calls": [{"index": number, "function": {"arguments": part}}]}, None
    yield {}, new.finish


def _cut(text: str) -> list[str]:
    return [text[at : at + ARGUMENT_CHARACTERS] for at in range(0, len(text), ARGUMENT_CHARACTERS)]


def _response_events(card: ModelCard, item: Mapping[str, Any], new: Written) -> Iterator[Event]:
    """Yield the events of the Responses API, each with its name as its type. Fact: `stream.responses`."""
    numbers = count()

    def event(kind: str, **members: Any) -> Event:
        told = {"type": f"response.{kind}", "sequence_number": next(numbers), **members}
        return Event(dumps(told), f"response.{kind}")

    mark = fingerprint(card, item)
    started = response_head(card, item, mark, "in_progress")
    yield event("created", response=started)
    yield event("in_progress", response=started)
    for index, one in enumerate(output_items(mark, new)):
        place = {"item_id": one["id"], "output_index": index}
        empty: dict[str, Any] = {"content": []} if one["type"] == "message" else {"arguments": ""}
        opened = {**one, "status": "in_progress", **empty}
        yield event("output_item.added", output_index=index, item=opened)
        if one["type"] == "message":
            part = one["content"][0]
            within = {**place, "content_index": 0}
            yield event("content_part.added", **within, part={**part, "text": ""})
            for piece in pieces(new.text):
                yield event("output_text.delta", **within, delta=piece, logprobs=[])
            yield event("output_text.done", **within, text=part["text"], logprobs=[])
            yield event("content_part.done", **within, part=part)
        else:
            for piece in _cut(one["arguments"]):
                yield event("function_call_arguments.delta", **place, delta=piece)
            yield event("function_call_arguments.done", **place, name=one["name"], arguments=one["arguments"])
        yield event("output_item.done", output_index=index, item=one)
    yield event("completed" if new.whole else "incomplete", response=response(card, item, new))
