"""Reports of a run, by fact: for a terminal, for a pull request, and as evidence to attach to an issue."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from workersai_contracts.findings import Verdict

_MARKS: dict[str, str] = {"held": "✅", "broken": "❌", "otherwise": "🔀", "untested": "·"}


def summary(verdicts: Sequence[Verdict]) -> str:
    """How many facts came out how, in one line."""
    counts = Counter[str](verdict.outcome for verdict in verdicts)
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in _MARKS)


def as_text(verdicts: Sequence[Verdict]) -> str:
    """What a person at a terminal needs to know: what does not hold, and what is otherwise."""
    lines = [f"facts: {summary(verdicts)}"]
    for verdict in verdicts:
        if verdict.outcome in {"broken", "otherwise"}:
            lines.append(f"  {verdict.outcome} {verdict.fact} ({verdict.level})")
            lines += [f"    {detail}" for detail in verdict.details]
    settings = _settings(verdicts)
    if settings:
        told = " ".join(f"--assume '{fact}={alternative}'" for fact, alternative in settings.items())
        lines.append(f"  to make the emulator agree: serve {told}")
    return "\n".join(lines)


def as_markdown(verdicts: Sequence[Verdict], target: str) -> str:
    """A comment on a pull request: the summary, then what needs a look, then the rest folded away."""
    failed = any(verdict.fails_the_run for verdict in verdicts)
    lines = [
        f"## {_MARKS['broken' if failed else 'held']} Workers AI contract against `{target}`",
        "",
        f"{summary(verdicts)}.",
        "",
    ]
    to_look_at = [verdict for verdict in verdicts if verdict.outcome in {"broken", "otherwise"}]
    if to_look_at:
        lines += ["| | fact | level | what was seen |", "|---|---|---|---|"]
        lines += [_row(verdict, "<br>".join(map(_cell, verdict.details))) for verdict in to_look_at]
        lines.append("")
    settings = _settings(verdicts)
    if settings:
        lines += ["To make the emulator agree:", "", "```toml", as_settings(verdicts).rstrip(), "```", ""]
    lines += [
        "<details><summary>All facts</summary>",
        "",
        "| | fact | level | what it says |",
        "|---|---|---|---|",
    ]
    lines += [_row(verdict, _cell(verdict.text)) for verdict in verdicts]
    return "\n".join([*lines, "", "</details>", ""])


def as_settings(verdicts: Iterable[Verdict]) -> str:
    """A file for `serve --config` with which the emulator shows what the target shows."""
    lines = [f'"{fact}" = "{alternative}"' for fact, alternative in _settings(verdicts).items()]
    return "\n".join(["[assume]", *lines, ""])


def as_evidence(
    verdicts: Iterable[Verdict], target: str, evidence: Iterable[dict[str, Any]], version: str
) -> dict[str, Any]:
    """One file with every verdict and every exchange, without account and token."""
    return {
        "target": target,
        "version": version,
        "facts": [
            {
                "id": verdict.fact,
                "level": verdict.level,
                "outcome": verdict.outcome,
                "checks": verdict.checks,
                "details": list(verdict.details),
                "setting": verdict.setting and dict([verdict.setting]),
            }
            for verdict in verdicts
        ],
        "exchanges": list(evidence),
    }


def _settings(verdicts: Iterable[Verdict]) -> dict[str, str]:
    return dict(verdict.setting for verdict in verdicts if verdict.setting is not None)


def _row(verdict: Verdict, told: str) -> str:
    return f"| {_MARKS[verdict.outcome]} | `{verdict.fact}` | {verdict.level} | {told} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
