"""Inputs that are odd and not wrong, or wrong in a way that a client should be told of."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
M3 = "@cf/baai/bge-m3"
WHISPER = "@cf/openai/whisper"


def refusal(reply: Any) -> tuple[int, int, str]:
    error = reply.json()["errors"][0]
    return reply.status_code, error["code"], error["message"].rpartition(" (")[0]


def embeddings(world: Any, **said: Any) -> Any:
    body = {"model": M3, "input": "a", **said}
    return world.http.post(f"/client/v4/accounts/{world.id}/ai/v1/embeddings", json=body)


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (WHISPER, b'{"audio":[1e999,1]}'),
        ("@cf/microsoft/resnet-50", b'{"image":[-1e999]}'),
        ("@cf/llava-hf/llava-1.5-7b-hf", b'{"image":[1e999]}'),
    ],
)
def test_a_number_beyond_all_is_a_byte_like_any_other(world: Any, model: str, body: bytes) -> None:
    assert world.run(body, model).status_code == 200


def test_requests_is_a_key_like_any_other_to_a_model_without_a_queue(world: Any) -> None:
    bart = "@cf/facebook/bart-large-cnn"
    plain = world.run({"input_text": "Clouds drift."}, bart).json()

    for requests in (5, "hello", [{"input_text": "b"}]):
        assert world.run({"input_text": "Clouds drift.", "requests": requests}, bart).json() == plain


def test_broken_json_is_told_of_where_the_body_is_said_to_be_json(world: Any) -> None:
    broken = b'{"audio":[1,2,]}'

    assert refusal(world.run(broken, WHISPER)) == (
        400,
        3003,
        "AiError: Request is missing headers or body: body",
    )
    raw = world.run(broken, WHISPER, headers={"content-type": "audio/wav"})
    assert "heard 16 bytes" in raw.json()["result"]["text"]


@pytest.mark.parametrize(
    "given", [5, {}, {"a": 1}, [], [None], [[["a"]]], [True], [-1], [1, 2.5], ["a", 1], [[]], [[1], [True]]]
)
def test_an_input_that_is_no_text_and_no_tokens_is_refused(world: Any, given: Any) -> None:
    words = "AiError: Bad input: Error: Type mismatch of '/input', 'string' or 'array' of texts or of tokens not met"

    assert refusal(embeddings(world, input=given)) == (400, 5006, words)


@pytest.mark.parametrize("given", ["", "a", ["a", ""], [1, 2], [[1, 2], [3]], [0]])
def test_texts_and_tokens_are_embedded(world: Any, given: Any) -> None:
    assert embeddings(world, input=given).status_code == 200


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"encoding_format": "x"}, "enum not in float,base64 at '/encoding_format'"),
        ({"encoding_format": 5}, "enum not in float,base64 at '/encoding_format'"),
        ({"dimensions": 0}, "Type mismatch of '/dimensions', 'integer' from 1 on not met"),
        ({"dimensions": True}, "Type mismatch of '/dimensions', 'integer' from 1 on not met"),
        ({"dimensions": "5"}, "Type mismatch of '/dimensions', 'integer' from 1 on not met"),
    ],
)
def test_what_goes_with_an_input_is_looked_at(world: Any, said: dict[str, Any], words: str) -> None:
    assert refusal(embeddings(world, **said)) == (400, 5006, f"AiError: Bad input: Error: {words}")


def test_a_large_stream_lets_others_in_between(world: Any) -> None:
    """Many choices of a long text are made in slices: a poll is answered before the stream is at its end."""
    schema = {"const": "word " * 4000}
    body = {
        "model": LLAMA,
        "messages": [{"role": "user", "content": "hi"}],
        "n": 8,
        "stream": True,
        "response_format": {"type": "json_schema", "json_schema": schema},
    }
    chat = f"/client/v4/accounts/{world.id}/ai/v1/chat/completions"
    order: list[str] = []

    async def read_stream(http: httpx.AsyncClient) -> int:
        size = 0
        async with http.stream("POST", chat, json=body, timeout=60) as reply:
            async for piece in reply.aiter_raw():
                order.append("piece")
                size += len(piece)
        return size

    async def poll(http: httpx.AsyncClient) -> None:
        while "piece" not in order:
            await asyncio.wait_for(http.get("/__emulator__/health"), 10)
        for _ in range(5):
            await http.post(world.target(M3), content=json.dumps({"request_id": "x"}))
            order.append("poll")

    async def both() -> int:
        headers = {"authorization": "Bearer a"}
        async with httpx.AsyncClient(base_url=world.emulator.url, headers=headers) as http:
            size, _ = await asyncio.gather(read_stream(http), poll(http))
        return size

    assert asyncio.run(both()) > 5_000_000
    assert order.index("poll") < len(order) - 1 - order[::-1].index("piece")


def test_a_batch_of_speech_is_sent_in_pieces_and_is_whole(world: Any) -> None:
    items = [
        {"text": f"word {number} " * 20, "encoding": "linear16", "sample_rate": 8000} for number in range(6)
    ]
    request_id = world.submit({"requests": items}, "@cf/deepgram/aura-1", script="done")

    reply = world.poll(request_id, "@cf/deepgram/aura-1")

    assert reply.headers.get("transfer-encoding") == "chunked"
    assert sorted(item["id"] for item in reply.json()["result"]["responses"]) == list(range(6))
