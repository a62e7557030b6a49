"""Schemathesis against the emulator and the OpenAPI document that it serves, in an environment of its own.

    python tests/openapi/run_checks.py [--short]

`--short` takes one model of each task, beside all other routes. The exit code is Schemathesis'.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from workersai_contracts import models
from workersai_emulator import Emulator

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parent.parent / ".openapi"
TOKEN = "a-token-for-schemathesis"
BEARER = f"Authorization: Bearer {TOKEN}"


def command() -> Path:
    """Schemathesis, installed the first time and when its version changes."""
    wanted = (HERE / "requirements.txt").read_text(encoding="utf-8")
    mark = ENVIRONMENT / "installed.txt"
    if not mark.exists() or mark.read_text(encoding="utf-8") != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
        pip = [str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "-qq"]
        subprocess.run([*pip, "--requirement", str(HERE / "requirements.txt")], check=True)
        mark.write_text(wanted, encoding="utf-8")
    return ENVIRONMENT / "bin" / "schemathesis"


def left_out() -> str:
    """The paths of all models but the first of each way to answer."""
    first = {card.answers: card.name for card in reversed(models().values())}
    others = [re.escape(name) for name in models() if name not in first.values()]
    return f"/run/({'|'.join(others)})$"


def main() -> int:
    short = "--short" in sys.argv[1:]
    with Emulator(seed=1, tokens=[TOKEN], script="queued:1, done") as emulator:
        chosen = ["--exclude-path-regex", left_out()] if short else []
        arguments = [
            *("--config-file", str(HERE / "schemathesis.toml")),
            *("run", f"{emulator.url}/__emulator__/openapi.json", "--header", BEARER),
            *("--max-examples", "5" if short else "10", "--seed", "1", "--generation-database", "none"),
            *("--suppress-health-check", "all", "--warnings", "off", "--no-color", *chosen),
        ]
        return subprocess.run([str(command()), *arguments], check=False, cwd=ENVIRONMENT).returncode


if __name__ == "__main__":
    sys.exit(main())
