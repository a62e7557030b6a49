"""The examples of the npm package, run as their README says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from worker_environments import PACKAGE, node_of
from worker_runs import COMMAND, QUIET, clean_environment, emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.workers
EMBEDDING = "@cf/baai/bge-m3"


@pytest.fixture
def project(request: pytest.FixtureRequest, environments: dict[str, Path]) -> Path:
    """The examples as a project whose packages are those of an environment, which the test names."""
    environment = environments[request.param]
    folder = environment / "runs" / "examples"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PACKAGE / "examples", folder)
    return folder


def environment_for(project: Path, url: str | None = None) -> dict[str, str]:
    told = {**clean_environment(), **QUIET, "HOME": str(project / "home")}
    told["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{told['PATH']}"
    return told if url is None else {**told, "WORKERS_AI_EMULATOR_URL": url}


def write_config(project: Path) -> None:
    subprocess.run([*COMMAND, "worker-config"], cwd=project, check=True, capture_output=True)


def package(project: Path, program: str) -> list[str]:
    """The command that runs a program of an installed package."""
    environment = next(path for path in project.parents if path.name == "runs").parent
    return [node_of(environment), str(environment / "node_modules" / program)]


@contextmanager
def wrangler(project: Path, *arguments: str, url: str) -> Iterator[str]:
    """The root of what wrangler serves."""
    command = [*package(project, "wrangler/bin/wrangler.js"), *arguments, "--ip", "127.0.0.1", "--port", "0"]
    with subprocess.Popen(
        command, cwd=project, env=environment_for(project, url), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        ready = next(filter(None, (re.search(r"Ready on (http://\S+)", line) for line in process.stdout)))
        try:
            yield ready[1]
        finally:
            process.terminate()
            process.communicate(timeout=30)


def assert_it_works(root: str) -> None:
    """It queues, polls, streams and lists."""
    with httpx.Client(base_url=root, timeout=30) as client:
        queued = client.post("/batches", json=["orange cloud", "a llama"])
        assert queued.status_code == 202
        polls = [client.get(f"/batches/{queued.json()['request_id']}").json() for _ in range(3)]
        assert [poll.get("status") for poll in polls] == ["queued", "running", None]
        assert {item["external_reference"] for item in polls[2]["responses"]} == {"0", "1"}
        events = client.get("/say", params={"prompt": "hello"})
        assert events.headers["content-type"] == "text/event-stream"
        assert events.text.endswith("data: [DONE]\n\n")
        assert EMBEDDING in client.get("/models").json()
        refused = client.get("/batches/nothing")
        assert (refused.status_code, refused.json()) == (502, {"error": "8007: Request not found"})


@pytest.mark.parametrize("project", ["newest", "oldest"], indirect=True)
def test_wrangler_dev(project: Path) -> None:
    write_config(project)
    with (
        emulator() as account,
        wrangler(project, "dev", "-c", "wrangler.emulator.jsonc", url=account.url) as root,
    ):
        assert_it_works(root)


@pytest.mark.parametrize("project", ["newest", "oldest"], indirect=True)
def test_wrangler_pages_dev(project: Path) -> None:
    with emulator() as account, wrangler(project / "pages", "pages", "dev", url=account.url) as root:
        assert_it_works(root)


@pytest.mark.parametrize("project", ["newest", "oldest"], indirect=True)
def test_miniflare(project: Path) -> None:
    with emulator() as account:
        ran = subprocess.run(
            [node_of(project.parents[1]), "miniflare.mjs"],
            cwd=project,
            env=environment_for(project, account.url),
            capture_output=True,
            text=True,
            check=True,
        )
    assert ran.stdout.splitlines()[:3] == ["queued", "running", "done: 2 vectors"]
    assert EMBEDDING in ran.stdout


@pytest.mark.parametrize("project", ["vitest"], indirect=True)
def test_vitest_with_an_emulator_of_its_own(project: Path) -> None:
    write_config(project)
    ran = subprocess.run(
        [*package(project, "vitest/vitest.mjs"), "run"],
        cwd=project,
        env=environment_for(project),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Tests  4 passed (4)" in ran.stdout
