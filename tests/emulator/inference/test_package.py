"""What the package offers: loaded when it is asked for, and all of it there."""

from __future__ import annotations

import pytest

from workersai_emulator import inference


@pytest.mark.parametrize("name", inference.__all__)
def test_what_is_offered_is_found_in_its_home(name: str) -> None:
    assert getattr(inference, name) is not None


def test_nothing_else_is_there() -> None:
    assert sorted(inference.__all__) == sorted(inference._HOMES)
    with pytest.raises(AttributeError, match="has no attribute 'embed'"):
        inference.embed  # type: ignore[attr-defined] # noqa: B018
