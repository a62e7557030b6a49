"""Placeholder text: what text models and translators answer, plain to see that no model wrote it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from workersai_emulator.inference.inputs import prompt_of, text_of, whole_number
from workersai_emulator.inference.json_mode import object_for, schema_wanted
from workersai_emulator.inference.tokens import Usage, estimate
from workersai_emulator.json_text import dumps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workersai_contracts import ModelCard

#: The time in every reply that has one, 2025-01-01T00:00:00Z: the same request gets the same bytes.
CREATED: Final = 1_735_689_600
#: How much of a question a placeholder repeats.
EXCERPT_CHARACTERS: Final = 160


@dataclass(frozen=True, slots=True)
class Written:
    """What a model has written: a text, or JSON mode's value; whole, or cut at the token limit."""

    content: Any
    whole: bool
    usage: Usage

    @property
    def text(self) -> str:
        """The content as a text, JSON for a value of JSON mode."""
        return text_of(self.content)


def translation(item: Mapping[str, Any]) -> str:
    """Return the text with the language in front that it was to be translated to: `[fr] Good morning`."""
    return f"[{text_of(item.get('target_lang'))}] {text_of(item.get('text'))}"


def written(card: ModelCard, item: Mapping[str, Any]) -> Written:
    """Return the model's name and the beginning of the question, within the item's token limit.

    In JSON mode that text fills an object of the form asked for, which is not cut.
    """
    prompt = prompt_of(item)
    read = sum(map(estimate, prompt.texts))
    text = f"[placeholder by {card.name}] {excerpt(prompt.question)}".rstrip()
    schema = schema_wanted(item)
    if schema is not None:
        value = object_for(schema, text)
        return Written(value, True, Usage(read, estimate(text_of(value))))
    limit = _token_limit(item)
    shown = text if limit is None else first_words(text, limit)
    tokens = estimate(shown) if limit is None else min(estimate(shown), limit)
    return Written(shown, shown == text, Usage(read, tokens))


def excerpt(text: str) -> str:
    """Return the beginning of a text on one line, cut between words where it can be."""
    words = text[: EXCERPT_CHARACTERS + 1].split()
    if len(text) <= EXCERPT_CHARACTERS:
        return " ".join(words)
    return " ".join(words[:-1] or words) + "…"


def first_words(text: str, tokens: int) -> str:
    """Return as many words of a text as fit into so many tokens, by the estimate; one at least."""
    words = text.split(" ")
    kept = len(words)
    while kept > 1 and estimate(" ".join(words[:kept])) > tokens:
        kept -= 1
    return " ".join(words[:kept])


def _token_limit(item: Mapping[str, Any]) -> int | None:
    """Return the limit that an item sets, under the names that the three forms of request have for it."""
    limits = map(whole_number, map(item.get, ("max_tokens", "max_completion_tokens", "max_output_tokens")))
    return next((limit for limit in limits if limit is not None), None)


def native(written: Written) -> dict[str, Any]:
    """Return Workers AI's own form. Tool calls are none, or an empty one in JSON mode.

    Fact: `poll.json-mode`.
    """
    tool_calls: list[dict[str, Any]] = [] if isinstance(written.content, str) else [{}]
    return {"response": written.content, "tool_calls": tool_calls, "usage": written.usage.as_json()}


def chat_completion(card: ModelCard, item: Mapping[str, Any], written: Written) -> dict[str, Any]:
    """Return OpenAI's chat completion, the form of newer models."""
    message = {"role": "assistant", "content": written.text}
    finish_reason = "stop" if written.whole else "length"
    return {
        "id": f"chatcmpl-{_fingerprint(card, item)}",
        "object": "chat.completion",
        "created": CREATED,
        "model": card.name,
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": written.usage.as_json(),
    }


def response(card: ModelCard, item: Mapping[str, Any], written: Written) -> dict[str, Any]:
    """Return OpenAI's response object, the form of gpt-oss; it has its own names for the usage."""
    fingerprint = _fingerprint(card, item)
    status = "completed" if written.whole else "incomplete"
    return {
        "id": f"resp_{fingerprint}",
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "incomplete_details": None if written.whole else {"reason": "max_output_tokens"},
        "model": card.name,
        "output": [
            {
                "id": f"msg_{fingerprint}",
                "type": "message",
                "status": status,
                "role": "assistant",
                "content": [{"type": "output_text", "text": written.text, "annotations": []}],
            }
        ],
        "usage": {
            "input_tokens": written.usage.prompt_tokens,
            "output_tokens": written.usage.completion_tokens,
            "total_tokens": written.usage.total_tokens,
        },
    }


def _fingerprint(card: ModelCard, item: Mapping[str, Any]) -> str:
    """Return 32 hex digits that the model and the item decide."""
    return hashlib.sha256(card.name.encode() + b"\0" + dumps(dict(item))).hexdigest()[:32]
