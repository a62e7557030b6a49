from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workersai_contracts import models
from workersai_emulator import embed
from workersai_emulator.inference.numbers import rows_json

EVERY_NUMBER = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def test_every_finite_number_is_written_as_python_writes_it() -> None:
    [row] = rows_json(EVERY_NUMBER.reshape(1, -1))
    texts = bytes(row)[1:-1].decode().split(",")
    assert texts == [repr(value) if math.isfinite(value) else "null" for value in EVERY_NUMBER.tolist()]


@pytest.mark.parametrize("model", [card.name for card in models().values() if card.answers == "embedding"])
def test_the_text_of_vectors_is_the_golden_one(model: str, golden: dict[str, Any]) -> None:
    text = b",".join(rows_json(embed(model, golden["texts"])))
    assert hashlib.sha256(text).hexdigest() == golden["models"][model]["sha256_json"]


@given(
    st.integers(1, 5).flatmap(
        lambda width: st.lists(
            st.lists(
                st.floats(width=16, allow_nan=False, allow_infinity=False), min_size=width, max_size=width
            ),
            max_size=5,
        )
    )
)
def test_rows_are_the_json_of_their_numbers(rows: list[list[float]]) -> None:
    vectors = np.array(rows, np.float16).reshape(len(rows), len(rows[0]) if rows else 3)
    assert [bytes(row).decode() for row in rows_json(vectors)] == [
        json.dumps(row, separators=(",", ":")) for row in rows
    ]


def test_columns_of_a_larger_array_are_written_too() -> None:
    vectors = np.array([[1, 2, 3], [4, 5, 6]], np.float16)
    assert b",".join(rows_json(vectors[:, ::2])) == b"[1.0,3.0],[4.0,6.0]"
