"""Findings: what a run learned of each fact."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from workersai_contracts.catalogue import Level, assumptions, facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Outcome = Literal["held", "broken", "otherwise", "untested"]
#: Under which names a test's report carries its findings, and what it sent and got.
FINDINGS, EVIDENCE = "workersai_findings", "workersai_evidence"
SURE: frozenset[Level] = frozenset({"documented", "observed"})


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check said of one fact.

    `alternative` is set for an open fact: which of its alternatives the target shows.
    """

    fact: str
    held: bool
    message: str = ""
    where: str = ""
    alternative: str | None = None

    def as_json(self) -> dict[str, Any]:
        """As it goes from one process of a run to another."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What all checks together say of one fact.

    `setting` is what makes the emulator agree, where an open fact turned out otherwise.
    """

    fact: str
    level: Level
    text: str
    outcome: Outcome
    checks: int
    details: Sequence[str] = field(default=())
    setting: tuple[str, str] | None = None

    @property
    def fails_the_run(self) -> bool:
        """Whether somebody is wrong: a documented or observed fact does not hold."""
        return self.outcome == "broken" and self.level in SURE


def verdicts(findings: Iterable[Finding]) -> list[Verdict]:
    """One verdict for each fact of the ledger, in the ledger's order."""
    by_fact: dict[str, list[Finding]] = {}
    for finding in findings:
        by_fact.setdefault(finding.fact, []).append(finding)
    return [_verdict(fact_id, by_fact.get(fact_id, [])) for fact_id in facts()]


def _verdict(fact_id: str, found: list[Finding]) -> Verdict:
    fact = facts()[fact_id]
    broken = [f"{finding.message} (in: {finding.where})" for finding in found if not finding.held]
    shown = {finding.alternative for finding in found if finding.alternative is not None}
    setting = None
    if broken:
        outcome: Outcome = "broken"
    elif shown and shown != {assumptions()[fact_id].default}:
        outcome = "otherwise"
        other = min(shown - {assumptions()[fact_id].default})
        setting = (fact_id, other)
        broken = [f"the target shows {other!r}, {assumptions()[fact_id].alternatives[other]}"]
    else:
        outcome = "held" if found else "untested"
    return Verdict(fact_id, fact.level, fact.text, outcome, len(found), tuple(dict.fromkeys(broken)), setting)
