"""Tool calls: which of the tools on offer a placeholder model calls, and with what arguments.

Fact: `sync.tool-calls`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from workersai_emulator.inference.bounded import Bounds
from workersai_emulator.inference.json_mode import CannotMeet, value_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: What the strings in a call's arguments are, where its schema lets them.
ARGUMENT: Final = "placeholder"

#: Words of a tool's name that say nothing of what it is about: "weather" asks for `get_current_weather`.
_BARE_WORDS = frozenset("get set fetch find look up lookup search list current the a of for in by to".split())
_NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_WORDS = re.compile(r"[^\W_]+")


class Tool(NamedTuple):
    """One tool on offer: its name, and the JSON Schema of its arguments."""

    name: str
    parameters: Mapping[str, Any]


class ToolCall(NamedTuple):
    """One call that the model asks for; the arguments are a JSON value, an object as a rule."""

    name: str
    arguments: Any


def calls_for(item: Mapping[str, Any], question: str) -> tuple[ToolCall, ...]:
    """Return the calls that a model makes: the demanded one, or those of tools that the question mentions.

    After a tool's result only a demanded tool is called that has not been called before, so that no
    conversation goes on for ever. A tool whose arguments nothing satisfies is not called.
    """
    tools = list(_tools(item.get("tools")))
    demand = _demand(item.get("tool_choice"))
    if not tools or demand == "none":
        return ()
    turns = _turns(item)
    if turns and _is_result(turns[-1]):
        called = set(_called(turns))
        tools = [tool for tool in tools if tool.name not in called]
        chosen = _demanded(tools, demand, question)
    else:
        chosen = _demanded(tools, demand, question) or _mentioned(tools, question)
    if item.get("parallel_tool_calls") is False:
        chosen = chosen[:1]
    bounds = Bounds()
    return tuple(call for tool in chosen if (call := _call(tool, bounds)) is not None)


def _tools(offered: Any) -> Iterator[Tool]:
    """Read tools in each of their forms: name and parameters stand bare, or under `function`."""
    for one in offered if isinstance(offered, list) else ():
        if not isinstance(one, dict):
            continue
        told = one["function"] if isinstance(one.get("function"), dict) else one
        name, parameters = told.get("name"), told.get("parameters")
        if isinstance(name, str) and name:
            yield Tool(name, parameters if isinstance(parameters, dict) else {})


def _demand(choice: Any) -> str | None:
    """Return `none`, `required`, the name of a tool behind a dot (`.name`), or None for the model's choice."""
    if isinstance(choice, str):
        return {"none": "none", "required": "required", "any": "required"}.get(choice)
    if not isinstance(choice, dict):
        return None
    told = choice["function"] if isinstance(choice.get("function"), dict) else choice
    return f".{told['name']}" if isinstance(told.get("name"), str) else None


def _demanded(tools: Sequence[Tool], demand: str | None, question: str) -> list[Tool]:
    if demand == "required":
        return _mentioned(tools, question) or list(tools[:1])
    return [tool for tool in tools if f".{tool.name}" == demand][:1]


def _mentioned(tools: Sequence[Tool], question: str) -> list[Tool]:
    """Return the tools whose name is in the question, or all words of it that say something."""
    lowered = question.lower()
    words = set(_WORDS.findall(lowered))
    return [tool for tool in tools if tool.name.lower() in lowered or _telling(tool.name) <= words]


def _telling(name: str) -> set[str]:
    parts = {part.lower() for part in _NAME_PARTS.findall(name)}
    return parts - _BARE_WORDS or parts or {name}


def _call(tool: Tool, bounds: Bounds) -> ToolCall | None:
    if not tool.parameters:
        return ToolCall(tool.name, {})
    try:
        arguments = value_for({"type": "object", **tool.parameters}, ARGUMENT, bounds)
    except CannotMeet:
        return None
    return ToolCall(tool.name, arguments)


def _turns(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    told = (item[key] for key in ("messages", "input") if isinstance(item.get(key), list))
    return [turn for turn in next(told, ()) if isinstance(turn, dict)]


def _is_result(turn: Mapping[str, Any]) -> bool:
    return turn.get("role") in ("tool", "function") or turn.get("type") == "function_call_output"


def _called(turns: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the names of tools that were called before, or whose results are there."""
    for turn in turns:
        if turn.get("type") == "function_call" or _is_result(turn):
            yield str(turn.get("name"))
        calls = turn.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                told = call["function"] if isinstance(call.get("function"), dict) else call
                yield str(told.get("name"))
