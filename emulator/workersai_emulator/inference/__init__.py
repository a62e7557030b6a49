"""Placeholder outputs for every model: deterministic, offline, the same on every machine."""

from __future__ import annotations

from workersai_emulator.inference.answers import Answer, answers
from workersai_emulator.inference.inputs import cost, texts_of
from workersai_emulator.inference.tokens import Usage, estimate

__all__ = ["Answer", "Usage", "answers", "cost", "estimate", "texts_of"]
