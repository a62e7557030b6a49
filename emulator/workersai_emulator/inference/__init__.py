"""Placeholder outputs for every model: deterministic, offline, the same on every machine."""

from __future__ import annotations

from workersai_emulator.inference.answer import Answer
from workersai_emulator.inference.answers import answers, generate, read_only
from workersai_emulator.inference.chosen import NOTHING
from workersai_emulator.inference.forms import Form
from workersai_emulator.inference.given_texts import is_tokens
from workersai_emulator.inference.inputs import cost, texts_of, whole_number
from workersai_emulator.inference.json_mode import CannotMeet, schema_wanted
from workersai_emulator.inference.streams import Event, Stream, stream
from workersai_emulator.inference.tokens import Usage, estimate

__all__ = [
    "NOTHING",
    "Answer",
    "CannotMeet",
    "Event",
    "Form",
    "Stream",
    "Usage",
    "answers",
    "cost",
    "estimate",
    "generate",
    "is_tokens",
    "read_only",
    "schema_wanted",
    "stream",
    "texts_of",
    "whole_number",
]
