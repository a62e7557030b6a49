"""What the binding sends for a run: the inputs and the options, as JSON or around a stream."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qsl

from workersai_emulator.api.body import BadBody, read_body
from workersai_emulator.json_text import dumps, loads
from workersai_emulator.refusals import Refused, refused_input
from workersai_emulator.runs import LARGE_BODY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workersai_contracts import ModelCard
    from workersai_emulator.api.arrival import Arrival
    from workersai_emulator.settings import Settings
    from workersai_emulator.workbench import Workbench

#: What the options around the inputs may take before a body is too large to be read at all.
OPTIONS_BYTES: Final = 65_536


class Said(NamedTuple):
    """The inputs, the options, and the inputs' own bytes; `raw` where they came as a stream."""

    inputs: Any
    options: Mapping[str, Any]
    payload: bytes
    raw: bool = False


async def read_said(
    arrival: Arrival, settings: Settings, card: ModelCard | None, workbench: Workbench
) -> Said:
    """Read a run's body. `card` is None for a model that nobody knows.

    Raises Refused. Facts: `binding.wire`, `binding.stream-input`, `body.not-json`.
    """
    try:
        body = await read_body(arrival.carrier, _most(settings))
        query = dict(parse_qsl(arrival.query, keep_blank_values=True))
        if "userInputs" in query:
            return _around_stream(arrival, query, body, card)
        return await workbench.aside(partial(_parsed, body), large=len(body) > LARGE_BODY)
    except (BadBody, ValueError) as bad:
        if settings.assumed("body.not-json") == "5006":
            raise refused_input(f"the body is not JSON: {bad}") from None
        raise Refused("request.incomplete", what="body") from None


def _most(settings: Settings) -> int | None:
    """How much is read before it is known whether it is a submit."""
    limits = settings.payload_bytes, settings.body_bytes
    known = [limit for limit in limits if limit is not None]
    return max(known) + OPTIONS_BYTES if len(known) == len(limits) else None


def _parsed(body: bytes) -> Said:
    said = loads(body)
    if not isinstance(said, dict):
        raise ValueError("it is no object of inputs and options")
    if "inputs" not in said:
        raise Refused("request.incomplete", what="inputs")
    options = said.get("options")
    return Said(said["inputs"], options if isinstance(options, dict) else {}, dumps(said["inputs"]))


def _around_stream(arrival: Arrival, query: Mapping[str, str], body: bytes, card: ModelCard | None) -> Said:
    """The body is one of the inputs, whose name does not come; the others, and the options, are in the query.

    Fact: `binding.stream-input`.
    """
    others = loads(query["userInputs"])
    if not isinstance(others, dict):
        raise ValueError("userInputs is no object")
    options = {name: True for name, value in query.items() if value == "true"}
    if card is None:
        return Said(others, options, body)  # the service will say so
    member = _streamed_member(card)
    if member is None or not body or "queueRequest" in options:
        raise ValueError("a stream is no input of this model")
    stream = {"body": body, "contentType": arrival.headers.get("Content-Type", "")}
    return Said({**others, member: stream}, options, body, raw=True)


def _streamed_member(card: ModelCard) -> str | None:
    """The input that may be a stream: the one that has a body and its content type. Fact: `models.raw-input`."""
    for arm in (card.input_schema, *card.input_schema.get("oneOf", ())):
        for name, schema in arm.get("properties", {}).items():
            if "contentType" in schema.get("properties", {}):
                return str(name)
    return card.raw_input
