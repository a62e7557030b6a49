"""One run of a runtime: an emulator of its own, the program, and what its Worker was answered."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worker_environments import NOT_INHERITED, folder_of, node_of, version_of

from workersai_emulator.controls import WorkersAI
from workersai_emulator.ids import DEVELOPMENT_ACCOUNT, DEVELOPMENT_TOKEN
from workersai_emulator.plane import HttpPlane

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runtimes import Runtime

PROGRAMS = Path(__file__).parent / "programs"
COMMAND = (sys.executable, "-m", "workersai_emulator.cli")
SEED = 7
LONGEST_RUN = 90
PAGE = "<html><head><title>502 Bad Gateway</title></head><body>cloudflare</body></html>"
#: What goes wrong by the text of the request, for every runtime in the same way.
RULES: list[dict[str, Any]] = [
    {"match": {"text": "out of capacity"}, "effect": {"error": 3040}},
    {"match": {"text": "bad gateway"}, "effect": {"reply": {"status": 502, "body": PAGE}}},
    {"match": {"text": "slowly"}, "effect": {"transport": "slow"}},
]
#: No tool may ask anybody but the emulator for anything.
QUIET = {
    "WRANGLER_SEND_METRICS": "false",
    "WRANGLER_HIDE_BANNER": "true",
    "CLOUDFLARE_CF_FETCH_ENABLED": "false",
    "NO_UPDATE_NOTIFIER": "1",
    "NO_COLOR": "1",
}


@dataclass(frozen=True)
class Ran:
    """What a runtime's Worker was answered, by part, and the versions that were at work."""

    runtime: Runtime
    answers: dict[str, Any]
    versions: str


@contextmanager
def emulator(*options: str) -> Iterator[WorkersAI]:
    """An emulator in a process of its own that does the same for each that is told the same."""
    serve = [*COMMAND, "serve", "--port", "0", "--seed", str(SEED), *options]
    with subprocess.Popen(
        serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=clean_environment()
    ) as process:
        assert process.stdout is not None
        plane = HttpPlane(process.stdout.readline().strip())
        try:
            yield WorkersAI(plane, DEVELOPMENT_ACCOUNT, DEVELOPMENT_TOKEN)
        finally:
            plane.close()
            process.kill()


def run_runtime(runtime: Runtime) -> Ran:
    """Let a runtime's Worker ask an emulator everything."""
    environment = folder_of(runtime.environment)
    folder = environment / "runs" / str(runtime).replace(", ", "-").replace(" ", "-")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PROGRAMS / "pages" if runtime.is_pages else PROGRAMS, folder)
    if runtime.is_pages:
        for name in ("answers.js", "wrangler.mjs"):
            shutil.copy(PROGRAMS / name, folder)
    with emulator() as account:
        for rule in RULES:
            account.rules.add(**rule)
        if runtime.config is not None:
            _write_config(folder, runtime, account.url)
        ran = subprocess.run(
            [node_of(environment), *runtime.program],
            capture_output=True,
            text=True,
            cwd=folder,
            env=_environment(folder, runtime, account.url),
            timeout=LONGEST_RUN,
            check=False,
        )
    versions = _versions(environment)
    told = [line.partition("TOLD ")[2] for line in ran.stdout.splitlines() if "TOLD {" in line]
    assert told, f"{runtime} ({versions}) told nothing:\n{(ran.stdout + ran.stderr)[-3000:]}"
    return Ran(runtime, json.loads(told[-1]), versions)


def run_program(
    environment: Path, program: str, url: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Let an environment's Node run one of our programs beside its packages."""
    folder = environment / "runs" / program.partition(".")[0]
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PROGRAMS, folder)
    return subprocess.run(
        [node_of(environment), program],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**clean_environment(), **QUIET, "WORKERS_AI_EMULATOR_URL": url, **variables},
        timeout=LONGEST_RUN,
        check=False,
    )


def clean_environment() -> dict[str, str]:
    """The environment without settings of ours and without anybody's credentials."""
    return {name: value for name, value in os.environ.items() if not name.startswith(NOT_INHERITED)}


def _environment(folder: Path, runtime: Runtime, url: str) -> dict[str, str]:
    home = folder / "home"
    home.mkdir()
    told = {**clean_environment(), **QUIET, "HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    return {**told, "WORKERS_AI_EMULATOR_URL": url, "NODE_OPTIONS": runtime.node_options}


def _write_config(folder: Path, runtime: Runtime, url: str) -> None:
    assert runtime.config is not None
    written = subprocess.run(
        [*COMMAND, "worker-config", runtime.config, "--url", url],
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert written.returncode == 0, written.stderr
    if runtime.is_pages:  # which takes no other configuration than its own
        (folder / runtime.config).unlink()
        (folder / "wrangler.emulator.jsonc").rename(folder / "wrangler.jsonc")


def _versions(environment: Path) -> str:
    names = ("node", "wrangler", "miniflare", "workerd", "vitest")
    there = [name for name in names if (environment / "node_modules" / name).exists()]
    return ", ".join(f"{name} {version_of(environment, name)}" for name in there)
