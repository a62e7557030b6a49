"""Drift: what two targets do otherwise, exchange by exchange and fact by fact, and who of them is wrong.

The contracts are the third party. A difference is an error where a documented or observed fact, or a schema, says that
one side is wrong; a warning where an open fact allows both, or nobody knows; a note where nothing is to be concluded.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from workersai_contracts.alignment import pairs, steps
from workersai_contracts.body_forms import content_of
from workersai_contracts.catalogue import assumptions, facts
from workersai_contracts.differing import Change, body_changes, header_changes
from workersai_contracts.findings import SURE, verdicts
from workersai_contracts.routes import exchange_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workersai_contracts.differing import What
    from workersai_contracts.findings import Finding
    from workersai_contracts.recorded import Recorded

Severity = Literal["error", "warning", "note"]
Wrong = Literal["A", "B", "both", "nobody knows"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
_INDEX = re.compile(r"\[[\d*]+\]")

_ANYWHERE = ".*"
_DONE = r"(poll|worker-poll).*end.*|run-all"
#: Where an open fact shows outside its own probe: in which exchange, in which step, and at which place.
_SHOWS: dict[str, tuple[str, str, str]] = {
    "submit.status": (".*", r"submit.*", r"status"),
    "done.shape": (".*", _DONE, r"\$(\.result)?(\.(responses|results).*)?"),
    "done.status": (".*", _DONE, r"\$(\.result)?(\.status)?"),
    "done.order": (".*", _DONE, r"\$(\.result)?\.(responses|results)"),
    "poll.retention": (".*", r"poll.*end, \d+", _ANYWHERE),
    "poll.unknown": (
        r"test_open_fact\[poll\.other-model\]|test_a_failure_of_the_queue.*",
        ".*poll.*",
        _ANYWHERE,
    ),
    "batch.failed": (
        r"test_a_bare_body.*|test_gpt_oss.*|test_open_fact\[submit\.validation\]",
        r"poll.*end.*",
        r".*",
    ),
    "submit.validation": (r"test_a_bad_item.*|test_gpt_oss.*|test_a_bare_body.*", r".*", _ANYWHERE),
}


@dataclass(frozen=True, slots=True)
class Side:
    """One target's run: what it was sent and gave back, and what the suite found.

    `skipped` and `unanswered` are tests that were not run and that broke off, with the reason.
    """

    name: str
    exchanges: Sequence[Recorded]
    findings: Sequence[Finding]
    skipped: dict[str, str] = field(default_factory=dict)
    unanswered: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: in which exchange and step, where in the reply, what each side has, and who is wrong by what.

    Of a fact that is told otherwise, `exchange` is empty and `path` the fact.
    """

    exchange: str
    step: str
    path: str
    what: str
    a: str
    b: str
    severity: Severity
    wrong: Wrong
    why: str


@dataclass(frozen=True, slots=True)
class Drift:
    """All differences, the gravest first, and how much was compared."""

    a: str
    b: str
    compared: int
    differences: Sequence[Difference]
    not_compared: dict[str, str]

    def worst(self) -> Severity | None:
        """The gravest severity; None where the two are alike."""
        found = {one.severity for one in self.differences}
        return next((severity for severity in SEVERITIES if severity in found), None)


def drift(a: Side, b: Side) -> Drift:
    """Compare two runs of the suite."""
    return _Comparison(a, b).done()


class _Comparison:
    def __init__(self, a: Side, b: Side) -> None:
        self._a = a
        self._b = b
        self._alternatives = _alternatives(a.findings), _alternatives(b.findings)
        self._broken = _broken(a.findings), _broken(b.findings)
        self._open = [fact for fact in assumptions() if self._differs(fact)]

    def done(self) -> Drift:
        mine, theirs = steps(self._a.exchanges), steps(self._b.exchanges)
        found = [*self._facts(), *self._unanswered()]
        compared = 0
        for of in mine:
            if of not in theirs or of in self._not_compared():
                continue
            both, alone = pairs(mine[of], theirs[of])
            compared += len(both)
            for step, one, other in both:
                found += self._of_exchange(of, step, one, other)
            found += [self._alone(of, step, here=one is not None) for step, one in alone]
        found.sort(key=lambda one: SEVERITIES.index(one.severity))
        return Drift(self._a.name, self._b.name, compared, found, self._not_compared())

    def _not_compared(self) -> dict[str, str]:
        return {**self._a.skipped, **self._b.skipped}

    def _differs(self, fact: str) -> bool:
        one, other = (shown.get(fact) for shown in self._alternatives)
        return one is not None and other is not None and one != other

    def _facts(self) -> list[Difference]:
        """Facts that hold on one side only, and open facts that the sides answer each in its way."""
        told = []
        for one, other in zip(verdicts(self._a.findings), verdicts(self._b.findings), strict=True):
            if "untested" in {one.outcome, other.outcome}:
                continue
            if self._differs(one.fact):
                mine, theirs = (shown[one.fact] for shown in self._alternatives)
                why = f"open fact {one.fact}: {assumptions()[one.fact].about}"
                told.append(_fact(one.fact, mine, theirs, ("warning", "nobody knows", why)))
            elif (one.outcome == "broken") != (other.outcome == "broken"):
                wrong: Wrong = "A" if one.outcome == "broken" else "B"
                severity: Severity = "error" if one.level in SURE else "warning"
                why = f"{one.fact} ({one.level}): {one.text}"
                told.append(_fact(one.fact, _outcome(one), _outcome(other), (severity, wrong, why)))
        return told

    def _unanswered(self) -> list[Difference]:
        sides: tuple[tuple[Wrong, Side], ...] = (("A", self._a), ("B", self._b))
        return [
            Difference(of, "", "reply", "removed", *_at(wrong, told), "error", wrong, told)
            for wrong, side in sides
            for of, told in side.unanswered.items()
        ]

    def _of_exchange(self, of: str, step: str, one: Recorded, other: Recorded) -> list[Difference]:
        changes = [] if one.status == other.status else [_status(one, other)]
        changes += header_changes(dict(one.headers), dict(other.headers))
        changes += body_changes(one.got, other.got)
        if not changes:
            return []
        breaches = _breaches(one), _breaches(other)
        return [
            Difference(
                of,
                step,
                change.path,
                change.what,
                change.a,
                change.b,
                *self._judged(of, step, change, breaches),
            )
            for change in changes
        ]

    def _judged(
        self, of: str, step: str, change: Change, breaches: tuple[dict[str, str], dict[str, str]]
    ) -> tuple[Severity, Wrong, str]:
        """Who is wrong: nobody where an open fact shows, else by the schemas, else by what was found broken here."""
        known = self._known_open(of, step, change.path)
        if known:
            return "warning", "nobody knows", ", ".join(known)
        by_schema = [_touching(change.path, found) for found in breaches]
        if any(by_schema):
            return "error", _whose(by_schema), "; ".join(dict.fromkeys(filter(None, by_schema)))
        here = [found.get(of, set()) for found in self._broken]
        only = [here[0] - here[1], here[1] - here[0]]
        if any(only):
            sure = any(facts()[fact].level in SURE for fact in only[0] | only[1])
            return "error" if sure else "warning", _whose(only), ", ".join(sorted(only[0] | only[1]))
        plain = change.what == "value" and change.path != "status"
        return "note" if plain else "warning", "nobody knows", "no fact says it"

    def _known_open(self, of: str, step: str, path: str) -> list[str]:
        """The open facts that differ and are known to show here."""
        if path == "headers.content-type":
            return []  # which is what it is, whatever else is open
        probe = re.fullmatch(r"test_open_fact\[(.+)\]", of)
        if probe is not None and probe[1] in self._open:
            return [self._told(probe[1])]
        here = of, step.partition(" / ")[0], path
        shows = [fact for fact in self._open if fact in _SHOWS and all(map(re.fullmatch, _SHOWS[fact], here))]
        exact = [fact for fact in shows if _SHOWS[fact][-1] != _ANYWHERE]
        return [self._told(fact) for fact in exact or shows]

    def _alone(self, of: str, step: str, *, here: bool) -> Difference:
        """A step that only one side came to."""
        known = self._known_open(of, step, "exchange")
        what: What = "removed" if here else "added"
        a, b = ("made", "not made") if here else ("not made", "made")
        severity: Severity = "warning" if known else "note"
        why = ", ".join(known) or "it came to this with one of them only"
        return Difference(of, step, "exchange", what, a, b, severity, "nobody knows", why)

    def _told(self, fact: str) -> str:
        one, other = (shown.get(fact) for shown in self._alternatives)
        return f"open fact {fact}: A {one}, B {other}"


def _alternatives(findings: Sequence[Finding]) -> dict[str, str]:
    """Which alternative of each open fact was shown; one that is not the default counts, as in a verdict."""
    shown: defaultdict[str, set[str]] = defaultdict(set)
    for finding in findings:
        if finding.alternative is not None:
            shown[finding.fact].add(finding.alternative)
    return {
        fact: min(found - {assumptions()[fact].default} or found)
        for fact, found in shown.items()
        if fact in assumptions()
    }


def _broken(findings: Sequence[Finding]) -> dict[str, set[str]]:
    """Which facts were found broken, by the test."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for finding in findings:
        if not finding.held:
            found[finding.where].add(finding.fact)
    return dict(found)


def _breaches(recorded: Recorded) -> dict[str, str]:
    """What the schemas say against a reply: by place, in one line each."""
    content = (
        json.dumps(recorded.sent["json"]).encode() if recorded.sent and "json" in recorded.sent else b"{}"
    )
    target = recorded.path + (f"?{recorded.query}" if recorded.query else "")
    exchange = exchange_of(recorded.method, target, content)
    if exchange is None:
        return {}
    content_type = next((v for name, v in recorded.headers.items() if name.lower() == "content-type"), "")
    breach = exchange.check_reply(recorded.status, content_type, content_of(recorded.got))
    found = breach.mismatches if breach is not None else []
    named = breach.schema_name if breach is not None else ""
    return {
        "headers.content-type" if one.path == "content-type" else one.path: f"schema {named}: {one.message}"
        for one in found
    }


def _touching(path: str, breaches: dict[str, str]) -> str:
    """What the schemas say at this place, around it or in it; empty for nothing."""
    place = _INDEX.sub("[]", path)
    for where, told in breaches.items():
        other = _INDEX.sub("[]", where)
        if place.startswith(other) or other.startswith(place):
            return told
    return ""


def _whose(found: Sequence[Any]) -> Wrong:
    return "both" if found[0] and found[1] else "A" if found[0] else "B"


def _status(one: Recorded, other: Recorded) -> Change:
    return Change("status", "value", str(one.status), str(other.status))


def _fact(fact: str, a: str, b: str, judged: tuple[Severity, Wrong, str]) -> Difference:
    return Difference("", "", fact, "value", a, b, *judged)


def _outcome(verdict: Any) -> str:
    return f"broken: {verdict.details[0]}" if verdict.outcome == "broken" else "held"


def _at(wrong: Wrong, told: str) -> tuple[str, str]:
    return ("none", "a reply") if wrong == "A" else ("a reply", "none")
