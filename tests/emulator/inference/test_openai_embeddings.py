from __future__ import annotations

import base64
import json
import struct
from math import fsum, sqrt
from typing import Any

import numpy as np
import pytest

from workersai_contracts import model
from workersai_emulator import embed
from workersai_emulator.inference import Usage
from workersai_emulator.inference.embeddings import embeddings

BGE_M3 = model("@cf/baai/bge-m3")
BGE_SMALL = model("@cf/baai/bge-small-en-v1.5")
LLAMA = model("@cf/meta/llama-3.3-70b-instruct-fp8-fast")
assert BGE_M3 is not None
assert BGE_SMALL is not None
assert LLAMA is not None


def told(inputs: Any, **others: Any) -> Any:
    return json.loads(embeddings(BGE_M3, {"input": inputs, **others}).result)


def vectors(*texts: str) -> list[list[float]]:
    rows: list[list[float]] = embed(BGE_M3.name, texts).tolist()
    return rows


def test_a_list_of_texts_is_a_list_object() -> None:
    answer = told(["cloud", "llama"])
    assert list(answer) == ["object", "data", "model", "usage"]
    assert (answer["object"], answer["model"]) == ("list", "@cf/baai/bge-m3")
    assert [list(entry) for entry in answer["data"]] == [["object", "index", "embedding"]] * 2
    assert [entry["index"] for entry in answer["data"]] == [0, 1]
    assert [entry["embedding"] for entry in answer["data"]] == vectors("cloud", "llama")
    assert answer["usage"] == {"prompt_tokens": 4, "total_tokens": 4}


@pytest.mark.parametrize(
    ("inputs", "texts", "tokens"),
    [
        ("cloud", ["cloud"], 2),
        ([], [], 0),
        ([1, 2, 3], ["1 2 3"], 3),
        ([[1, 2], [3]], ["1 2", "3"], 3),
        (["cloud", [7, 8]], ["cloud", "7 8"], 4),
        (None, [""], 0),
    ],
    ids=["text", "none", "token ids", "lists of token ids", "both", "null"],
)
def test_an_input_is_texts_or_token_ids(inputs: Any, texts: list[str], tokens: int) -> None:
    answer = told(inputs)
    assert [entry["embedding"] for entry in answer["data"]] == vectors(*texts)
    assert answer["usage"]["prompt_tokens"] == tokens


def test_base64_is_little_endian_floats() -> None:
    [entry] = told("cloud", encoding_format="base64")["data"]
    packed = base64.b64decode(entry["embedding"], validate=True)
    assert list(struct.unpack("<1024f", packed)) == vectors("cloud")[0]


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_fewer_dimensions_are_the_first_ones_at_length_1(encoding: str) -> None:
    [entry] = told("an orange cloud", dimensions=64, encoding_format=encoding)["data"]
    got = entry["embedding"]
    if encoding == "base64":
        got = list(struct.unpack("<64f", base64.b64decode(got)))
    kept = vectors("an orange cloud")[0][:64]
    length = sqrt(fsum(number * number for number in kept))
    assert got == np.array([number / length for number in kept]).astype(np.float16).tolist()
    assert sqrt(fsum(number * number for number in got)) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("dimensions", [1024, 4096, 0, None, "64"], ids=repr)
def test_dimensions_that_cut_nothing_change_nothing(dimensions: Any) -> None:
    assert told("cloud", dimensions=dimensions) == told("cloud")


def test_dimensions_may_be_ignored() -> None:
    answer = embeddings(BGE_M3, {"input": "cloud", "dimensions": 64}, cut_dimensions=False)
    assert json.loads(answer.result) == told("cloud")


def test_many_texts_come_in_order() -> None:
    texts = [f"text {number}" for number in range(100)]
    assert [entry["embedding"] for entry in told(texts)["data"]] == vectors(*texts)


def test_tokens_are_counted_up_to_the_limit() -> None:
    assert embeddings(BGE_SMALL, {"input": "x" * 48_000}).usage == Usage(512, 0)


def test_a_model_without_vectors_is_named() -> None:
    with pytest.raises(ValueError, match=r"llama-3.3.* is a Text Generation model"):
        embeddings(LLAMA, {"input": "cloud"})
