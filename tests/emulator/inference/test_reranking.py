from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workersai_emulator.inference.reranking import ranking, scores

VOCABULARY = ["the", "cloud", "of", "llama", "orange", "学习", "🚀", "story"]
WORDS = st.lists(st.sampled_from(VOCABULARY), max_size=8).map(" ".join)


def test_scores_are_the_golden_ones(golden: dict[str, Any]) -> None:
    case = golden["rerank"]
    assert scores(case["query"], case["contexts"], 512).tolist() == case["scores_float64"]


def test_best_comes_first_and_equal_scores_keep_their_order(golden: dict[str, Any]) -> None:
    case = golden["rerank"]
    contexts = [case["contexts"][2], case["contexts"][1], case["contexts"][0]]
    assert ranking(case["query"], contexts, 512) == [
        (2, 0.89306640625),
        (0, 0.52978515625),
        (1, 0.52978515625),
    ]


def test_top_k_keeps_the_best(golden: dict[str, Any]) -> None:
    case = golden["rerank"]
    assert ranking(case["query"], case["contexts"], 512, top_k=1) == [(0, 0.89306640625)]


@given(WORDS, st.lists(WORDS, max_size=70))
def test_a_score_depends_on_its_own_context_and_is_a_half_precision_share(
    query: str, contexts: list[str]
) -> None:
    ranked = ranking(query, contexts, 512)
    assert sorted(index for index, _ in ranked) == list(range(len(contexts)))
    for index, score in ranked:
        assert 0 <= score == float(np.float16(score)) <= 1
        assert ranking(query, [contexts[index]], 512) == [(0, score)]


def test_a_context_that_repeats_the_query_has_score_1_and_one_that_shares_nothing_0() -> None:
    assert scores("orange cloud", ["an orange cloud", "a llama"], 512).tolist() == [1, 0]


def test_a_context_counts_up_to_the_limit() -> None:
    far, near = scores("orange", ["one two three orange", "one orange two three"], 2).tolist()
    assert far < 0.01 < near == 1


def test_a_pair_across_two_contexts_is_none() -> None:
    assert scores("orange cloud", ["orange", "cloud"], 9).tolist() == [
        *scores("orange cloud", ["orange"], 9).tolist(),
        *scores("orange cloud", ["cloud"], 9).tolist(),
    ]


def test_a_query_without_words_finds_nothing() -> None:
    assert scores("?!", ["anything", ""], 512).tolist() == [0, 0]
