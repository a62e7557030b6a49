"""Placeholder outputs for every model: deterministic, offline, the same on every machine.

What makes them is loaded when it is first asked for, since a server that only queues has no need of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from workersai_emulator.inference.answer import Answer
    from workersai_emulator.inference.answering import answers, generate, read_only
    from workersai_emulator.inference.chosen import NOTHING
    from workersai_emulator.inference.event import Event
    from workersai_emulator.inference.forms import TextForm
    from workersai_emulator.inference.generation import token_limit
    from workersai_emulator.inference.given_texts import is_tokens, read_texts
    from workersai_emulator.inference.inputs import cost, texts_of, whole_number
    from workersai_emulator.inference.json_mode import CannotMeet, schema_wanted
    from workersai_emulator.inference.streams import stream
    from workersai_emulator.inference.tokens import Usage, estimate

__all__ = [
    "NOTHING",
    "Answer",
    "CannotMeet",
    "Event",
    "TextForm",
    "Usage",
    "answers",
    "cost",
    "estimate",
    "generate",
    "is_tokens",
    "read_only",
    "read_texts",
    "schema_wanted",
    "stream",
    "texts_of",
    "token_limit",
    "whole_number",
]

_HOMES: Final = {
    "Answer": "answer",
    "CannotMeet": "json_mode",
    "Event": "event",
    "TextForm": "forms",
    "NOTHING": "chosen",
    "Usage": "tokens",
    "answers": "answering",
    "cost": "inputs",
    "estimate": "tokens",
    "generate": "answering",
    "is_tokens": "given_texts",
    "read_only": "answering",
    "read_texts": "given_texts",
    "schema_wanted": "json_mode",
    "stream": "streams",
    "texts_of": "inputs",
    "token_limit": "generation",
    "whole_number": "inputs",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for, once."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found
