"""What the tests of real Worker runtimes share: our package as it is packed, and what each runtime was answered.

Its modules are found beside this file.
"""

from __future__ import annotations

import shutil
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from worker_environments import folder_of, install, names, pack
from worker_runs import run_runtime

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtimes import Runtime
    from worker_runs import Ran


@pytest.fixture(scope="session")
def tarball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our package as npm would publish it."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not here")
    return pack(tmp_path_factory.mktemp("packed"))


@pytest.fixture(scope="session")
def environments(tarball: Path) -> dict[str, Path]:
    """The environments by name, with our package in each."""
    folders = {name: folder_of(name) for name in names()}
    for folder in folders.values():
        install(tarball, folder)
    return folders


@pytest.fixture(scope="session")
def run(environments: dict[str, Path]) -> Callable[[Runtime], Ran]:
    """Run a runtime, once however many tests look at what it was answered."""
    return cache(run_runtime)
