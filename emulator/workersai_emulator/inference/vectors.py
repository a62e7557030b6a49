"""Placeholder vectors: texts that share words are near each other, in any script, the same on every machine.

Fact: `poll.item`. The numbers stand in for a model's. They are good enough for a search over a few thousand
passages to find the right one, and for a test to compare; they know nothing of meaning beyond words.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from workersai_contracts import ModelCard, model, models
from workersai_emulator.inference.features import features
from workersai_emulator.inference.hashing import SPREAD, scramble

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

#: What is assumed of a model whose card has no token limit.
UNPUBLISHED_TOKENS: Final = 4096
#: How many texts are computed together, and how many characters at most (one text may be longer).
CHUNK_TEXTS: Final = 128
CHUNK_CHARACTERS: Final = 1 << 18

#: How much of the model's own comes to what is the text's, by the sums of their components.
_OWN_SHARE: Final = 1 / 16


@dataclass(frozen=True, slots=True, eq=False)
class Embedder:
    """One model's way from texts to vectors.

    `dimensions` is the length of a vector; only the first `words` words of a text count. Two models put the
    same features into different buckets (`seed`). `own`, whole numbers none of which is 0, is added to every
    vector in the proportion 1 to `dilution`: so an empty text has a vector, no component is 0, and texts that
    share nothing are a little alike, as they are with real models.
    """

    name: str
    dimensions: int
    words: int
    seed: np.uint32
    own: NDArray[np.float64]
    dilution: float

    @classmethod
    def named(cls, name: str, dimensions: int, words: int) -> Embedder:
        """Return the embedder of a name, from which all that is arbitrary in it comes."""
        drawn = hashlib.shake_256(name.encode()).digest(4 + dimensions)
        own = np.frombuffer(drawn, np.int8, offset=4).astype(np.float64) * 2 + 1
        dilution = float(round(np.abs(own).sum() / _OWN_SHARE))
        return cls(name, dimensions, words, np.uint32(int.from_bytes(drawn[:4], "little")), own, dilution)

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float16]:
        """Return vectors of length 1 for texts that are few enough to be computed together, one row each.

        A feature adds its weight to one component, or takes it off. Then each component becomes the square
        root of its share in the sum of all, with its sign: that damps what is often repeated, and makes the
        length 1. Up to the square root all numbers are whole multiples of 1/2 that a double holds, so every
        machine gets the same.
        """
        found = features(texts, self.words)
        hashes = scramble(found.hash ^ self.seed, SPREAD)
        component = (hashes >> np.uint32(16)) * np.uint32(self.dimensions) >> np.uint32(16)
        signed = np.where(hashes & np.uint32(1), found.weight, -found.weight)
        place = found.row * self.dimensions + component
        sums = np.bincount(place, signed, len(texts) * self.dimensions).astype(np.float64, copy=False)
        sums = sums.reshape(len(texts), self.dimensions)
        total = np.abs(sums).sum(axis=1, keepdims=True)
        sums *= self.dilution
        sums += self.own * np.maximum(total, 1)
        shares = np.abs(sums)
        shares /= shares.sum(axis=1, keepdims=True)
        return np.copysign(np.sqrt(shares, out=shares), sums, out=shares).astype(np.float16)


def words_limit(card: ModelCard) -> int:
    """Return how many words of a text a model takes in: its token limit, at 9 tokens to 7 words."""
    return (card.max_input_tokens or UNPUBLISHED_TOKENS) * 7 // 9


@cache
def embedder(name: str) -> Embedder:
    """Return the embedder of a model of the catalogue; ValueError if it is not there or embeds nothing."""
    card = model(name)
    if card is None or card.dimensions is None:
        known = ", ".join(one.name for one in models().values() if one.dimensions)
        what = "not in the catalogue" if card is None else f"a {card.task} model"
        raise ValueError(f"{name!r} is {what}, so it has no vectors; models that have: {known}")
    return Embedder.named(name, card.dimensions, words_limit(card))


def chunks(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Cut texts into runs to compute together: 128, or fewer that are long, so that memory stays bounded.

    The vectors don't depend on where the cuts are.
    """
    start, characters = 0, 0
    for position, text in enumerate(texts):
        characters += len(text)
        full = position - start == CHUNK_TEXTS or characters > CHUNK_CHARACTERS
        if full and position > start:
            yield texts[start:position]
            start, characters = position, len(text)
    if start < len(texts):
        yield texts[start:]


def embed(model: str, texts: Iterable[str]) -> NDArray[np.float16]:
    """Return the vectors that the emulator answers for texts, shape (texts, dimensions), each of length 1.

    So a test can say what a reply must be without asking for it. `model` is a name such as `@cf/baai/bge-m3`;
    raises ValueError for one that has no vectors, TypeError for a single string in place of several.
    """
    if isinstance(texts, str):
        raise TypeError("embed takes a list of texts; put a single one in brackets")
    chosen = embedder(model)
    rows = [chosen.vectors(chunk) for chunk in chunks(list(texts))]
    return np.concatenate(rows) if rows else np.zeros((0, chosen.dimensions), np.float16)
