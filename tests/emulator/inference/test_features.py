from __future__ import annotations

import numpy as np
import pytest

from workersai_emulator.inference.characters import KINDS, LETTER, SEPARATOR, WORD, code_points
from workersai_emulator.inference.features import STOP_WEIGHT, STOP_WORDS, WORD_WEIGHT, features


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("az09éßжก", LETTER),
        (" \t\n.,;:!?()«»“”、。\u200d\ufe0f", SEPARATOR),
        ("机かカ→🚀", WORD),
        ("\ud800", LETTER),
    ],
    ids=["letters", "separators", "words by themselves", "a lone surrogate"],
)
def test_code_points_are_letters_separators_or_words(text: str, kind: int) -> None:
    assert [KINDS[ord(character)] for character in text] == [kind] * len(text)


def test_texts_become_folded_code_points_each_behind_a_nul() -> None:
    assert "".join(map(chr, code_points(["\uff21B", "a\0b", ""], 9))) == "\0ab\0a b\0 "


def test_a_text_is_cut_before_it_is_folded() -> None:
    assert "".join(map(chr, code_points(["abcdef"], 3))) == "\0abc "


def test_two_words_make_four_hashes_each_one_pair_and_their_letters() -> None:
    found = features(["the llama"], 9)
    weighted = found.weight[found.weight > 0].tolist()
    the, llama = STOP_WEIGHT, WORD_WEIGHT
    assert weighted == [the / 2, llama / 2] * 4 + [min(the, llama)] + [the] * 3 + [llama] * 5


def test_an_ideograph_is_a_word_without_letters() -> None:
    found = features(["学习"], 9)
    assert found.weight[found.weight > 0].tolist() == [WORD_WEIGHT / 2] * 8 + [WORD_WEIGHT]


def test_no_pair_reaches_into_the_next_text() -> None:
    apart, together = features(["one", "two"], 9), features(["one two"], 9)
    assert together.weight.sum() - apart.weight.sum() == WORD_WEIGHT
    assert sorted(set(apart.row.tolist())) == [0, 1]


def test_words_beyond_the_limit_of_their_own_text_weigh_nothing() -> None:
    cut, short = features(["one two three", "four"], 2), features(["one two", "four"], 2)
    assert sorted(cut.hash[cut.weight > 0].tolist()) == sorted(short.hash[short.weight > 0].tolist())


def test_texts_without_words_have_no_features() -> None:
    assert features(["", " ", "\n.."], 9).hash.size == 0


def test_each_of_the_75_stop_words_weighs_a_quarter() -> None:
    assert len(STOP_WORDS) == 75
    letters = features(sorted(STOP_WORDS), 9)
    assert set(letters.weight[letters.weight > 0].tolist()) == {STOP_WEIGHT / 2, STOP_WEIGHT}
    assert np.isin(features(["theory"], 9).weight, [0, WORD_WEIGHT / 2, WORD_WEIGHT]).all()
