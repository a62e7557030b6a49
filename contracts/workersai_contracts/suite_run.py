"""One run of the suite against a target: what it found, what was sent and came back, and pytest's own verdict."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from workersai_contracts.findings import EVIDENCE, FINDINGS, Finding
from workersai_contracts.target import NoTarget

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from workersai_contracts.recording import Recorder
    from workersai_contracts.target import Target

SUITE = Path(__file__).with_name("suite")


@dataclass(eq=False)
class SuiteRun:
    """Hears, as a plugin of the run, what each test found, in whichever process; `code` is pytest's.

    A `recorder` gets each exchange of this process. `skipped` says of each test that was not run why.
    """

    recorder: Recorder | None = None
    code: int = 0
    findings: list[Finding] = field(default_factory=list)
    evidence: list[dict[str, Any]] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Tell the recorder what is sent for."""
        if self.recorder is not None:
            self.recorder.of = _name(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what a test's report carries; it is complete once the test was torn down."""
        if report.skipped and isinstance(report.longrepr, tuple):
            self.skipped[_name(report.nodeid)] = report.longrepr[2].removeprefix("Skipped: ")
        if report.failed:
            self.failed[_name(report.nodeid)] = str(report.longrepr)
        if report.when != "teardown":
            return
        for kind, said in cast("list[tuple[str, Any]]", report.user_properties):
            if kind == FINDINGS:
                self.findings += [Finding(**one) for one in said]
            elif kind == EVIDENCE:
                self.evidence += [{"test": _name(report.nodeid), **one} for one in said]


def run_suite(target: Target, arguments: Sequence[str] = (), recorder: Recorder | None = None) -> SuiteRun:
    """Run the suite in this process, with further arguments of pytest's. Raises NoTarget where pytest is missing."""
    try:
        import pytest
    except ImportError:
        raise NoTarget("the suite needs pytest: pip install 'workersai-emulator[verify]'") from None
    run = SuiteRun(recorder)
    plugin = ["-p", "workersai_contracts.suite.plugin"]
    os.environ.update(target.to_environment(), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")  # nobody else's plugins
    run.code = int(
        pytest.main([str(SUITE), "-c", str(SUITE / "pytest.ini"), *plugin, *arguments], plugins=[run])
    )
    return run


def _name(nodeid: str) -> str:
    return nodeid.rpartition("::")[2]
