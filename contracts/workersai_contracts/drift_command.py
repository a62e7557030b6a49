"""`workersai-verify drift A B`: the same exchanges with two targets, and where they differ."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from workersai_contracts.drift import SEVERITIES, Side
from workersai_contracts.drift import drift as compared
from workersai_contracts.drift_report import drift_as_json, drift_as_text
from workersai_contracts.recording import Recorder
from workersai_contracts.suite_run import run_suite
from workersai_contracts.target import NoTarget, reached

if TYPE_CHECKING:
    from workersai_contracts.drift import Severity
    from workersai_contracts.suite_run import SuiteRun
    from workersai_contracts.target import Target

#: The exit code where the two differ gravely enough.
FOUND = 1


@click.command()
@click.argument("a")
@click.argument("b")
@click.option("--worker-a", help="A's /batch Worker, where it is another address.")
@click.option("--worker-b", help="B's.")
@click.option(
    "--budget", type=float, default=500.0, show_default=True, help="What a live run may cost, in neurons."
)
@click.option("-k", "selection", help="Only the exchanges that match, as pytest's -k.")
@click.option(
    "--json",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write every difference of every exchange.",
)
@click.option(
    "--fail-on",
    type=click.Choice([*SEVERITIES, "nothing"]),
    default="error",
    show_default=True,
    help="The least severity that makes the exit code 1.",
)
@click.pass_context
def drift(
    context: click.Context,
    *,
    a: str,
    b: str,
    worker_a: str | None,
    worker_b: str | None,
    budget: float,
    selection: str | None,
    file: Path | None,
    fail_on: str,
) -> None:
    """Say where the targets A and B differ, and who is wrong by the contract.

    A target is emulator, live, replay:DIR or a URL, as for --target.
    """
    reach = partial(reached, budget=budget, environ=os.environ)
    with reach(a, worker=worker_a) as one, reach(b, worker=worker_b) as other:
        found = compared(_side(a, one, selection), _side(b, other, selection))
    click.echo(drift_as_text(found))
    if file is not None:
        file.write_text(
            json.dumps(drift_as_json(found), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    context.exit(FOUND if is_grave(found.worst(), fail_on) else 0)


def is_grave(worst: Severity | None, fail_on: str) -> bool:
    """Whether the gravest difference is at least as grave as `fail_on` says; never for `nothing`."""
    grave = [severity for severity in SEVERITIES if fail_on in SEVERITIES[SEVERITIES.index(severity) :]]
    return worst in grave


def _side(name: str, target: Target, selection: str | None) -> Side:
    if target.costs:
        from workersai_contracts.suite.cost import told_cost

        click.echo(told_cost(target), err=True)
    recorder = Recorder(name, account_ids=[target.account_id], tokens=[target.token])
    chosen = ["-k", selection] if selection else []
    run = run_suite(target, ["-p", "no:terminal", *chosen], recorder)
    if run.code not in {0, 1}:
        raise NoTarget(
            f"{name}: nothing could be run" + (f"; no exchange matches -k {selection!r}" if selection else "")
        )
    return side_of(name, recorder, run)


def side_of(name: str, recorder: Recorder, run: SuiteRun) -> Side:
    """A run as a side of a drift: what failed without a fact that is broken got no reply."""
    explained = {finding.where for finding in run.findings if not finding.held}
    unanswered = {of: told.splitlines()[0] for of, told in run.failed.items() if of not in explained and told}
    return Side(name, recorder.exchanges, run.findings, run.skipped, unanswered)
