from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "emulator" / "demo" / "documents.py"


@pytest.fixture(scope="module")
def printed() -> str:
    ran = subprocess.run([sys.executable, DEMO], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_the_demo_embeds_a_few_hundred_docstrings(printed: str) -> None:
    count = int(printed.split(" docstrings of ", maxsplit=1)[0].rsplit(maxsplit=1)[-1])
    assert 200 < count < 1000
    assert f"{count} vectors of 1024 numbers" in printed


def test_the_demo_shows_each_batch_go_through_all_states(printed: str) -> None:
    batches = [line for line in printed.splitlines() if line.startswith("  batch ")]
    assert len(batches) >= 3
    assert all("queued → running → done" in line for line in batches)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("recursively delete a directory tree", "shutil.rmtree"),
        ("median, the middle value of my data", "statistics.median"),
        ("fill a single paragraph of text to a width", "textwrap.fill"),
    ],
)
def test_the_demo_finds_the_right_document(printed: str, question: str, answer: str) -> None:
    lines = printed.splitlines()
    asked = next(number for number, line in enumerate(lines) if question in line)
    assert lines[asked + 1].split()[0] == answer


def test_the_demo_shows_the_two_refusals(printed: str) -> None:
    assert "refused with HTTP 413, code 3006: AiError: Request is too large" in printed
    refusal = '{"error":"3040: Capacity temporarily exceeded, please try again.","code":"BATCH_ERROR"}'
    assert f"HTTP 502  {refusal}" in printed
