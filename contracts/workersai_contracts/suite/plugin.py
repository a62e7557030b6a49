"""The suite's pytest plugin: the target, the wire, and the findings that a test makes on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from workersai_contracts.catalogue import facts
from workersai_contracts.findings import EVIDENCE, FINDINGS, SURE, Finding
from workersai_contracts.suite.checks import Checks
from workersai_contracts.suite.wire import Wire
from workersai_contracts.suite_run import SuiteRun
from workersai_contracts.target import Target

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from workersai_contracts.recording import Recorder

FOUND = pytest.StashKey[list[Finding]]()


@pytest.fixture(scope="session")
def target() -> Target:
    """The target of the run."""
    return Target.from_environment()


@pytest.fixture(scope="session")
def recorder(pytestconfig: pytest.Config) -> Recorder | None:
    """What keeps the exchanges of this run, where they are to be kept."""
    plugins = pytestconfig.pluginmanager.get_plugins()
    return next((one.recorder for one in plugins if isinstance(one, SuiteRun)), None)


@pytest.fixture(scope="session")
def session_wire(target: Target, recorder: Recorder | None) -> Iterator[Wire]:
    """One client for all tests, so that the budget is one."""
    wire = Wire(target, recorder)
    yield wire
    wire.close()


@pytest.fixture
def wire(session_wire: Wire, request: pytest.FixtureRequest) -> Iterator[Wire]:
    """The client; what a test sent and got goes with its report."""
    session_wire.evidence.clear()
    yield session_wire
    request.node.user_properties.append((EVIDENCE, list(session_wire.evidence)))


@pytest.fixture
def checks(request: pytest.FixtureRequest) -> Checks:
    """Collects what a test finds of each fact."""
    found: list[Finding] = []
    request.node.stash[FOUND] = found
    return Checks(request.node.name, found.append)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Fail a test in which a documented or observed fact was found broken; its report has all findings."""
    outcome = yield
    found = pyfuncitem.stash.get(FOUND, [])
    pyfuncitem.user_properties.append((FINDINGS, [finding.as_json() for finding in found]))
    broken = [finding for finding in found if not finding.held and facts()[finding.fact].level in SURE]
    if broken:
        told = "\n".join(f"{finding.fact}: {finding.message}" for finding in broken)
        pytest.fail(f"{len(broken)} checks do not hold\n{told}", pytrace=False)
    return outcome
