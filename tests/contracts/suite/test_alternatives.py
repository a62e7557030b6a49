"""Every alternative of an open fact is recognised, with the setting that makes the emulator agree."""

from __future__ import annotations

import tomllib

import pytest
from running import ALTERNATIVES, run, target

from workersai_contracts import assumptions
from workersai_contracts.report import as_settings, as_text
from workersai_emulator import Emulator

pytestmark = pytest.mark.differences

# gpt-oss was seen to check its items at submit: a target that checks all items at run time contradicts that.
CONTRADICTED = {("submit.validation", "run"): {"batch.gpt-oss"}}


@pytest.mark.parametrize(
    ("fact", "alternative"), ALTERNATIVES, ids=[f"{fact}={name}" for fact, name in ALTERNATIVES]
)
def test_an_alternative_is_recognised_and_breaks_nothing_sure(fact: str, alternative: str) -> None:
    with Emulator(seed=3, assumptions={fact: alternative}) as emulator:
        found = run(target(emulator.url))
    assert found[fact].outcome == "otherwise"
    assert found[fact].setting == (fact, alternative)
    failing = {verdict.fact for verdict in found.values() if verdict.fails_the_run}
    assert failing == CONTRADICTED.get((fact, alternative), set())
    others = [
        verdict.fact for verdict in found.values() if verdict.outcome == "otherwise" and verdict.fact != fact
    ]
    assert others == []
    told = list(found.values())
    assert tomllib.loads(as_settings(told)) == {"assume": {fact: alternative}}
    assert f"serve --assume '{fact}={alternative}'" in as_text(told)


def test_every_open_fact_has_an_alternative_to_recognise() -> None:
    assert {fact for fact, _ in ALTERNATIVES} == set(assumptions())
