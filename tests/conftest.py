"""Hypothesis profiles: `default` finds the same each time, `long` looks elsewhere each time, and longer."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("default", derandomize=True, deadline=None)
settings.register_profile("long", deadline=None, max_examples=20 * settings.default.max_examples)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
