"""What the benchmarks share: a server process, and a client so thin that it costs next to nothing."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

BARE = [sys.executable, str(Path(__file__).with_name("bare_server.py"))]
BARE_IS = "bare aiohttp server"
TEXT = "a text of about one hundred characters, as a search over the titles of a catalogue would embed them"
ACCOUNT = "0123456789abcdef0123456789abcdef"
PATH = f"/client/v4/accounts/{ACCOUNT}/ai/run/@cf/baai/bge-m3?queueRequest=true"


def emulator(*options: str) -> list[str]:
    """The command of an emulator on a free port."""
    return [sys.executable, "-m", "workersai_emulator.cli", "serve", "--port", "0", *options]


class ServerProcess:
    """A server in a process of its own, whose time and memory can be read."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.url = process.stdout.readline().strip()
        self._process = psutil.Process(process.pid)

    def cpu_seconds(self) -> float:
        """The processor time that it has taken so far; where Linux does not tell it exactly, in ticks."""
        threads = Path(f"/proc/{self._process.pid}/task")
        try:
            return sum(int((one / "schedstat").read_text().split()[0]) for one in threads.iterdir()) / 1e9
        except OSError:
            times = self._process.cpu_times()
            return float(times.user + times.system)

    def keep_to(self, core: int) -> None:
        """Run on this core alone."""
        for thread in self._process.threads():
            os.sched_setaffinity(thread.id, {core})

    def megabytes(self) -> float:
        """The memory that it holds now."""
        return float(self._process.memory_info().rss) / 1e6

    def held(self) -> dict[str, int]:
        """What must not leak: the open descriptors and the threads."""
        return {"descriptors": self._process.num_fds(), "threads": self._process.num_threads()}


def apart(*servers: ServerProcess) -> None:
    """Keep the servers to one core and who asks them to another, where the system allows that.

    How much a server takes depends on where it is woken, and a scheduler's choice changes from second to second.
    """
    if hasattr(os, "sched_setaffinity") and len(cores := sorted(os.sched_getaffinity(0))) > 1:
        os.sched_setaffinity(0, {cores[0]})
        for server in servers:
            server.keep_to(cores[1])


@contextmanager
def running(command: list[str]) -> Iterator[ServerProcess]:
    """Run a server that prints its URL when it is ready."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with process:
        try:
            yield ServerProcess(process)
        finally:
            process.terminate()


class Wire:
    """One kept-alive connection that sends whole requests and reads whole replies."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._socket = socket.create_connection((address.hostname, address.port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def post(self, message: object) -> bytes:
        """Send a message and give the reply's body, small and of known length."""
        return self.send(request(message))

    def send(self, prepared: bytes) -> bytes:
        """Send a request that was prepared, and give the reply's body."""
        self._socket.sendall(prepared)
        received = self._socket.recv(65536)
        while b"\r\n\r\n" not in received:
            received += self._socket.recv(65536)
        head, _, body = received.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"the server refused the benchmark: {received!r}")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        while len(body) < length:
            body += self._socket.recv(65536)
        return body

    def download(self, prepared: bytes) -> tuple[int, float]:
        """Send a request and let its chunked reply go by: its bytes on the wire, and when the first came."""
        self._socket.sendall(prepared)
        buffer = bytearray(1 << 20)
        size, first, end = 0, 0.0, b""
        while not end.endswith(b"\r\n0\r\n\r\n"):
            received = self._socket.recv_into(buffer)
            if not received:
                raise SystemExit(f"the download ended after {size} bytes")
            first = first or perf_counter()
            size += received
            end = (end + buffer[max(0, received - 7) : received])[-7:]
        return size, first

    def close(self) -> None:
        """End the connection."""
        self._socket.close()


def request(message: object, headers: Mapping[str, str] | None = None) -> bytes:
    """A request as bytes, to be sent again and again; a message of bytes is sent as it is."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    others = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer bench\r\n{others}"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
