"""One emulator for the session, an account of its own for each test, and a system clock that a test turns."""

from __future__ import annotations

import itertools
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from workersai_emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

sys.path.insert(0, str(Path(__file__).parent))

BGE_M3 = "@cf/baai/bge-m3"
_numbers = itertools.count(1)


@dataclass
class SystemClock:
    """The machine's clock, standing still until a test moves it."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Door:
    """One account of a running emulator, over a real socket."""

    http: httpx.Client
    account_id: str

    def other(self) -> Door:
        """The door of another account."""
        return Door(self.http, new_account_id())

    def send(
        self, body: Any, *, model: str = BGE_M3, queue: bool = False, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        """POST a body, bytes as they are, to a model's run."""
        return self.http.post(
            f"/client/v4/accounts/{self.account_id}/ai/run/{model}",
            params={"queueRequest": "true"} if queue else {},
            headers=headers,
            **({"content": body} if isinstance(body, bytes) else {"json": body}),
        )

    def submit(self, *texts: str, script: str | None = None, model: str = BGE_M3) -> str:
        """Queue one item for each text and return the request_id."""
        inputs = {"requests": [{"text": text} for text in texts or ("a",)]}
        headers = {} if script is None else {"x-emulator-script": script}
        return self.queued(self.send(inputs, model=model, queue=True, headers=headers))

    @staticmethod
    def queued(reply: httpx.Response) -> str:
        """The request_id of a submit that was taken."""
        assert reply.json()["result"]["status"] == "queued", reply.text
        request_id: str = reply.json()["result"]["request_id"]
        return request_id

    def poll(self, request_id: str, *, model: str = BGE_M3) -> httpx.Response:
        """Poll once."""
        return self.send({"request_id": request_id}, model=model)

    def seen(self, request_id: str, *, model: str = BGE_M3) -> str | int:
        """What a poll shows: a status, `done`, or the code of the refusal."""
        reply = self.poll(request_id, model=model).json()
        if not reply["success"]:
            code: int = reply["errors"][0]["code"]
            return code
        result = reply["result"]
        return str(result.get("status", "done"))

    def control(self, method: str, path: str, **said: Any) -> httpx.Response:
        """A request to the control plane for this account."""
        return self.http.request(
            method, f"/__emulator__/{path}", json={**said, "account_id": self.account_id}
        )

    def assume(self, **said: Any) -> None:
        """Say how open facts are answered: the ids' dots and dashes are keys of a mapping."""
        assert self.control("PATCH", "settings", **said).status_code == 200

    def clock(self, **said: Any) -> dict[str, Any]:
        """Move the account's clock."""
        reply = self.control("POST", "clock", **said)
        assert reply.status_code == 200, reply.text
        shown: dict[str, Any] = reply.json()
        return shown

    def rule(self, effect: dict[str, Any], **said: Any) -> str:
        """Add a rule and return its id."""
        reply = self.control("POST", "rules", effect=effect, **said)
        assert reply.status_code == 200, reply.text
        rule_id: str = reply.json()["id"]
        return rule_id

    def batch(self, request_id: str) -> dict[str, Any]:
        """The batch as the control plane shows it."""
        shown: dict[str, Any] = self.control("GET", f"batches/{request_id}").json()
        return shown

    def act(self, request_id: str, action: str, **said: Any) -> dict[str, Any]:
        """Do something to a batch by hand."""
        reply = self.control("POST", f"batches/{request_id}", action=action, **said)
        assert reply.status_code == 200, reply.text
        shown: dict[str, Any] = reply.json()
        return shown


def new_account_id() -> str:
    """An account that no test has used."""
    return f"{next(_numbers):032x}"


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> SystemClock:
    """The machine's clock, in the test's hands."""
    clock = SystemClock()
    monkeypatch.setattr("workersai_emulator.clock.system_now", clock)
    return clock


@pytest.fixture(scope="session")
def emulator() -> Iterator[Emulator]:
    with Emulator(seed=7) as emulator:
        yield emulator


@pytest.fixture(scope="session")
def http(emulator: Emulator) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {emulator.token}"}
    with httpx.Client(base_url=emulator.url, headers=headers, timeout=60) as http:
        yield http


@pytest.fixture
def door(http: httpx.Client) -> Door:
    """A fresh account, its clock frozen so that only the test makes time pass."""
    door = Door(http, new_account_id())
    door.clock(freeze=True)
    return door
