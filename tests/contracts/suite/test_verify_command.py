from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from lying_proxy import LyingProxy
from running import run

from workersai_contracts import facts
from workersai_contracts.suite.cost import estimated_run
from workersai_contracts.target import LIVE, NoTarget, Target, reached
from workersai_emulator import Emulator

if TYPE_CHECKING:
    from pathlib import Path

    from lying_proxy import Passing


def verify(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("CLOUDFLARE_", "PYTEST_"))
    }
    return subprocess.run(
        [sys.executable, "-m", "workersai_contracts.verify", *arguments],
        capture_output=True,
        text=True,
        env={**clean, **environment},
        timeout=120,
        check=False,
    )


def test_the_emulator_passes_and_every_report_is_written(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("junit.xml", "report.md", "evidence.json", "settings.toml")}
    options = zip(
        ("--junit", "--markdown", "--json", "--write-settings"), map(str, files.values()), strict=True
    )
    ran = verify("--target", "emulator", *(word for pair in options for word in pair))
    assert ran.returncode == 0, ran.stdout
    told = re.search(r"(\d+) held, 0 broken, 0 otherwise, (\d+) untested$", ran.stdout.splitlines()[-1])
    assert told is not None, ran.stdout
    held, untested = map(int, told.groups())
    assert held + untested == len(facts())
    assert untested < held
    suites = ElementTree.parse(files["junit.xml"]).getroot()
    assert [suite.get("failures") for suite in suites] == ["0"]
    assert files["report.md"].read_text().startswith("## ✅ Workers AI contract against `emulator`\n")
    assert tomllib.loads(files["settings.toml"].read_text()) == {"assume": {}}
    evidence = json.loads(files["evidence.json"].read_text())
    assert {fact["id"] for fact in evidence["facts"]} == set(facts())
    assert len(evidence["exchanges"]) > 100


def test_a_server_that_is_otherwise_and_wrong_is_told_by_fact(tmp_path: Path) -> None:
    def lie(passing: Passing) -> None:
        if "content-type" in passing.headers:
            passing.headers["content-type"] = "application/json; charset=utf-8"

    settings, report = tmp_path / "settings.toml", tmp_path / "report.md"
    with Emulator(assumptions={"poll.unknown": "not-found"}) as emulator, LyingProxy(emulator.url) as proxy:
        proxy.lie = lie
        wanted = [
            "-k",
            "poll.unknown or several",
            "--write-settings",
            str(settings),
            "--markdown",
            str(report),
        ]
        ran = verify("--target", proxy.url, *wanted, "-n", "2")
    assert ran.returncode == 1
    assert (
        "  broken head.content-type (observed)" in ran.stdout
        or "  broken head.content-type (documented)" in ran.stdout
    )
    assert "content-type is 'application/json; charset=utf-8'" in ran.stdout
    assert "  otherwise poll.unknown (assumed)" in ran.stdout
    assert "to make the emulator agree: serve --assume 'poll.unknown=not-found'" in ran.stdout
    assert "Traceback" not in ran.stdout + ran.stderr
    assert tomllib.loads(settings.read_text()) == {"assume": {"poll.unknown": "not-found"}}
    assert "| ❌ | `head.content-type` | documented |" in report.read_text()
    assert "| 🔀 | `poll.unknown` | assumed |" in report.read_text()


def test_evidence_holds_neither_token_nor_account(tmp_path: Path) -> None:
    token, account_id = "a-secret-token", "feedfacefeedfacefeedfacefeedface"
    evidence = tmp_path / "evidence.json"
    with Emulator() as emulator:
        ran = verify(
            *("--target", emulator.url, "--json", str(evidence), "-k", "one or credentials"),
            CLOUDFLARE_API_TOKEN=token,
            CLOUDFLARE_ACCOUNT_ID=account_id,
        )
    assert ran.returncode == 0, ran.stdout
    told = evidence.read_text() + ran.stdout + ran.stderr
    assert token not in told
    assert account_id not in told
    assert "/accounts/{account_id}/ai/run/" in told


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "--target is missing: emulator, live, replay:DIR, or a URL"),
        (["--target", "live"], "--target live needs CLOUDFLARE_ACCOUNT_ID and CLOUDFLARE_API_TOKEN"),
        (["--target", "nonsense"], "--target nonsense: give emulator, live, replay:DIR, or a URL"),
        (
            ["--target", "http://127.0.0.1:1"],
            "--target http://127.0.0.1:1: cannot be reached: Connection refused",
        ),
        (["--target", "https://api.cloudflare.com"], "the live service is only reached by --target live"),
        (["--target", "emulator", "--budget", "x"], "Invalid value for '--budget'"),
        (["--target", "emulator", "-k", "nothing-like-it"], ""),
    ],
    ids=[
        "no target",
        "no credentials",
        "no such target",
        "unreachable",
        "live by URL",
        "bad budget",
        "no test",
    ],
)
def test_what_cannot_be_run_is_one_line_and_exit_2(arguments: list[str], complaint: str) -> None:
    ran = verify(*arguments)
    assert ran.returncode == 2
    assert complaint in ran.stderr
    assert ran.stderr.count("\n") == (1 if complaint else 0)


def test_facts_prints_the_whole_ledger() -> None:
    lines = verify("facts").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(facts())
    assert {row["id"] for row in json.loads(verify("facts", "--json").stdout)} == set(facts())


def test_live_is_the_live_service_whatever_the_environment_says() -> None:
    environ = {
        "CLOUDFLARE_ACCOUNT_ID": "f" * 32,
        "CLOUDFLARE_API_TOKEN": "secret",
        "CLOUDFLARE_BASE_URL": "http://127.0.0.1:8799/client/v4",
    }
    with reached("live", worker=None, budget=500, environ=environ) as target:
        assert (target.root, target.budget, target.costs) == (LIVE, 500, True)
        assert "secret" not in repr(target)


@pytest.mark.parametrize("missing", ["CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_API_TOKEN"])
def test_live_names_the_credential_that_is_missing(missing: str) -> None:
    environ = {"CLOUDFLARE_ACCOUNT_ID": "f" * 32, "CLOUDFLARE_API_TOKEN": "secret", missing: ""}
    with (
        pytest.raises(NoTarget, match=f"needs {missing} in"),
        reached("live", worker=None, budget=1, environ=environ),
    ):
        pytest.fail("there is nothing to reach")


def test_a_whole_live_run_is_reckoned_to_cost_a_tenth_of_the_budget() -> None:
    assert 0 < estimated_run() < 50


def test_a_run_that_costs_stops_at_its_budget() -> None:
    with Emulator() as emulator:
        counted = Target("live", emulator.url, emulator.account_id, emulator.token, None, budget=0.05)
        found = run(counted, ["exchanges"])
    with Emulator() as emulator:
        free = Target("live", emulator.url, emulator.account_id, emulator.token, None, budget=500)
        whole = run(free, ["exchanges"])
    assert found["sync.run"].checks < whole["sync.run"].checks
    assert found["models.reranking"].outcome == "untested"
    assert whole["models.reranking"].outcome == "held"
