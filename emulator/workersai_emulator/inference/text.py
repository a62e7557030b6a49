"""Placeholder texts, plain to see that no model wrote them, and how texts are cut."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from workersai_emulator.inference.inputs import text_of
from workersai_emulator.inference.tokens import estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workersai_contracts import ModelCard

#: How much of a question a placeholder repeats.
EXCERPT_CHARACTERS: Final = 160

_WORD_AND_BLANKS_BEFORE = re.compile(r"\s*\S+|\s+$")


def placeholder(card: ModelCard, about: str) -> str:
    """Return what a model says about a text: its own name, and the text's beginning."""
    return f"[placeholder by {card.name}] {excerpt(about)}".rstrip()


def translation(text: Any, language: Any) -> str:
    """Return a text with the language in front that it was to be translated to: `[fr] Good morning`."""
    return f"[{text_of(language)}] {text_of(text)}"


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


def within(text: str, tokens: int | None) -> str:
    """Return a text, or its first words where there is a token limit."""
    return text if tokens is None else first_words(text, tokens)


def before_stop(text: str, stops: Sequence[str]) -> str:
    """Return the text up to the first place where one of the stop sequences begins."""
    ends = [end for end in map(text.find, filter(None, stops)) if end >= 0]
    return text[: min(ends)] if ends else text


def pieces(text: str) -> list[str]:
    """Cut a text into its words, each with the blanks before it, as a stream sends them; joined it is the same."""
    return _WORD_AND_BLANKS_BEFORE.findall(text)
