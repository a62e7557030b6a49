"""Placeholder scores: how much of a query a context holds, between 0 and 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workersai_emulator.inference.features import features
from workersai_emulator.inference.vectors import chunks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def scores(query: str, contexts: Sequence[str], words: int) -> NDArray[np.float64]:
    """Return a score for each context; only the first `words` words of a text count.

    The share s of the query's features (by weight) that the context has too, made more decided by s³ / (s³ +
    (1-s)³): products and a quotient only, because libraries differ in the last digit of exp and pow. A
    feature weighs what it weighs where it first occurs in the query.
    """
    asked = features([query], words)
    wanted, first = np.unique(asked.hash, return_index=True)
    weight = asked.weight[first]
    if not weight.sum():
        return np.zeros(len(contexts))
    found = [_found_weight(wanted, weight, chunk, words) for chunk in chunks(contexts)]
    share = np.concatenate([np.zeros(0), *found]) / max(weight.sum(), 1)
    rest = 1 - share
    near, far = share * share * share, rest * rest * rest
    result: NDArray[np.float64] = near / (near + far)
    return result


def _found_weight(
    wanted: NDArray[np.uint32], weight: NDArray[np.float64], contexts: Sequence[str], words: int
) -> NDArray[np.float64]:
    """Sum the weights of the wanted features (sorted) that each context has, each counted once."""
    given = features(contexts, words)
    position = np.minimum(np.searchsorted(wanted, given.hash), wanted.size - 1)
    hit = (wanted[position] == given.hash) & (given.weight > 0)  # not what is cut off, nor across texts
    pairs = np.unique(given.row[hit] * wanted.size + position[hit])
    sums = np.bincount(pairs // wanted.size, weight[pairs % wanted.size], len(contexts))
    return sums.astype(np.float64, copy=False)


def ranking(
    query: str, contexts: Sequence[str], words: int, top_k: int | None = None
) -> list[tuple[int, float]]:
    """Return (index of the context, score), best first, equal scores as the contexts are; `top_k` at most.

    Scores are half-precision values, as the service's are: 0.73974609375 is 1515/2048.
    """
    rounded = scores(query, contexts, words).astype(np.float16).tolist()
    return sorted(enumerate(rounded), key=lambda entry: -entry[1])[:top_k]
