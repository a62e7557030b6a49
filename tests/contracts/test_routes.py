"""Routes: which exchange a request is, and what its reply is held to."""

from __future__ import annotations

import base64
import copy
import json
import struct
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workersai_contracts import ContractMismatch, load_schema
from workersai_contracts.event_stream import STREAM_TYPE, Event, parse_events
from workersai_contracts.routes import JSON_TYPE, Exchange, exchange_of
from workersai_emulator.api.routes import route
from workersai_emulator.refusals import Refused

ACCOUNT = "0123456789abcdef0123456789abcdef"
AI = f"/client/v4/accounts/{ACCOUNT}/ai"
GATEWAY = f"/v1/{ACCOUNT}/default/workers-ai"
M3, LLAMA = "@cf/baai/bge-m3", "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
QWEN, GPT_OSS = "@cf/qwen/qwen3-30b-a3b-fp8", "@cf/openai/gpt-oss-120b"
WHISPER, SDXL = "@cf/openai/whisper-large-v3-turbo", "@cf/stabilityai/stable-diffusion-xl-base-1.0"
UUID = "3f0c1f9e-7b1a-4c55-9d0e-2a6b8f4c1d23"
EDGE = {
    "result": None,
    "success": False,
    "errors": [{"code": 7001, "message": "GET not supported for requested URI."}],
    "messages": [],
}
REFUSED = load_schema("envelope/ai-error")["examples"][0]


def example(name: str, number: int = 0) -> Any:
    return copy.deepcopy(load_schema(name)["examples"][number])


def post(target: str, body: Any) -> Exchange:
    exchange = exchange_of("POST", target, body if isinstance(body, bytes) else json.dumps(body).encode())
    assert exchange is not None
    return exchange


def get(target: str) -> Exchange:
    exchange = exchange_of("GET", target, b"")
    assert exchange is not None
    return exchange


def reply(exchange: Exchange, body: Any, status: int = 200) -> ContractMismatch | None:
    return exchange.check_reply(status, JSON_TYPE, json.dumps(body).encode())


def places(breach: ContractMismatch | None) -> tuple[str, list[str]]:
    assert breach is not None
    return breach.schema_name, [found.path for found in breach.mismatches]


@pytest.mark.parametrize(
    ("target", "body", "operation", "model"),
    [
        (f"{AI}/run/{M3}", {"text": "a"}, "run", M3),
        (f"{AI}/run/%40cf/baai/bge-m3", {"text": "a"}, "run", M3),
        (f"{AI}/run/@cf%2Fbaai%2Fbge-m3?queueRequest=true", {"requests": []}, "submit", M3),
        (f"{AI}/run/{M3}", {"requests": []}, "run-all", M3),
        (f"{AI}/run/{M3}?queueRequest=true", {"request_id": UUID}, "poll", M3),
        (f"{AI}/run", {"model": M3, "input": {"text": "a"}}, "run", M3),
        (f"{AI}/run", {"model": M3, "input": {"request_id": UUID}}, "poll", M3),
        (f"{AI}/run?queueRequest=true", {"model": M3, "input": {"requests": []}}, "submit", M3),
        (f"{AI}/run", {"input": {"text": "a"}}, "run-body", None),
        (f"{AI}/v1/chat/completions", {"model": LLAMA, "messages": []}, "chat", LLAMA),
        (f"{AI}/v1/embeddings", {"model": M3, "input": "a"}, "embeddings", M3),
        (f"{AI}/v1/responses", {"model": GPT_OSS, "input": "a"}, "responses", GPT_OSS),
        (f"{AI}/v1/responses?queueRequest=true", {"input": "a"}, "responses", ""),
        (f"{GATEWAY}/{M3}", {"text": "a"}, "run", M3),
        (f"{GATEWAY}/v1/embeddings", {"model": M3, "input": "a"}, "embeddings", M3),
        (f"{GATEWAY}/v1/chat/completions", {"model": LLAMA}, "chat", LLAMA),
        (f"{AI}/finetunes", {"name": "mine"}, "nothing", None),
        (f"/behind/a/proxy{AI}/run/{M3}", {"text": "a"}, "run", M3),
    ],
)
def test_a_post_is_recognized(target: str, body: Any, operation: str, model: str | None) -> None:
    exchange = post(target, body)
    assert (exchange.operation, exchange.model) == (operation, model)


@pytest.mark.parametrize(
    ("path", "operation"),
    [
        ("models/search?page=2", "search"),
        (f"models/schema?model={M3}", "schema"),
        ("tasks/search", "tasks"),
        ("authors/search", "authors"),
        ("finetunes", "finetunes"),
        ("finetunes/public", "finetunes"),
        ("v1/models", "nothing"),
    ],
)
def test_a_listing_is_recognized_and_its_request_holds(path: str, operation: str) -> None:
    exchange = get(f"{AI}/{path}")
    assert exchange.operation == operation
    assert exchange.check_request() is None


PARTS = (
    f"client v4 accounts {ACCOUNT} ai run v1 chat completions embeddings responses models search schema tasks"
)
PARTS += f" authors finetunes public gateway workers-ai {M3}"
TARGETS = st.lists(st.sampled_from([*PARTS.split(), ""]), max_size=5).map("/".join)


@given(
    st.sampled_from(["GET", "POST", "PUT"]),
    st.sampled_from([f"{AI}/", f"{GATEWAY}/", f"/v1/{ACCOUNT}/", "/client/v4/"]),
    TARGETS,
)
def test_what_the_emulator_routes_is_recognized_and_nothing_else(method: str, base: str, rest: str) -> None:
    exchange = exchange_of(method, base + rest, b'{"model":"m"}')
    found = None if exchange is None else exchange.operation
    surface = _routed(method, base + rest)
    expected = {"run-body": "run", "new-finetune": "nothing", "route.none": None}.get(surface, surface)
    assert found in ({None, "nothing"} if surface == "route.method" else {expected})


def _routed(method: str, path: str) -> str:
    """What the emulator has there, or why it has nothing."""
    try:
        return route(method, path).surface
    except Refused as refused:
        return refused.row.id


@pytest.mark.parametrize(
    ("target", "body", "schema", "found"),
    [
        (f"{AI}/run", {"input": {}}, "run/body.request", ["$"]),
        (f"{AI}/run", {"model": M3, "input": "a"}, "run/body.request", ["$.input"]),
        (f"{AI}/run", b"", "run/body.request", ["$"]),
        (f"{AI}/run", b"[]", "run/body.request", ["$"]),
        (
            f"{AI}/run?queueRequest=true",
            {"model": M3, "input": {"requests": [1]}},
            "batch/submit.request",
            ["$.input.requests[0]"],
        ),
        (
            f"{AI}/run",
            {"model": M3, "input": {"text": "a", "queueRequest": True}},
            "request",
            ["$.input.queueRequest"],
        ),
        (f"{AI}/v1/chat/completions", {"model": LLAMA}, "openai/chat.request", ["$"]),
        (f"{AI}/v1/chat/completions", b"{", "openai/chat.request", ["$"]),
        (f"{AI}/v1/embeddings", {"model": M3, "input": 1}, "openai/embeddings.request", ["$.input"]),
        (f"{AI}/v1/responses", {"input": "a"}, "openai/responses.request", ["$"]),
        (f"{AI}/run/{M3}", b"\xff\xd8", "request", ["$"]),
        (f"{AI}/run/@cf/openai/whisper", b"", "request", ["$"]),
    ],
)
def test_a_request_that_departs_is_named(target: str, body: Any, schema: str, found: list[str]) -> None:
    assert places(post(target, body).check_request()) == (schema, found)


@pytest.mark.parametrize(
    ("target", "body"),
    [
        (f"{AI}/run", {"model": M3, "input": {"text": "a"}}),
        (f"{AI}/v1/chat/completions", example("openai/chat.request", 1)),
        (f"{AI}/v1/chat/completions", {**example("openai/chat.request"), "queueRequest": True}),
        (f"{AI}/v1/embeddings", example("openai/embeddings.request")),
        (f"{AI}/v1/responses", example("openai/responses.request")),
        (f"{AI}/run/@cf/openai/whisper", b"\xff\xfb\x90 a recording"),
        (f"{AI}/run/@cf/microsoft/resnet-50", b"\xff\xd8 an image"),
    ],
)
def test_a_request_that_holds_passes(target: str, body: Any) -> None:
    assert post(target, body).check_request() is None


CHAT = post(f"{AI}/v1/chat/completions", {"model": LLAMA, "messages": [{"role": "user"}]})
RESPONSES = post(f"{AI}/v1/responses", {"model": GPT_OSS, "input": "a"})


@pytest.mark.parametrize(
    ("exchange", "name"),
    [
        (CHAT, "openai/chat.reply"),
        (RESPONSES, "openai/responses.reply"),
        (get(f"{AI}/models/search"), "models/search.reply"),
        (get(f"{AI}/models/schema"), "models/schema.reply"),
        (get(f"{AI}/tasks/search"), "models/tasks.reply"),
        (get(f"{AI}/authors/search"), "models/authors.reply"),
        (get(f"{AI}/finetunes"), "models/finetunes.reply"),
        (post(f"{AI}/run", {"model": LLAMA, "input": {}}), "run/response.reply"),
        (post(f"{GATEWAY}/{LLAMA}", {"prompt": "a"}), "run/response.reply"),
    ],
    ids=str,
)
def test_each_route_has_a_reply_of_its_own(exchange: Exchange, name: str) -> None:
    assert reply(exchange, example(name)) is None
    assert places(reply(exchange, {"success": True})) == (name, places(reply(exchange, {"success": True}))[1])
    assert reply(exchange, REFUSED, 429) is None
    assert reply(exchange, EDGE, 403) is None
    assert places(reply(exchange, {"error": "no"}, 500))[0].startswith("envelope/")
    loose = exchange.check_reply(200, f"{JSON_TYPE}; charset=utf-8", json.dumps(example(name)).encode())
    assert places(loose) == (name, ["content-type"])


def test_only_the_responses_api_may_refuse_in_openai_s_form() -> None:
    refusal = example("openai/error.reply")
    assert reply(RESPONSES, refusal, 400) is None
    assert places(reply(RESPONSES, {"error": {"message": "no"}}, 400))[0] == "openai/error.reply"
    assert places(reply(CHAT, refusal, 400))[0] == "envelope/edge-error"


def test_nothing_succeeds_where_nothing_is() -> None:
    models = get(f"{AI}/v1/models")
    assert reply(models, EDGE, 405) is None
    assert places(reply(models, {"object": "list", "data": []}))[0] == "envelope/edge-error"


def vectors(*rows: Any) -> dict[str, Any]:
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    return {**example("openai/embeddings.reply"), "data": data}


def packed(*numbers: float) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


def embed(given: Any, **more: Any) -> Exchange:
    return post(f"{AI}/v1/embeddings", {"model": M3, "input": given, **more})


@pytest.mark.parametrize(
    ("given", "more", "rows"),
    [
        ("a", {}, [[0.5, 1]]),
        ("a", {"encoding_format": "float"}, [[0.5]]),
        (["a", "b"], {}, [[0.5], [1]]),
        ([1, 2, 3], {}, [[0.5]]),
        ([[1, 2], [3]], {}, [[0.5], [1]]),
        (["a", "b"], {"encoding_format": "base64"}, [packed(0.5, 1.0), packed(-0.25, 1.0)]),
    ],
)
def test_vectors_in_the_encoding_that_was_asked_for_pass(given: Any, more: Any, rows: list[Any]) -> None:
    assert reply(embed(given, **more), vectors(*rows)) is None


@pytest.mark.parametrize(
    ("given", "more", "rows", "found"),
    [
        ("a", {"encoding_format": "base64"}, [[0.5, 1.0]], "$.data[0].embedding"),
        ("a", {}, [packed(0.5)], "$.data[0].embedding"),
        ("a", {"encoding_format": "base64"}, ["AAAAPw=="[:-2]], "$.data[0].embedding"),
        ("a", {"encoding_format": "base64"}, ["AAAA"], "$.data[0].embedding"),
        (["a", "b"], {}, [[0.5]], "$.data"),
        ("a", {}, [[0.5], [0.5]], "$.data"),
    ],
)
def test_vectors_that_were_not_asked_for_are_named(
    given: Any, more: Any, rows: list[Any], found: str
) -> None:
    assert places(reply(embed(given, **more), vectors(*rows))) == ("openai/embeddings.reply", [found])


def test_vectors_out_of_order_are_named() -> None:
    told = vectors([0.5], [1.0])
    told["data"].reverse()
    assert places(reply(embed(["a", "b"]), told))[1] == ["$.data[0].index", "$.data[1].index"]


def test_bytes_come_under_the_model_s_own_content_type() -> None:
    drawn = post(f"{AI}/run/{SDXL}", {"prompt": "a cat"})
    assert drawn.check_reply(200, "image/png", b"\x89PNG") is None
    assert places(drawn.check_reply(200, "image/png", b""))[1] == ["$"]
    assert places(drawn.check_reply(200, "image/jpeg", b"\xff\xd8"))[1] == ["content-type"]
    assert drawn.check_reply(400, JSON_TYPE, json.dumps(REFUSED).encode()) is None
    embedded = post(f"{AI}/run/{M3}", {"text": "a"})
    assert places(embedded.check_reply(200, "image/png", b"\x89PNG"))[1] == ["$"]


# Streams.


def stream(*events: Any, done: bool = True, named: bool = False) -> bytes:
    lines = [
        (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events
    ]
    return ("".join(lines) + ("data: [DONE]\n\n" if done else "")).encode()


def asking(exchange: str, model: str = LLAMA, **more: Any) -> Exchange:
    bodies = {
        "native": (f"{AI}/run/{model}", {"prompt": "a"}),
        "chat": (f"{AI}/v1/chat/completions", {"model": model, "messages": [{"role": "user"}]}),
        "responses": (f"{AI}/v1/responses", {"model": GPT_OSS, "input": "a"}),
    }
    target, body = bodies[exchange]
    return post(target, {**body, "stream": True, **more})


NATIVE = [{"response": "hi", "p": "abc"}, {"response": "", "usage": example("openai/chat.reply")["usage"]}]
CHUNKS = load_schema("openai/chat.chunk")["examples"]
ERROR = example("run/stream.error")
ENDED = {"type": "response.completed", "sequence_number": 1, "response": {}}
RESPONSE = [{"type": "response.created", "sequence_number": 0, "response": {}}, ENDED]


@pytest.mark.parametrize(
    ("exchange", "content"),
    [
        (asking("native"), stream(*NATIVE)),
        (asking("native"), stream(*NATIVE).replace(b"\n", b"\r\n")),
        (asking("native", QWEN), stream(*CHUNKS, NATIVE[1])),
        (asking("native", GPT_OSS), stream(*RESPONSE, named=True)),
        (asking("native"), stream(ERROR, done=False)),
        (asking("native"), stream(NATIVE[0], ERROR, done=False)),
        (asking("native"), stream()),
        (asking("chat"), stream(*CHUNKS)),
        (asking("chat"), stream(CHUNKS[0], ERROR, done=False)),
        (asking("responses"), stream(*RESPONSE, done=False, named=True)),
        (asking("responses"), stream(example("openai/error.reply"), done=False)),
    ],
    ids=str,
)
def test_a_stream_that_holds_passes(exchange: Exchange, content: bytes) -> None:
    assert exchange.check_reply(200, STREAM_TYPE, content) is None


@pytest.mark.parametrize(
    ("exchange", "content", "schema", "found"),
    [
        (asking("native"), stream(*NATIVE, done=False), "run/stream.event", ["events"]),
        (asking("native"), b"", "run/stream.event", ["events"]),
        (asking("native"), stream({"text": "a"}), "run/stream.event", ["events[0]"]),
        (asking("native"), stream(NATIVE[0], {"response": 1}), "run/stream.event", ["events[1].response"]),
        (asking("native"), stream(ERROR, NATIVE[0], done=False), "run/stream.event", ["events"]),
        (asking("native"), stream(ERROR), "run/stream.event", ["events"]),
        (asking("native"), stream() + stream(*NATIVE), "run/stream.event", ["events"]),
        (asking("native"), b"data: {\n\n", "run/stream.event", ["events[0]"]),
        (asking("native"), b'{"response":"a"}', "run/stream.event", ["events"]),
        (asking("native"), b'{"response":"a"}\n\n', "run/stream.event", ["events"]),
        (asking("native"), b'data: {"response":"a"}\n', "run/stream.event", ["events"]),
        (asking("native"), b"event: ping\n\n", "run/stream.event", ["events"]),
        (asking("native"), b"data: 7\n\ndata: [DONE]\n\n", "run/stream.event", ["events[0]"]),
        (asking("native"), b"data: \xff\n\n", "run/stream.event", ["events"]),
        (asking("native"), stream({"errors": []}, done=False), "run/stream.error", ["events[0].errors"]),
        (asking("chat"), stream(NATIVE[0]), "openai/chat.chunk", ["events[0]"] * 5),
        (asking("chat"), stream({**CHUNKS[0], "choices": {}}), "openai/chat.chunk", ["events[0].choices"]),
        (
            asking("responses"),
            stream(RESPONSE[0], done=False, named=True),
            "openai/responses.event",
            ["events"],
        ),
        (asking("responses"), b"", "openai/responses.event", ["events"]),
        (asking("responses"), stream(ENDED, done=False), "openai/responses.event", ["events[0].event"]),
    ],
    ids=str,
)
def test_a_stream_that_departs_is_named(
    exchange: Exchange, content: bytes, schema: str, found: list[str]
) -> None:
    assert places(exchange.check_reply(200, STREAM_TYPE, content)) == (schema, found)


def test_a_stream_comes_where_it_was_asked_for_and_only_there() -> None:
    asked, plain = asking("native"), post(f"{AI}/run/{LLAMA}", {"prompt": "a"})
    whole = json.dumps(example("run/response.reply")).encode()
    assert plain.check_reply(200, JSON_TYPE, whole) is None
    assert places(asked.check_reply(200, JSON_TYPE, whole))[1] == ["content-type"]
    assert places(plain.check_reply(200, STREAM_TYPE, stream(*NATIVE)))[1] == ["content-type"]
    charset = f"{STREAM_TYPE}; charset=utf-8"
    assert places(asked.check_reply(200, charset, stream(*NATIVE)))[1] == ["content-type"]
    assert asked.check_reply(429, JSON_TYPE, json.dumps(REFUSED).encode()) is None
    listing = get(f"{AI}/models/search?stream=true")
    assert places(listing.check_reply(200, STREAM_TYPE, stream(*NATIVE)))[1] == ["content-type"]


def test_events_are_read_as_they_are_written() -> None:
    text = b"event: a\ndata: 1\n\ndata:2\ndata: 3\n\n: a comment\ndata: 4\n\n"
    assert parse_events(text) == [Event("a", "1"), Event(None, "2\n3"), Event(None, "4")]
    assert parse_events(b"") == []


def test_what_recognizes_routes_loads_no_validator() -> None:
    code = (
        "import sys; from workersai_contracts.routes import exchange_of; "
        f"exchange_of('POST', '{AI}/run/{M3}', b'{{}}'); "
        "print([name for name in sys.modules if name in ('jsonschema', 'httpx', 'numpy', 'hypothesis')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
