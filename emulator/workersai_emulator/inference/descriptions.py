"""Descriptions of images that nobody has looked at: how large they are, and what was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from workersai_emulator.inference.answer import Answer
from workersai_emulator.inference.inputs import text_of, whole_number
from workersai_emulator.inference.media import bytes_of, drawn_from, members_of
from workersai_emulator.inference.text import placeholder, within
from workersai_emulator.inference.tokens import Usage, estimate
from workersai_emulator.json_text import dumps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workersai_contracts import ModelCard

#: The skills of moondream, and where the answer of each is.
_SKILLS: Final = {"query": "answer", "caption": "caption", "point": "points", "detect": "objects"}


def description(card: ModelCard, item: Mapping[str, Any]) -> Answer:
    """Return what a model says of an image, within the item's token limit. Fact: `models.outputs`."""
    asked = text_of(item.get("prompt", item.get("question")))
    image = bytes_of(item.get("image"))
    whole = placeholder(card, f"an image of {len(image)} bytes. {asked}")
    text = within(whole, whole_number(item.get("max_tokens")))
    usage = Usage(estimate(asked), estimate(text))
    if "description" in members_of(card):
        return Answer(dumps({"description": text}), usage)
    skill = text_of(item.get("task")) or "query"
    told: dict[str, Any] = {
        "finish_reason": "stop" if text == whole else "length",
        "metrics": {
            "input_tokens": usage.prompt_tokens,
            "output_tokens": usage.completion_tokens,
            "prefill_time_ms": 0,
            "decode_time_ms": 0,
            "ttft_ms": 0,
        },
        **dict.fromkeys((*_SKILLS.values(), "reasoning")),
    }
    member = _SKILLS.get(skill, "answer")
    told[member] = _found(image, member) if skill in {"point", "detect"} else text
    if member == "answer" and item.get("reasoning") is True:
        told["reasoning"] = {"text": text, "grounding": []}
    return Answer(dumps(told), usage)


def _found(image: bytes, member: str) -> list[dict[str, float]]:
    """Return one place in the image, as shares of its sides, that its bytes decide."""
    left, top, right, bottom = (value / 512 for value in drawn_from(image)[:4])
    if member == "points":
        return [{"x": left, "y": top}]
    return [{"x_min": left, "y_min": top, "x_max": 0.5 + right, "y_max": 0.5 + bottom}]
