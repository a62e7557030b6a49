from __future__ import annotations

import json
from typing import Any

import pytest

from workersai_contracts import ModelCard, model
from workersai_emulator.inference import NOTHING, TextForm, Usage, generate

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
TEXT = "[placeholder by @cf/meta/llama-3.3-70b-instruct-fp8-fast] Hello"


def told(card: ModelCard, item: dict[str, Any], form: TextForm, chosen: Any = NOTHING) -> Any:
    answer = generate(card, item, form, chosen)
    assert answer.content_type == "application/json"
    return json.loads(answer.result)


def test_any_text_model_answers_a_chat_completion() -> None:
    completion = told(LLAMA, {"messages": [{"role": "user", "content": "Hello"}]}, "chat")
    assert list(completion) == ["id", "object", "created", "model", "choices", "usage"]
    assert (completion["object"], completion["created"]) == ("chat.completion", 1_735_689_600)
    assert completion["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": TEXT, "refusal": None},
            "finish_reason": "stop",
            "logprobs": None,
        }
    ]
    assert completion["usage"] == {"prompt_tokens": 2, "completion_tokens": 14, "total_tokens": 16}


def test_any_text_model_answers_a_response_object() -> None:
    response = told(LLAMA, {"input": "Hello", "instructions": "Be brief."}, "responses")
    assert (response["object"], response["status"], response["error"]) == ("response", "completed", None)
    assert (response["instructions"], response["tool_choice"], response["tools"]) == ("Be brief.", "auto", [])
    assert response["output"][0]["content"] == [{"type": "output_text", "text": TEXT, "annotations": []}]
    assert response["usage"]["input_tokens"] == 4  # the instructions are read as well
    assert response["usage"]["output_tokens_details"] == {"reasoning_tokens": 0}


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ({"input": "Hello"}, "response"),
        ({"messages": [{"role": "user", "content": "Hello"}]}, "chat.completion"),
        ({"prompt": "Hello"}, "chat.completion"),
        ({"input": "Hello", "prompt": "Hello"}, "response"),
        ({}, "response"),
    ],
    ids=["input", "messages", "prompt", "both", "neither"],
)
def test_gpt_oss_answers_in_the_form_of_its_input(item: dict[str, Any], kind: str) -> None:
    assert told(GPT_OSS, item, "native")["object"] == kind


def test_native_tool_calls_have_their_arguments_as_a_value_and_no_response() -> None:
    assert list(told(LLAMA, WEATHER, "native").items()) == [
        ("response", None),
        ("tool_calls", [{"name": "get_weather", "arguments": {"city": "placeholder"}}]),
        ("usage", {"prompt_tokens": 3, "completion_tokens": 13, "total_tokens": 16}),
    ]


@pytest.mark.parametrize(("card", "form"), [(QWEN, "native"), (LLAMA, "chat")], ids=["native", "chat"])
def test_tool_calls_of_a_choice_have_their_arguments_as_json_text(card: ModelCard, form: TextForm) -> None:
    [choice] = told(card, WEATHER, form)["choices"]
    [call] = choice["message"].pop("tool_calls")
    assert choice == {
        "index": 0,
        "message": {"role": "assistant", "content": None, "refusal": None},
        "finish_reason": "tool_calls",
        "logprobs": None,
    }
    assert call.pop("id").startswith("chatcmpl-tool-")
    assert call == {
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city":"placeholder"}'},
    }


def test_the_calls_of_a_response_are_items_of_its_output() -> None:
    [call] = told(LLAMA, {"input": "The weather?", "tools": TOOLS}, "responses")["output"]
    assert (call["type"], call["name"], call["status"]) == ("function_call", "get_weather", "completed")
    assert call["arguments"] == '{"city":"placeholder"}'
    assert call["id"].startswith("fc_")
    assert call["call_id"].startswith("call_")


def test_several_choices_are_each_written_and_the_prompt_is_read_once() -> None:
    item = {"prompt": "Hello", "n": 3}
    answer = generate(LLAMA, item, "chat")
    completion = json.loads(answer.result)
    assert [choice["index"] for choice in completion["choices"]] == [0, 1, 2]
    assert answer.usage == Usage(2, 42)
    assert completion["usage"] == answer.usage.as_json()
    assert len(told(LLAMA, {"prompt": "Hello", "n": 1_000_000}, "chat")["choices"]) == 128
    assert generate(LLAMA, item, "native").usage == Usage(2, 14)


@pytest.mark.parametrize("stop", ["placeholder", [None, "unmet", " by", "placeholder"]], ids=["one", "list"])
def test_a_text_ends_before_a_stop_sequence(stop: Any) -> None:
    completion = told(LLAMA, {"prompt": "Hello", "stop": stop}, "chat")
    assert completion["choices"][0]["message"]["content"] == "["
    assert completion["choices"][0]["finish_reason"] == "stop"


def test_an_empty_stop_sequence_ends_nothing() -> None:
    assert told(LLAMA, {"prompt": "Hello", "stop": [""]}, "native")["response"] == TEXT


@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
def test_a_limit_that_is_null_is_none(limit: str) -> None:
    assert told(LLAMA, {"prompt": "Hello", limit: None}, "chat")["choices"][0]["finish_reason"] == "stop"


CALLS = [{"name": "f", "arguments": {"a": 1}}]
CHAT_CALLS = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}]


@pytest.mark.parametrize(
    ("chosen", "content", "calls"),
    [
        ("billing", "billing", None),
        ({"response": "billing"}, "billing", None),
        ({"response": {"a": [1]}}, '{"a":[1]}', None),
        ({"choices": [{"message": {"content": "billing"}}]}, "billing", None),
        ({"choices": [{"text": "billing"}]}, "billing", None),
        ({"output": [{"type": "message", "content": [{"text": "bill"}, {"text": "ing"}]}]}, "billing", None),
        ({"tool_calls": CALLS}, None, ("f", '{"a":1}')),
        ({"response": None, "tool_calls": CALLS}, None, ("f", '{"a":1}')),
        ({"choices": [{"message": {"content": None, "tool_calls": CHAT_CALLS}}]}, None, ("f", '{"a":1}')),
        (
            {"output": [{"type": "function_call", "name": "f", "arguments": '{"a":1}'}]},
            None,
            ("f", '{"a":1}'),
        ),
        ({"tool_calls": [{"name": "f", "arguments": "not JSON"}]}, None, ("f", "not JSON")),
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_a_chosen_output_comes_in_the_form_asked_for(
    chosen: Any, content: str | None, calls: tuple[str, str] | None
) -> None:
    choice = told(LLAMA, {"prompt": "Which?"}, "chat", chosen)["choices"][0]
    [item] = told(LLAMA, {"input": "Which?"}, "responses", chosen)["output"]
    if calls is None:
        assert choice.get("finish_reason", "stop") == "stop"
        assert choice.get("message", choice).get("content", choice.get("text")) == content
        assert "".join(part["text"] for part in item["content"]) == content
        return
    assert (choice["message"]["content"], choice["finish_reason"]) == (content, "tool_calls")
    [call] = choice["message"]["tool_calls"]
    assert (call["function"]["name"], call["function"]["arguments"]) == calls
    assert (item["type"], item["name"], item["arguments"]) == ("function_call", *calls)


@pytest.mark.parametrize("chosen", [{"odd": 1}, [1], None, 5, {"choices": []}], ids=repr)
@pytest.mark.parametrize("form", ["chat", "responses"])
def test_what_is_no_text_generation_comes_out_as_it_is(form: TextForm, chosen: Any) -> None:
    answer = generate(LLAMA, {"prompt": "x" * 48}, form, chosen)
    assert (json.loads(answer.result), answer.usage) == (chosen, Usage(10, 0))


@pytest.mark.parametrize(
    "chosen", [{"choices": [{"message": {"content": "x"}}]}, {"response": "x"}, "x", {"odd": 1}], ids=repr
)
def test_in_the_native_form_a_chosen_output_is_what_the_test_wrote(chosen: Any) -> None:
    assert told(LLAMA, {"prompt": "Hello"}, "native", chosen) == chosen


def test_a_short_chosen_completion_is_completed() -> None:
    chosen = {"choices": [{"message": {"content": "x", "refusal": None}, "finish_reason": "length"}]}
    completion = told(LLAMA, {"prompt": "Hello"}, "chat", chosen)
    assert list(completion) == ["id", "object", "created", "model", "choices", "usage"]
    assert completion["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "x", "refusal": None},
            "finish_reason": "length",
        }
    ]
    assert told(LLAMA, {"prompt": "Hello"}, "chat", {**chosen, "id": "mine"})["id"] == "mine"


def test_a_chosen_usage_holds_and_a_missing_one_is_estimated() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 7}
    assert generate(
        LLAMA, {"prompt": "x" * 48}, "chat", {"response": "y" * 24, "usage": usage}
    ).usage == Usage(100, 7)
    assert generate(LLAMA, {"prompt": "x" * 48}, "chat", {"response": "y" * 24}).usage == Usage(10, 5)


def test_json_mode_is_text_in_openais_forms() -> None:
    schema = {"type": "object", "properties": {"year": {"type": "integer"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    item = {"messages": [{"role": "user", "content": "When?"}], "response_format": wanted}
    assert told(LLAMA, item, "native")["response"] == {"year": 0}
    assert told(LLAMA, item, "chat")["choices"][0]["message"]["content"] == '{"year":0}'
    asked = {"input": "When?", "text": {"format": {"type": "json_schema", "name": "x", "schema": schema}}}
    assert told(LLAMA, asked, "responses")["output"][0]["content"][0]["text"] == '{"year":0}'
