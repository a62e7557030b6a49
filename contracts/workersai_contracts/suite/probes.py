"""Probes: for each open fact, a few requests that show which of its alternatives a target has.

Each gives the alternative's name, or None where the target shows none of them.
"""

from __future__ import annotations

from collections.abc import Callable

from workersai_contracts.exchange import GEMMA, LLAMA, M3, QUEUE, SMALL
from workersai_contracts.suite.checks import first_code
from workersai_contracts.suite.history import finished, follow, status_of
from workersai_contracts.suite.wire import Answer, Wire

NOBODY_S = "00000000-0000-4000-8000-000000000000"
BETWEEN_THE_TWO_LIMITS = 10_200_000
OVER_THE_BODY_LIMIT = 25_500_000
Probe = Callable[[Wire], str | None]


def _refused(answer: Answer, status: int, code: int) -> bool:
    return (answer.status, first_code(answer)) == (status, code)


def poll_unknown(wire: Wire) -> str | None:
    """Poll an id that nobody was given."""
    answer = wire.poll(M3, NOBODY_S)
    if status_of(answer) == "queued":
        return "queued"
    return {400: "refused", 404: "not-found"}.get(answer.status) if first_code(answer) == 8007 else None


def poll_other_model(wire: Wire) -> str | None:
    """Poll a finished batch under another model."""
    history = follow(wire, M3, {"requests": [{"text": "a"}]})
    answer = wire.poll(SMALL, history.request_id)
    if finished(answer) is not None:
        return "answered"
    unknown = first_code(answer) == 8007 or answer.status == 404 or status_of(answer) == "queued"
    return "unknown" if unknown else None


def item_failed(wire: Wire) -> str | None:
    """Queue an item that the validator lets through beside a good one, and that cannot be run."""
    told = finished(follow(wire, M3, {"requests": [{"text": "a"}, {"query": "a"}]}).end)
    failed = [item for item in (told or {}).get("responses", []) if item.get("success") is False]
    if len(failed) != 1:
        return None
    if isinstance(failed[0].get("errors"), list):
        return "errors"
    return "error" if isinstance(failed[0].get("error"), str) else None


def batch_failed(wire: Wire) -> str | None:
    """Queue a bare body on a text model, which fails when it is run. Fact: `batch.bare`."""
    end = follow(wire, LLAMA, {"prompt": "Say yes.", "max_tokens": 8}).end
    if isinstance(end.result, dict) and end.result.get("status") == "failed":
        return "status"
    return "error" if end.status >= 400 and first_code(end) is not None else None


def submit_too_large(wire: Wire) -> str | None:
    """Send a payload between 10 MB and 10 MiB; the padding is no text, so that it costs nothing."""
    answer = wire.run(SMALL, _padded(BETWEEN_THE_TWO_LIMITS), QUEUE)
    if _refused(answer, 413, 3006):
        return "decimal"
    return "binary" if answer.status in {200, 202} else None


def submit_validation(wire: Wire) -> str | None:
    """Queue an item of the wrong type, on an embedding and on a text model."""
    answers = [
        wire.run(SMALL, {"requests": [{"text": ""}]}, QUEUE),
        wire.run(LLAMA, {"requests": [{"prompt": 1}]}, QUEUE),
    ]
    refused = tuple(_refused(answer, 400, 5006) for answer in answers)
    taken = tuple(answer.status in {200, 202} for answer in answers)
    if refused == (True, True):
        return "submit"
    if taken == (True, True):
        return "run"
    return "by-task" if refused[0] and taken[1] else None


def submit_bare(wire: Wire) -> str | None:
    """Queue a body without `requests` on a model that is not text generation."""
    end = follow(wire, SMALL, {"text": "a"}).end
    if finished(end) is not None:
        return "batch"
    return "bare" if isinstance(end.result, dict) and "data" in end.result else None


def submit_no_query(wire: Wire) -> str | None:
    """Send `requests` without the query."""
    answer = wire.run(SMALL, {"requests": [{"text": "a"}]})
    if finished(answer) is not None:
        return "run"
    return "refused" if _refused(answer, 400, 5006) else None


def submit_empty(wire: Wire) -> str | None:
    """Queue nothing."""
    history = follow(wire, SMALL, {"requests": []})
    if _refused(history.submit, 400, 5006):
        return "refused"
    told = finished(history.end) if history.polls else None
    return "done" if told is not None and told["responses"] == [] else None


def body_not_json(wire: Wire) -> str | None:
    """Send a body that is cut short."""
    answer = wire.run(SMALL, b'{"text":')
    return {3003: "3003", 5006: "5006"}.get(first_code(answer)) if answer.status == 400 else None


def model_queue(wire: Wire) -> str | None:
    """Queue on a model of which it is not known whether it queues."""
    answer = wire.run(GEMMA, {"requests": [{"text": "a"}]}, QUEUE)
    if answer.status in {200, 202}:
        return "queued"
    return "refused" if _refused(answer, 400, 8007) else None


def texts_over_100(wire: Wire) -> str | None:
    """Run more texts than the documentation allows."""
    answer = wire.run(SMALL, {"text": ["a"] * 101})
    if answer.status == 200:
        return "accepted"
    return "refused" if _refused(answer, 400, 5006) else None


def body_limit(wire: Wire) -> str | None:
    """Run a body of over 25 MB; the padding is no text, so that it costs nothing."""
    answer = wire.run(SMALL, {"text": "a", "padding": "x" * OVER_THE_BODY_LIMIT})
    if _refused(answer, 413, 3006):
        return "25 MB"
    return "none" if answer.status == 200 else None


def openai_errors(wire: Wire) -> str | None:
    """Ask OpenAI's route for a model that nobody knows."""
    body = {"model": "@cf/nobody/knows-this", "messages": [{"role": "user", "content": "a"}]}
    answer = wire.ai("v1/chat/completions", body)
    if not isinstance(answer.json, dict) or answer.status < 400:
        return None
    if first_code(answer) is not None:
        return "envelope"
    return "openai" if isinstance(answer.json.get("error"), dict) else None


def openai_dimensions(wire: Wire) -> str | None:
    """Ask OpenAI's route for fewer numbers than the model has."""
    body = {"model": M3, "input": "a", "encoding_format": "float", "dimensions": 256}
    answer = wire.ai("v1/embeddings", body)
    try:
        numbers = len(answer.json["data"][0]["embedding"])
    except (KeyError, IndexError, TypeError):
        return None
    return {256: "cut", 1024: "ignored"}.get(numbers)


def _padded(size: int) -> bytes:
    head, tail = b'{"requests":[{"text":"a","padding":"', b'"}]}'
    return head + b"x" * (size - len(head) - len(tail)) + tail


# The open facts that are seen in every lifecycle need no probe: submit.status, done.*, poll.retention.
PROBES: dict[str, Probe] = {
    "poll.unknown": poll_unknown,
    "poll.other-model": poll_other_model,
    "item.failed": item_failed,
    "batch.failed": batch_failed,
    "submit.too-large": submit_too_large,
    "submit.validation": submit_validation,
    "submit.bare": submit_bare,
    "submit.no-query": submit_no_query,
    "submit.empty": submit_empty,
    "body.not-json": body_not_json,
    "model.queue": model_queue,
    "texts.over-100": texts_over_100,
    "body.limit": body_limit,
    "openai.errors": openai_errors,
    "openai.dimensions": openai_dimensions,
}
