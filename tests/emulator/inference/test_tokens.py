from __future__ import annotations

import pytest

from workersai_emulator.inference.tokens import Usage, estimate


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("x" * 480, 100),
        ("x" * 481, 101),
        ("学习", 2),
        ("\ud800", 1),
    ],
    ids=[
        "nothing",
        "a letter",
        "4 bytes",
        "5 bytes",
        "480",
        "481",
        "bytes, not characters",
        "lone surrogate",
    ],
)
def test_tokens_are_bytes_by_4_8_rounded_up(text: str, tokens: int) -> None:
    assert estimate(text) == tokens


def test_usages_add_up() -> None:
    total = sum([Usage(3, 0), Usage(4, 5)], Usage())
    assert list(total.as_json().items()) == [
        ("prompt_tokens", 7),
        ("completion_tokens", 5),
        ("total_tokens", 12),
    ]
