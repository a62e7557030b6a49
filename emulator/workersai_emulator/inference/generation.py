"""What a text model writes: a text, JSON mode's value, or tool calls, before it is put into any form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from workersai_emulator.inference.inputs import prompt_of, text_of, whole_number
from workersai_emulator.inference.json_mode import object_for, schema_wanted
from workersai_emulator.inference.text import before_stop, first_words, placeholder
from workersai_emulator.inference.tokens import Usage, estimate
from workersai_emulator.inference.tools import ToolCall, calls_for
from workersai_emulator.json_text import dumps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workersai_contracts import ModelCard


#: What a guard says of every conversation, since programs read that word and no other. Fact: `models.guard`.
_SAFE: Final = "safe"
_VERDICT: Final = {"safe": True, "categories": []}


class Written(NamedTuple):
    """What a model has written: a text, or JSON mode's value, or None beside tool calls.

    `finish` is why it ended, in OpenAI's words: `stop`, `length` at the token limit, `tool_calls`.
    """

    content: Any
    finish: str
    usage: Usage
    calls: tuple[ToolCall, ...] = ()

    @property
    def text(self) -> str:
        """The content as a text: JSON for a value of JSON mode, nothing beside tool calls."""
        return text_of(self.content)

    @property
    def whole(self) -> bool:
        """Whether the token limit has cut nothing off."""
        return self.finish != "length"


def written(card: ModelCard, item: Mapping[str, Any]) -> Written:
    """Return tool calls, JSON mode's value, or the model's name and the beginning of the question.

    Only a text is cut, at a stop sequence and at the item's token limit. Raises CannotMeet where JSON mode's
    schema has no value. Facts: `sync.text-generation`, `sync.json-mode`, `sync.tool-calls`.
    """
    prompt = prompt_of(item)
    read = sum(map(estimate, prompt.texts))
    calls = calls_for(item, prompt.question)
    if calls:
        told = dumps([{"name": call.name, "arguments": call.arguments} for call in calls]).decode()
        return Written(None, "tool_calls", Usage(read, estimate(told)), calls)
    text = _SAFE if "guard" in card.name else placeholder(card, prompt.question)
    schema = schema_wanted(item)
    if schema is not None:
        value = _VERDICT if text is _SAFE else object_for(schema, text)
        return Written(value, "stop", Usage(read, estimate(text_of(value))))
    text = before_stop(text, _stops(item))
    limit = token_limit(item)
    if limit is None:
        return Written(text, "stop", Usage(read, estimate(text)))
    shown = first_words(text, limit)
    tokens = min(estimate(shown), limit)
    return Written(shown, "stop" if shown == text else "length", Usage(read, tokens))


def _stops(item: Mapping[str, Any]) -> list[str]:
    stop = item.get("stop")
    return [one for one in (stop if isinstance(stop, list) else [stop]) if isinstance(one, str)]


def token_limit(item: Mapping[str, Any]) -> int | None:
    """Return the limit that an item sets, under the names that the three forms of request have for it."""
    limits = map(whole_number, map(item.get, ("max_tokens", "max_completion_tokens", "max_output_tokens")))
    return next((limit for limit in limits if limit is not None), None)
