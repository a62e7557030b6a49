"""A service that plays what it is told on a real socket, and both clients behind one face."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from workersai_client import AsyncClient, Client
from workersai_contracts.routes import exchange_of

ACCOUNT = "0123456789abcdef0123456789abcdef"
TOKEN = "a-token-that-must-stay-secret"


@dataclass(frozen=True)
class Seen:
    """A request as it came: its line, its headers in lower case, its body."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.line.split(" ")[1]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Step = Callable[[socket.socket], object]


@dataclass
class Service:
    """Plays one step for each connection, in order; a connection too many is remembered, and reset.

    What the client sends is held to the contract, unless a test that sends something else on purpose sets
    `any_request`.
    """

    listener: socket.socket
    steps: list[Step] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    surplus: int = 0
    hung: list[socket.socket] = field(default_factory=list)
    breaches: list[str] = field(default_factory=list)
    any_request: bool = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def says(self, status: int, body: bytes, headers: dict[str, str] | None = None, times: int = 1) -> None:
        fields = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
        fields |= headers or {}
        head = f"HTTP/1.1 {status} Whatever\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields.items())

        def step(connection: socket.socket) -> None:
            self.take(connection)
            connection.sendall(head.encode() + b"\r\n" + body)

        self.steps += [step] * times

    def answers(self, result: Any, status: int = 200) -> None:
        """Fact: `env.success`."""
        self.says(
            status, json.dumps({"result": result, "success": True, "errors": [], "messages": []}).encode()
        )

    def refuses(
        self,
        status: int,
        code: int,
        message: str = "no",
        headers: dict[str, str] | None = None,
        times: int = 1,
    ) -> None:
        """Fact: `env.ai`."""
        errors = [{"message": message, "code": code}]
        body = {"errors": errors, "success": False, "result": {}, "messages": []}
        self.says(status, json.dumps(body).encode(), headers, times)

    def resets_before_reading(self, times: int = 1) -> None:
        self.steps += [_reset] * times

    def resets_after_reading(self, times: int = 1) -> None:
        def step(connection: socket.socket) -> None:
            self.take(connection)
            _reset(connection)

        self.steps += [step] * times

    def hangs(self, after: bytes = b"") -> None:
        def step(connection: socket.socket) -> None:
            self.take(connection)
            connection.sendall(after)
            self.hung.append(connection.dup())

        self.steps.append(step)

    def take(self, connection: socket.socket) -> None:
        seen = _read(connection)
        self.seen.append(seen)
        exchange = exchange_of(seen.line.split(" ")[0], seen.path, seen.body)
        if exchange is None:
            self.breaches.append(f"no route of the contract: {seen.line}")
        elif breach := exchange.check_request():
            self.breaches.append(str(breach))

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                if not self.steps:
                    self.surplus += 1
                    _reset(connection)
                else:
                    self.steps.pop(0)(connection)


def _read(connection: socket.socket) -> Seen:
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    head, body = received.split(b"\r\n\r\n", 1)
    line, *rest = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (entry.split(": ", 1) for entry in rest)}
    while len(body) < int(headers["content-length"]):
        body += connection.recv(65536)
    return Seen(line, headers, body)


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.fixture
def service() -> Iterator[Service]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        service = Service(listener)
        thread = threading.Thread(target=service.serve, daemon=True)
        thread.start()
        yield service
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)
    for connection in service.hung:
        connection.close()
    assert service.any_request or service.breaches == []
    assert service.surplus == 0, "the client sent more requests than the test foresaw"
    assert service.steps == [], "the client sent fewer requests than the test foresaw"


@dataclass
class Caller:
    """Calls one operation of a fresh client of its kind; sleeping is only noted, and chance is always 1."""

    kind: str
    url: str
    pauses: list[float] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, operation: str, *args: Any, **kwargs: Any) -> Any:
        options = {"account_id": ACCOUNT, "api_token": TOKEN, "base_url": self.url, "jitter": lambda: 1.0}
        options |= self.options
        if self.kind == "blocking":
            with Client(**options, sleep=self.pauses.append) as client:
                return getattr(client, operation)(*args, **kwargs)
        return asyncio.run(self._call(options, operation, args, kwargs))

    async def _call(self, options: Any, operation: str, args: Any, kwargs: Any) -> Any:
        async def sleep(seconds: float) -> None:
            self.pauses.append(seconds)

        async with AsyncClient(**options, sleep=sleep) as client:
            return await getattr(client, operation)(*args, **kwargs)


@pytest.fixture(params=["blocking", "async"])
def call(request: pytest.FixtureRequest, service: Service) -> Caller:
    return Caller(request.param, service.url)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_API_TOKEN", "CLOUDFLARE_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
