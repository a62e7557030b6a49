"""What a text is made of, as hashes with weights: words, pairs of words, and letters in context.

Two texts are alike as far as they share features. Weights are small multiples of 1/2, so sums of them are
exact in whatever order they are taken; vectors and scores rest on that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from workersai_emulator.inference.characters import KINDS, LETTER, SEPARATOR, WORD, code_points
from workersai_emulator.inference.hashing import CHAIN, LEFT, MIDDLE, RIGHT, SPREAD, Hashes, scramble

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_STOP_WORDS = """
    a about also am an and are as at be been but by can could did do does for from had has have he her
    his how i if in into is it its may me my no not of on or s she should so t than that the their them
    then there these they this those to was we were what when where which who whom whose why will with
    would you your
"""
#: Words that say little of what a text is about; they count a quarter.
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())
STOP_WEIGHT: Final = 1.0
WORD_WEIGHT: Final = 4.0

#: A text of so many words is at most so many times as long; what is beyond is not even looked at.
CHARACTERS_A_WORD: Final = 8


@dataclass(frozen=True, slots=True)
class Features:
    """The features of several texts as parallel arrays; a feature that occurs twice is listed twice.

    `row` is the number of the text, `hash` says which feature it is, `weight` how much it counts (0 for what
    is cut off). Words come first (four hashes each), then pairs, then letters, each in the order of the
    texts.
    """

    row: NDArray[np.intp]
    hash: Hashes
    weight: NDArray[np.float64]


def features(texts: Sequence[str], words: int) -> Features:
    """Return the features of texts; only the first `words` words of a text count.

    A word has four hashes that weigh half of it each, so that words rarely meet in all of their buckets. A
    pair weighs what the lighter of its words weighs, and a letter what its word does. What is a word by
    itself (an ideograph, an emoji) has no letters.
    """
    points = code_points(texts, words * CHARACTERS_A_WORD)
    row = np.cumsum(points == 0) - 1
    kind = KINDS[points]
    begins = _word_begins(kind)
    at = np.flatnonzero(begins)
    if not at.size:
        return Features(at, np.zeros(0, np.uint32), np.zeros(0))
    letter = _letter_hashes(points, kind)
    word, word_row = np.add.reduceat(letter, at, dtype=np.uint32), row[at]
    weight = _word_weights(word, word_row, words)
    pair = scramble(word[1:] * CHAIN + word[:-1], RIGHT)
    pair_weight = np.minimum(weight[1:], weight[:-1]) * (word_row[1:] == word_row[:-1])
    letter_weight = weight[np.cumsum(begins) - 1] * (kind == LETTER)
    places = [scramble(word ^ salt, CHAIN) for salt in (LEFT, MIDDLE, RIGHT, SPREAD)]
    return Features(
        np.concatenate([*[word_row] * len(places), word_row[1:], row]),
        np.concatenate([*places, pair, letter]),
        np.concatenate([*[weight / 2] * len(places), pair_weight, letter_weight]),
    )


def _word_begins(kind: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Say where a word begins: at what is a word by itself, and at a letter that follows no letter."""
    letter = kind == LETTER
    begins: NDArray[np.bool_] = kind == WORD
    begins[1:] |= letter[1:] & ~letter[:-1]
    return begins


def _letter_hashes(points: Hashes, kind: NDArray[np.uint8]) -> Hashes:
    """Hash every code point, a letter together with the letters beside it; what separates words is 0.

    A word's hash is the sum over its letters: words that share most of their trigrams still differ as words.
    """
    letter = kind == LETTER
    beside = points * letter
    hashes = points * MIDDLE
    hashes[1:-1] += (beside[:-2] * LEFT + beside[2:] * RIGHT) * letter[1:-1]
    in_words: Hashes = scramble(hashes, SPREAD) * (kind != SEPARATOR)
    return in_words


def _word_weights(word: Hashes, row: NDArray[np.intp], words: int) -> NDArray[np.float64]:
    """Weigh words: a stop word little, and a word not at all that has `words` words before it in its text."""
    weight = np.where(_stop_hashes()[_slot(word)] == word, STOP_WEIGHT, WORD_WEIGHT)
    weight[words:][row[words:] == row[:-words]] = 0
    return weight


def _slot(word: Hashes) -> Hashes:
    """Return the top 12 bits of words' hashes."""
    return word >> np.uint32(20)


@cache
def _stop_hashes() -> Hashes:
    """Return the stop words' hashes, each at its slot of 4,096 (no two of them share one); 0 elsewhere."""
    table = np.zeros(1 << 12, np.uint32)
    for stop_word in STOP_WORDS:
        points = code_points([stop_word], len(stop_word))
        word = np.add.reduce(_letter_hashes(points, KINDS[points]), dtype=np.uint32, keepdims=True)
        table[_slot(word)] = word
    return table
