"""Every text and embedding model holds to the contract on every surface, whole and in events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workersai_contracts import ModelCard, models
from workersai_contracts.event_stream import STREAM_TYPE
from workersai_contracts.routes import JSON_TYPE, exchange_of

LLAMA, QWEN = "@cf/meta/llama-3.3-70b-instruct-fp8-fast", "@cf/qwen/qwen3-30b-a3b-fp8"
GPT_OSS, SMALL = "@cf/openai/gpt-oss-120b", "@cf/baai/bge-small-en-v1.5"
MESSAGES = [{"role": "user", "content": "What is the weather in Oslo?"}]
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
WISHES: dict[str, dict[str, Any]] = {
    "plain": {},
    "tools": {"tools": [TOOL]},
    "json": {"response_format": {"type": "json_object"}},
    "short": {"max_tokens": 2},
    "usage": {"stream_options": {"include_usage": True}},
    "choices": {"n": 3},
}
TEXT_MODELS = [card for card in models().values() if card.writes_text]
EMBEDDING_MODELS = [card for card in models().values() if card.answers == "embedding"]


def held(world: Any, path: str, body: dict[str, Any]) -> Any:
    """Send what is to succeed, and hold both ways to the contract."""
    target = f"/client/v4/accounts/{world.id}/ai/{path}"
    content = json.dumps(body).encode()
    exchange = exchange_of("POST", target, content)
    assert exchange is not None
    assert exchange.check_request() is None
    reply = world.http.post(target, content=content)
    assert reply.status_code == 200, reply.text
    assert exchange.check_reply(reply.status_code, reply.headers["content-type"], reply.content) is None
    streams = inputs_of(path, body).get("stream") is True
    assert reply.headers["content-type"] == (STREAM_TYPE if streams else JSON_TYPE)
    return reply


def inputs_of(path: str, body: dict[str, Any]) -> dict[str, Any]:
    inputs: dict[str, Any] = body["input"] if path == "run" else body
    return inputs


def streaming(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The same request, for events."""
    if path == "run":
        return {**body, "input": {**body["input"], "stream": True}}
    return {**body, "stream": True}


def ways(card: ModelCard) -> dict[str, tuple[str, dict[str, Any]]]:
    """The surfaces of a text model: where a request goes, and what it says."""
    told = {
        "native": (f"run/{card.name}", {"messages": MESSAGES}),
        "in the body": ("run", {"model": card.name, "input": {"messages": MESSAGES}}),
        "chat": ("v1/chat/completions", {"model": card.name, "messages": MESSAGES}),
        "responses": ("v1/responses", {"model": card.name, "input": MESSAGES}),
    }
    if card.answers == "output":
        told["native input"] = (f"run/{card.name}", {"input": "Say yes."})
    return told


@pytest.mark.parametrize("card", TEXT_MODELS, ids=lambda card: card.name)
def test_a_text_model_holds_on_every_surface(world: Any, card: ModelCard) -> None:
    for path, body in ways(card).values():
        held(world, path, body)
        held(world, path, streaming(path, body))


@pytest.mark.parametrize("name", [LLAMA, QWEN, GPT_OSS])
@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_what_is_wished_for_holds_on_every_surface(world: Any, name: str, wish: str, stream: bool) -> None:
    for way, (path, body) in ways(models()[name]).items():
        if way != "in the body":
            held(world, path, {**body, **WISHES[wish], "stream": stream})


def test_the_wishes_are_granted(world: Any) -> None:
    """So that the tests above are about more than plain text."""
    path, body = ways(models()[LLAMA])["native"]
    told = held(world, path, {**body, **WISHES["tools"]}).json()["result"]
    assert (told["response"], told["tool_calls"][0]["name"]) == (None, "get_weather")
    path, body = ways(models()[LLAMA])["chat"]
    assert len(held(world, path, {**body, **WISHES["choices"]}).json()["choices"]) == 3
    text = held(world, path, {**body, **WISHES["json"]}).json()["choices"][0]["message"]["content"]
    assert isinstance(json.loads(text), dict)


@pytest.mark.parametrize("card", EMBEDDING_MODELS, ids=lambda card: card.name)
@pytest.mark.parametrize("encoding", ["float", "base64", None])
def test_an_embedding_model_holds_in_openai_s_form(world: Any, card: ModelCard, encoding: str | None) -> None:
    wish = {} if encoding is None else {"encoding_format": encoding}
    for texts in ("a", ["a", "b"], [1, 2, 3], [[1, 2], [3]]):
        held(world, "v1/embeddings", {"model": card.name, "input": texts, **wish})


def test_a_gateway_s_path_leads_to_the_same(world: Any) -> None:
    direct = held(world, f"run/{SMALL}", {"text": "a"})
    target = f"/v1/{world.id}/default/workers-ai/{SMALL}"
    content = b'{"text":"a"}'
    exchange = exchange_of("POST", target, content)
    assert exchange is not None
    reply = world.http.post(target, content=content)
    assert reply.content == direct.content
    assert exchange.check_reply(200, reply.headers["content-type"], reply.content) is None
