"""Who may import whom: contracts nobody of ours, emulator and client the contracts only."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]
OURS = {"workersai_contracts", "workersai_emulator", "workersai_client"}
ALLOWED = {
    "contracts/workersai_contracts": {"workersai_contracts"},
    "emulator/workersai_emulator": {"workersai_emulator", "workersai_contracts"},
    "client/workersai_client": {"workersai_client", "workersai_contracts"},
}


def test_a_server_starts_without_what_only_some_answers_need() -> None:
    ours = ("api.binding", "api.control", "api.remote_proxy", "api.worker", "inference.answering", "verdict")
    heavy = (
        *("numpy", "PIL", "jsonschema", "rstr", "regex", "prometheus_client", "redis", "importlib.metadata"),
        *(f"workersai_emulator.{name}" for name in ours),
    )
    program = (
        "import asyncio, sys; from workersai_emulator import serving; from workersai_emulator.options import Options\n"
        "async def live():\n  server = serving.Server(Options(port=0)); await server.start(); await server.stop()\n"
        f"asyncio.run(live()); print([name for name in {heavy} if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


@pytest.mark.parametrize(("folder", "allowed"), ALLOWED.items(), ids=ALLOWED)
def test_a_package_imports_only_what_it_may(folder: str, allowed: set[str]) -> None:
    sources = list((REPO / folder).rglob("*.py"))
    imported = {
        (str(path.relative_to(REPO)), name)
        for path in sources
        for name in _imports(path.read_text(encoding="utf-8"))
    }
    assert sources
    assert sorted((path, name) for path, name in imported if name in OURS - allowed) == []


def test_imports_are_seen_wherever_they_stand() -> None:
    source = (
        "import a.b\nfrom c.d import e\ndef f():\n  from g import h\n  import_module('i.j')\nfrom . import k"
    )
    assert _imports(source) == {"a", "c", "g", "i"}


def _imports(source: str) -> set[str]:
    """Name the top packages a module imports, by statement or by import_module with a literal."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found.update(alias.name.partition(".")[0] for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                found.add(module.partition(".")[0])
            case ast.Call(
                func=ast.Name(id="import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                found.add(module.partition(".")[0])
    return found
