from __future__ import annotations

from typing import Any

import pytest

from workersai_contracts import ModelCard, models
from workersai_emulator.inference.generation import written
from workersai_emulator.inference.text import EXCERPT_CHARACTERS, excerpt, first_words, translation
from workersai_emulator.inference.tokens import estimate

LLAMA = models()["@cf/meta/llama-3.3-70b-instruct-fp8-fast"]
GPT_OSS = models()["@cf/openai/gpt-oss-120b"]
BEGINNING = "[placeholder by @cf/meta/llama-3.3-70b-instruct-fp8-fast]"


@pytest.mark.parametrize(
    ("item", "question"),
    [
        ({"prompt": "Why is the sky blue?"}, "Why is the sky blue?"),
        (
            {
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "Why?"},
                    {"role": "assistant", "content": "Because."},
                ]
            },
            "Why?",
        ),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {"type": "text", "text": "What is"},
                            {"type": "image_url", "image_url": {"url": "data:,"}},
                            {"type": "text", "text": "this?"},
                        ],
                    }
                ]
            },
            "What is this?",
        ),
        ({"messages": [{"role": "user", "content": {"type": "text", "text": "One part"}}]}, "One part"),
        ({"messages": [{"content": "No role"}]}, "No role"),
        ({"input": "Hello"}, "Hello"),
        ({"input": [{"role": "user", "content": [{"type": "input_text", "text": "Hello"}]}]}, "Hello"),
        ({"messages": []}, ""),
        ({"prompt": 5}, "5"),
        ({}, ""),
    ],
    ids=[
        "prompt",
        "last user",
        "parts",
        "one part",
        "no role",
        "input",
        "input list",
        "none",
        "number",
        "{}",
    ],
)
def test_a_placeholder_names_the_model_and_repeats_what_the_user_said(
    item: dict[str, Any], question: str
) -> None:
    assert written(LLAMA, item).content == f"{BEGINNING} {question}".rstrip()


def test_all_messages_count_as_read() -> None:
    item = {"messages": [{"role": "system", "content": "x" * 48}, {"role": "user", "content": "y" * 96}]}
    assert written(LLAMA, item).usage.prompt_tokens == 30


@pytest.mark.parametrize(
    ("card", "key"),
    [(LLAMA, "max_tokens"), (LLAMA, "max_completion_tokens"), (GPT_OSS, "max_output_tokens")],
    ids=["native", "openai", "responses"],
)
def test_a_token_limit_cuts_at_a_word(card: ModelCard, key: str) -> None:
    uncut = written(card, {"prompt": "one two three four five six seven eight nine ten"})
    cut = written(card, {"prompt": "one two three four five six seven eight nine ten", key: 16})
    assert (uncut.whole, cut.whole) == (True, False)
    assert uncut.content.startswith(cut.content + " ")
    assert cut.usage.completion_tokens == estimate(cut.content) <= 16


def test_a_limit_too_small_for_a_word_still_gives_one() -> None:
    cut = written(LLAMA, {"prompt": "question", "max_tokens": 1})
    assert (cut.content, cut.usage.completion_tokens) == ("[placeholder", 1)


@pytest.mark.parametrize("limit", [0, -1, True, "5", None, 1.5], ids=repr)
def test_what_is_no_limit_cuts_nothing(limit: Any) -> None:
    assert written(LLAMA, {"prompt": "question", "max_tokens": limit}).whole


def test_first_words_keep_as_many_as_fit() -> None:
    assert first_words("aaaa bbbb cccc", 2) == "aaaa bbbb"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\n  lines", "two lines"),
        ("word " * 40, " ".join(["word"] * 32) + "…"),
        ("学" * 500, "学" * (EXCERPT_CHARACTERS + 1) + "…"),
        ("x" * EXCERPT_CHARACTERS, "x" * EXCERPT_CHARACTERS),
    ],
    ids=["lines", "long", "no blanks", "just fits"],
)
def test_an_excerpt_is_one_short_line(text: str, shown: str) -> None:
    assert excerpt(text) == shown


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ({"text": "Good morning", "source_lang": "en", "target_lang": "fr"}, "[fr] Good morning"),
        ({"text": "Good morning", "target_lang": "french"}, "[french] Good morning"),
        ({"text": 7, "target_lang": None}, "[] 7"),
    ],
    ids=["code", "name", "odd"],
)
def test_a_translation_is_the_text_behind_its_language(item: dict[str, Any], text: str) -> None:
    assert translation(item["text"], item["target_lang"]) == text
