"""The README's examples, as printed, one after the other against `serve`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from workersai_contracts import assumptions, models
from workersai_emulator import verdict
from workersai_emulator.cli import cli
from workersai_emulator.pointing import pointers
from workersai_emulator.scenarios import SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(sh|python|js)\n(.*?)```", README, re.DOTALL)

# For each block, what a reader sees of it when it works.
SEEN = [
    [],
    ['"status":"queued"', '"status":"running"', '"responses":['],
    ["0 True [1, 1024]", "1 True [1, 1024]", "(2, 1024)"],
    ["queued", "running", "2 items, {'prompt_tokens': 5, 'completion_tokens': 0, 'total_tokens': 5}"],
    ["queued\nTrue\n", "3040 AiError: AiError: Capacity temporarily exceeded, please try again. ("],
    ["1 passed"],
    ["http://127.0.0.1:", "/client/v4"],
    ["# pass 1", "# fail 0"],
    ['"status":"queued"', "exit 3", '{"status":"done","items":[', "[0.", "[fr] hello"],
    [" held, 0 broken, 0 otherwise, ", "batch.submit "],
    ["1 []"],
    ["2 passed"],
    ['"fired":0', '"code":"BATCH_ERROR"', '"mode":"live"'],
]


def test_each_example_prints_what_it_promises(
    serve: Callable[..., AbstractContextManager[subprocess.Popen[str]]], tmp_path: Path
) -> None:
    assert len(BLOCKS) == len(SEEN)
    exports = BLOCKS[0][1]
    # Our own development environment has pytest-asyncio, which warns without it.
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    with serve() as process:
        url = process.url  # type: ignore[attr-defined]
        for (language, code), seen in zip(BLOCKS, SEEN, strict=True):
            if language == "js" and shutil.which("node") is None:
                continue
            command = _command(language, code, tmp_path)
            script = f"set -e\n{exports}{command}"
            ran = subprocess.run(
                ["bash", "-c", script.replace("http://127.0.0.1:8799", url)],
                capture_output=True,
                text=True,
                cwd=tmp_path,
                env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
                check=False,
            )
            assert ran.returncode == 0, code
            assert "Traceback" not in ran.stderr, code
            for part in seen:
                assert part in ran.stdout, code


def _command(language: str, code: str, folder: Path) -> str:
    """What a reader types to run an example, which lies in the folder."""
    if language == "sh":
        return code
    if language == "js":
        (folder / "example.test.mjs").write_text(code)
        return "node --test --test-reporter=tap example.test.mjs"
    program = "test_example.py" if "def test_" in code else "example.py"
    (folder / program).write_text(code)
    return f"python3 -m pytest -q {program}" if "def test_" in code else f"python3 {program}"


def test_every_open_fact_has_its_row_with_every_alternative() -> None:
    for fact in assumptions().values():
        names = [fact.default, *(name for name in fact.alternatives if name != fact.default)]
        told = "; ".join(f"`{name}`: {fact.alternatives[name]}" for name in names)
        assert f"| `{fact.id}` | {fact.about} | {told} |" in README


def test_every_scenario_has_its_row() -> None:
    for scenario in SCENARIOS.values():
        assert f"| `{scenario.name}` | {scenario.touches} | {scenario.sees} |" in README


def test_every_client_that_can_be_pointed_has_its_row() -> None:
    for name, pointer in pointers().items():
        assert f"| `{name}` | {pointer.about} | " in README


def test_every_finding_of_the_verdict_has_its_row() -> None:
    source = Path(verdict.__file__).read_text()
    findings = re.findall(r'"([a-z-]{6,})",\s+"(error|warning|note)",\s+"([A-Z][^"]+)"', source)
    assert len(findings) == 12
    for code, severity, title in findings:
        assert f"| `{code}` | {severity} | {title[0].lower()}{title[1:]} |" in README


@pytest.mark.parametrize("option", [option.name for option in cli.commands["serve"].params])
def test_every_option_of_serve_is_told(option: str) -> None:
    assert f"`--{option.replace('_', '-')}" in README


def test_the_number_of_models_is_true() -> None:
    assert f"Cards for {len(models())} models" in README
