from __future__ import annotations

import subprocess
import sys

import workersai_client


def test_all_is_sorted_and_names_everything_public() -> None:
    public = [
        name
        for name, value in vars(workersai_client).items()
        if not name.startswith("_") and isinstance(value, type)
    ]
    assert workersai_client.__all__ == sorted(public)


def test_everything_public_shows_the_public_module() -> None:
    modules = {getattr(workersai_client, name).__module__ for name in workersai_client.__all__}
    assert modules == {"workersai_client"}


def test_importing_the_client_loads_nothing_heavy() -> None:
    script = "import sys, workersai_client; print({'aiohttp', 'numpy', 'jsonschema'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


def test_the_core_does_not_know_the_http_library() -> None:
    script = (
        "import sys, types, pathlib, importlib.util\n"
        "place = pathlib.Path(importlib.util.find_spec('workersai_client').origin).parent\n"
        "package = types.ModuleType('workersai_client'); package.__path__ = [str(place)]\n"
        "sys.modules['workersai_client'] = package\n"
        "import workersai_client.operations\n"
        "print('httpx' in sys.modules, 'asyncio' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False False"
