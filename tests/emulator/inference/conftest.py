from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def golden() -> dict[str, Any]:
    """What the vectors and scores must be on every machine: digests, and the texts that they are of."""
    stored: dict[str, Any] = json.loads((Path(__file__).parent / "golden.json").read_text("utf-8"))
    stored["texts"] = [
        text if isinstance(text, str) else text["repeat"] * text["times"] for text in stored["texts"]
    ]
    return stored
