"""The GitHub Action: its steps are run here as a runner runs them, with the expressions that they use filled in."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

REPO = Path(__file__).parents[2]
ACTION = yaml.safe_load((REPO / "action.yml").read_text(encoding="utf-8"))
WORKFLOW = yaml.safe_load((REPO / "emulator/examples/github-workflow.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}

pytestmark = pytest.mark.usefixtures("clean_environment")


@dataclass(frozen=True)
class Runner:
    """As much of a runner as the action's steps need."""

    folder: Path

    def run(self, name: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run one step's script with these inputs, the others at their defaults."""
        step = STEPS[name]
        given = {key: str(one.get("default", "")) for key, one in ACTION["inputs"].items()} | inputs
        environment = {
            key: re.sub(r"\$\{\{ inputs\.(\w+)[^}]*\}\}", lambda match: given[match[1]], value)
            for key, value in step["env"].items()
        }
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            env={
                **os.environ,
                **environment,
                "RUNNER_TEMP": str(self.folder),
                "GITHUB_ENV": str(self.folder / "env"),
                "GITHUB_OUTPUT": str(self.folder / "output"),
            },
            capture_output=True,
            text=True,
            cwd=self.folder,
            timeout=60,
            check=False,
        )

    def told(self, name: str) -> dict[str, str]:
        """What a step wrote into the file `env` or `output`."""
        lines = (self.folder / name).read_text(encoding="utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    """A runner on which the action has installed the distribution that is under test."""
    (tmp_path / "workersai-emulator").symlink_to(sys.prefix)
    yield Runner(tmp_path)
    started = tmp_path / "workersai-emulator.pid"
    if started.exists():
        with suppress(ProcessLookupError):  # it could not start
            os.kill(int(started.read_text(encoding="utf-8")), signal.SIGTERM)


def test_in_the_background_the_steps_that_follow_find_it_by_their_environment(runner: Runner) -> None:
    ran = runner.run("Start it", script="queued:hold, done", seed="5")
    assert ran.returncode == 0, ran.stderr
    url = runner.told("output")["url"]
    environment = runner.told("env")
    assert environment["WORKERS_AI_EMULATOR_URL"] == url
    assert environment["CLOUDFLARE_BASE_URL"] == f"{url}/client/v4"
    assert environment["OPENAI_API_KEY"] == "emulator"
    assert httpx.get(f"{url}/__emulator__/settings").json()["script"] == "queued:hold, done"


def test_a_server_that_cannot_start_fails_the_step_with_its_reason(runner: Runner) -> None:
    ran = runner.run("Start it", script="bogus")
    assert ran.returncode == 1
    assert ran.stderr == ((runner.folder / "workersai-emulator.log").read_text(encoding="utf-8"))
    assert "--script: 'bogus' is no step" in ran.stderr
    assert not (runner.folder / "env").exists()


def test_a_command_runs_beside_it_and_decides_the_step(runner: Runner) -> None:
    command = (
        'curl --fail --silent "$WORKERS_AI_EMULATOR_URL/__emulator__/settings"; echo; echo "$0 done"; false\n'
    )
    ran = runner.run("Run the command beside it", command=command, script="instant")
    assert ran.returncode == 1
    assert '"script":"done"' in ran.stdout
    ran = runner.run("Run the command beside it", command="false | true; echo never")
    assert (ran.returncode, ran.stdout) == (1, "")


def test_every_input_is_used_and_every_one_that_is_used_is_there() -> None:
    used = set(re.findall(r"inputs\.(\w+)", yaml.safe_dump(ACTION["runs"])))
    assert used == ACTION["inputs"].keys()
    assert {one["description"] != "" for one in ACTION["inputs"].values()} == {True}
    assert ACTION["runs"]["using"] == "composite"
    assert all(step.get("shell") == "bash" for step in STEPS.values() if "run" in step)


def test_no_script_has_an_expression_in_it_that_somebody_s_text_could_end() -> None:
    assert [name for name, step in STEPS.items() if "${{" in step.get("run", "")] == []


def steps_of_the_example() -> list[dict[str, Any]]:
    return [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]


def test_the_example_workflow_gives_the_action_only_inputs_that_it_has() -> None:
    uses = [step for step in steps_of_the_example() if "workersai-emulator@" in step.get("uses", "")]
    assert len(uses) == 2
    for step in uses:
        assert step["with"].keys() <= ACTION["inputs"].keys()


def test_the_example_workflow_keeps_junit_files() -> None:
    assert [
        step["with"]["path"] for step in steps_of_the_example() if "upload-artifact" in step.get("uses", "")
    ]
    assert [step["with"]["junit"] for step in steps_of_the_example() if "junit" in step.get("with", {})]
