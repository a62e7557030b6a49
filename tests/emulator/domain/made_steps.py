"""Steps for Hypothesis, which would fill in whatever a named tuple's maker is not told."""

from __future__ import annotations

from typing import Any

from workersai_emulator.scripts import Step


def a_step(state: Any, **said: Any) -> Step:
    """A step with nothing that is not said."""
    return Step(state, **said)
