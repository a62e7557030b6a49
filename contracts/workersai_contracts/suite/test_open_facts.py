"""Open facts: which of its alternatives the target shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from workersai_contracts.suite.probes import PROBES

if TYPE_CHECKING:
    from workersai_contracts.suite.checks import Checks
    from workersai_contracts.suite.wire import Wire


@pytest.mark.parametrize("fact", PROBES)
def test_open_fact(fact: str, wire: Wire, checks: Checks) -> None:
    """Any alternative will do; the report says which it is."""
    alternative = PROBES[fact](wire)
    last = wire.evidence[-1]["reply"] if wire.evidence else {}
    checks.shows(fact, alternative, f"none of its alternatives is shown; the last reply: {last}")
