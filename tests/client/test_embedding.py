from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workersai_client import ConfigurationError, QuotaExceeded, UnexpectedReply
from workersai_client.embedding import Vectors, batches_of, texts_per_call

SMALL = "@cf/test/three-dimensions"


def output(*vectors: list[Any]) -> dict[str, Any]:
    return {"shape": [len(vectors), len(vectors[0])], "data": list(vectors)}


def test_texts_become_rows_in_their_order(call, service) -> None:
    service.answers(output([1, 0.5, 0], [0, 0, 0.25]))
    vectors = call("embed", ("one", "two"), model=SMALL)
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[1, 0.5, 0], [0, 0, 0.25]]
    assert service.seen[0].path.endswith("/ai/run/@cf/test/three-dimensions")
    assert service.seen[0].body == b'{"text":["one","two"]}'


def test_more_than_100_texts_are_several_calls(call, service) -> None:
    texts = [str(number) for number in range(250)]
    for part in (texts[:100], texts[100:200], texts[200:]):
        service.answers(output(*([float(text)] for text in part)))
    vectors = call("embed", texts, model=SMALL)
    assert vectors.tolist() == [[float(number)] for number in range(250)]
    assert [seen.json["text"] for seen in service.seen] == [texts[:100], texts[100:200], texts[200:]]


def test_a_model_that_takes_fewer_texts_gets_fewer() -> None:
    assert texts_per_call("@cf/qwen/qwen3-embedding-0.6b") == 32
    assert texts_per_call("@cf/baai/bge-m3") == 100
    assert texts_per_call(SMALL) == 100


def test_the_default_model_is_bge_m3(call, service) -> None:
    service.answers(output([0.5] * 1024))
    assert call("embed", ["a"]).shape == (1, 1024)
    assert service.seen[0].path.endswith("/ai/run/@cf/baai/bge-m3")


@pytest.mark.parametrize(("model", "dimensions"), [("@cf/baai/bge-m3", 1024), (SMALL, 0)])
def test_no_texts_are_no_rows_and_no_request(call, model: str, dimensions: int) -> None:
    vectors = call("embed", [], model=model)
    assert vectors.shape == (0, dimensions)
    assert vectors.dtype == np.float32


@pytest.mark.parametrize(
    ("answer", "path"),
    [
        ({"data": [[1, 2]]}, "/result/data"),
        ({"data": [[1, 2], [1, 2], [1, 2]]}, "/result/data"),
        ({"data": [[1, 2], [1]]}, "/result/data/1"),
        ({"data": [[1, 2], []]}, "/result/data/1"),
        ({"data": [[], []]}, "/result/data/0"),
        ({"data": [[1, 2], "ab"]}, "/result/data/1"),
        ({"data": [[1, 2], [None, 1]]}, "/result/data/1"),
        ({"data": [[1, 2], [True, 1]]}, "/result/data/1"),
        ({"data": [[1, 2], ["1.5", 1]]}, "/result/data/1"),
        ({"data": [[1, 2], [[1], 1]]}, "/result/data/1"),
        ({"data": [[1, 2], [1, 1e300]]}, "/result/data"),
        ({"data": [[1, 2], [1, 2]], "shape": [2, 3]}, "/result/shape"),
        ({"data": "AAAA"}, "/result/data"),
        ({}, "/result/data"),
        ([], "/result/data"),
    ],
)
def test_an_output_that_does_not_fit_two_texts_is_unexpected(call, service, answer: Any, path: str) -> None:
    service.answers(answer)
    with pytest.raises(UnexpectedReply) as raised:
        call("embed", ["a", "b"], model=SMALL)
    assert raised.value.path == path


def test_a_dimension_that_is_not_the_model_s_is_unexpected(call, service) -> None:
    service.answers(output([0.5] * 768))
    with pytest.raises(UnexpectedReply, match="a vector has 768 dimensions instead of 1024"):
        call("embed", ["a"])


def test_a_later_call_must_give_the_dimension_of_the_first() -> None:
    vectors = Vectors(SMALL, 2)
    vectors.put(0, 1, output([1, 2]), "/result")
    with pytest.raises(UnexpectedReply, match="a vector has 3 dimensions instead of 2"):
        vectors.put(1, 1, output([1, 2, 3]), "/result")


@pytest.mark.parametrize(
    ("texts", "message"),
    [("one text", "texts is one string; pass a list of them"), (["a", 7], "text 1 is not a string but int")],
)
def test_what_is_no_list_of_texts_is_refused(call, texts: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        call("embed", texts)
    assert str(refused.value) == message


def test_an_error_of_the_service_is_raised(call, service) -> None:
    service.refuses(429, 4006)
    with pytest.raises(QuotaExceeded):
        call("embed", ["a"], model=SMALL)


def body_of(texts: list[str]) -> bytes:
    requests = [{"text": text} for text in texts]
    return json.dumps({"requests": requests}, ensure_ascii=False, separators=(",", ":")).encode()


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=30), max_size=40), st.integers(60, 300))
def test_batches_hold_every_text_once_and_stay_under_the_limit(texts: list[str], limit: int) -> None:
    batches = batches_of(texts, limit)
    assert [position for batch in batches for position in batch] == list(range(len(texts)))
    for batch in batches:
        assert len(batch) == 1 or len(body_of([texts[position] for position in batch])) < limit


def test_a_batch_is_filled_up_to_the_limit() -> None:
    texts = ["x" * 50] * 7
    size = len(body_of(texts[:3]))
    assert [len(batch) for batch in batches_of(texts, size + 1)] == [3, 3, 1]


def test_a_batch_has_at_most_2000_texts() -> None:
    assert [len(batch) for batch in batches_of(["a"] * 4001)] == [2000, 2000, 1]


def test_a_batch_of_long_texts_stays_under_10_megabytes() -> None:
    texts = ["é" * 1_000_000] * 9
    assert [len(batch) for batch in batches_of(texts)] == [4, 4, 1]


def test_a_text_that_is_too_large_has_a_batch_of_its_own() -> None:
    assert batches_of(["a", "b" * 200, "c"], 100) == [range(1), range(1, 2), range(2, 3)]


def test_no_texts_are_no_batches() -> None:
    assert batches_of([]) == []
