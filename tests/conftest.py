"""Hypothesis profiles: `default` finds the same each time, `long` looks elsewhere each time, and longer."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("default", derandomize=True, deadline=None)
settings.register_profile("long", deadline=None, max_examples=20 * settings().max_examples)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

#: Run by tests/e2e/test_sample_project.py, with the installed wheel.
collect_ignore = ["sample_project"]
