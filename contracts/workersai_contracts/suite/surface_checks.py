"""Checks of replies that are no run in its envelope: listings, OpenAI's forms, streams."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from workersai_contracts.event_stream import STREAM_TYPE, parse_events, stream_mismatches
from workersai_contracts.exchange import Completion, Embedded, Events, Page, Response, Schemas
from workersai_contracts.suite.checks import RAY, card_of
from workersai_contracts.vectors import numbers_of, vector_mismatches

if TYPE_CHECKING:
    from workersai_contracts.suite.checks import Checks
    from workersai_contracts.suite.wire import Answer

Surface = Page | Schemas | Completion | Embedded | Response | Events


def surface(checks: Checks, answer: Answer, fact: str, reply: Surface, model_name: str) -> bool:
    """Hold a reply to what it must be; the fact is the one that it should succeed at all."""
    if isinstance(reply, Events):
        return _events(checks, answer, reply)
    checks.headers(answer, reached=False)
    if not checks.succeeded(fact, answer):
        return False
    if isinstance(reply, Page):
        return _page(checks, answer, fact, reply)
    if isinstance(reply, Schemas):
        return _schemas(checks, answer, fact, reply)
    return _openai(checks, answer, fact, reply, model_name)


def _openai(
    checks: Checks, answer: Answer, fact: str, reply: Completion | Embedded | Response, model_name: str
) -> bool:
    """Fact: `openai.run`."""
    match reply:
        case Completion():
            held = checks.schema(fact, answer.json, "openai/chat.reply")
            return held and _text(checks, fact, answer.json["choices"][0]["message"]["content"])
        case Embedded():
            held = checks.schema(fact, answer.json, "openai/embeddings.reply")
            return held and _embedded(checks, answer, reply, model_name)
        case Response():
            return checks.schema(fact, answer.json, "openai/responses.reply")


def _page(checks: Checks, answer: Answer, fact: str, reply: Page) -> bool:
    """Facts: `env.success`, `models.search`, `models.pages`."""
    held = _keys(checks, answer)
    if not (checks.schema(fact, answer.json, "models/search.reply") and held):
        return False
    found = answer.json["result"]
    told = answer.json.get("result_info", {}).get("count")
    checks.that("models.pages", told == len(found), f"result_info counts {told} of {len(found)} models")
    texts = [f"{entry['name']} {entry['description']}".lower() for entry in found]
    others = [entry["name"] for entry, text in zip(found, texts, strict=True) if reply.about not in text]
    few = reply.least <= len(found) <= reply.most
    fits = checks.that(fact, few, f"{len(found)} models, not {reply.least} to {reply.most}")
    return checks.that(fact, not others, f"{others} are not about {reply.about!r}") and fits


def _schemas(checks: Checks, answer: Answer, fact: str, reply: Schemas) -> bool:
    """Facts: `env.success`, `models.schema`."""
    held = _keys(checks, answer)
    if not (checks.schema(fact, answer.json, "models/schema.reply") and held):
        return False
    named = f'"{reply.member}"' in json.dumps(answer.result["input"])
    return checks.that(fact, named, f"the input names no {reply.member!r}")


def _keys(checks: Checks, answer: Answer) -> bool:
    """Fact: `env.success`; which page it is comes behind the result or at the end."""
    keys = [key for key in answer.json if key != "result_info"] if isinstance(answer.json, dict) else None
    expected = ["result", "success", "errors", "messages"]
    return checks.that("env.success", keys == expected, f"keys are {keys}, not {expected}")


def _embedded(checks: Checks, answer: Answer, reply: Embedded, model_name: str) -> bool:
    """Facts: `openai.embeddings`, `models.dimensions`."""
    data, fact = answer.json["data"], "openai.embeddings"
    asked = {"input": list(reply.texts), "encoding_format": reply.encoding}
    wrong = [found.message for found in vector_mismatches(asked, data)]
    if not checks.that(fact, not wrong, "; ".join(wrong)):
        return False
    rows = [tuple(numbers_of(one["embedding"], reply.encoding) or ()) for one in data]
    lengths, expected = {len(row) for row in rows}, card_of(model_name).dimensions
    message = f"vectors have {sorted(lengths)} numbers, not {expected}"
    checks.that("models.dimensions", lengths == {expected}, message)
    distinct = len(set(rows)) == len(rows) and all(any(row) for row in rows)
    return checks.that(fact, distinct, "different texts have the same vector, or one of zeros")


def _events(checks: Checks, answer: Answer, reply: Events) -> bool:
    """Facts: `head.sse`, `stream.native`, `openai.stream`."""
    fact = "stream.native" if reply.form == "native" else "openai.stream"
    ray = answer.headers.get("cf-ray", "")
    checks.that("head.req-id", RAY.fullmatch(ray) is not None, f"cf-ray is {ray!r}")
    given = answer.headers.get("content-type")
    if not (checks.succeeded("head.sse", answer) and _is_stream(checks, given)):
        return False
    name, found = stream_mismatches(answer.content, reply.form)
    if found:
        ill_formed = any(one.path == "events" for one in found)
        told = "; ".join(one.message for one in found)
        return checks.that("head.sse" if ill_formed else fact, False, f"{name}: {told}")
    told_events = [json.loads(event.data) for event in parse_events(answer.content)[:-1]]
    pieces = [_piece(event) for event in told_events]
    return checks.that(fact, bool("".join(pieces)), "the stream has no text")


def _is_stream(checks: Checks, given: Any) -> bool:
    return checks.that("head.sse", given == STREAM_TYPE, f"content-type is {given!r}")


def _piece(event: Any) -> str:
    if "choices" in event:
        return "".join(choice["delta"].get("content") or "" for choice in event["choices"])
    return event["response"] or ""


def _text(checks: Checks, fact: str, text: Any) -> bool:
    return checks.that(fact, isinstance(text, str) and bool(text), f"the content is {text!r}")
