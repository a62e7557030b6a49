"""The `/batch` Worker, ours or a deployed one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from workersai_contracts.suite.history import PENDING, documented
from workersai_contracts.suite.wire import Answer, answer_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workersai_contracts.recording import Recorder
    from workersai_contracts.suite.checks import Checks
    from workersai_contracts.target import Target

POLLS = 200
BAD_BODIES = {
    "not JSON": b"{",
    "no texts": b"{}",
    "no text": b'{"texts":[]}',
    "a blank text": b'{"texts":[" "]}',
    "a number": b'{"texts":[1]}',
    "21 texts": json.dumps({"texts": ["a"] * 21}).encode(),
    "2001 characters": json.dumps({"texts": ["a" * 2001]}).encode(),
}


class WorkerWire:
    """Sends to a Worker."""

    def __init__(self, root: str, recorder: Recorder | None = None) -> None:
        self._recorder = recorder
        self._http = httpx.Client(base_url=root, timeout=60.0)

    def send(self, method: str, path: str, content: bytes = b"") -> Answer:
        """Send one request."""
        response = self._http.request(method, path, content=content)
        return answer_of(response, content, self._recorder)

    def close(self) -> None:
        """End the connections."""
        self._http.close()


@pytest.fixture
def worker(target: Target, recorder: Recorder | None) -> Iterator[WorkerWire]:
    """The Worker; without one its tests are skipped."""
    if target.worker is None:
        pytest.skip("no Worker: give one with --worker URL")
    wire = WorkerWire(target.worker, recorder)
    yield wire
    wire.close()


def _refused(checks: Checks, fact: str, answer: Answer, status: int, code: str) -> bool:
    told = f"HTTP {answer.status}, {answer.content.decode('utf-8', 'replace')[:200]}"
    body: Any = answer.json if isinstance(answer.json, dict) else {}
    checks.that("worker.error", list(body) == ["error", "code"], f"keys are not error, code: {told}")
    right = (answer.status, body.get("code")) == (status, code)
    return checks.that(fact, right, f"not {status} {code}: {told}")


def test_the_worker_says_what_it_is(worker: WorkerWire, checks: Checks) -> None:
    """Fact: `worker.info`."""
    answer = worker.send("GET", "/")
    checks.that("worker.info", answer.status == 200, f"HTTP {answer.status}")
    checks.schema("worker.info", answer.json, "worker/info.reply")


@pytest.mark.parametrize("body", BAD_BODIES.values(), ids=BAD_BODIES)
def test_the_worker_refuses_what_is_no_texts(body: bytes, worker: WorkerWire, checks: Checks) -> None:
    """Facts: `worker.submit`, `worker.error`."""
    _refused(checks, "worker.submit", worker.send("POST", "/batch", body), 400, "INVALID_BODY")


@pytest.mark.parametrize(
    "request_id", ["a%20b", "a" * 129, "%C3%A9"], ids=["a space", "129 letters", "an accent"]
)
def test_the_worker_refuses_what_is_no_request_id(
    request_id: str, worker: WorkerWire, checks: Checks
) -> None:
    """Facts: `worker.poll`, `worker.error`."""
    answer = worker.send("GET", f"/batch/{request_id}")
    _refused(checks, "worker.poll", answer, 400, "INVALID_REQUEST_ID")


def test_a_failure_of_the_queue_is_a_batch_error(worker: WorkerWire, checks: Checks) -> None:
    """The binding throws `<internalCode>: <description>`. Facts: `worker.error`, `env.binding`."""
    answer = worker.send("GET", "/batch/00000000-0000-4000-8000-000000000000")
    if answer.status == 200:
        pytest.skip("this Worker knows every request_id: it has no binding, or the queue answers unknown ids")
    if _refused(checks, "worker.error", answer, 502, "BATCH_ERROR"):
        thrown = answer.json["error"].partition(": ")
        checks.that(
            "env.binding", thrown[0].isdigit() and bool(thrown[2]), f"thrown: {answer.json['error']!r}"
        )


def test_the_worker_queues_and_polls(worker: WorkerWire, checks: Checks, target: Target) -> None:
    """Facts: `worker.submit`, `worker.poll`, `worker.demo`, `batch.binding`."""
    queued = worker.send("POST", "/batch", json.dumps({"texts": [" a ", "b"]}).encode())
    demo = isinstance(queued.json, dict) and queued.json.get("mode") == "demo"
    if not checks.schema("worker.demo" if demo else "worker.submit", queued.json, "worker/submit.reply"):
        return
    keys = list(queued.json)
    expected = (
        ["status", "model", "request_id", "mode", "note"]
        if demo
        else ["status", "model", "request_id", "mode"]
    )
    checks.that(
        "worker.demo" if demo else "batch.binding", keys == expected, f"keys are {keys}, not {expected}"
    )
    for _ in range(POLLS if not target.costs else 1):
        polled = worker.send("GET", f"/batch/{queued.json['request_id']}").json
        told = polled if demo else documented(polled) or polled
        checks.schema("worker.demo" if demo else "worker.poll", told, "worker/poll.reply")
        if not isinstance(polled, dict) or polled.get("status") not in PENDING:
            break
    if not demo and isinstance(told, dict):
        ids = sorted(item.get("id") for item in told.get("responses", []))
        checks.that("worker.poll", ids == [0, 1], f"two texts have the items {ids}")
