"""Half-precision numbers as JSON text, at more than a gigabyte a second.

There are only 65,536 half-precision numbers, so the text of each is looked up. Vectors are most of what a
finished batch sends: 1,024 numbers take some 20 kB.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Room for the longest text and its comma (24 bytes); numpy copies cells of 32 bytes fastest.
_CELL = 32
_CELL_TYPE = np.dtype(f"V{_CELL}")


@dataclass(frozen=True, slots=True)
class _Texts:
    """The text of every half-precision number with a comma behind it, by the number's 16 bits."""

    cells: NDArray[np.void]
    lengths: NDArray[np.intp]


@cache
def _texts() -> _Texts:
    """Write out all numbers, once and when first needed: it takes some 30 ms.

    By their bits, the numbers from 0 up to the greatest come first, then what is not finite, then the same
    below 0.
    """
    finite = np.arange(0x7C00, dtype=np.uint16).view(np.float16)
    numbers = repr(finite.tolist())[1:-1].split(", ")
    nulls = ["null,"] * (0x8000 - finite.size)
    texts = [*(f"{number}," for number in numbers), *nulls, *(f"-{number}," for number in numbers), *nulls]
    table = np.array(texts, f"S{_CELL}")
    return _Texts(table.view(_CELL_TYPE), np.fromiter(map(len, texts), np.intp))


def rows_json(vectors: NDArray[np.float16]) -> list[memoryview]:
    """Return the JSON text of each row of `vectors`, shape (rows, dimensions), at least one dimension.

    A number is written as Python writes the double of the same value (0.73974609375), which reads back as
    exactly that value; what is not finite, and so not JSON, as null. The rows are views of one buffer:
    whoever keeps one row keeps all.
    """
    rows, _ = vectors.shape
    if not rows:
        return []
    texts = _texts()
    bits = np.ascontiguousarray(vectors).view(np.uint16).ravel().astype(np.intp)
    lengths = texts.lengths.take(bits)
    ends = np.cumsum(lengths).reshape(vectors.shape)
    ends += np.arange(1, rows + 1)[:, np.newaxis]  # each row has a bracket in front of it
    row_ends = ends[:, -1]
    row_starts = np.concatenate(([0], row_ends[:-1]))
    buffer = np.empty(int(row_ends[-1]) + _CELL, np.uint8)
    # A cell at every byte of the buffer: cells are longer than their texts, and each overwrites the
    # padding of the one before it.
    anywhere = np.ndarray(buffer.size - _CELL + 1, _CELL_TYPE, buffer, strides=(1,))
    anywhere[ends.ravel() - lengths] = texts.cells.take(bits)
    buffer[row_starts] = ord("[")
    buffer[row_ends - 1] = ord("]")  # in place of the last comma
    whole = buffer.data
    return [whole[start:end] for start, end in zip(row_starts.tolist(), row_ends.tolist(), strict=True)]
