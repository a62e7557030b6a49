"""The oracle, for tests that compare with it. Its modules are found beside this file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from validator_oracle import Oracle, unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    if reason := unavailable():
        pytest.skip(reason)
    with Oracle() as running:
        yield running
