"""The command `workersai-verify`: runs the suite against a target, and tells the result by fact."""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

import click

from workersai_contracts.catalogue import facts
from workersai_contracts.drift_command import drift
from workersai_contracts.findings import Verdict, verdicts
from workersai_contracts.proxy_command import proxy
from workersai_contracts.recording import NoRecording, Recorder
from workersai_contracts.report import as_evidence, as_markdown, as_settings, as_text
from workersai_contracts.suite_run import run_suite
from workersai_contracts.target import NoTarget, Target, reached

BUDGET = 500.0

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group(invoke_without_command=True)
@click.version_option(version("workersai-emulator"), message="workersai-verify %(version)s")
@click.option("--target", "name", help="emulator (started for the run), live, a server's URL, or replay:DIR.")
@click.option("--worker", help="A /batch Worker's URL, to be held to the contract too.")
@click.option(
    "--budget", type=float, default=BUDGET, show_default=True, help="What a live run may cost, in neurons."
)
@click.option("--junit", type=_FILE, help="Write JUnit XML.")
@click.option("--markdown", type=_FILE, help="Write a report for a pull request.")
@click.option(
    "--json", "evidence", type=_FILE, help="Write every verdict and exchange, without account and token."
)
@click.option(
    "--write-settings", type=_FILE, help="Write a file for serve --config that makes the emulator agree."
)
@click.option(
    "--record", type=click.Path(path_type=Path, file_okay=False), help="Keep every exchange in a new folder."
)
@click.option("--redact-texts", is_flag=True, help="Hide in the recording what was said, on both sides.")
@click.option("-k", "selection", help="Run only the tests that match, as pytest's -k.")
@click.option(
    "-n", "processes", type=click.IntRange(1), help="Run in so many processes (needs pytest-xdist)."
)
@click.option("-v", "--verbose", is_flag=True, help="Show each test.")
@click.pass_context
def verify(
    context: click.Context, /, name: str | None, worker: str | None, budget: float, **wanted: Any
) -> None:
    """Hold a target to the contract of Workers AI's batch queue."""
    if context.invoked_subcommand is not None:
        return
    if name is None:
        raise click.UsageError("--target is missing: emulator, live, replay:DIR, or a URL")
    if wanted["record"] and wanted["processes"]:
        raise click.UsageError("--record keeps exchanges in their order: leave out -n")
    if wanted["redact_texts"] and not wanted["record"]:
        raise click.UsageError("--redact-texts goes with --record DIR")
    with reached(name, worker=worker, budget=budget, environ=os.environ) as target:
        if target.costs:
            from workersai_contracts.suite.cost import told_cost

            click.echo(told_cost(target), err=True)
        context.exit(_run(target, name, **wanted))


@verify.command("facts")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def show_facts(*, as_json: bool) -> None:
    """Print the ledger: what is known of the wire, and how surely."""
    ledger = facts().values()
    if as_json:
        click.echo(
            json.dumps([{"id": f.id, "level": f.level, "text": f.text, "source": f.source} for f in ledger])
        )
        return
    for fact in ledger:
        click.echo(f"{fact.id:<22} {fact.level:<11} {fact.text}  [{fact.source}]")


verify.add_command(drift)
verify.add_command(proxy)


def _run(
    target: Target,
    name: str,
    *,
    junit: Path | None,
    markdown: Path | None,
    evidence: Path | None,
    write_settings: Path | None,
    record: Path | None,
    redact_texts: bool,
    selection: str | None,
    processes: int | None,
    verbose: bool,
) -> int:
    arguments = ["-v" if verbose else "-q"]
    arguments += ["--junit-xml", str(junit)] if junit else []
    arguments += ["-k", selection] if selection else []
    if processes and not target.in_order:
        arguments += ["-p", "xdist.plugin", "-n", str(processes)]
    ran = run_suite(target, arguments, _recorder(target, name, record, hide_texts=redact_texts))
    found = verdicts(ran.findings)
    click.echo(as_text(found))
    for path, text in (
        (markdown, as_markdown(found, name)),
        (write_settings, as_settings(found)),
        (
            evidence,
            json.dumps(as_evidence(found, name, ran.evidence, version("workersai-emulator")), indent=1),
        ),
    ):
        if path is not None:
            path.write_text(text, encoding="utf-8")
    return _exit_code(ran.code, found)


def _recorder(target: Target, name: str, folder: Path | None, *, hide_texts: bool) -> Recorder | None:
    if folder is None:
        return None
    whose = {"account_ids": [target.account_id], "tokens": [target.token]}
    return Recorder(name, folder, **whose, hide_texts=hide_texts)


def _exit_code(pytest_code: int, found: list[Verdict]) -> int:
    if pytest_code in {0, 1}:
        return int(pytest_code == 1 or any(verdict.fails_the_run for verdict in found))
    return 2


def main() -> None:
    """Run the command; what is wrong with what was asked is one line on stderr and exit code 2."""
    try:
        code = verify.main(prog_name="workersai-verify", standalone_mode=False)
    except click.exceptions.Exit as end:
        code = end.exit_code
    except click.ClickException as fault:
        _fail(fault.format_message())
    except (NoTarget, NoRecording) as fault:
        _fail(str(fault))
    except OSError as fault:
        _fail(f"{fault.filename}: {fault.strerror}" if fault.filename else str(fault))
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(reason: str) -> NoReturn:
    click.echo(f"workersai-verify: {' '.join(reason.split())}", err=True)
    sys.exit(2)


if __name__ == "__main__":
    main()
