"""One emulator for the session on a real socket, a fresh account for each test, and bytes by hand."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import httpx
import pytest

from workersai_emulator.emulator import Emulator

BGE_M3 = "@cf/baai/bge-m3"
SEED = 20_261_129
_numbers = count(0xE000)


def as_bytes(body: Any) -> bytes:
    """A body as it goes over the wire: bytes as they are, anything else as JSON."""
    return body if isinstance(body, bytes) else json.dumps(body).encode()


@dataclass(frozen=True)
class World:
    """One account of an emulator, and the ways to talk to it."""

    emulator: Emulator
    id: str
    http: httpx.Client

    @property
    def port(self) -> int:
        return int(self.emulator.url.rpartition(":")[2])

    def target(self, model: str = BGE_M3, query: str = "") -> str:
        return f"/client/v4/accounts/{self.id}/ai/run/{model}{query}"

    def run(
        self, body: Any, model: str = BGE_M3, query: str = "", headers: dict[str, str] | None = None
    ) -> httpx.Response:
        """A run or, by its body or its query, a poll or a submit."""
        return self.http.post(self.target(model, query), content=as_bytes(body), headers=headers)

    def submit(self, body: Any, model: str = BGE_M3, script: str | None = None) -> str:
        """Queue a body that must be accepted, and give its `request_id`."""
        headers = {} if script is None else {"x-emulator-script": script}
        reply = self.run(body, model, "?queueRequest=true", headers)
        assert reply.status_code == 200, reply.text
        return str(reply.json()["result"]["request_id"])

    def poll(self, request_id: str, model: str = BGE_M3, query: str = "") -> httpx.Response:
        return self.run({"request_id": request_id}, model, query)

    def control(self, method: str, name: str, said: dict[str, Any] | None = None) -> httpx.Response:
        """A request of the control plane for this account."""
        body = json.dumps({"account_id": self.id, **(said or {})}).encode()
        return self.http.request(method, f"/__emulator__/{name}", content=body)

    def rule(self, effect: dict[str, Any], match: dict[str, Any] | None = None, **more: Any) -> Any:
        reply = self.control("POST", "rules", {"match": match or {}, "effect": effect, **more})
        assert reply.status_code == 200, reply.text
        return reply.json()

    def assume(self, **chosen: str) -> None:
        """Answer open facts otherwise; `submit__status` stands for `submit.status`, and so on."""
        named = {key.replace("__", ".").replace("_", "-"): value for key, value in chosen.items()}
        reply = self.control("PATCH", "settings", {"assumptions": named})
        assert reply.status_code == 200, reply.text


@dataclass(frozen=True)
class Answer:
    """One HTTP response, read from bytes."""

    version: str
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        found = [value for key, value in self.headers if key.lower() == name]
        return found[0] if found else None


def read_answers(data: bytes, *, bodiless: bool = False) -> list[Answer]:
    """All responses in what a connection gave; `bodiless` for those to HEAD."""
    answers = []
    while data:
        head, end, data = data.partition(b"\r\n\r\n")
        assert end, head
        first, *lines = head.decode("latin-1").split("\r\n")
        version, status, *_ = first.split(" ", 2)
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        sizes = [int(value) for name, value in headers if name.lower() == "content-length"]
        size = 0 if bodiless or status in {"100", "204"} else sizes[0]
        answers.append(Answer(version, int(status), headers, data[:size]))
        data = data[size:]
    return answers


Converse = Callable[..., bytes]


def converse_with(port: int, *parts: bytes, once: bool = False, half_close: bool = False) -> bytes:
    """Send the parts and read until the server closes or, with `once`, until one response is whole."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        received = b""
        try:
            for part in parts:
                connection.sendall(part)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            while not (once and _is_whole(received)) and (piece := connection.recv(65536)):
                received += piece
        except (ConnectionResetError, BrokenPipeError):
            pass  # the server closed while bytes of ours were on their way
        return received


def _is_whole(data: bytes) -> bool:
    fields, end, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", fields.lower())
    return bool(end) and length is not None and len(body) >= int(length[1])


@pytest.fixture(scope="session")
def new_state_or_none(new_state: Callable[[str], str | None]) -> Callable[[], str | None]:
    """The state of an emulator: in memory, unless WORKERSAI_TEST_STATE says file or redis (`make test-stores`)."""
    return lambda: new_state(os.environ.get("WORKERSAI_TEST_STATE", "memory"))


@pytest.fixture(scope="session")
def emulator(new_state_or_none: Callable[[], str | None]) -> Iterator[Emulator]:
    with Emulator(seed=SEED, state=new_state_or_none()) as running:
        yield running


@pytest.fixture(scope="session")
def http(emulator: Emulator) -> Iterator[httpx.Client]:
    headers = {"authorization": f"Bearer {emulator.token}", "content-type": "application/json"}
    with httpx.Client(base_url=emulator.url, headers=headers, timeout=30) as client:
        yield client


@pytest.fixture
def account_id() -> str:
    return f"{next(_numbers):032x}"


@pytest.fixture
def world(emulator: Emulator, http: httpx.Client, account_id: str) -> World:
    return World(emulator, account_id, http)


@pytest.fixture
def other_world(emulator: Emulator, http: httpx.Client) -> World:
    return World(emulator, f"{next(_numbers):032x}", http)


@pytest.fixture
def converse(world: World) -> Converse:
    def talk(*parts: bytes, once: bool = False, half_close: bool = False) -> bytes:
        return converse_with(world.port, *parts, once=once, half_close=half_close)

    return talk


@pytest.fixture
def read() -> Callable[..., list[Answer]]:
    return read_answers


@pytest.fixture
def world_of(new_state_or_none: Callable[[], str | None]) -> Iterator[Callable[..., World]]:
    """Makes an emulator with options of the test's own, and gives an account in it."""
    opened: list[tuple[Emulator, httpx.Client]] = []

    def make(**options: Any) -> World:
        state = options.pop("state", None) or new_state_or_none()
        running = Emulator(seed=options.pop("seed", SEED), state=state, **options).start()
        client = httpx.Client(base_url=running.url, headers={"authorization": "Bearer emulator"}, timeout=30)
        opened.append((running, client))
        return World(running, f"{next(_numbers):032x}", client)

    yield make
    for running, client in opened:
        client.close()
        running.stop()


@pytest.fixture(autouse=True)
def _no_fault_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever a test sends, the emulator's log must not tell of a fault of its own."""
    yield
    told = [record.getMessage() for record in caplog.get_records("call") if record.levelno >= logging.ERROR]
    assert told == []
