"""The 32-bit hash behind the placeholder vectors, the same on every machine and in every library version."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint32]

#: Six odd multipliers. They come from a digest, so that they are arbitrary and nobody has chosen them.
LEFT, MIDDLE, RIGHT, SPREAD, CHAIN, FINISH = (
    np.uint32(number | 1)
    for number in np.frombuffer(hashlib.sha256(b"placeholder embedding").digest(), "<u4")[:6].tolist()
)


def scramble(values: Hashes, multiplier: np.uint32) -> Hashes:
    """Spread every bit of the values over all 32: values that are close have hashes that are not."""
    mixed = values * multiplier
    mixed ^= mixed >> np.uint32(15)
    mixed *= FINISH
    mixed ^= mixed >> np.uint32(16)
    return mixed
