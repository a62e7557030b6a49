"""What the npm package and the README say of themselves; it needs no Node, and so is run with all other tests."""

from __future__ import annotations

import json

from runtimes import table
from worker_environments import PACKAGE, ROOT, names

from workersai_emulator import __version__


def test_the_npm_package_depends_on_nothing_and_has_the_version_of_the_python_package() -> None:
    manifest = json.loads((PACKAGE / "package.json").read_text())
    assert manifest["version"] == __version__
    assert not [key for key in manifest if key.lower().endswith("dependencies")]
    assert (PACKAGE / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_readme_lists_the_versions_that_are_proved() -> None:
    assert table() in (ROOT / "README.md").read_text()


def test_no_lock_file_names_a_registry_s_host() -> None:
    for name in names():
        lock = json.loads((ROOT / "tests" / "workers" / "npm" / name / "package-lock.json").read_text())
        assert [place for place, package in lock["packages"].items() if "resolved" in package] == []
