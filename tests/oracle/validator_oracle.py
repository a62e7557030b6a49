"""The service's own public validator in a Node process, asked over its standard streams."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

HERE = Path(__file__).parent


def unavailable() -> str | None:
    """Say what is missing to ask the oracle, or None."""
    if shutil.which("node") is None:
        return "the oracle needs Node"
    if not (HERE / "node_modules" / "@cloudflare" / "cabidela").is_dir():
        return "the oracle is not installed: make test-oracle"
    return None


class Oracle:
    """One long-lived process; schemas are sent when they change."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            ["node", "oracle.mjs"],
            cwd=HERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._schema: str | None = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=10)

    def complaint(self, schema: dict[str, Any], body: Any) -> str | None:
        """Return the validator's message on a body, or None where it is accepted."""
        text = json.dumps({"schema": schema})
        if text != self._schema:
            self._ask(text)
            self._schema = text
        return self._ask(json.dumps({"body": body}, allow_nan=False))

    def _ask(self, line: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the oracle died on {line[:500]}")
        return json.loads(answer)
