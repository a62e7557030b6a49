"""What the security tests share: an emulator with little patience, a server process, and bytes by hand."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

import httpx
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from workersai_emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

ACCOUNT = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator(seed=7, script="done") as running:
        yield running


@pytest.fixture
def http(emulator: Emulator) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=emulator.url, headers={"authorization": "Bearer t"}, timeout=30) as client:
        yield client
    emulator.reset()


@pytest.fixture
def run_path() -> str:
    return f"/client/v4/accounts/{ACCOUNT}/ai/run/@cf/baai/bge-m3"


def connect(url: str, timeout: float = 20) -> socket.socket:
    """A connection to a server, by its URL."""
    connection = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=timeout)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def converse(url: str, sent: bytes) -> bytes:
    """Send, and read until the server closes."""
    received = bytearray()
    with connect(url) as connection:
        try:
            connection.sendall(sent)
            while piece := connection.recv(65536):
                received += piece
        except (ConnectionResetError, BrokenPipeError):
            pass  # it closed while bytes of ours were on their way
    return bytes(received)


@pytest.fixture
def talk() -> Callable[[str, bytes], bytes]:
    return converse


@pytest.fixture
def opened() -> Callable[..., socket.socket]:
    return connect


class Serving:
    """A server process, its URL, and its log as far as it has come."""

    def __init__(self, options: tuple[str, ...]) -> None:
        command = [sys.executable, "-m", "workersai_emulator.cli", "serve", "--port", "0", "--seed", "1"]
        self.process = subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.lines: list[str] = []
        self._reader = Thread(target=self.lines.extend, args=(self.process.stderr,), daemon=True)
        self._reader.start()
        self.url = self.process.stdout.readline().strip()
        self.http = httpx.Client(base_url=self.url, headers={"authorization": "Bearer t"}, timeout=30)

    def ended(self) -> tuple[int, float]:
        """The exit code, and how long it took until there was one."""
        began = monotonic()
        code = self.process.wait(timeout=30)
        self._reader.join(timeout=10)
        return code, monotonic() - began

    def events(self) -> list[dict[str, Any]]:
        """The log as JSON, once the process has ended."""
        self._reader.join(timeout=10)
        return [json.loads(line) for line in self.lines]


@pytest.fixture
def serve() -> Callable[..., AbstractContextManager[Serving]]:
    @contextmanager
    def run(*options: str) -> Iterator[Serving]:
        serving = Serving(options)
        try:
            yield serving
        finally:
            serving.http.close()
            serving.process.kill()
            serving.process.wait()
            for stream in (serving.process.stdout, serving.process.stderr):
                assert stream is not None
                stream.close()

    return run
