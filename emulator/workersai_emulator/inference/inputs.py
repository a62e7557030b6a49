"""What an item asks for, read so that nothing the service's validator lets through can surprise.

The validator is lenient (Fact: `input.semantics`): a text may be a number, a list empty, a context without
its text. Here every value has a text: a string its own, null and what is missing the empty one, anything else
its JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from workersai_emulator.json_text import dumps

if TYPE_CHECKING:
    from workersai_contracts import ModelCard

Item = Mapping[str, Any]

#: The members of an item that hold texts, in the order of their vectors, where it is not `text` alone.
_TEXT_MEMBERS = {"@cf/qwen/qwen3-embedding-0.6b": ("queries", "documents", "text")}

#: Kinds of answers whose texts are in `text`, and where the texts of the others are, if they have any.
_IN_TEXT: Final = frozenset({"embedding", "translation"})
_ASKING: Final = {
    "labels": ("text",),
    "summary": ("input_text",),
    "description": ("prompt", "question"),
    "image": ("prompt",),
    "speech": ("text", "prompt"),
}
#: How many texts take as long as an image or a recording does.
FILE_COST: Final = 8
#: A text counts once more for each so many of its characters.
CHARACTERS_OF_A_TEXT: Final = 8192


def text_of(value: Any) -> str:
    """Return the text of any JSON value."""
    if isinstance(value, str):
        return value
    return "" if value is None else dumps(value).decode()


def whole_number(value: Any) -> int | None:
    """Return a number from 1 on that JavaScript calls an integer (2.0 is one), None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value >= 1 and (isinstance(value, int) or value.is_integer()) else None


def has_contexts(card: ModelCard, item: Item) -> bool:
    """Say whether an item lists contexts, which bge-m3 takes in place of texts. Fact: `batch.items`."""
    return card.answers == "reranking" or (
        card.name == "@cf/baai/bge-m3" and isinstance(item.get("contexts"), list)
    )


def ranks(card: ModelCard, item: Item) -> bool:
    """Say whether an item asks for scores: a reranker's, or bge-m3's with a query beside its contexts."""
    return card.answers == "reranking" or (has_contexts(card, item) and item.get("query") is not None)


def contexts_of(item: Item) -> list[str]:
    """Return the texts of an item's contexts."""
    contexts = item.get("contexts")
    if not isinstance(contexts, list):
        return []
    return [text_of(context.get("text") if isinstance(context, dict) else context) for context in contexts]


def texts_of(card: ModelCard, item: Item) -> list[str]:
    """Return all texts that a model reads for an item: a query before its contexts, messages in order."""
    if card.writes_text:
        return prompt_of(item).texts
    if ranks(card, item):
        return [text_of(item.get("query")), *contexts_of(item)]
    if has_contexts(card, item):
        return contexts_of(item)
    if card.answers not in _IN_TEXT:
        members = _ASKING.get(card.answers, ())
        return [text_of(item[member]) for member in members if isinstance(item.get(member), str)]
    return [text_of(value) for value in _text_values(card, item)]


def cost(card: ModelCard, item: Item) -> int:
    """Return how many texts a model works on for an item: vectors, scores, or the one text that it writes.

    A file that it makes counts as several, and so does a long text. Quick to ask, so that a caller can cut a batch
    into slices; 0 for a list without texts.
    """
    if has_contexts(card, item):
        contexts = item.get("contexts")
        return sum(map(_cost_of_text, contexts)) if isinstance(contexts, list) else 0
    if card.answers == "embedding":
        return sum(map(_cost_of_text, _text_values(card, item)))
    return FILE_COST if card.answers in ("image", "speech") else 1


def _cost_of_text(value: Any) -> int:
    text = value.get("text") if isinstance(value, dict) else value
    return 1 + len(text) // CHARACTERS_OF_A_TEXT if isinstance(text, str) else 1


def _text_values(card: ModelCard, item: Item) -> Sequence[Any]:
    members = _TEXT_MEMBERS.get(card.name)
    if members is None:
        return listed(item.get("text"))
    return [value for member in members if item.get(member) is not None for value in listed(item[member])]


def listed(value: Any) -> Sequence[Any]:
    """Return the members of a list, or anything else as the only one."""
    return value if isinstance(value, list) else [value]


class Prompt(NamedTuple):
    """What a text model is told: all texts in order, and the one that it is to answer."""

    texts: list[str]
    question: str


def prompt_of(item: Item) -> Prompt:
    """Read a prompt, a list of messages, or the `input` of the Responses form (Fact: `batch.gpt-oss`).

    The question is what the user said last, or the last message if none is a user's. `instructions`, of the
    Responses form, are told before everything else.
    """
    messages = next((item[key] for key in ("messages", "input") if isinstance(item.get(key), list)), None)
    told = item.get("instructions")
    before = [told] if isinstance(told, str) else []
    if messages is None:
        text = text_of(item.get("prompt", item.get("input")))
        return Prompt([*before, text], text)
    texts = [_message_text(message) for message in messages]
    asked = [
        text
        for message, text in zip(messages, texts, strict=True)
        if isinstance(message, dict) and message.get("role") == "user"
    ]
    return Prompt([*before, *texts], (asked or texts or [""])[-1])


def _message_text(message: Any) -> str:
    """Return the text of a message, whose content is a string, a part, or parts, some of them images."""
    if not isinstance(message, dict):
        return text_of(message)
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = [part.get("text") if isinstance(part, dict) else part for part in listed(content)]
    return "\n".join(text_of(part) for part in parts if part is not None)
