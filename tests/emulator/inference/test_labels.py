from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workersai_contracts import models
from workersai_emulator.inference import Usage, answers

DISTILBERT = models()["@cf/huggingface/distilbert-sst-2-int8"]
BART = models()["@cf/facebook/bart-large-cnn"]
INDICTRANS = models()["@cf/ai4bharat/indictrans2-en-indic-1B"]


def positive(text: str) -> float:
    [answer] = answers(DISTILBERT, [{"text": text}])
    negative, found = json.loads(answer.result)
    assert (negative["label"], found["label"]) == ("NEGATIVE", "POSITIVE")
    assert negative["score"] + found["score"] == 1
    score: float = found["score"]
    return score


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("The table is brown", 0.5),
        ("I love it", 0.75),
        ("Great food, lovely people", 2 / 3 + 1 / 6),
        ("Terrible", 0.25),
        ("not good", 0.25),
        ("It isn't bad", 0.75),
        ("Not one of those here, and good", 0.75),
        ("good and bad", 0.5),
    ],
)
def test_kind_and_unkind_words_decide(text: str, score: float) -> None:
    assert positive(text) == pytest.approx(score, abs=1 / 4096)


@given(st.text() | st.lists(st.sampled_from(["good", "bad", "not", "so", "."])).map(" ".join))
def test_scores_are_shares_of_1(text: str) -> None:
    assert 0 < positive(text) < 1


def test_a_summary_is_the_beginning_within_its_length() -> None:
    whole, cut = answers(
        BART, [{"input_text": "word " * 100}, {"input_text": "word " * 100, "max_length": 10}]
    )
    text = "[placeholder by @cf/facebook/bart-large-cnn] " + " ".join(["word"] * 32) + "…"
    assert json.loads(whole.result) == {"summary": text}
    assert json.loads(cut.result) == {"summary": "[placeholder by @cf/facebook/bart-large-cnn]"}
    assert cut.usage == Usage(105, 10)


def test_several_texts_are_translated_each() -> None:
    [one, two] = answers(
        INDICTRANS,
        [{"text": "a", "target_language": "hin_Deva"}, {"text": ["a", "b"], "target_language": "tam_Taml"}],
    )
    assert json.loads(one.result) == {"translations": ["[hin_Deva] a"]}
    assert json.loads(two.result) == {"translations": ["[tam_Taml] a", "[tam_Taml] b"]}
