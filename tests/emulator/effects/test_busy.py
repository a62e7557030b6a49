"""`{"busy": …}` and the scenario: a run waits for capacity, or is refused at once where it asks for that."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import httpx

M3, LLAMA, SCOUT = (
    "@cf/baai/bge-m3",
    "@cf/meta/llama-3.3-70b-instruct-fp8-fast",
    "@cf/meta/llama-4-scout-17b-16e-instruct",
)
ASKED = {"rejectIfBusy": True}
CHAT = {"model": LLAMA, "messages": [{"role": "user", "content": "a"}]}
PLACES = {
    "native": (f"run/{M3}", {"text": "a", "options": ASKED}),
    "langchain": (f"run/{M3}", {"text": ["a", "b"], "options": ASKED}),
    "text": (f"run/{LLAMA}", {"prompt": "a", "options": ASKED}),
    "stream": (f"run/{SCOUT}", {"prompt": "a", "stream": True, "options": ASKED}),
    "items": (f"run/{M3}", {"requests": [{"text": "a"}], "options": ASKED}),
    "model in the body": ("run", {"model": M3, "input": {"text": "a"}, "options": ASKED}),
    "input's options": ("run", {"model": M3, "input": {"text": "a", "options": ASKED}}),
    "chat": ("v1/chat/completions", {**CHAT, "options": ASKED}),
    "chat stream": ("v1/chat/completions", {**CHAT, "stream": True, "options": ASKED}),
    "embeddings": ("v1/embeddings", {"model": M3, "input": "a", "options": ASKED}),
    "responses": ("v1/responses", {"model": "@cf/openai/gpt-oss-120b", "input": "a", "options": ASKED}),
}


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that the emulator makes, each over at once."""
    made: list[float] = []

    async def pause(seconds: float) -> None:
        made.append(seconds)

    monkeypatch.setattr("workersai_emulator.service.pause", pause)
    return made


def post(world: Any, path: str, body: Any) -> httpx.Response:
    reply: httpx.Response = world.http.post(f"/client/v4/accounts/{world.id}/ai/{path}", json=body)
    return reply


def without_options(body: Any) -> Any:
    """The same request, which does not ask to be refused."""
    return json.loads(json.dumps(body).replace('"rejectIfBusy": true', '"rejectIfBusy": false'))


@pytest.mark.parametrize("place", PLACES)
def test_who_asks_for_it_is_refused_at_once_wherever_it_is_said(
    world: Any, pauses: list[float], place: str
) -> None:
    path, body = PLACES[place]
    world.scenario("busy")

    reply = post(world, path, body)

    assert reply.status_code == 429, reply.text
    (error,) = reply.json()["errors"]
    message = f"AiError: AiError: Capacity temporarily exceeded, please try again. ({reply.headers['cf-ai-req-id']})"
    assert error == {"message": message, "code": 3040}
    assert "retry-after" not in reply.headers
    assert pauses == []


@pytest.mark.parametrize("place", PLACES)
def test_who_does_not_waits_and_is_answered_as_ever(world: Any, pauses: list[float], place: str) -> None:
    path, body = PLACES[place]
    quiet = post(world, path, without_options(body)).status_code
    world.scenario("busy")

    assert (quiet, post(world, path, without_options(body)).status_code) == (200, 200)
    assert pauses == [2.0]


@pytest.mark.parametrize("place", PLACES)
def test_with_capacity_the_option_changes_nothing(world: Any, place: str) -> None:
    path, body = PLACES[place]
    assert post(world, path, body).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {"text": "a", "rejectIfBusy": True},
        {"text": "a", "options": {"rejectIfBusy": "true"}},
        {"text": "a", "options": {"rejectIfBusy": 1}},
        {"text": "a", "options": True},
        {"text": "a", "options": None},
    ],
    ids=str,
)
def test_what_is_said_otherwise_is_not_heard(world: Any, pauses: list[float], body: Any) -> None:
    world.scenario("busy")
    assert world.send(body).status_code == 200
    assert pauses == [2.0]


def test_a_batch_waits_for_nothing_and_is_taken(world: Any, pauses: list[float]) -> None:
    world.scenario("busy")
    reply = world.send({"requests": [{"text": "a"}], "options": ASKED}, queue=True)
    assert reply.json()["result"]["status"] == "queued"
    request_id = reply.json()["result"]["request_id"]
    assert world.poll(request_id).status_code == 200
    assert pauses == []


def test_a_model_that_takes_nothing_but_its_own_inputs_takes_the_option(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from workersai_contracts import model

    card = model(M3)
    assert card is not None
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": False}
    closed = replace(card, input_schema=schema)
    monkeypatch.setattr("workersai_emulator.service.model", lambda _: closed)

    assert world.send({"text": "a", "seed": 1}).json()["errors"][0]["code"] == 5006
    assert world.send({"text": "a", "options": ASKED}).status_code == 200
    world.scenario("busy")
    assert world.send({"text": "a", "options": ASKED}).json()["errors"][0]["code"] == 3040


def test_so_long_is_a_duration_that_shows_as_it_was_given(world: Any, pauses: list[float]) -> None:
    world.rule({"busy": "250ms"})
    assert world.control("GET", "rules").json()["rules"][0]["effect"] == {"busy": "250ms"}
    world.send({"text": "a"})
    assert pauses == [0.25]
