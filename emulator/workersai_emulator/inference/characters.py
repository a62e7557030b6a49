"""Texts as code points, and what each code point is in a text: between words, a letter, or a word of its own.

The kinds are listed here instead of asked of `unicodedata`, whose answers change with the version of Python.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

SEPARATOR: Final = 0
LETTER: Final = 1
WORD: Final = 2

#: First and last code point of what stands between words.
_SEPARATORS = (
    (0x0000, 0x002F),  # controls, blank, ASCII punctuation up to the digits
    (0x003A, 0x0040),
    (0x005B, 0x0060),
    (0x007B, 0x00A9),
    (0x00AB, 0x00B4),  # Latin-1 punctuation, around ª, µ and º
    (0x00B6, 0x00B9),
    (0x00BB, 0x00BF),
    (0x00D7, 0x00D7),  # multiplication sign
    (0x00F7, 0x00F7),  # division sign
    (0x060C, 0x060C),  # Arabic comma, semicolon and question mark, full stop
    (0x061B, 0x061F),
    (0x06D4, 0x06D4),
    (0x0964, 0x0965),  # danda
    (0x2000, 0x206F),  # general punctuation
    (0x3000, 0x303F),  # CJK punctuation
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFF00, 0xFF0F),  # full-width punctuation
)
#: First and last code point of what needs no neighbours to be a word.
_WORDS = (
    (0x2190, 0x2BFF),  # arrows, mathematics, boxes, symbols
    (0x2E80, 0x2FFF),  # CJK radicals
    (0x3040, 0x312F),  # kana, bopomofo
    (0x31A0, 0x9FFF),  # CJK ideographs
    (0xF900, 0xFAFF),  # compatibility ideographs
    (0x1F000, 0x1FAFF),  # emoji and pictographs
    (0x20000, 0x3FFFF),  # further ideographs
)


def _kinds() -> NDArray[np.uint8]:
    kinds = np.full(0x110000, LETTER, np.uint8)
    for ranges, kind in ((_SEPARATORS, SEPARATOR), (_WORDS, WORD)):
        for first, last in ranges:
            kinds[first : last + 1] = kind
    return kinds


#: The kind of every code point.
KINDS: Final = _kinds()


def code_points(texts: Sequence[str], longest: int) -> NDArray[np.uint32]:
    """Return all texts one behind the other, folded, each led in by a NUL; a blank ends the last.

    Only the first `longest` characters of a text are looked at, so that a text of megabytes costs what a page
    does. Folding (NFKC, then case) makes "ﬁne" and "Fine" the same word. It adds no NUL, so one pass does for
    all texts together; a NUL inside a text becomes a blank.
    """
    joined = "".join(["\0" + text[:longest].replace("\0", " ") for text in texts]) + " "
    folded = joined.lower() if joined.isascii() else unicodedata.normalize("NFKC", joined).casefold()
    return np.frombuffer(folded.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint32, copy=False)
