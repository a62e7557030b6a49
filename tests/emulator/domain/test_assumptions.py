"""Every alternative of every open fact, and what a client sees of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from workersai_contracts import assumptions, model, models

M3, BASE, SCOUT = "@cf/baai/bge-m3", "@cf/baai/bge-base-en-v1.5", "@cf/meta/llama-4-scout-17b-16e-instruct"
UNKNOWN = "6c8e3a4e-1111-4222-8333-444455556666"
DAY_LESS_A_SECOND = 24 * 3600 - 1

Shows = Callable[[Any], None]
SHOWN: dict[tuple[str, str], Shows] = {}


def shows(fact_id: str, alternative: str) -> Callable[[Shows], Shows]:
    """What follows shows itself where this alternative holds, and fails where another does."""

    def register(check: Shows) -> Shows:
        SHOWN[fact_id, alternative] = check
        return check

    return register


def reads(reply: Any) -> tuple[int, int, str]:
    """Status, code and message of a refusal in Workers AI's envelope."""
    told = reply.json()
    assert told["success"] is False
    assert told["result"] == {}
    error = told["errors"][0]
    return (
        reply.status_code,
        error["code"],
        error["message"].removesuffix(f" ({reply.headers['cf-ai-req-id']})"),
    )


def done(door: Any, *texts: str) -> dict[str, Any]:
    """The result of a finished batch."""
    result: dict[str, Any] = door.poll(door.submit(*texts, script="instant")).json()["result"]
    return result


@shows("poll.unknown", "refused")
def _(door: Any) -> None:
    assert reads(door.poll(UNKNOWN)) == (400, 8007, "AiError: AiError: Request not found")


@shows("poll.unknown", "not-found")
def _(door: Any) -> None:
    assert reads(door.poll(UNKNOWN)) == (404, 8007, "AiError: AiError: Request not found")


@shows("poll.unknown", "queued")
def _(door: Any) -> None:
    for _ in range(3):
        reply = door.poll(UNKNOWN)
        assert reply.status_code == 200
        assert reply.json()["result"] == {"status": "queued", "request_id": UNKNOWN}
    assert door.seen(door.submit(script="lost")) == "queued"


@shows("poll.other-model", "unknown")
def _(door: Any) -> None:
    assert door.seen(door.submit(script="instant"), model=BASE) == 8007


@shows("poll.other-model", "answered")
def _(door: Any) -> None:
    result = door.poll(door.submit(script="instant"), model=BASE).json()["result"]
    assert result["responses"][0]["result"]["shape"] == [1, 1024]


@shows("poll.retention", "day")
def _(door: Any) -> None:
    wanted = door.submit(script="instant")
    assert [door.seen(wanted), door.seen(wanted)] == ["done", "done"]
    door.clock(advance=DAY_LESS_A_SECOND)
    assert door.seen(wanted) == "done"
    door.clock(advance=1)
    assert door.seen(wanted) == 8007


@shows("poll.retention", "once")
def _(door: Any) -> None:
    wanted = door.submit(script="queued:1, done")
    assert [door.seen(wanted) for _ in range(3)] == ["queued", "done", 8007]


def failed_item(door: Any) -> dict[str, Any]:
    inputs = {"requests": [{"text": "a"}, {"foo": 1, "external_reference": "r"}]}
    wanted = door.queued(door.send(inputs, queue=True, headers={"x-emulator-script": "instant"}))
    reply = door.poll(wanted)
    assert (reply.status_code, reply.json()["success"]) == (200, True)
    items: list[dict[str, Any]] = reply.json()["result"]["responses"]
    return next(item for item in items if item["id"] == 1)


@shows("item.failed", "errors")
def _(door: Any) -> None:
    item = failed_item(door)
    assert list(item) == ["id", "result", "success", "errors", "external_reference"]
    assert (item["result"], item["success"], item["external_reference"]) == ({}, False, "r")
    assert [(list(error), error["code"]) for error in item["errors"]] == [(["message", "code"], 5006)]
    assert item["errors"][0]["message"].startswith("AiError: Bad input: Error: ")


@shows("item.failed", "error")
def _(door: Any) -> None:
    item = failed_item(door)
    assert list(item) == ["id", "result", "success", "error", "external_reference"]
    assert (item["result"], item["success"], item["external_reference"]) == ({}, False, "r")
    assert item["error"].startswith("AiError: Bad input: Error: ")


@shows("batch.failed", "error")
def _(door: Any) -> None:
    assert reads(door.poll(door.submit(script="failed"))) == (500, 5001, "AiError: Model execution failed")
    assert reads(door.poll(door.submit(script="failed:3021")))[:2] == (429, 3021)


@shows("batch.failed", "status")
def _(door: Any) -> None:
    reply = door.poll(door.submit(script="failed"))
    assert (reply.status_code, reply.json()["success"]) == (200, True)
    assert reply.json()["result"] == {"status": "failed", "error": "AiError: Model execution failed"}


def status_of_payload(door: Any, size: int) -> int:
    """The HTTP status of a submit of so many bytes."""
    frame = json.dumps({"requests": [{"text": ""}]}).encode()
    body = frame.replace(b'""', b'"' + b"a" * (size - len(frame)) + b'"')
    assert len(body) == size
    reply = door.send(body, queue=True)
    if reply.status_code != 200:
        assert reads(reply) == (413, 3006, "AiError: Request is too large")
    status: int = reply.status_code
    return status


@shows("submit.too-large", "decimal")
def _(door: Any) -> None:
    assert [status_of_payload(door, size) for size in (9_999_999, 10_000_000)] == [200, 413]


@shows("submit.too-large", "binary")
def _(door: Any) -> None:
    assert [status_of_payload(door, size) for size in (10_485_759, 10_485_760)] == [200, 413]


def validated(door: Any, name: str) -> list[str | int]:
    """What the submit of a bad item and the poll that would be done say: `queued`, or a code."""
    inputs = {"requests": [{"prompt": 5}]}
    reply = door.send(inputs, model=name, queue=True, headers={"x-emulator-script": "instant"})
    if reply.status_code != 200:
        return [reads(reply)[1]]
    return ["queued", door.seen(reply.json()["result"]["request_id"], model=name)]


@shows("submit.validation", "by-task")
def _(door: Any) -> None:
    at_submit = {name for name in models() if validated(door, name) == [5006]}
    at_run = {name for name in models() if validated(door, name) == ["queued", 3030]}
    assert {M3, BASE, "@cf/meta/m2m100-1.2b", "@cf/openai/gpt-oss-120b"} <= at_submit
    assert SCOUT in at_run


@shows("submit.validation", "submit")
def _(door: Any) -> None:
    assert [validated(door, name) for name in (BASE, SCOUT)] == [[5006], [5006]]


@shows("submit.validation", "run")
def _(door: Any) -> None:
    assert [validated(door, name) for name in (BASE, SCOUT)] == [["queued", 3030], ["queued", 3030]]


def bare(door: Any) -> dict[str, Any]:
    inputs = {"text": ["a", "b"], "external_reference": "r"}
    wanted = door.queued(door.send(inputs, queue=True, headers={"x-emulator-script": "instant"}))
    result: dict[str, Any] = door.poll(wanted).json()["result"]
    return result


@shows("submit.bare", "bare")
def _(door: Any) -> None:
    assert bare(door) == door.send({"text": ["a", "b"]}).json()["result"]


@shows("submit.bare", "batch")
def _(door: Any) -> None:
    alone = door.send({"text": ["a", "b"]}).json()["result"]
    assert bare(door)["responses"] == [{"id": 0, "result": alone, "success": True, "external_reference": "r"}]


@shows("submit.no-query", "run")
def _(door: Any) -> None:
    reply = door.send({"requests": [{"text": "a"}]})
    assert reply.status_code == 200
    assert list(reply.json()["result"]) == ["responses", "usage"]


@shows("submit.no-query", "refused")
def _(door: Any) -> None:
    assert reads(door.send({"requests": [{"text": "a"}]}))[:2] == (400, 5006)
    assert door.send({"requests": [{"text": "a"}]}, queue=True).status_code == 200


@shows("submit.empty", "done")
def _(door: Any) -> None:
    wanted = door.queued(door.send({"requests": []}, queue=True))
    assert [door.seen(wanted) for _ in range(2)] == ["queued", "running"]
    assert door.poll(wanted).json()["result"] == {
        "responses": [],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    }


@shows("submit.empty", "refused")
def _(door: Any) -> None:
    for name in (M3, BASE, SCOUT):
        assert reads(door.send({"requests": []}, model=name, queue=True))[:2] == (400, 5006)


@shows("submit.status", "200")
def _(door: Any) -> None:
    assert door.send({"requests": [{"text": "a"}]}, queue=True).status_code == 200


@shows("submit.status", "202")
def _(door: Any) -> None:
    reply = door.send({"requests": [{"text": "a"}]}, queue=True)
    assert (reply.status_code, reply.json()["result"]["status"]) == (202, "queued")
    assert door.poll(reply.json()["result"]["request_id"]).status_code == 200
    assert door.send({"text": "a"}).status_code == 200


NOT_JSON = (b"", b"{", b"text=a", b"[NaN]", b"\xff")


@shows("body.not-json", "3003")
def _(door: Any) -> None:
    for body in NOT_JSON:
        expected = (400, 3003, "AiError: Request is missing headers or body: body")
        assert [reads(door.send(body, queue=queue)) for queue in (True, False)] == [expected, expected]


@shows("body.not-json", "5006")
def _(door: Any) -> None:
    for body in NOT_JSON:
        status, code, message = reads(door.send(body))
        assert (status, code) == (400, 5006)
        assert message.startswith("AiError: Bad input: Error: ")


def order(door: Any) -> list[int]:
    return [item["id"] for item in done(door, *map(str, range(20)))["responses"]]


@shows("done.order", "shuffled")
def _(door: Any) -> None:
    told = order(door)
    assert told != sorted(told)
    assert sorted(told) == list(range(20))


@shows("done.order", "request")
def _(door: Any) -> None:
    assert order(door) == list(range(20))


@shows("done.shape", "responses")
def _(door: Any) -> None:
    result = done(door)
    assert list(result) == ["responses", "usage"]
    assert list(result["responses"][0]) == ["id", "result", "success", "external_reference"]


@shows("done.shape", "results")
def _(door: Any) -> None:
    result = done(door, "a", "b", "c")
    assert list(result) == ["results", "usage"]
    assert list(result["results"][0]) == ["index", "result", "success", "external_reference"]
    assert sorted(item["index"] for item in result["results"]) == [0, 1, 2]


@shows("done.status", "none")
def _(door: Any) -> None:
    assert "status" not in done(door)


@shows("done.status", "completed")
def _(door: Any) -> None:
    result = done(door)
    assert result["status"] == "completed"
    assert list(result) == ["status", "responses", "usage"]


OPEN_QUEUES = {
    "@cf/google/embeddinggemma-300m": {"text": "a"},
    "@cf/qwen/qwen3-embedding-0.6b": {"documents": "a"},
    "@cf/pfnet/plamo-embedding-1b": {"text": "a"},
    "@cf/baai/bge-reranker-base": {"query": "a", "contexts": [{"text": "a"}]},
}


@shows("model.queue", "refused")
def _(door: Any) -> None:
    assert {name for name in models() if (card := model(name)) and card.queue is None} == set(OPEN_QUEUES)
    for name, item in OPEN_QUEUES.items():
        reply = door.send({"requests": [item]}, model=name, queue=True)
        assert reads(reply) == (400, 8007, "AiError: Ai: This model does not support request queuing")


@shows("model.queue", "queued")
def _(door: Any) -> None:
    for name, item in OPEN_QUEUES.items():
        reply = door.send(
            {"requests": [item]}, model=name, queue=True, headers={"x-emulator-script": "instant"}
        )
        result = door.poll(door.queued(reply), model=name).json()["result"]
        assert result["responses"][0]["result"] == door.send(item, model=name).json()["result"]


@shows("texts.over-100", "refused")
def _(door: Any) -> None:
    message = "AiError: Bad input: Error: Length of '/text' must be <= 100 not met"
    assert reads(door.send({"text": ["a"] * 101})) == (400, 5006, message)
    assert door.send({"text": ["a"] * 100}).json()["result"]["shape"] == [100, 1024]


@shows("texts.over-100", "accepted")
def _(door: Any) -> None:
    assert door.send({"text": ["a"] * 101}).json()["result"]["shape"] == [101, 1024]


def status_of_body(door: Any, size: int) -> int:
    """The HTTP status of a synchronous run of so many bytes, which the model cuts after 512 tokens."""
    body = b'{"text":"' + b"a" * (size - 11) + b'"}'
    status: int = door.send(body, model=BASE).status_code
    return status


@shows("body.limit", "25 MB")
def _(door: Any) -> None:
    assert [status_of_body(door, size) for size in (24_999_999, 25_000_000)] == [200, 413]


@shows("body.limit", "none")
def _(door: Any) -> None:
    assert status_of_body(door, 26_000_000) == 200


def openai(door: Any, surface: str, **body: Any) -> Any:
    """The reply of one of OpenAI's routes."""
    return door.http.post(f"/client/v4/accounts/{door.account_id}/ai/v1/{surface}", json=body)


@shows("openai.errors", "envelope")
def _(door: Any) -> None:
    told = "AiError: No such model: No such model @cf/x or task"
    assert reads(openai(door, "chat/completions", model="@cf/x", messages=[])) == (400, 5007, told)
    refused = openai(door, "responses", model="@cf/openai/gpt-oss-120b")
    assert refused.json()["error"]["code"] == "invalid_prompt"


@shows("openai.errors", "openai")
def _(door: Any) -> None:
    for surface in ("chat/completions", "responses", "embeddings"):
        error = openai(door, surface, model="@cf/x").json()["error"]
        assert list(error) == ["message", "type", "param", "code"]
        assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", None, "5007")
        assert error["message"].startswith("AiError: No such model: No such model @cf/x or task (")


def embedded(door: Any, **body: Any) -> list[float]:
    """The vector that OpenAI's route gives for a text."""
    vector: list[float] = openai(door, "embeddings", model=M3, input="cloud", **body).json()["data"][0][
        "embedding"
    ]
    return vector


@shows("openai.dimensions", "cut")
def _(door: Any) -> None:
    whole, cut = embedded(door), embedded(door, dimensions=256)
    assert (len(whole), len(cut)) == (1024, 256)
    assert sum(number * number for number in cut) == pytest.approx(1, abs=1e-3)
    scale = sum(number * number for number in whole[:256]) ** 0.5
    assert cut == pytest.approx([number / scale for number in whole[:256]], abs=1e-3)


@shows("openai.dimensions", "ignored")
def _(door: Any) -> None:
    assert embedded(door, dimensions=256) == embedded(door)


def test_every_alternative_has_what_shows_it() -> None:
    assert set(SHOWN) == {(fact.id, name) for fact in assumptions().values() for name in fact.alternatives}


@pytest.mark.parametrize(("fact_id", "alternative"), list(SHOWN), ids=str)
def test_chosen_alternative_shows(door: Any, fact_id: str, alternative: str) -> None:
    door.assume(assumptions={fact_id: alternative})
    SHOWN[fact_id, alternative](door)


@pytest.mark.parametrize("fact_id", list(assumptions()))
def test_default_shows_without_being_chosen(door: Any, fact_id: str) -> None:
    SHOWN[fact_id, assumptions()[fact_id].default](door)


@pytest.mark.parametrize(("fact_id", "alternative"), list(SHOWN), ids=str)
def test_what_shows_an_alternative_tells_it_from_the_others(
    door: Any, fact_id: str, alternative: str
) -> None:
    for other in set(assumptions()[fact_id].alternatives) - {alternative}:
        door.assume(assumptions={fact_id: other})
        with pytest.raises((AssertionError, KeyError)):
            SHOWN[fact_id, alternative](door)
