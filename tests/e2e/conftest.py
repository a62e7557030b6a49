"""What the end-to-end tests share: the command as a process of its own, an emulator in this one, the built wheel.

Its modules are found beside this file.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from built_distribution import Built, build

from workersai_emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

COMMAND = [sys.executable, "-m", "workersai_emulator.cli"]


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the machine reaches the test."""
    for name in list(os.environ):
        if name.startswith(("WORKERSAI_EMULATOR_", "CLOUDFLARE_")) or name == "MODEL":
            monkeypatch.delenv(name)


@pytest.fixture
def serve(clean_environment: None) -> Callable[..., AbstractContextManager[subprocess.Popen[str]]]:
    """Run `serve` on a free port; `process.url` is what it printed."""

    @contextmanager
    def run(*options: str) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [*COMMAND, "serve", "--port", "0", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process:
            try:
                assert process.stdout is not None
                process.url = process.stdout.readline().strip()  # type: ignore[attr-defined]
                yield process
            finally:
                process.kill()

    return run


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    with Emulator(seed=7) as running:
        yield running


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The distribution as it would be published."""
    return build(tmp_path_factory.mktemp("dist"))
