"""SIGKILL at any moment, under load: what was answered holds. `make test-kill` kills more often."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from kills import killed

if TYPE_CHECKING:
    from collections.abc import Callable


pytestmark = pytest.mark.kills


@pytest.mark.parametrize(("kind", "variable", "few"), [("file", "KILLS", 3), ("redis", "KILLS_REDIS", 2)])
def test_no_answered_submit_is_lost_and_no_finished_reply_changes(
    kind: str,
    variable: str,
    few: int,
    new_state: Callable[[str], str | None],
    clean_environment: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kills = int(os.environ.get(variable, few))
    told = killed(str(new_state(kind)), kills)
    if kills > few:
        figures = f"{told.answers} answers, {len(told.batches)} batches, {told.finished} finished"
        with capsys.disabled():
            print(f"\n{kind}: {kills} kills, {figures}")
    assert told.faults == []
    assert told.finished > kills
