"""One emulator for the session, a fresh account for each test, and three ways to talk to it.

By `httpx`, which shows what goes over the wire; by our client; by the official SDK.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from cloudflare import Cloudflare

from workersai_client import Client
from workersai_emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

BGE_M3 = "@cf/baai/bge-m3"
_numbers = count(0xEFF00000)


@dataclass(frozen=True)
class World:
    """One account of a running emulator."""

    emulator: Emulator
    id: str
    http: httpx.Client
    client: Client
    sdk: Cloudflare

    def send(
        self, body: Any, *, model: str = BGE_M3, queue: bool = False, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        """POST a body to a model's run."""
        return self.http.post(self.target(model, queue=queue), json=body, headers=headers)

    def target(self, model: str = BGE_M3, *, queue: bool = False) -> str:
        return f"/client/v4/accounts/{self.id}/ai/run/{model}{'?queueRequest=true' if queue else ''}"

    def submit(self, *items: Any, model: str = BGE_M3, script: str = "done") -> str:
        """Queue items, a text standing for one with that text, and give the `request_id`."""
        requests = [{"text": item} if isinstance(item, str) else item for item in items or ("a",)]
        reply = self.send(
            {"requests": requests}, model=model, queue=True, headers={"x-emulator-script": script}
        )
        assert reply.status_code == 200, reply.text
        return str(reply.json()["result"]["request_id"])

    def poll(self, request_id: str, *, model: str = BGE_M3) -> httpx.Response:
        return self.send({"request_id": request_id}, model=model)

    def items(self, request_id: str, *, model: str = BGE_M3) -> list[dict[str, Any]]:
        """The items of a finished batch, in the order of the request."""
        reply = self.poll(request_id, model=model)
        assert reply.status_code == 200, reply.text
        return sorted(reply.json()["result"]["responses"], key=lambda item: int(item["id"]))

    def control(self, method: str, path: str, **said: Any) -> httpx.Response:
        """A request to the control plane for this account."""
        body = json.dumps({**said, "account_id": self.id}).encode()
        return self.http.request(method, f"/__emulator__/{path}", content=body)

    def rule(self, effect: dict[str, Any], match: dict[str, Any] | None = None, **more: Any) -> str:
        """Add a rule and give its id."""
        reply = self.control("POST", "rules", match=match or {}, effect=effect, **more)
        assert reply.status_code == 200, reply.text
        return str(reply.json()["id"])

    def scenario(self, name: str, **said: Any) -> None:
        """Begin a scenario."""
        reply = self.control("POST", f"scenarios/{name}", **said)
        assert reply.status_code == 200, reply.text

    def fired(self) -> list[int]:
        """How often each rule fired, in the order in which they came."""
        return [rule["fired"] for rule in self.control("GET", "rules").json()["rules"]]

    def batches(self) -> int:
        """How many batches the account has."""
        return len(self.control("GET", "batches").json()["batches"])

    def bytes_of(self, body: Any, *, queue: bool = False) -> tuple[bytes, str]:
        """What a bare socket gets until the connection ends, and how it ends: `end` or `reset`."""
        content = json.dumps(body).encode()
        head = (
            f"POST {self.target(queue=queue)} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        port = int(self.emulator.url.rpartition(":")[2])
        received = b""
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.sendall(head.encode() + content)
            try:
                while piece := connection.recv(65536):
                    received += piece
            except ConnectionResetError:
                return received, "reset"
        return received, "end"


def tasks_left(emulator: Emulator, before: frozenset[Any]) -> list[Any]:
    """The tasks of the emulator's loop that were not there before, and do not end within five seconds."""

    async def look() -> list[Any]:
        others = asyncio.all_tasks() - before - {asyncio.current_task()}
        pending = (await asyncio.wait(others, timeout=5))[1] if others else set()
        return [task.get_coro() for task in pending]

    return asyncio.run_coroutine_threadsafe(look(), loop_of(emulator)).result(10)


def tasks_of(emulator: Emulator) -> frozenset[Any]:
    """The tasks of the emulator's loop."""

    async def look() -> frozenset[Any]:
        return frozenset(asyncio.all_tasks())

    return asyncio.run_coroutine_threadsafe(look(), loop_of(emulator)).result(10)


def loop_of(emulator: Emulator) -> asyncio.AbstractEventLoop:
    assert emulator._thread is not None
    return emulator._thread._loop


class Tasks:
    """Whether anything that began since is still under way in the emulator."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self._before = tasks_of(emulator)

    def left(self) -> list[Any]:
        return tasks_left(self._emulator, self._before)


@pytest.fixture(scope="session")
def emulator() -> Iterator[Emulator]:
    with Emulator(seed=7) as running:
        yield running


@pytest.fixture(scope="session")
def http(emulator: Emulator) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {emulator.token}"}
    with httpx.Client(base_url=emulator.url, headers=headers, timeout=30) as http:
        yield http


@pytest.fixture(scope="session")
def sdk(emulator: Emulator) -> Iterator[Cloudflare]:
    with Cloudflare(api_token=emulator.token, base_url=emulator.base_url, max_retries=0) as sdk:
        yield sdk


@pytest.fixture
def world(emulator: Emulator, http: httpx.Client, sdk: Cloudflare) -> Iterator[World]:
    account_id = f"{next(_numbers):032x}"
    with Client(account_id, emulator.token, emulator.base_url, max_retries=0) as client:
        yield World(emulator, account_id, http, client, sdk)


@pytest.fixture
def tasks(world: World) -> Tasks:
    """The emulator's tasks, noted before the test begins."""
    return Tasks(world.emulator)


@pytest.fixture(autouse=True)
def _no_fault_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    told = [record.getMessage() for record in caplog.get_records("call") if record.levelno >= logging.ERROR]
    assert told == []
