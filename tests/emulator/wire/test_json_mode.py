"""JSON mode on the wire: an object of the caller's schema, and what is said when there can be none."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 18, "maximum": 99},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
IMPOSSIBLE = {"type": "string", "minLength": 3, "maxLength": 2}


def asking(schema: Any, **more: Any) -> dict[str, Any]:
    return {"prompt": "Ada, 36", "response_format": {"type": "json_schema", "json_schema": schema}, **more}


def test_response_is_an_object_that_satisfies_the_schema(world: Any) -> None:
    result = world.run(asking(SCHEMA), LLAMA).json()["result"]

    jsonschema.validate(result["response"], SCHEMA)
    assert "placeholder" in result["response"]["name"]
    assert result["tool_calls"] == [{}]


def test_openai_has_the_same_object_as_text(world: Any) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}}
    body = {
        "model": LLAMA,
        "messages": [{"role": "user", "content": "Ada, 36"}],
        "response_format": wanted,
    }

    reply = world.http.post(f"/client/v4/accounts/{world.id}/ai/v1/chat/completions", json=body).json()

    jsonschema.validate(json.loads(reply["choices"][0]["message"]["content"]), SCHEMA)


@pytest.mark.parametrize("more", [{}, {"stream": True}], ids=["whole", "streamed"])
def test_a_schema_that_nothing_satisfies_is_refused(world: Any, more: dict[str, Any]) -> None:
    reply = world.run(asking(IMPOSSIBLE, **more), LLAMA)

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (400, 5024)
    assert reply.json()["errors"][0]["message"].startswith("AiError: JSON Mode couldn't be met (")


def test_in_a_batch_only_the_item_fails(world: Any) -> None:
    request_id = world.submit({"requests": [asking(IMPOSSIBLE), {"prompt": "hi"}]}, LLAMA, script="done")

    items = sorted(world.poll(request_id, LLAMA).json()["result"]["responses"], key=lambda item: item["id"])

    assert [item["success"] for item in items] == [False, True]
    assert items[0]["errors"] == [{"message": "AiError: JSON Mode couldn't be met", "code": 5024}]
