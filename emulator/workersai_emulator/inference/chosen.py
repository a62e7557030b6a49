"""An output that a test chose by a rule, read as what a model has written, so that it can take any form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from workersai_emulator.inference.forms import (
    Shape,
    completion_head,
    fingerprint,
    response_head,
    response_usage,
)
from workersai_emulator.inference.generation import Written
from workersai_emulator.inference.inputs import prompt_of, text_of
from workersai_emulator.inference.tokens import Usage, estimate
from workersai_emulator.inference.tools import ToolCall
from workersai_emulator.json_text import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from workersai_contracts import ModelCard

#: No output was chosen; null is one that can be.
NOTHING: Final = object()


def read_chosen(item: Mapping[str, Any], chosen: Any) -> Written | None:
    """Read a chosen output of any form, or a bare text; None for what is in none of them.

    A usage inside the output holds; otherwise tokens are estimated.
    """
    if isinstance(chosen, str):
        return _as_written(item, chosen, (), "stop", None)
    if not isinstance(chosen, dict):
        return None
    usage = chosen.get("usage")
    if isinstance(chosen.get("choices"), list):
        return _from_choices(item, chosen["choices"], usage)
    if isinstance(chosen.get("output"), list):
        text, calls = _from_output(chosen["output"])
        finish = "length" if chosen.get("status") == "incomplete" else "stop"
        return _as_written(item, text, calls, finish, usage)
    if "response" not in chosen and not isinstance(chosen.get("tool_calls"), list):
        return None
    return _as_written(item, chosen.get("response"), _calls(chosen.get("tool_calls")), "stop", usage)


def completed(
    card: ModelCard, item: Mapping[str, Any], chosen: Any, new: Written, shape: Shape
) -> Any | None:
    """Return a chosen output that has the form asked for already, with what SDKs need beside it; None if it hasn't.

    A test that writes `{"choices": [{"message": {"content": "hi"}}]}` gets a whole chat completion.
    """
    if not isinstance(chosen, dict):
        return None
    if shape == "choices" and isinstance(chosen.get("choices"), list):
        choices = [_whole_choice(index, choice, new) for index, choice in enumerate(chosen["choices"])]
        told = {**completion_head(card, fingerprint(card, item)), **chosen, "choices": choices}
        return told if "usage" in told else {**told, "usage": new.usage.as_json()}
    if shape == "output" and isinstance(chosen.get("output"), list):
        told = {**response_head(card, item, fingerprint(card, item), "completed"), **chosen}
        return told if told["usage"] is not None else {**told, "usage": response_usage(new.usage)}
    return None


def _whole_choice(index: int, choice: Any, new: Written) -> Any:
    if not isinstance(choice, dict):
        return choice
    whole = {"index": index, **choice}
    if isinstance(choice.get("message"), dict):
        whole["message"] = {"role": "assistant", "content": None, **choice["message"]}
    whole.setdefault("finish_reason", new.finish)
    return whole


def _from_choices(item: Mapping[str, Any], choices: Sequence[Any], usage: Any) -> Written | None:
    first = choices[0] if choices else None
    if not isinstance(first, dict):
        return None
    told = first.get("message")
    if not isinstance(told, dict):
        return _as_written(item, first.get("text"), (), "stop", usage)
    finish = first.get("finish_reason")
    ended = finish if isinstance(finish, str) else "stop"
    return _as_written(item, told.get("content"), _calls(told.get("tool_calls")), ended, usage)


def _from_output(items: Iterable[Any]) -> tuple[str | None, tuple[ToolCall, ...]]:
    texts: list[str] = []
    calls: list[Any] = []
    for one in items:
        if not isinstance(one, dict):
            continue
        if one.get("type") == "function_call":
            calls.append(one)
        content = one.get("content") if one.get("type", "message") == "message" else None
        for part in content if isinstance(content, list) else ():
            texts += [text_of(part["text"])] if isinstance(part, dict) and "text" in part else []
    return ("".join(texts) if texts or not calls else None), _calls(calls)


def _calls(told: Any) -> tuple[ToolCall, ...]:
    """Read tool calls in either form; the arguments become the value that they are JSON text of."""
    calls = []
    for one in told if isinstance(told, list) else ():
        if not isinstance(one, dict):
            continue
        inner = one["function"] if isinstance(one.get("function"), dict) else one
        if isinstance(inner.get("name"), str):
            calls.append(ToolCall(inner["name"], _parsed(inner.get("arguments", {}))))
    return tuple(calls)


def _parsed(arguments: Any) -> Any:
    """Return arguments as a value; text that is not JSON, which a test may want to see handled, as it is."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return loads(arguments)
    except ValueError:
        return arguments


def _as_written(
    item: Mapping[str, Any], content: Any, calls: tuple[ToolCall, ...], finish: str, usage: Any
) -> Written:
    told = text_of(content) + "".join(dumps([call.name, call.arguments]).decode() for call in calls)
    ended = "tool_calls" if calls and finish == "stop" else finish
    if content is None and not calls:
        content = ""
    return Written(content, ended, _usage(item, usage, told), calls)


def _usage(item: Mapping[str, Any], usage: Any, told: str) -> Usage:
    if isinstance(usage, dict):
        read = usage.get("prompt_tokens", usage.get("input_tokens"))
        wrote = usage.get("completion_tokens", usage.get("output_tokens"))
        if type(read) is int and type(wrote) is int and read >= 0 and wrote >= 0:
            return Usage(read, wrote)
    return Usage(sum(map(estimate, prompt_of(item).texts)), estimate(told))
