"""Drift as a person reads it, and as a program does."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from workersai_contracts.drift import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workersai_contracts.drift import Difference, Drift

_NAMED = 3  # exchanges that a line names


def drift_as_text(found: Drift) -> str:
    """A head line, then each difference once, the gravest first, with how many exchanges show it."""
    counts = Counter[str](one.severity for one in found.differences)
    told = ", ".join(
        f"{counts[severity]} {severity}{'' if counts[severity] == 1 else 's'}" for severity in SEVERITIES
    )
    lines = [f"drift: A {found.a}, B {found.b}: {told} in {found.compared} exchanges"]
    same: dict[tuple[str, ...], list[Difference]] = {}
    for one in found.differences:
        same.setdefault((one.severity, one.path, one.what, one.a, one.b, one.wrong, one.why), []).append(one)
    for group in same.values():
        lines += _told(group)
    if found.not_compared:
        reasons = Counter(found.not_compared.values())
        lines += [f"  not compared: {count} ({reason})" for reason, count in reasons.items()]
    return "\n".join(lines)


def drift_as_json(found: Drift) -> dict[str, Any]:
    """Everything: each difference of each exchange."""
    return {
        "a": found.a,
        "b": found.b,
        "compared": found.compared,
        "worst": found.worst(),
        "differences": [asdict(one) for one in found.differences],
        "not_compared": found.not_compared,
    }


def _told(group: Sequence[Difference]) -> list[str]:
    one = group[0]
    wrong = (
        "nobody knows who is wrong"
        if one.wrong == "nobody knows"
        else f"{one.wrong} {'are' if one.wrong == 'both' else 'is'} wrong"
    )
    lines = [
        f"  {one.severity:<8}{one.path:<36} {one.what:<8} A {one.a}  B {one.b}",
        f"          {wrong}: {one.why}",
    ]
    if one.exchange:
        named = list(
            dict.fromkeys(f"{each.exchange} ({each.step})" if each.step else each.exchange for each in group)
        )
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        lines.append(f"          in {', '.join(named[:_NAMED])}{more}")
    return lines
