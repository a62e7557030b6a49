from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from workersai_emulator.inference.tools import ToolCall, calls_for

CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
    "required": ["city"],
}
ARGUMENTS = {"city": "placeholder", "days": 1}
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": CITY}}
CLOCK = {"type": "function", "function": {"name": "current_time"}}
CALL = ToolCall("get_weather", ARGUMENTS)


def called(question: str, tools: Any, **others: Any) -> tuple[ToolCall, ...]:
    item = {"messages": [{"role": "user", "content": question}], "tools": tools, **others}
    return calls_for(item, question)


@pytest.mark.parametrize(
    ("question", "calls"),
    [
        ("How is the weather in Paris?", (CALL,)),
        ("Use get_weather.", (CALL,)),
        ("WEATHER!", (CALL,)),
        ("Hello", ()),
        ("Get me a coffee", ()),
        ("Weather and time, please", (CALL, ToolCall("current_time", {}))),
    ],
)
def test_tools_are_called_that_the_question_mentions(question: str, calls: tuple[ToolCall, ...]) -> None:
    assert called(question, [WEATHER, CLOCK]) == calls


@pytest.mark.parametrize(
    "tool",
    [
        WEATHER,
        {"name": "get_weather", "description": "d", "parameters": CITY},
        {"type": "function", "name": "get_weather", "parameters": CITY, "strict": True},
    ],
    ids=["chat", "older native", "responses"],
)
def test_a_tool_is_read_in_each_form(tool: dict[str, Any]) -> None:
    assert called("the weather", [tool]) == (CALL,)
    jsonschema.validate(CALL.arguments, CITY)


@pytest.mark.parametrize(
    ("choice", "calls"),
    [
        ("none", ()),
        ("auto", ()),
        ("required", (CALL,)),
        ("any", (CALL,)),
        ({"type": "function", "function": {"name": "current_time"}}, (ToolCall("current_time", {}),)),
        ({"type": "function", "name": "current_time"}, (ToolCall("current_time", {}),)),
        ({"type": "function", "function": {"name": "unknown"}}, ()),
        (7, ()),
    ],
    ids=["none", "auto", "required", "any", "named", "named for responses", "unknown", "odd"],
)
def test_a_demand_decides_where_nothing_is_mentioned(choice: Any, calls: tuple[ToolCall, ...]) -> None:
    assert called("Hello", [WEATHER, CLOCK], tool_choice=choice) == calls


def test_no_tool_is_called_against_the_callers_word() -> None:
    assert called("the weather", [WEATHER], tool_choice="none") == ()


def test_without_parallel_calls_there_is_one() -> None:
    assert called("Weather and time", [CLOCK, WEATHER], parallel_tool_calls=False) == (
        ToolCall("current_time", {}),
    )


TOOL_TURN = [
    {"role": "user", "content": "How is the weather?"},
    {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "get_weather"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "sunny"},
]


def test_after_a_result_nothing_more_is_called() -> None:
    assert calls_for({"messages": TOOL_TURN, "tools": [WEATHER, CLOCK]}, "How is the weather?") == ()


def test_after_a_result_a_demand_reaches_a_tool_not_called_yet_and_then_ends() -> None:
    item = {"messages": TOOL_TURN, "tools": [WEATHER, CLOCK], "tool_choice": "required"}
    assert calls_for(item, "How is the weather?") == (ToolCall("current_time", {}),)
    assert calls_for({**item, "tools": [WEATHER]}, "How is the weather?") == ()


def test_the_results_of_responses_end_it_too() -> None:
    turns = [
        {"role": "user", "content": "the weather"},
        {"type": "function_call", "call_id": "1", "name": "get_weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "sunny"},
    ]
    assert calls_for({"input": turns, "tools": [WEATHER], "tool_choice": "required"}, "the weather") == ()


def test_a_tool_that_no_arguments_satisfy_is_not_called() -> None:
    unmet = {"type": "object", "properties": {"a": False}, "required": ["a"]}
    assert called("the weather", [{"name": "get_weather", "parameters": unmet}]) == ()


@pytest.mark.parametrize("tools", [None, 5, [], [5, {}, {"name": 7}, {"function": {"name": ""}}]], ids=repr)
def test_what_is_no_tool_is_not_called(tools: Any) -> None:
    assert called("the weather", tools, tool_choice="required") == ()
