"""One emulator that is killed between any two steps of a story goes on with it."""

from __future__ import annotations

import json
import subprocess
import sys
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.kills

COMMAND = [sys.executable, "-m", "workersai_emulator.cli", "serve", "--port", "0"]
ACCOUNT, OTHER = "a" * 32, "b" * 32
M3 = "@cf/baai/bge-m3"


class Killed:
    """`serve` that is killed and started again before each request."""

    def __init__(self, state: str) -> None:
        self.state = state
        self.process: subprocess.Popen[str] | None = None

    def again(self, *options: str) -> str:
        self.kill()
        command = [*COMMAND, "--state", self.state, *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip().removeprefix("http://")

    def kill(self) -> None:
        if self.process is not None:
            with self.process as process:
                process.kill()
            self.process = None

    def ask(self, method: str, path: str, said: Any = None, *options: str) -> tuple[int, Any, Any]:
        """Kill, start, and ask: status, headers, body."""
        connection = HTTPConnection(self.again(*options), timeout=30)
        connection.request(method, path, json.dumps(said or {}), {"Authorization": "Bearer a"})
        reply = connection.getresponse()
        body = reply.read()
        connection.close()
        return reply.status, reply.headers, json.loads(body) if body else None

    def control(self, method: str, name: str, said: dict[str, Any], account: str | None = ACCOUNT) -> Any:
        meant = {} if account is None else {"account_id": account}
        status, _, body = self.ask(method, f"/__emulator__/{name}", {**said, **meant})
        assert status in {200, 204}, body
        return body

    def run(self, said: Any, query: str = "", *options: str) -> tuple[int, Any, Any]:
        return self.ask("POST", f"/client/v4/accounts/{ACCOUNT}/ai/run/{M3}{query}", said, *options)

    def submit(self, said: Any) -> str:
        status, _, body = self.run(said, "?queueRequest=true")
        assert status == 200, body
        return str(body["result"]["request_id"])


@pytest.fixture(params=["file", "redis"])
def emulator(
    request: pytest.FixtureRequest, new_state: Callable[[str], str | None], clean_environment: None
) -> Iterator[Killed]:
    emulator = Killed(str(new_state(request.param)))
    yield emulator
    emulator.kill()


def test_a_batch_lives_on_with_its_rules_and_its_clock(emulator: Killed) -> None:
    emulator.control("POST", "clock", {"freeze": True, "now": "2100-01-01T00:00:00Z"})
    emulator.control("PATCH", "settings", {"script": "queued:60s, running:1, done"}, None)
    emulator.control(
        "POST", "rules", {"match": {"operation": "submit"}, "effect": {"items": {"indexes": [1]}}, "times": 1}
    )
    emulator.control("POST", "rules", {"match": {"text": "b"}, "effect": {"output": {"mine": 1}}, "times": 1})
    request_id = emulator.submit({"requests": [{"text": "a"}, {"text": "b"}, {"text": "c"}]})
    fired = [rule["fired"] for rule in emulator.control("GET", "rules", {})["rules"]]
    assert fired == [1, 1]
    assert emulator.run({"request_id": request_id})[2]["result"]["status"] == "queued"
    emulator.control("POST", "clock", {"advance": "60s"})
    assert emulator.run({"request_id": request_id})[2]["result"]["status"] == "running"
    _, _, first = emulator.run({"request_id": request_id})
    _, _, second = emulator.run({"request_id": request_id})
    assert first["result"] == second["result"]
    items = {item["id"]: item for item in first["result"]["responses"]}
    assert [items[index]["success"] for index in range(3)] == [True, False, True]
    (shown,) = emulator.control("GET", "batches", {})["batches"]
    assert (shown["state"], shown["polls"], shown["submitted_at"]) == ("done", 4, "2100-01-01T00:00:00.000Z")
    used = emulator.control("GET", "usage", {})
    assert (used["day"], used["models"][M3]["requests"]) == ("2100-01-01", 1)


def test_a_limit_counts_on(emulator: Killed) -> None:
    emulator.control("POST", "clock", {"freeze": True})
    emulator.control("PATCH", "settings", {"limits": {"requests_per_minute": 2}})
    statuses = [emulator.run({"text": "a"})[0] for _ in range(3)]
    assert statuses == [200, 200, 429]


def test_the_seed_and_the_numbers_go_on_so_that_no_id_comes_twice(emulator: Killed) -> None:
    reached = [emulator.run({"text": "a"})[1]["cf-ai-req-id"] for _ in range(2)]
    batches = [emulator.submit({"requests": [{"text": "a"}]}) for _ in range(2)]
    assert len({*reached, *batches}) == 4


def test_a_file_takes_another_seed_and_old_batches_keep_their_ids_and_orders(
    new_state: Callable[[str], str | None], clean_environment: None
) -> None:
    emulator = Killed(str(new_state("file")))
    try:
        request_id = emulator.submit({"requests": [{"text": str(number)} for number in range(40)]})
        replies = [emulator.run({"request_id": request_id}, "", "--seed", seed) for seed in "78787"]
        assert replies[2][2]["result"] == replies[3][2]["result"] == replies[4][2]["result"]
    finally:
        emulator.kill()


def test_what_the_flags_say_lies_under_what_was_said_since(emulator: Killed) -> None:
    emulator.control("PATCH", "settings", {"plan": "paid"}, None)
    _, _, shown = emulator.ask("GET", "/__emulator__/settings", None, "--script", "instant", "--plan", "free")
    assert (shown["plan"], shown["script"]) == ("paid", "done")


def test_a_scenario_of_the_start_begins_once(emulator: Killed) -> None:
    def begun() -> list[str]:
        _, _, shown = emulator.ask("GET", "/__emulator__/scenarios", None, "--scenario", "stuck")
        return [each["name"] for each in shown["scenarios"] if each["begun"]]

    assert begun() == ["stuck"]
    assert begun() == ["stuck"]
    status, _, _ = emulator.ask("DELETE", "/__emulator__/scenarios/stuck", None, "--scenario", "stuck")
    assert status == 204
    assert begun() == []
