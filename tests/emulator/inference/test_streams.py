from __future__ import annotations

import json
from typing import Any

import pytest

from workersai_contracts import ModelCard, model
from workersai_emulator.inference import NOTHING, Event, TextForm, Usage, generate, stream

LLAMA = model("@cf/meta/llama-3.3-70b-instruct-fp8-fast")
QWEN = model("@cf/qwen/qwen3-30b-a3b-fp8")
GPT_OSS = model("@cf/openai/gpt-oss-120b")
assert LLAMA is not None
assert QWEN is not None
assert GPT_OSS is not None

TOOLS = [
    {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
]
WEATHER = {"messages": [{"role": "user", "content": "The weather?"}], "tools": TOOLS}
HELLO = {"messages": [{"role": "user", "content": "Hello"}]}
USAGE = {"prompt_tokens": 2, "completion_tokens": 14, "total_tokens": 16}


def events(
    card: ModelCard, item: dict[str, Any], form: TextForm, chosen: Any = NOTHING
) -> list[dict[str, Any]]:
    return [json.loads(event.data) for event in stream(card, item, form, chosen).events]


def test_a_native_stream_is_words_with_filler_and_last_the_usage() -> None:
    assert [event.data for event in stream(LLAMA, {"prompt": "Hello"}, "native").events] == [
        b'{"response":"[placeholder","p":"abdefghijklmnoprstuvxy"}',
        b'{"response":" by","p":"abdefghijklmnoprstuvxyz"}',
        b'{"response":" @cf/meta/llama-3.3-70b-instruct-fp8-fast]","p":"abdefghijklmnoprs"}',
        b'{"response":" Hello","p":"' + events(LLAMA, {"prompt": "Hello"}, "native")[3]["p"].encode() + b'"}',
        b'{"response":"","usage":{"prompt_tokens":2,"completion_tokens":14,"total_tokens":16}}',
    ]


def test_native_tool_calls_come_whole_before_the_usage() -> None:
    assert events(LLAMA, WEATHER, "native") == [
        {"response": "", "tool_calls": [{"name": "get_weather", "arguments": {"city": "placeholder"}}]},
        {
            "response": "",
            "usage": {"prompt_tokens": 3, "completion_tokens": 13, "total_tokens": 16},
        },
    ]


def test_a_chat_stream_begins_with_the_role_and_ends_with_the_reason() -> None:
    told = events(LLAMA, HELLO, "chat")
    heads = [{key: chunk[key] for key in ("id", "object", "created", "model")} for chunk in told]
    completion = json.loads(generate(LLAMA, HELLO, "chat").result)
    assert heads == [
        {
            "id": completion["id"],
            "object": "chat.completion.chunk",
            "created": 1_735_689_600,
            "model": LLAMA.name,
        }
    ] * len(told)
    assert [chunk["choices"] for chunk in told] == [
        [{"index": 0, "delta": delta, "finish_reason": reason}]
        for delta, reason in [
            ({"role": "assistant", "content": ""}, None),
            ({"content": "[placeholder"}, None),
            ({"content": " by"}, None),
            ({"content": f" {LLAMA.name}]"}, None),
            ({"content": " Hello"}, None),
            ({}, "stop"),
        ]
    ]


@pytest.mark.parametrize(
    ("options", "counted"),
    [({"include_usage": True}, True), ({"include_usage": False}, False), (None, False)],
)
def test_usage_comes_in_a_chat_stream_when_it_is_asked_for(options: Any, counted: bool) -> None:
    told = events(LLAMA, {**HELLO, "stream_options": options}, "chat")
    assert ("usage" in told[-1]) is counted
    if counted:
        assert (told[-1]["choices"], told[-1]["usage"]) == ([], USAGE)


def test_a_newer_model_streams_chunks_by_itself_and_ends_like_an_older_one() -> None:
    told = events(QWEN, HELLO, "native")
    assert told[:-2] == events(QWEN, HELLO, "chat")
    assert (told[-2]["choices"], told[-2]["usage"]) == ([], told[-1]["usage"])
    assert told[-1] == {"response": "", "usage": stream(QWEN, HELLO, "native").usage.as_json()}


def test_gpt_oss_streams_in_the_form_of_its_input() -> None:
    assert events(GPT_OSS, HELLO, "native")[0]["object"] == "chat.completion.chunk"
    assert events(GPT_OSS, {"input": "Hello"}, "native")[0]["type"] == "response.created"


def test_tool_calls_in_a_chat_stream_put_together_are_the_completions() -> None:
    deltas = [chunk["choices"][0]["delta"] for chunk in events(LLAMA, WEATHER, "chat")]
    [whole] = json.loads(generate(LLAMA, WEATHER, "chat").result)["choices"][0]["message"]["tool_calls"]
    opened, *parts = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert opened == {"index": 0, **whole, "function": {"name": "get_weather", "arguments": ""}}
    assert len(parts) == 2
    assert all(list(part) == ["index", "function"] and part["index"] == 0 for part in parts)
    assert "".join(part["function"]["arguments"] for part in parts) == whole["function"]["arguments"]
    assert events(LLAMA, WEATHER, "chat")[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_each_of_several_choices_is_streamed() -> None:
    told = stream(LLAMA, {**HELLO, "n": 2}, "chat")
    indexes = [json.loads(event.data)["choices"][0]["index"] for event in told.events]
    assert indexes == [0] * 6 + [1] * 6
    assert told.usage == Usage(2, 28)


def test_a_cut_text_says_so_at_the_end_of_each_form() -> None:
    assert events(LLAMA, {**HELLO, "max_tokens": 5}, "chat")[-1]["choices"][0]["finish_reason"] == "length"
    last = events(LLAMA, {"input": "Hello", "max_output_tokens": 5}, "responses")[-1]
    assert (last["type"], last["response"]["status"]) == ("response.incomplete", "incomplete")


def test_the_events_of_a_response_are_named_and_numbered() -> None:
    told = list(stream(LLAMA, {"input": "Hello"}, "responses").events)
    kinds = [
        *("created", "in_progress", "output_item.added", "content_part.added"),
        *["output_text.delta"] * 4,
        *("output_text.done", "content_part.done", "output_item.done", "completed"),
    ]
    assert [event.name for event in told] == [f"response.{kind}" for kind in kinds]
    shown = [json.loads(event.data) for event in told]
    assert [event["type"] for event in shown] == [event.name for event in told]
    assert [event["sequence_number"] for event in shown] == list(range(len(kinds)))
    text = "".join(event["delta"] for event in shown if event["type"].endswith("delta"))
    whole = json.loads(generate(LLAMA, {"input": "Hello"}, "responses").result)
    assert text == shown[8]["text"] == whole["output"][0]["content"][0]["text"]
    assert shown[-1]["response"] == whole
    assert shown[10]["item"] == whole["output"][0]
    assert (shown[0]["response"]["status"], shown[0]["response"]["output"]) == ("in_progress", [])
    assert {event["item_id"] for event in shown if "item_id" in event} == {whole["output"][0]["id"]}


def test_a_responses_tool_call_is_streamed_as_its_arguments() -> None:
    told = list(stream(LLAMA, {"input": "The weather?", "tools": TOOLS}, "responses").events)
    assert [event.name for event in told if event.name and "arguments" in event.name] == [
        "response.function_call_arguments.delta",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
    ]
    shown = [json.loads(event.data) for event in told]
    parts = [event["delta"] for event in shown if event["type"].endswith("delta")]
    assert "".join(parts) == '{"city":"placeholder"}' == shown[-1]["response"]["output"][0]["arguments"]


@pytest.mark.parametrize(
    "chosen",
    [{"response": "two words"}, {"choices": [{"message": {"content": "two words"}}]}, "two words"],
    ids=["response", "choices", "text"],
)
def test_a_chosen_output_is_streamed_in_every_form(chosen: Any) -> None:
    native = events(LLAMA, {"prompt": "Hi"}, "native", chosen)
    assert [event["response"] for event in native] == ["two", " words", ""]
    chat = events(LLAMA, {"prompt": "Hi", "n": 2}, "chat", chosen)
    assert [chunk["choices"][0]["delta"].get("content") for chunk in chat] == ["", "two", " words", None]
    responses = events(LLAMA, {"input": "Hi"}, "responses", chosen)
    assert [event["delta"] for event in responses if "delta" in event] == ["two", " words"]


def test_a_chosen_output_that_is_no_text_is_the_only_event() -> None:
    assert list(stream(LLAMA, {"prompt": "x" * 48}, "chat", {"odd": 1}).events) == [Event(b'{"odd":1}')]
    assert stream(LLAMA, {"prompt": "x" * 48}, "chat", {"odd": 1}).usage == Usage(10, 0)


@pytest.mark.parametrize(
    "text", ["", " ", "  two  blanks ", "line\nbreak\n", "no-blank", "\u200b é 学习"], ids=repr
)
@pytest.mark.parametrize("form", ["native", "chat", "responses"])
def test_the_pieces_of_a_stream_are_the_text(form: TextForm, text: str) -> None:
    told = events(LLAMA, {"prompt": "Hi"}, form, text)
    if form == "native":
        joined = "".join(event["response"] for event in told)
    elif form == "chat":
        joined = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in told)
    else:
        joined = "".join(event.get("delta", "") for event in told)
    assert joined == text


def test_a_stream_and_its_answer_used_the_same() -> None:
    forms: tuple[TextForm, ...] = ("native", "chat", "responses")
    for card in (LLAMA, QWEN, GPT_OSS):
        for form in forms:
            assert stream(card, WEATHER, form).usage == generate(card, WEATHER, form).usage
