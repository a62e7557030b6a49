"""The `input` of OpenAI's embeddings: a text, or the ids of its tokens, or a list of either."""

from __future__ import annotations

from typing import Any, NamedTuple

from workersai_emulator.inference.inputs import text_of
from workersai_emulator.inference.tokens import estimate


class Text(NamedTuple):
    """One text to embed, and how many tokens it has."""

    text: str
    tokens: int


def read_texts(given: Any) -> list[Text]:
    """Read `input`: a text, or the ids of its tokens, or a list of either."""
    if not isinstance(given, list):
        return [_read_text(given)]
    if is_tokens(given):
        return [_read_text(given)]
    return [_read_text(one) for one in given]


def is_tokens(given: Any) -> bool:
    """Say whether a value is the ids of a text's tokens: whole numbers from 0 on, at least one."""
    return isinstance(given, list) and bool(given) and all(type(one) is int and one >= 0 for one in given)


def _read_text(given: Any) -> Text:
    """Read one text. There is no tokenizer here, so token ids stand for themselves: equal ids, equal vectors."""
    if is_tokens(given):
        return Text(" ".join(map(str, given)), len(given))
    text = text_of(given)
    return Text(text, estimate(text))
