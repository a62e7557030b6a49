"""Message schemas: valid, with examples that hold and planted differences that are found where they are."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from workersai_contracts import (
    ContractMismatch,
    assumptions,
    errors,
    load_schema,
    mismatches,
    schema_names,
    validate,
)

GONE = object()
UUID = "3f0c1f9e-7b1a-4c55-9d0e-2a6b8f4c1d23"

# schema, which example, where, what is put there, where the difference is to be found
PLANTED: list[tuple[str, int, str, Any, str]] = [
    ("batch/submit.request", 0, "requests", GONE, "$"),
    ("batch/submit.request", 0, "requests", {"text": "a"}, "$.requests"),
    ("batch/submit.request", 0, "requests.1", "text", "$.requests[1]"),
    ("batch/submit.reply", 0, "success", False, "$.success"),
    ("batch/submit.reply", 0, "success", 1, "$.success"),
    ("batch/submit.reply", 0, "result.status", "running", "$.result.status"),
    ("batch/submit.reply", 0, "result.request_id", UUID.upper(), "$.result.request_id"),
    ("batch/submit.reply", 0, "result.request_id", UUID.replace("4c55", "1c55"), "$.result.request_id"),
    ("batch/submit.reply", 0, "result.model", GONE, "$.result"),
    ("batch/submit.reply", 0, "result.model", "bge-m3", "$.result.model"),
    ("batch/submit.reply", 0, "result.queue", 1, "$.result"),
    ("batch/submit.reply", 0, "errors", [{"code": 1, "message": "x"}], "$.errors"),
    ("batch/submit.reply", 0, "messages", GONE, "$"),
    ("batch/submit.reply", 0, "result_info", {}, "$"),
    ("batch/poll.request", 0, "request_id", 7, "$.request_id"),
    ("batch/poll.request", 0, "request_id", GONE, "$"),
    ("batch/poll.pending", 0, "result.status", "completed", "$.result.status"),
    ("batch/poll.pending", 1, "result.model", "@cf/baai/bge-m3", "$.result"),
    ("batch/poll.pending", 0, "result.request_id", GONE, "$.result"),
    ("batch/poll.done", 0, "result.status", "completed", "$.result"),
    ("batch/poll.done", 0, "result.usage", GONE, "$.result"),
    ("batch/poll.done", 0, "result.usage.completion_tokens", 1.5, "$.result.usage.completion_tokens"),
    ("batch/poll.done", 0, "result.responses.1.id", "0", "$.result.responses[1].id"),
    ("batch/poll.done", 0, "result.responses.0.errors", GONE, "$.result.responses[0]"),
    ("batch/poll.item", 0, "external_reference", GONE, "$"),
    ("batch/poll.item", 0, "id", -1, "$.id"),
    ("batch/poll.item", 0, "index", 0, "$"),
    ("batch/poll.item", 0, "errors", [], "$.errors"),
    ("batch/poll.item", 1, "errors", [], "$.errors"),
    ("batch/poll.item", 1, "errors.0.code", "3030", "$.errors[0].code"),
    ("batch/poll.item", 1, "errors.0.message", "Max context reached", "$.errors[0].message"),
    ("batch/poll.item", 1, "result", {"data": []}, "$.result"),
    ("envelope/success", 0, "result", GONE, "$"),
    ("envelope/ai-error", 0, "result", None, "$.result"),
    ("envelope/ai-error", 0, "errors", [], "$.errors"),
    ("envelope/ai-error", 0, "errors.0.message", "No such model", "$.errors[0].message"),
    ("envelope/ai-error", 0, "success", True, "$.success"),
    ("envelope/edge-error", 0, "result", {}, "$.result"),
    ("envelope/edge-error", 0, "errors.0.code", "7000", "$.errors[0].code"),
    ("envelope/edge-error", 0, "error", "x", "$"),
    ("run/embedding.reply", 0, "result.shape", [2], "$.result.shape"),
    ("run/embedding.reply", 0, "result.shape.0", "2", "$.result.shape[0]"),
    ("run/embedding.reply", 0, "result.data", GONE, "$.result"),
    ("run/embedding.reply", 0, "result.data.1.0", None, "$.result.data[1][0]"),
    ("run/embedding.reply", 0, "result.pooling", "max", "$.result.pooling"),
    ("run/embedding.reply", 1, "result.response.0", 0.5, "$.result.response[0]"),
    ("run/reranking.reply", 0, "result.response.0.score", "0.7", "$.result.response[0].score"),
    ("run/reranking.reply", 0, "result.response.1.id", GONE, "$.result.response[1]"),
    ("run/translation.reply", 0, "result.translated_text", None, "$.result.translated_text"),
    ("run/translation.reply", 0, "result.translated_text", GONE, "$.result"),
    ("run/translation.reply", 1, "result.translations.0", None, "$.result.translations[0]"),
    ("run/summary.reply", 0, "result.summary", GONE, "$.result"),
    ("run/labels.reply", 0, "result.1.score", 1.5, "$.result[1].score"),
    ("run/labels.reply", 0, "result.0.label", GONE, "$.result[0]"),
    ("run/boxes.reply", 0, "result.0.box.ymax", GONE, "$.result[0].box"),
    ("run/boxes.reply", 0, "result.0.box", [12, 40, 310, 288], "$.result[0].box"),
    ("run/description.reply", 0, "result.description", GONE, "$.result"),
    ("run/description.reply", 1, "result.finish_reason", GONE, "$.result"),
    ("run/image.reply", 0, "result.image", "data:image/jpeg;base64,/9j/", "$.result.image"),
    ("run/image.reply", 0, "result.image", GONE, "$.result"),
    ("run/transcript.reply", 0, "result.text", GONE, "$.result"),
    ("run/transcript.reply", 1, "result.results.channels", GONE, "$.result.results"),
    ("run/speech.reply", 0, "result.audio", "", "$.result.audio"),
    ("run/turn.reply", 0, "result.is_complete", "true", "$.result.is_complete"),
    ("run/turn.reply", 0, "result.probability", -0.5, "$.result.probability"),
    ("run/response.reply", 0, "result.response", 7, "$.result.response"),
    ("run/response.reply", 0, "result.response", None, "$.result.tool_calls"),
    ("run/response.reply", 1, "result.response", None, "$.result"),
    ("run/response.reply", 1, "result.usage.total_tokens", GONE, "$.result.usage"),
    ("run/choices.reply", 0, "result.choices", [], "$.result.choices"),
    ("run/choices.reply", 0, "result.choices.0.message.content", GONE, "$.result.choices[0].message"),
    ("run/output.reply", 0, "result.output", [], "$.result.output"),
    ("run/output.reply", 0, "result.output.0.content.0.text", GONE, "$.result.output[0].content[0]"),
    ("run/output.reply", 0, "result.output.0.content", [], "$.result.output[0].content"),
    ("binding/error", 0, "description", GONE, "$"),
    ("binding/error", 0, "name", "Error", "$.name"),
    ("binding/error", 0, "httpCode", 200, "$.httpCode"),
    ("binding/submit.reply", 0, "result", {}, "$"),
    ("binding/submit.reply", 0, "status", "running", "$.status"),
    ("binding/run.request", 0, "options", GONE, "$"),
    ("binding/run.request", 0, "options.queueRequest", "true", "$.options.queueRequest"),
    ("binding/run.request", 1, "inputs", [], "$.inputs"),
    ("binding/run.request", 2, "stream", True, "$"),
    ("binding/errors.reply", 0, "errors", [], "$.errors"),
    ("binding/errors.reply", 0, "errors.0.message", GONE, "$.errors[0]"),
    ("binding/log.reply", 0, "result.created_at", "12:00", "$.result.created_at"),
    ("binding/log.reply", 0, "result.metadata.user", ["123"], "$.result.metadata.user"),
    ("binding/log.reply", 0, "result.request_head_complete", GONE, "$.result"),
    ("binding/markdown.reply", 0, "result.0.tokens", GONE, "$.result[0]"),
    ("binding/markdown.reply", 0, "result.1.error", GONE, "$.result[1]"),
    ("binding/markdown.reply", 0, "result.0.format", "html", "$.result[0].format"),
    ("binding/supported.reply", 0, "result.0.extension", "pdf", "$.result[0].extension"),
    ("worker/info.reply", 0, "cloudflareFeatures.1", "Batch", "$.cloudflareFeatures"),
    ("worker/info.reply", 0, "usage.poll", GONE, "$.usage"),
    ("worker/submit.request", 0, "texts", [], "$.texts"),
    ("worker/submit.request", 0, "texts", ["a"] * 21, "$.texts"),
    ("worker/submit.request", 0, "texts.0", " \t", "$.texts[0]"),
    ("worker/submit.request", 0, "texts.0", "a" * 2001, "$.texts[0]"),
    ("worker/submit.reply", 0, "mode", GONE, "$"),
    ("worker/submit.reply", 0, "mode", "test", "$.mode"),
    ("worker/submit.reply", 0, "note", "n", "$.note"),
    ("worker/submit.reply", 1, "note", GONE, "$"),
    ("worker/submit.reply", 1, "request_id", UUID, "$.request_id"),
    ("worker/poll.reply", 0, "status", "completed", "$.status"),
    ("worker/poll.reply", 0, "result", {}, "$"),
    ("worker/poll.reply", 1, "status", "completed", "$"),
    ("worker/poll.reply", 1, "responses.0.success", "true", "$.responses[0].success"),
    ("worker/poll.reply", 2, "status", "queued", "$.status"),
    ("worker/poll.reply", 2, "responses.0.result.data", None, "$.responses[0].result.data"),
    ("worker/error.reply", 0, "error", "bad", "$.error"),
    ("worker/error.reply", 1, "error", "bad", "$.error"),
    ("worker/error.reply", 2, "code", "QUEUE_ERROR", "$.code"),
    ("worker/error.reply", 2, "code", GONE, "$"),
    ("run/body.request", 0, "model", GONE, "$"),
    ("run/body.request", 0, "input", "hello", "$.input"),
    ("run/stream.event", 0, "response", GONE, "$"),
    ("run/stream.event", 0, "response", ["hello"], "$.response"),
    ("run/stream.event", 1, "tool_calls.0.name", GONE, "$.tool_calls[0]"),
    ("run/stream.event", 2, "usage.total_tokens", "6", "$.usage.total_tokens"),
    ("run/stream.error", 0, "errors", [], "$.errors"),
    ("run/stream.error", 0, "errors.0.code", "3040", "$.errors[0].code"),
    ("openai/chat.request", 0, "model", GONE, "$"),
    ("openai/chat.request", 0, "messages", [], "$.messages"),
    ("openai/chat.request", 0, "messages.0.role", GONE, "$.messages[0]"),
    ("openai/chat.request", 1, "stream", "true", "$.stream"),
    ("openai/chat.reply", 0, "object", "text_completion", "$.object"),
    ("openai/chat.reply", 0, "created", "2025-01-01", "$.created"),
    ("openai/chat.reply", 0, "choices", [], "$.choices"),
    ("openai/chat.reply", 0, "usage", GONE, "$"),
    ("openai/chat.reply", 1, "choices.0.message.content", GONE, "$.choices[0].message"),
    (
        "openai/chat.reply",
        1,
        "choices.0.message.tool_calls.0.function.arguments",
        {"city": "Oslo"},
        "$.choices[0].message.tool_calls[0].function.arguments",
    ),
    ("openai/chat.chunk", 0, "object", "chat.completion", "$.object"),
    ("openai/chat.chunk", 0, "choices.0.delta", GONE, "$.choices[0]"),
    ("openai/chat.chunk", 1, "choices.0.delta.tool_calls.0.index", GONE, "$.choices[0].delta.tool_calls[0]"),
    ("openai/chat.chunk", 2, "choices", GONE, "$"),
    ("openai/embeddings.request", 0, "input", GONE, "$"),
    ("openai/embeddings.request", 0, "encoding_format", "int8", "$.encoding_format"),
    ("openai/embeddings.request", 1, "dimensions", 0, "$.dimensions"),
    ("openai/embeddings.reply", 0, "data.0.embedding.1", "0.5", "$.data[0].embedding[1]"),
    ("openai/embeddings.reply", 0, "data.0.index", GONE, "$.data[0]"),
    ("openai/embeddings.reply", 1, "data.0.embedding", "", "$.data[0].embedding"),
    ("openai/embeddings.reply", 1, "object", "embedding", "$.object"),
    ("openai/responses.request", 0, "input", GONE, "$"),
    ("openai/responses.request", 1, "input.0", "hi", "$.input[0]"),
    ("openai/responses.reply", 0, "output.0.content.0.text", GONE, "$.output[0].content[0]"),
    ("openai/responses.reply", 0, "status", "done", "$.status"),
    ("openai/responses.reply", 0, "usage", GONE, "$"),
    ("openai/responses.reply", 1, "output", GONE, "$"),
    ("openai/responses.event", 0, "type", "output_text.delta", "$.type"),
    ("openai/responses.event", 0, "sequence_number", GONE, "$"),
    ("openai/error.reply", 0, "error.code", 5006, "$.error.code"),
    ("openai/error.reply", 0, "error.message", "Bad input", "$.error.message"),
    ("openai/error.reply", 0, "error.type", "invalid_request_error", "$.error"),
    ("models/search.reply", 0, "result.0.id", GONE, "$.result[0]"),
    ("models/search.reply", 0, "result.0.name", "bge-m3", "$.result[0].name"),
    ("models/search.reply", 0, "result.0.task", "Text Embeddings", "$.result[0].task"),
    ("models/search.reply", 0, "result.0.properties.0.value", True, "$.result[0].properties[0].value"),
    ("models/search.reply", 0, "result.0.properties.1.value", "0.0118", "$.result[0].properties[1].value"),
    ("models/search.reply", 0, "result_info.total_count", GONE, "$.result_info"),
    ("models/search.reply", 1, "result", GONE, "$"),
    ("models/schema.reply", 0, "result.output", GONE, "$.result"),
    ("models/schema.reply", 0, "result.input", [], "$.result.input"),
    ("models/tasks.reply", 0, "result.0.id", GONE, "$.result[0]"),
    ("models/authors.reply", 0, "result.0", "baai", "$.result[0]"),
    ("models/finetunes.reply", 0, "result", None, "$.result"),
    ("models/finetunes.reply", 1, "result.0.model", GONE, "$.result[0]"),
]


@pytest.mark.parametrize("name", schema_names())
def test_a_schema_is_valid_named_and_described(name: str) -> None:
    schema = load_schema(name)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"urn:workersai:{name}:1"
    assert schema["title"]
    assert re.search(r"Facts?: `", schema["description"])


@pytest.mark.parametrize("name", schema_names())
def test_the_examples_of_a_schema_hold(name: str) -> None:
    examples = load_schema(name)["examples"]
    assert examples
    for example in examples:
        validate(example, name)


@pytest.mark.parametrize(
    ("name", "example", "where", "value", "found_at"),
    PLANTED,
    ids=[f"{name}-{example}-{where}-{number}" for number, (name, example, where, _, _) in enumerate(PLANTED)],
)
def test_a_planted_difference_is_found_where_it_is(
    name: str, example: int, where: str, value: Any, found_at: str
) -> None:
    planted = _plant(load_schema(name)["examples"][example], where, value)
    assert found_at in {difference.path for difference in mismatches(planted, name)}


def test_every_schema_has_a_planted_difference() -> None:
    assert {name for name, *_ in PLANTED} == set(schema_names())


@pytest.mark.parametrize("name", schema_names())
@pytest.mark.parametrize("not_an_object", [None, [], "text", 7], ids=["null", "array", "text", "number"])
def test_no_message_is_anything_but_an_object(name: str, not_an_object: Any) -> None:
    assert "$" in {difference.path for difference in mismatches(not_an_object, name)}


@pytest.mark.parametrize(
    ("name", "where", "value"),
    [
        ("batch/submit.request", "tag", "x"),
        ("batch/submit.request", "requests.0.seed", 7),
        ("batch/submit.request", "requests.0.external_reference", {"any": ["json"]}),
        ("batch/poll.request", "requests", []),
        ("batch/poll.item", "external_reference", ["any", {"json": 1}]),
        ("run/embedding.reply", "result.usage", {}),
        ("openai/chat.request", "max_tokens", None),
        ("openai/chat.request", "tools", None),
        ("openai/chat.reply", "system_fingerprint", "x"),
        ("openai/embeddings.request", "input", [[1, 2], [3]]),
        ("models/search.reply", "result.0.created_at", "2024-05-22 19:27:09.781"),
        ("models/search.reply", "result.0.properties.0.value", 60000),
        ("models/search.reply", "result.0.properties.0.value", {"default_effort": "max"}),
        ("models/authors.reply", "result.0", {"whatever": 1}),
    ],
)
def test_what_the_facts_leave_open_passes(name: str, where: str, value: Any) -> None:
    validate(_plant(load_schema(name)["examples"][0], where, value), name)


def test_an_assertion_shows_all_differences_one_a_line() -> None:
    reply = load_schema("batch/submit.reply")["examples"][0]
    reply["success"], reply["result"]["status"] = False, "done"
    with pytest.raises(ContractMismatch) as refused:
        validate(reply, "batch/submit.reply")
    first, second = refused.value.mismatches
    assert (first.path, first.schema_path, first.expected, first.got) == (
        "$.result.status",
        "properties/result/properties/status/const",
        "queued",
        "done",
    )
    assert (second.path, second.expected, second.got) == ("$.success", True, False)
    assert str(refused.value).splitlines() == [
        "not a batch/submit.reply: 2 differences",
        f"  {first.message}",
        f"  {second.message}",
    ]


def test_a_huge_value_is_shortened_in_the_message_only() -> None:
    (found,) = mismatches({"requests": "x" * 100_000}, "batch/submit.request")
    assert found.got == "x" * 100_000
    assert len(found.message) < 300


def test_an_unknown_schema_is_refused() -> None:
    with pytest.raises(LookupError, match="no schema 'batch/polled'"):
        mismatches({}, "batch/polled")


@pytest.mark.parametrize("row", errors().values(), ids=errors().keys())
def test_every_error_row_fits_its_envelope(row: Any) -> None:
    if row.envelope == "edge":
        pairs = [(row.code, row.description), *row.also]
        listed = [{"code": code, "message": message} for code, message in pairs]
        validate({"result": None, "success": False, "errors": listed, "messages": []}, "envelope/edge-error")
        return
    message = f"AiError: {row.title + ': ' if row.title else ''}{row.description}"
    refusal = {"errors": [{"message": message, "code": row.code}], "success": False, "result": {}}
    validate({**refusal, "messages": []}, "envelope/ai-error")
    bound = {"name": "AiError", "internalCode": row.code, "httpCode": row.status, "message": message}
    validate({**bound, "description": row.description}, "binding/error")


@pytest.mark.parametrize(
    ("assumption", "name", "where", "value"),
    [
        ("done.status", "batch/poll.done", "result.status", "completed"),
        ("done.shape", "batch/poll.done", "result.responses.1.index", 0),
        ("item.failed", "batch/poll.item", "error", "AiError: …"),
        ("batch.failed", "batch/poll.pending", "result.status", "failed"),
        ("openai.errors", "openai/error.reply", "error.code", "5006"),
    ],
)
def test_alternatives_of_open_facts_are_not_the_contract(
    assumption: str, name: str, where: str, value: Any
) -> None:
    assert len(assumptions()[assumption].alternatives) == 2
    assert mismatches(_plant(load_schema(name)["examples"][0], where, value), name)


def _plant(message: Any, where: str, value: Any) -> Any:
    planted = copy.deepcopy(message)
    *steps, last = [int(step) if step.isdigit() else step for step in where.split(".")]
    place = planted
    for step in steps:
        place = place[step]
    if value is GONE:
        del place[last]
    else:
        place[last] = value
    return planted
