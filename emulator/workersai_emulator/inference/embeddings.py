"""Vectors in OpenAI's form."""

from __future__ import annotations

import base64
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from workersai_emulator.inference.answer import Answer
from workersai_emulator.inference.given_texts import read_texts
from workersai_emulator.inference.inputs import whole_number
from workersai_emulator.inference.numbers import rows_json
from workersai_emulator.inference.tokens import Usage
from workersai_emulator.inference.vectors import chunks, embedder
from workersai_emulator.json_text import dumps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from workersai_contracts import ModelCard


def embeddings(card: ModelCard, inputs: Mapping[str, Any], *, cut_dimensions: bool = True) -> Answer:
    """Return the vectors of `input` as OpenAI's list object, each a list of numbers, or base64 of them.

    The base64 is that of little-endian 32-bit floats, which the official SDKs ask for unless told otherwise.
    `dimensions` below the model's own keeps the first so many numbers, scaled to length 1; without
    `cut_dimensions` it is not looked at. Raises ValueError for a model without vectors. Facts: `openai.embeddings`,
    `openai.dimensions`.
    """
    texts = read_texts(inputs.get("input"))
    wanted = whole_number(inputs.get("dimensions")) if cut_dimensions else None
    vectors = embedder(card.name).vectors
    found = (_shortened(vectors(chunk), wanted) for chunk in chunks([text.text for text in texts]))
    in_base64 = inputs.get("encoding_format") == "base64"
    rows = chain.from_iterable(_base64_rows(rows) if in_base64 else rows_json(rows) for rows in found)
    data = b",".join(
        b'{"object":"embedding","index":%d,"embedding":%b}' % (index, bytes(row))
        for index, row in enumerate(rows)
    )
    most = card.max_input_tokens
    read = sum(text.tokens if most is None else min(text.tokens, most) for text in texts)
    told = (dumps(card.name), dumps({"prompt_tokens": read, "total_tokens": read}))
    return Answer(b'{"object":"list","data":[%b],"model":%b,"usage":%b}' % (data, *told), Usage(read))


def _shortened(vectors: NDArray[np.float16], wanted: int | None) -> NDArray[np.float16]:
    """Keep the first numbers of each vector, and scale them back to length 1.

    Squares of half-precision numbers, and sums of them up to 1, are exact in a double, so every machine gets
    the same.
    """
    if wanted is None or wanted >= vectors.shape[1]:
        return vectors
    kept = vectors[:, :wanted].astype(np.float64)
    kept /= np.sqrt((kept * kept).sum(axis=1, keepdims=True))
    return kept.astype(np.float16)


def _base64_rows(vectors: NDArray[np.float16]) -> Iterator[bytes]:
    return (b'"%b"' % base64.b64encode(row.tobytes()) for row in vectors.astype("<f4"))
