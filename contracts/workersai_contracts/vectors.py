"""Vectors in OpenAI's form: one a text, each in the encoding that was asked for. Fact: `openai.embeddings`."""

from __future__ import annotations

import base64
import binascii
import struct
from typing import TYPE_CHECKING, Any

from workersai_contracts.mismatch import Mismatch, differs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def vector_mismatches(inputs: Any, data: Sequence[Mapping[str, Any]]) -> list[Mismatch]:
    """Hold the vectors of a reply to the request: their number, their order, and their encoding."""
    asked = inputs if isinstance(inputs, dict) else {}
    wanted, encoding = texts_in(asked.get("input")), asked.get("encoding_format", "float")
    found = []
    if len(data) != wanted:
        found.append(differs(str(wanted), f"{len(data)} vectors for {wanted} texts", "$.data"))
    for number, one in enumerate(data):
        if one["index"] != number:
            message = f"index {one['index']} is in the place of {number}"
            found.append(differs(str(number), message, f"$.data[{number}].index"))
        if numbers_of(one["embedding"], encoding) is None:
            message = f"the vector is not in the encoding {encoding}, which was asked for"
            found.append(differs(str(encoding), message, f"$.data[{number}].embedding"))
    return found


def texts_in(given: Any) -> int:
    """How many texts an input has: a list of texts, or of lists of tokens, has several."""
    if not isinstance(given, list) or (given and all(isinstance(token, int) for token in given)):
        return 1
    return len(given)


def numbers_of(vector: Any, encoding: Any) -> Sequence[float] | None:
    """The numbers of a vector, from a list or from base64 of 32-bit floats; None where it is in no such form."""
    if encoding != "base64":
        return vector if isinstance(vector, list) else None
    try:
        packed = base64.b64decode(vector, validate=True) if isinstance(vector, str) else b"?"
        return struct.unpack(f"<{len(packed) // 4}f", packed)
    except (binascii.Error, struct.error):
        return None
