"""What is published: it is well formed, and does its job where nothing else is installed."""

from __future__ import annotations

import sys
import tarfile
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest
from built_distribution import Built, Installed, install, run

if TYPE_CHECKING:
    from pathlib import Path

BATCH = """
from workersai_client import Client
import workersai_emulator
with Client() as client:
    handle = client.submit("@cf/baai/bge-m3", [{"text": "orange cloud"}, {"text": "a llama"}])
    done = client.wait(handle, timeout=30)
    print(sorted((item.id, item.success, *item.result["shape"]) for item in done.items))
    print(workersai_emulator.__file__)
"""


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(built.wheel, tmp_path_factory.mktemp("empty"))


def test_the_registry_would_take_both_files(built: Built) -> None:
    run(sys.executable, "-m", "twine", "check", "--strict", str(built.wheel), str(built.sdist))


def test_the_wheel_has_three_packages_with_their_data_and_nothing_else(built: Built) -> None:
    with ZipFile(built.wheel) as wheel:
        names = wheel.namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"workersai_client", "workersai_contracts", "workersai_emulator"}
    assert {f"{top}/py.typed" for top in tops} <= set(names)
    assert "workersai_contracts/data/models/bge-m3.json" in names
    assert not [name for name in names if "__pycache__" in name]
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]


def test_the_sdist_has_what_its_tests_and_its_image_need(built: Built) -> None:
    with tarfile.open(built.sdist) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"Makefile", "README.md", "LICENSE", "tests/conftest.py", "Dockerfile", "action.yml"} <= names
    assert not [name for name in names if "node_modules/" in name]


def test_a_batch_goes_through_the_installed_wheel(installed: Installed, tmp_path: Path) -> None:
    printed = run(installed.command, "exec", "--", installed.python, "-c", BATCH, cwd=tmp_path)
    items, file = printed.splitlines()
    assert items == "[(0, True, 1, 1024), (1, True, 1, 1024)]"
    assert file.startswith(str(installed.packages))


def test_pytest_is_told_of_the_plugin_but_not_brought_along(installed: Installed, tmp_path: Path) -> None:
    printed = run(
        installed.python,
        "-c",
        "from importlib import metadata, util\n"
        "(ours,) = metadata.entry_points(group='pytest11', name='workersai_emulator')\n"
        "print(ours.value, util.find_spec('pytest'))",
        cwd=tmp_path,
    )
    assert printed == "workersai_emulator.pytest_plugin None\n"
