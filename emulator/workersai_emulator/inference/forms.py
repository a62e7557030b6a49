"""The forms in which text generation answers: Workers AI's own, OpenAI's chat completion and response object."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final, Literal

from workersai_emulator.inference.inputs import text_of, whole_number
from workersai_emulator.inference.media import members_of
from workersai_emulator.inference.tokens import Usage
from workersai_emulator.json_text import dumps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workersai_contracts import ModelCard
    from workersai_emulator.inference.generation import Written
    from workersai_emulator.inference.tools import ToolCall

#: `native` is the model's own form: that of its card.
TextForm = Literal["native", "chat", "responses"]
Shape = Literal["response", "choices", "output"]

#: The time in every reply that has one, 2025-01-01T00:00:00Z: the same request gets the same bytes.
CREATED: Final = 1_735_689_600
#: More choices than this are not given.
MOST_CHOICES: Final = 128


def shape_of(card: ModelCard, item: Mapping[str, Any], form: TextForm) -> Shape:
    """Return what the answer is made of. Facts: `models.choices`, `sync.gpt-oss`.

    gpt-oss by itself answers a response object to `input`, and a chat completion to messages or a prompt.
    """
    if form != "native":
        return "choices" if form == "chat" else "output"
    if card.answers == "output":
        chats = "input" not in item and ("messages" in item or "prompt" in item)
        return "choices" if chats else "output"
    return "choices" if card.answers == "choices" else "response"


def put(
    card: ModelCard, item: Mapping[str, Any], new: Written, shape: Shape, choices: int = 1
) -> dict[str, Any]:
    """Put what was written into a form; only a chat completion has several choices, equal ones."""
    if shape == "choices":
        return chat_completion(card, item, new, choices)
    return native(card, new) if shape == "response" else response(card, item, new)


def native(card: ModelCard, new: Written) -> dict[str, Any]:
    """Return Workers AI's own form, without tool calls where the card has none.

    Tool calls are none, or an empty one in JSON mode; beside real ones the response is null. Facts:
    `poll.json-mode`, `sync.tool-calls`.
    """
    if "tool_calls" not in members_of(card):
        return {"response": new.content, "usage": new.usage.as_json()}
    tool_calls = native_calls(new.calls)
    if not tool_calls and not isinstance(new.content, str):
        tool_calls = [{}]
    return {"response": new.content, "tool_calls": tool_calls, "usage": new.usage.as_json()}


def native_calls(calls: tuple[ToolCall, ...]) -> list[dict[str, Any]]:
    """Return tool calls as Workers AI has them: the arguments are a value."""
    return [{"name": call.name, "arguments": call.arguments} for call in calls]


def chat_completion(card: ModelCard, item: Mapping[str, Any], new: Written, count: int = 1) -> dict[str, Any]:
    """Return OpenAI's chat completion, the form of newer models, with so many equal choices."""
    mark = fingerprint(card, item)
    choices = [
        {
            "index": index,
            "message": message(mark, new, index),
            "finish_reason": new.finish,
            "logprobs": None,
        }
        for index in range(count)
    ]
    return {**completion_head(card, mark), "choices": choices, "usage": usage_of(new, count).as_json()}


def completion_head(card: ModelCard, mark: str, kind: str = "chat.completion") -> dict[str, Any]:
    """Return what a chat completion, or each chunk of one, begins with; `mark` is its fingerprint."""
    return {
        "id": f"chatcmpl-{mark}",
        "object": kind,
        "created": CREATED,
        "model": card.name,
    }


def choices_wanted(item: Mapping[str, Any]) -> int:
    """Return how many choices an item asks for, `n`: one if it doesn't."""
    return min(whole_number(item.get("n")) or 1, MOST_CHOICES)


def usage_of(new: Written, choices: int) -> Usage:
    """Return the usage of several choices: the prompt is read once, and each choice is written."""
    return Usage(new.usage.prompt_tokens, new.usage.completion_tokens * choices)


def message(mark: str, new: Written, index: int) -> dict[str, Any]:
    """Return the message of one choice; it has no content beside tool calls. Fact: `models.choices`."""
    content = None if new.calls and new.content is None else new.text
    told = {"role": "assistant", "content": content, "refusal": None}
    return {**told, "tool_calls": chat_calls(mark, new, index)} if new.calls else told


def chat_calls(mark: str, new: Written, index: int) -> list[dict[str, Any]]:
    """Return tool calls as OpenAI has them: the arguments are JSON text."""
    return [
        {
            "id": f"chatcmpl-tool-{mark[:24]}{index:04x}{number:04x}",
            "type": "function",
            "function": {"name": call.name, "arguments": arguments_text(call)},
        }
        for number, call in enumerate(new.calls)
    ]


def arguments_text(call: ToolCall) -> str:
    """Return a call's arguments as JSON text; a rule's output may have them as text already."""
    return text_of(call.arguments)


def response(card: ModelCard, item: Mapping[str, Any], new: Written) -> dict[str, Any]:
    """Return OpenAI's response object, the form of gpt-oss; it has its own names for the usage."""
    status, mark = "completed" if new.whole else "incomplete", fingerprint(card, item)
    return {
        **response_head(card, item, mark, status),
        "incomplete_details": None if new.whole else {"reason": "max_output_tokens"},
        "output": output_items(mark, new),
        "usage": response_usage(new.usage),
    }


def response_head(card: ModelCard, item: Mapping[str, Any], mark: str, status: str) -> dict[str, Any]:
    """Return a response object without an output. What the official SDKs' types require is there."""
    tools, parallel = item.get("tools"), item.get("parallel_tool_calls")
    return {
        "id": f"resp_{mark}",
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": item.get("instructions"),
        "model": card.name,
        "output": [],
        "parallel_tool_calls": parallel if isinstance(parallel, bool) else True,
        "tool_choice": item.get("tool_choice") or "auto",
        "tools": tools if isinstance(tools, list) else [],
        "usage": None,
    }


def output_items(mark: str, new: Written) -> list[dict[str, Any]]:
    """Return the items of a response's output: a message with the text, or the calls of tools."""
    status = "completed" if new.whole else "incomplete"
    items: list[dict[str, Any]] = []
    if new.content is not None or not new.calls:
        part = {"type": "output_text", "text": new.text, "annotations": []}
        items.append(
            {"id": f"msg_{mark}", "type": "message", "status": status, "role": "assistant", "content": [part]}
        )
    for number, call in enumerate(new.calls):
        items.append(
            {
                "id": f"fc_{mark[:28]}{number:04x}",
                "type": "function_call",
                "status": "completed",
                "call_id": f"call_{mark[:28]}{number:04x}",
                "name": call.name,
                "arguments": arguments_text(call),
            }
        )
    return items


def response_usage(usage: Usage) -> dict[str, Any]:
    """Return the usage under a response object's names; SDKs look into the details without asking."""
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total_tokens,
    }


def fingerprint(card: ModelCard, item: Mapping[str, Any]) -> str:
    """Return 32 hex digits that the model and the item decide."""
    return hashlib.sha256(card.name.encode() + b"\0" + dumps(dict(item))).hexdigest()[:32]
