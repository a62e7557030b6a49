from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workersai_contracts import ModelCard, models
from workersai_emulator import embed
from workersai_emulator.inference import (
    NOTHING,
    CannotMeet,
    TextForm,
    Usage,
    answers,
    cost,
    generate,
    stream,
    texts_of,
)
from workersai_emulator.inference.embeddings import embeddings
from workersai_emulator.inference.media import members_of

#: One model for each way to answer; images take longer and are elsewhere.
KINDS = list(
    {
        (card.answers, card.output_type, card.raw_input, frozenset(members_of(card))): card
        for card in models().values()
        if card.answers != "image"
    }.values()
)
BGE_SMALL = models()["@cf/baai/bge-small-en-v1.5"]
BGE_M3 = models()["@cf/baai/bge-m3"]
GEMMA = models()["@cf/google/embeddinggemma-300m"]
QWEN = models()["@cf/qwen/qwen3-embedding-0.6b"]
RERANKER = models()["@cf/baai/bge-reranker-base"]
M2M100 = models()["@cf/meta/m2m100-1.2b"]
LLAMA_3 = models()["@cf/meta/llama-3.3-70b-instruct-fp8-fast"]
LLAMA_4 = models()["@cf/meta/llama-4-scout-17b-16e-instruct"]
SDXL = models()["@cf/stabilityai/stable-diffusion-xl-base-1.0"]
GPT_OSS = models()["@cf/openai/gpt-oss-120b"]


def answer(card: ModelCard, item: dict[str, Any]) -> Any:
    [only] = answers(card, [item])
    return json.loads(only.result)


def vectors(card: ModelCard, *texts: str) -> list[list[float]]:
    rows: list[list[float]] = embed(card.name, texts).tolist()
    return rows


@pytest.mark.parametrize(
    ("card", "item", "expected"),
    [
        (BGE_SMALL, {"text": "a"}, {"shape": [1, 384], "data": [["a"]], "pooling": "mean"}),
        (
            BGE_SMALL,
            {"text": ["a", "b"], "pooling": "cls"},
            {"shape": [2, 384], "data": [["a"], ["b"]], "pooling": "cls"},
        ),
        (BGE_SMALL, {"text": []}, {"shape": [0, 384], "data": [], "pooling": "mean"}),
        (BGE_SMALL, {"text": [1, None]}, {"shape": [2, 384], "data": [["1"], [""]], "pooling": "mean"}),
        (BGE_M3, {"text": "a"}, {"shape": [1, 1024], "data": [["a"]], "pooling": "cls"}),
        (
            BGE_M3,
            {"contexts": [{"text": "a"}, {}, 2]},
            {"response": [["a"], [""], ["2"]], "shape": [3, 1024], "pooling": "cls"},
        ),
        (GEMMA, {"text": ["a"]}, {"data": [["a"]], "shape": [1, 768]}),
        (
            QWEN,
            {"text": "c", "documents": ["b"], "queries": "a", "instruction": "x"},
            {"data": [["a"], ["b"], ["c"]], "shape": [3, 1024]},
        ),
        (QWEN, {}, {"data": [], "shape": [0, 1024]}),
    ],
    ids=[
        "string",
        "list and pooling",
        "empty list",
        "no strings",
        "bge-m3",
        "bge-m3 contexts",
        "gemma",
        "qwen3",
        "qwen3 empty",
    ],
)
def test_vectors_come_in_the_models_own_shape(
    card: ModelCard, item: dict[str, Any], expected: dict[str, Any]
) -> None:
    for key in ("data", "response"):
        if key in expected:
            expected = {**expected, key: vectors(card, *(text for [text] in expected[key]))}
    assert list(answer(card, item).items()) == list(expected.items())


@pytest.mark.parametrize("card", [BGE_M3, RERANKER], ids=lambda card: card.name)
def test_contexts_are_ranked_by_a_query_best_first(card: ModelCard) -> None:
    item = {"query": "an orange cloud", "contexts": [{"text": "llama"}, {"text": "one orange cloud"}, {}]}
    ranked = answer(card, item)
    assert list(ranked) == ["response"]
    assert [list(entry) for entry in ranked["response"]] == [["id", "score"]] * 3
    assert [entry["id"] for entry in ranked["response"]] == [1, 0, 2]
    assert all(better["score"] >= worse["score"] for better, worse in pairwise(ranked["response"]))


@pytest.mark.parametrize(
    ("top_k", "length"), [(1, 1), (2.0, 2), (9, 3), (0, 3), ("1", 3)], ids=["1", "2.0", "9", "0", "text"]
)
def test_the_reranker_keeps_top_k(top_k: Any, length: int) -> None:
    item = {"query": "a", "contexts": [{"text": "a"}, {"text": "b"}, {"text": "c"}], "top_k": top_k}
    assert len(answer(RERANKER, item)["response"]) == length


def test_a_translation_has_its_text() -> None:
    [translated] = answers(M2M100, [{"text": "Good morning", "target_lang": "fr"}])
    assert translated.result == b'{"translated_text":"[fr] Good morning"}'
    assert translated.usage == Usage(3, 4)


def test_native_generation_has_response_tool_calls_and_usage() -> None:
    [generated] = answers(LLAMA_3, [{"prompt": "Hello there"}])
    text = "[placeholder by @cf/meta/llama-3.3-70b-instruct-fp8-fast] Hello there"
    usage = {"prompt_tokens": 3, "completion_tokens": 15, "total_tokens": 18}
    assert list(json.loads(generated.result).items()) == [
        ("response", text),
        ("tool_calls", []),
        ("usage", usage),
    ]
    assert generated.usage.as_json() == usage


def test_json_mode_answers_an_object_and_an_empty_tool_call() -> None:
    schema = {"type": "object", "properties": {"year": {"type": "integer"}}}
    item = {"prompt": "When?", "response_format": {"type": "json_schema", "json_schema": schema}}
    native = answer(LLAMA_3, item)
    assert (native["response"], native["tool_calls"]) == ({"year": 0}, [{}])
    assert answer(LLAMA_4, item)["choices"][0]["message"]["content"] == '{"year":0}'


def test_newer_models_answer_a_chat_completion() -> None:
    completion = answer(LLAMA_4, {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 9})
    assert list(completion) == ["id", "object", "created", "model", "choices", "usage"]
    assert completion["id"].startswith("chatcmpl-")
    assert (completion["object"], completion["model"]) == ("chat.completion", LLAMA_4.name)
    assert completion["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "[placeholder by", "refusal": None},
            "finish_reason": "length",
            "logprobs": None,
        }
    ]
    assert completion["usage"] == {"prompt_tokens": 2, "completion_tokens": 4, "total_tokens": 6}


def test_gpt_oss_answers_a_response_object() -> None:
    response = answer(GPT_OSS, {"input": "Hello"})
    [message] = response["output"]
    assert (response["object"], response["status"]) == ("response", "completed")
    assert response["id"].removeprefix("resp_") == message["id"].removeprefix("msg_")
    assert (message["type"], message["role"]) == ("message", "assistant")
    assert message["content"] == [
        {
            "type": "output_text",
            "text": "[placeholder by @cf/openai/gpt-oss-120b] Hello",
            "annotations": [],
        }
    ]
    assert response["usage"] == {
        "input_tokens": 2,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 12,
    }


def test_ids_are_the_same_for_the_same_item_and_differ_otherwise() -> None:
    first, again, other = (answer(LLAMA_4, {"prompt": prompt})["id"] for prompt in ("a", "a", "b"))
    assert first == again != other


def test_tokens_of_embeddings_are_all_read_and_counted_up_to_the_limit() -> None:
    [short, long] = answers(BGE_SMALL, [{"text": ["x" * 48, "x"]}, {"text": "x" * 48_000}])
    assert (short.usage, long.usage) == (Usage(11, 0), Usage(512, 0))


def test_answers_do_not_depend_on_what_is_computed_together() -> None:
    items: list[dict[str, Any]] = [
        {"text": [f"text {number} of {size}" for number in range(size)]} for size in (1, 40, 0, 31, 2)
    ] + [{"query": "text 3", "contexts": [{"text": "text 3"}]}, {"contexts": [{"text": "text 3"}]}]
    together = answers(BGE_M3, items)
    assert together == [alone for item in items for alone in answers(BGE_M3, [item])]
    assert [len(json.loads(one.result).get("data", [])) for one in together] == [1, 40, 0, 31, 2, 0, 0]


@pytest.mark.parametrize(
    ("card", "item", "texts"),
    [
        (BGE_SMALL, {"text": "a"}, 1),
        (BGE_SMALL, {"text": ["a", "b"]}, 2),
        (BGE_SMALL, {"text": ["a" * 8191, "b" * 8192, "c" * 81_920, None]}, 1 + 2 + 11 + 1),
        (BGE_M3, {"contexts": [{"text": "b" * 8192}, {}, 1]}, 2 + 1 + 1),
        (BGE_M3, {"query": "a", "contexts": [{"text": "b"}, {"text": "c"}]}, 2),
        (BGE_M3, {"contexts": [{"text": "b"}]}, 1),
        (BGE_M3, {"contexts": 5, "text": ["a", "b", "c"]}, 3),
        (QWEN, {"queries": ["a", "b"], "documents": "c"}, 3),
        (RERANKER, {"query": "a", "contexts": []}, 0),
        (LLAMA_4, {"messages": [{"content": "a"}, {"content": "b"}]}, 1),
        (M2M100, {"text": "a", "target_lang": "fr"}, 1),
    ],
    ids=[
        "string",
        "list",
        "long texts",
        "long contexts",
        "ranking",
        "contexts",
        "odd contexts",
        "qwen3",
        "no contexts",
        "messages",
        "translation",
    ],
)
def test_the_cost_of_an_item_is_the_texts_it_makes(card: ModelCard, item: dict[str, Any], texts: int) -> None:
    assert cost(card, item) == texts


TEXT = st.text(st.characters(codec=None), max_size=8)  # lone surrogates too
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
LIKELY = JSON | st.lists(
    st.fixed_dictionaries({}, optional=dict.fromkeys(("text", "content", "role", "type"), JSON)), max_size=3
)
MEMBERS = (
    *("text", "contexts", "query", "pooling", "top_k", "queries", "documents", "instruction"),
    *("prompt", "messages", "input", "max_tokens", "target_lang", "external_reference"),
    *("tools", "tool_choice", "stop", "n", "instructions", "stream_options", "dimensions", "encoding_format"),
    *("input_text", "image", "audio", "encoding", "container", "width", "seed", "multipart", "task"),
)
FORMATS = st.fixed_dictionaries(
    {"type": st.sampled_from(["json_object", "json_schema"])},
    optional={
        "json_schema": JSON
        | st.fixed_dictionaries(
            {}, optional=dict.fromkeys(("type", "properties", "items", "anyOf", "enum", "minimum"), LIKELY)
        )
    },
)
CALLS = st.lists(
    st.fixed_dictionaries({}, optional={"name": JSON, "arguments": JSON, "type": JSON, "function": LIKELY})
    | JSON,
    max_size=2,
)
MESSAGES = st.fixed_dictionaries({}, optional={"content": LIKELY, "role": JSON, "tool_calls": CALLS}) | JSON
CHOICES = (
    st.fixed_dictionaries({}, optional={"message": MESSAGES, "text": JSON, "finish_reason": JSON}) | JSON
)
OUTPUTS = (
    st.fixed_dictionaries(
        {}, optional={"type": st.sampled_from(["message", "function_call"]), "content": LIKELY, "name": TEXT}
    )
    | JSON
)
CHOSEN = JSON | st.fixed_dictionaries(
    {},
    optional={
        "response": JSON,
        "tool_calls": CALLS | JSON,
        "choices": st.lists(CHOICES, max_size=2) | JSON,
        "output": st.lists(OUTPUTS, max_size=2) | JSON,
        "usage": st.dictionaries(st.sampled_from(["prompt_tokens", "output_tokens"]), JSON) | JSON,
    },
)
ITEMS = st.fixed_dictionaries(
    {}, optional={**dict.fromkeys(MEMBERS, LIKELY), "response_format": FORMATS | JSON, "tools": CALLS}
)


@settings(max_examples=settings().max_examples // 2)
@given(st.lists(ITEMS, max_size=3))
def test_any_object_at_all_gets_an_answer_of_any_kind_of_model(items: list[dict[str, Any]]) -> None:
    for card in KINDS:
        try:
            given_back = answers(card, items)
        except CannotMeet:
            assert any("response_format" in item or isinstance(item.get("text"), dict) for item in items)
            continue
        assert len(given_back) == len(items)
        for item, one in zip(items, given_back, strict=True):
            if one.content_type == "application/json":
                assert_well_formed(card, item, json.loads(one.result))


@given(ITEMS)
@settings(max_examples=20, deadline=None)
def test_any_object_at_all_gets_an_image(item: dict[str, Any]) -> None:
    [made] = answers(SDXL, [{**item, "width": 64, "height": 64}])
    assert made.result.startswith(b"\x89PNG")


@given(ITEMS, st.just(NOTHING) | CHOSEN, st.sampled_from(["native", "chat", "responses"]))
def test_any_object_at_all_gets_text_in_any_form_whole_and_streamed(
    item: dict[str, Any], chosen: Any, form: TextForm
) -> None:
    for card in (LLAMA_3, LLAMA_4, GPT_OSS):
        try:
            whole = generate(card, item, form, chosen)
        except CannotMeet:
            with pytest.raises(CannotMeet):
                stream(card, item, form, chosen)
            continue
        json.loads(whole.result)
        streamed = stream(card, item, form, chosen)
        assert all(json.loads(event.data) is not NOTHING for event in streamed.events)
        assert streamed.usage == whole.usage


@given(ITEMS)
def test_any_object_at_all_gets_openais_vectors(item: dict[str, Any]) -> None:
    answer = json.loads(embeddings(BGE_SMALL, item).result)
    texts = item.get("input")
    assert len(answer["data"]) == (len(texts) if isinstance(texts, list) and not tokens(texts) else 1)


def tokens(texts: list[Any]) -> bool:
    return bool(texts) and all(type(text) is int for text in texts)


def assert_well_formed(card: ModelCard, item: dict[str, Any], result: dict[str, Any]) -> None:
    texts = texts_of(card, item)
    assert all(isinstance(text, str) for text in texts)
    if card.answers in {"embedding", "reranking"}:
        rows = result["data"] if "data" in result else result["response"]
        most = cost(card, item)
        assert len(rows) == most or (card.answers == "reranking" and len(rows) == item["top_k"] < most)
    if "shape" in result:
        assert result["shape"] == [len(rows), card.dimensions] == [len(texts), card.dimensions]
        assert all(len(row) == card.dimensions for row in rows)


def test_a_text_nested_deeper_than_any_parser_goes_gets_an_answer() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    assert answer(BGE_SMALL, {"text": [deep]})["shape"] == [1, 384]
    assert answer(LLAMA_4, {"prompt": deep})["object"] == "chat.completion"
