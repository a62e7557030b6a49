from __future__ import annotations

import hashlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workersai_contracts import models
from workersai_emulator import embed
from workersai_emulator.inference.vectors import CHUNK_CHARACTERS, CHUNK_TEXTS, chunks, embedder

EMBEDDING_MODELS = [card.name for card in models().values() if card.answers == "embedding"]


def similarities(texts: list[str], model: str = "@cf/baai/bge-m3") -> np.ndarray[Any, np.dtype[np.float64]]:
    vectors = embed(model, texts).astype(np.float64)
    return vectors @ vectors.T


def test_every_embedding_model_has_golden_vectors(golden: dict[str, Any]) -> None:
    assert sorted(golden["models"]) == sorted(EMBEDDING_MODELS)


@pytest.mark.parametrize("model", EMBEDDING_MODELS)
def test_vectors_are_the_golden_ones_to_the_bit(model: str, golden: dict[str, Any]) -> None:
    expected = golden["models"][model]
    vectors = embed(model, golden["texts"])
    assert vectors.shape == (len(golden["texts"]), expected["dims"])
    assert vectors[0, :4].tolist() == expected["first4_of_text0"]
    assert hashlib.sha256(vectors.astype("<f2").tobytes()).hexdigest() == expected["sha256_float16_le"]
    assert embedder(model).words == expected["words"]


@given(st.lists(st.text(max_size=40), max_size=9), st.integers(1, 9))
def test_a_vector_depends_on_its_text_alone(texts: list[str], size: int) -> None:
    embedder_ = embedder("@cf/baai/bge-small-en-v1.5")
    together = embed("@cf/baai/bge-small-en-v1.5", texts)
    pieces = [embedder_.vectors(texts[at : at + size]) for at in range(0, len(texts), size)]
    assert together.tobytes() == b"".join(piece.tobytes() for piece in pieces)


@given(st.text(st.characters(codec=None), max_size=60))  # lone surrogates too
def test_every_text_has_a_finite_vector_of_length_one_without_a_zero(text: str) -> None:
    vector = embed("@cf/baai/bge-small-en-v1.5", [text])[0].astype(np.float64)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-3)
    assert np.all(vector != 0)


def test_order_of_words_matters_less_than_the_words() -> None:
    bites = similarities(["dog bites man", "man bites dog", "a cat sleeps all day"])
    assert bites[0, 2] < 0.2 < 0.8 < bites[0, 1] < 1


@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        ("How do I cancel my subscription?", "Cancelling a subscription", "Steps to end a paid plan"),
        ("机器学习模型需要大量数据", "深度学习需要很多训练数据", "今天天气很好"),
        ("Машинное обучение требует данных", "Данные для машинного обучения", "Сегодня хорошая погода"),
        ("🚀 launch", "🚀🚀🚀", "👩‍💻"),
    ],
    ids=["english", "chinese", "russian", "emoji"],
)
def test_texts_that_share_words_are_near_in_any_script(query: str, near: str, far: str) -> None:
    found = similarities([query, near, far])[0]
    assert found[1] > 2 * found[2]


def test_synonyms_are_not_recognised() -> None:
    assert similarities(["How do I cancel my subscription?", "Steps to end a paid plan"])[0, 1] < 0.1


@pytest.mark.parametrize(
    ("one", "same"),
    [
        ("ﬁne \uff37\uff29\uff24\uff25 Straße", "FINE wide STRASSE"),
        ("a\0b", "a b"),
        ("don't, stop!", "don t stop"),
        ("", " \n"),
    ],
    ids=["folding", "nul", "punctuation", "nothing"],
)
def test_texts_with_the_same_words_have_the_same_vector(one: str, same: str) -> None:
    first, second = embed("@cf/baai/bge-m3", [one, same])
    assert first.tobytes() == second.tobytes()


def test_words_beyond_the_models_limit_do_not_count() -> None:
    limit = 512 * 7 // 9
    kept, longer, changed = embed(
        "@cf/baai/bge-small-en-v1.5",
        [
            "word " * (limit - 1) + "end",
            "word " * (limit - 1) + "end" + " more",
            "word " * (limit - 1) + "more",
        ],
    )
    assert (
        np.abs(kept.astype(float) - longer.astype(float)).max()
        < np.abs(kept.astype(float) - changed.astype(float)).max()
    )


def test_models_have_different_vectors_for_one_text() -> None:
    large, m3 = (embed(model, ["one text"])[0] for model in ("@cf/baai/bge-large-en-v1.5", "@cf/baai/bge-m3"))
    assert abs(large.astype(float) @ m3.astype(float)) < 0.2


def test_no_texts_give_no_rows_of_the_models_dimensions() -> None:
    assert embed("@cf/pfnet/plamo-embedding-1b", []).shape == (0, 2048)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("@cf/baai/bge-m4", "'@cf/baai/bge-m4' is not in the catalogue"),
        ("@cf/meta/m2m100-1.2b", "'@cf/meta/m2m100-1.2b' is a Translation model"),
    ],
    ids=["unknown", "another task"],
)
def test_a_model_without_vectors_is_refused_in_one_line_that_names_those_with(
    model: str, reason: str
) -> None:
    with pytest.raises(ValueError, match="@cf/baai/bge-m3") as refusal:
        embed(model, ["text"])
    assert str(refusal.value).startswith(reason)
    assert "\n" not in str(refusal.value)


def test_a_single_string_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(TypeError, match="put a single one in brackets"):
        embed("@cf/baai/bge-m3", "text")


@settings(max_examples=50)
@given(
    st.lists(
        st.sampled_from(["", "short", "x" * CHUNK_CHARACTERS, "y" * (CHUNK_CHARACTERS + 1)]), max_size=80
    )
)
def test_chunks_are_bounded_and_leave_nothing_out(texts: list[str]) -> None:
    cut = list(chunks(texts))
    assert [text for chunk in cut for text in chunk] == texts
    assert all(1 <= len(chunk) <= CHUNK_TEXTS for chunk in cut)
    assert all(len(chunk) == 1 or sum(map(len, chunk)) <= CHUNK_CHARACTERS for chunk in cut)


def test_short_texts_are_computed_many_together() -> None:
    assert [len(chunk) for chunk in chunks(["text"] * 300)] == [128, 128, 44]


def test_importing_the_emulator_loads_no_numpy_until_embed_is_asked_for() -> None:
    program = (
        "import sys, workersai_emulator as w; assert 'numpy' not in sys.modules; "
        "assert w.embed('@cf/baai/bge-m3', ['a']).shape == (1, 1024); assert w.__version__"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_the_emulator_does_not_offer_is_an_attribute_error() -> None:
    import workersai_emulator

    with pytest.raises(AttributeError, match="no attribute 'embedding'"):
        _ = workersai_emulator.embedding
