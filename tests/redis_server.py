"""A redis-server for the tests of one process, where the machine has one: on a socket of its own, saving nothing."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class RedisServer:
    """A server that can be stopped and started again; what it had is gone then."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.url = f"unix://{folder}/redis.sock"

    def start(self) -> None:
        options = [
            "--port",
            "0",
            "--unixsocket",
            f"{self._folder}/redis.sock",
            "--save",
            "",
            "--dir",
            self._folder,
        ]
        self._process = subprocess.Popen(["redis-server", *options], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if "ready to accept connections" in line:
                return
        raise AssertionError("redis-server did not start")

    def stop(self) -> None:
        with self._process as process:
            process.kill()


@contextmanager
def redis_server(folder: Path) -> Iterator[RedisServer]:
    """Run one; skips the test where the machine has none."""
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not on this machine")
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
