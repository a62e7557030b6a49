"""The suite finds every planted difference, and names the fact that says it is wrong."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from differences import DIFFERENCES, Difference
from lying_proxy import LyingProxy
from running import broken_in, run, target

from workersai_contracts import assumptions, errors
from workersai_contracts.exchanges import EXCHANGES, Exchange
from workersai_contracts.suite import history
from workersai_contracts.suite.wire import Wire
from workersai_emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lying_proxy import Passing


pytestmark = pytest.mark.differences


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator(seed=3, tokens=frozenset({"emulator"})) as running:
        yield running


@pytest.fixture(scope="module")
def proxy(emulator: Emulator) -> Iterator[LyingProxy]:
    with LyingProxy(emulator.url) as running:
        yield running


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "PATIENCE", 0.3)


def test_without_a_difference_nothing_is_broken(proxy: LyingProxy) -> None:
    proxy.lie = lambda passing: None
    found = run(target(proxy.url))
    assert [verdict for verdict in found.values() if verdict.outcome in {"broken", "otherwise"}] == []
    assert sum(verdict.outcome == "held" for verdict in found.values()) > 90


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.name)
def test_a_planted_difference_is_found_and_named(difference: Difference, proxy: LyingProxy) -> None:
    proxy.lie = difference.lie()
    found = run(target(proxy.url), difference.parts, only=lambda value: _is_of_use(value, difference))
    broken = {verdict.fact for verdict in found.values() if verdict.outcome == "broken"}
    assert set(difference.facts) <= broken, f"found broken: {sorted(broken)}"


def _is_of_use(value: object, difference: Difference) -> bool:
    """Leave out what is slow or many, unless this difference is about it."""
    if isinstance(value, str) and value in errors():
        return value in difference.facts or (value == "capacity" and "head.retry-after" in difference.facts)
    if isinstance(value, Exchange) and value.name == "a payload over any limit":
        return "request.too-large" in difference.facts
    return True


@pytest.mark.parametrize("row", [row for row in errors() if row != "poll.unknown"])
def test_a_refusal_with_another_status_is_named(row: str, proxy: LyingProxy) -> None:
    def lie(passing: Passing) -> None:
        if passing.status == errors()[row].status:
            passing.status = 418

    proxy.lie = lie
    found = run(target(proxy.url), ["exchanges"], only=lambda value: value == row)
    assert found[row].outcome == "broken"


def test_every_fact_that_the_suite_holds_has_a_difference_that_breaks_it(proxy: LyingProxy) -> None:
    proxy.lie = lambda passing: None
    held = {verdict.fact for verdict in run(target(proxy.url)).values() if verdict.outcome == "held"}
    planted = {fact for difference in DIFFERENCES for fact in difference.facts}
    assert len(DIFFERENCES) >= 40
    assert held - planted - set(errors()) - set(assumptions()) == set()


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda exchange: exchange.name)
def test_switching_off_what_an_exchange_cites_makes_that_exchange_fail(
    exchange: Exchange, proxy: LyingProxy
) -> None:
    missing = set(exchange.facts)
    with closing(Wire(target(proxy.url))) as wire:
        for difference in DIFFERENCES:
            if missing and "exchanges" in difference.parts:
                proxy.lie = difference.lie()
                missing -= broken_in(exchange, wire)
    assert missing == set()
