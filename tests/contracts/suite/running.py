"""The suite run inside a test: its functions called one after the other, and the verdicts by fact."""

from __future__ import annotations

import inspect
from contextlib import closing, suppress
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from workersai_contracts import assumptions, errors
from workersai_contracts.exchanges import EXCHANGES, LIFECYCLES, Exchange
from workersai_contracts.findings import Finding, Verdict, verdicts
from workersai_contracts.suite import test_exchanges, test_lifecycles, test_open_facts, test_worker
from workersai_contracts.suite.checks import Checks
from workersai_contracts.suite.probes import PROBES
from workersai_contracts.suite.wire import Wire
from workersai_contracts.target import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: What every open fact can be told to be instead of its default.
ALTERNATIVES = [
    (fact.id, alternative)
    for fact in assumptions().values()
    for alternative in fact.alternatives
    if alternative != fact.default
]
PARAMETERS: dict[str, Iterable[Any]] = {
    "exchange": EXCHANGES,
    "lifecycle": LIFECYCLES,
    "fact": PROBES,
    "row": [row for row in errors() if row != "poll.unknown"],
    "body": test_worker.BAD_BODIES.values(),
    "request_id": ["a%20b", "a" * 129],
}
MODULES = {
    "exchanges": test_exchanges,
    "lifecycles": test_lifecycles,
    "open facts": test_open_facts,
    "worker": test_worker,
}


def run(
    target: Target, parts: Iterable[str] = MODULES, only: Callable[[Any], bool] = lambda _: True
) -> dict[str, Verdict]:
    """Run parts of the suite; `only` picks among the parameters of its tests."""
    found: list[Finding] = []
    with (
        closing(Wire(target)) as wire,
        closing(test_worker.WorkerWire(target.worker or target.root)) as worker,
    ):
        given = {"wire": wire, "worker": worker, "target": target}
        for part in parts:
            for name, function in vars(MODULES[part]).items():
                if name.startswith("test_"):
                    _call_with_each(name, function, given, only, found)
    return {verdict.fact: verdict for verdict in verdicts(found)}


def _call_with_each(
    name: str,
    function: Callable[..., None],
    given: dict[str, Any],
    only: Callable[[Any], bool],
    found: list[Finding],
) -> None:
    wanted = list(inspect.signature(function).parameters)
    varied = [each for each in wanted if each in PARAMETERS]
    for values in product(*([value for value in PARAMETERS[each] if only(value)] for each in varied)):
        checks = Checks(f"{name}{list(values)}", found.append)
        arguments = {**given, "checks": checks, **dict(zip(varied, values, strict=True))}
        with suppress(pytest.skip.Exception):
            function(**{each: arguments[each] for each in wanted})


def broken_in(exchange: Exchange, wire: Wire) -> set[str]:
    """The facts that one exchange alone finds broken."""
    found: list[Finding] = []
    with suppress(pytest.skip.Exception):
        test_exchanges.test_exchange(exchange, wire, Checks(exchange.name, found.append))
    return {finding.fact for finding in found if not finding.held}


def target(url: str) -> Target:
    """A server of our own as a target."""
    return Target("url", url, "0123456789abcdef0123456789abcdef", "emulator", url)
