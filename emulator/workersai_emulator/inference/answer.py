"""An answer: what one run gives back, and the tokens it took."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from workersai_emulator.inference.tokens import Usage


class Answer(NamedTuple):
    """What a model answers to one item: its synchronous output, and the tokens it took.

    The output is JSON, or the bytes of what `content_type` says. Fact: `poll.item`.
    """

    result: bytes
    usage: Usage
    content_type: str = "application/json"
