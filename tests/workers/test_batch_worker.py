"""A Worker written with Hono, under workerd with its binding on an emulator, beside the emulator's own `/batch`.

Both ask an emulator of their own with the same seed, so that even the ids are the same, and bodies are compared
byte for byte.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from worker_environments import node_of
from worker_runs import PROGRAMS, clean_environment, emulator

from workersai_contracts import assumptions, errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from workersai_emulator.controls import WorkersAI

pytestmark = [pytest.mark.workers, pytest.mark.workers_short]
DEMO_ID = re.compile(r"demo-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ALTERNATIVES = [(row.id, alternative) for row in assumptions().values() for alternative in row.alternatives]
UNKNOWN = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True)
class Answered:
    """What of a reply an application sees."""

    status: int
    content_type: str
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Pair:
    """The Worker with the emulator behind it, and an emulator that answers `/batch` itself."""

    theirs: str
    behind: WorkersAI
    ours: WorkersAI
    demo: str
    client: httpx.Client

    def both(self, act: Callable[[WorkersAI], object]) -> None:
        """Do the same to both emulators."""
        act(self.behind)
        act(self.ours)

    def ask(self, method: str, path: str, body: Any = None) -> Answered:
        """What both answer, which is the same."""
        theirs, ours = (self._sent(root, method, path, body) for root in (self.theirs, self.ours.url))
        assert theirs == ours
        return theirs

    def ask_demo(self, method: str, path: str, body: Any = None) -> Answered:
        """What both answer without a binding, but for the uuid of an id."""
        theirs, ours = (self._sent(root, method, path, body) for root in (self.demo, self.ours.url))
        assert DEMO_ID.sub("demo", theirs.body) == DEMO_ID.sub("demo", ours.body)
        assert (theirs.status, theirs.content_type) == (ours.status, ours.content_type)
        return theirs

    def submit(self, *texts: str) -> Answered:
        return self.ask("POST", "/batch", {"texts": list(texts)})

    def poll(self, queued: Answered) -> Answered:
        return self.ask("GET", f"/batch/{queued.json['request_id']}")

    def _sent(self, root: str, method: str, path: str, body: Any) -> Answered:
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        reply = self.client.request(
            method, root + path, content=content, headers={"Content-Type": "application/json"}
        )
        return Answered(reply.status_code, reply.headers["content-type"], reply.text)


@pytest.fixture(scope="module")
def running(environments: dict[str, Path]) -> Iterator[Pair]:
    environment = environments["newest"]
    folder = environment / "runs" / "batch"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PROGRAMS, folder)
    with emulator() as behind, emulator() as ours, httpx.Client() as client:
        program = subprocess.Popen(
            [node_of(environment), "batch.mjs"],
            cwd=folder,
            env={**clean_environment(), "WORKERS_AI_EMULATOR_URL": behind.url},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with program:
            assert program.stdout is not None
            roots = json.loads(program.stdout.readline().removeprefix("TOLD "))
            yield Pair(roots["live"], behind, ours, roots["demo"], client)


@pytest.fixture
def pair(running: Pair) -> Pair:
    """Both as they were when they began."""
    running.both(lambda account: account.reset())
    return running


def test_a_batch_is_queued_then_running_then_done(pair: Pair) -> None:
    queued = pair.submit(" orange cloud ", "a llama")
    assert queued.json == {
        "status": "queued",
        "model": "@cf/baai/bge-m3",
        "request_id": queued.json["request_id"],
        "mode": "live",
    }
    states = [pair.poll(queued).json for _ in range(3)]
    assert [state.get("status") for state in states] == ["queued", "running", None]
    assert len(states[2]["responses"]) == 2
    assert states[2]["mode"] == "live"
    assert pair.poll(queued).json == states[2]


@pytest.mark.parametrize("many", [1, 20])
def test_every_number_of_a_vector_is_written_alike(many: int, pair: Pair) -> None:
    pair.both(lambda account: account.settings.patch(script="instant"))
    queued = pair.submit(*[f"text {number} of a llama" for number in range(many)])
    assert len(pair.poll(queued).json["responses"]) == many


def test_failed_items_are_told_alike(pair: Pair) -> None:
    pair.both(lambda account: account.settings.patch(script="instant"))
    pair.both(lambda account: account.rules.add(effect={"items": {"indexes": [1], "code": 3030}}))
    queued = pair.submit("orange cloud", "a llama", "more")
    successes = {item["id"]: item["success"] for item in pair.poll(queued).json["responses"]}
    assert successes == {0: True, 1: False, 2: True}


@pytest.mark.parametrize("operation", ["submit", "poll"])
@pytest.mark.parametrize("row", list(errors()))
def test_every_failure_of_the_queue_is_a_batch_error(row: str, operation: str, pair: Pair) -> None:
    queued = pair.submit("orange cloud")
    pair.both(lambda account: account.fail(operation, row))
    failed = pair.submit("a llama") if operation == "submit" else pair.poll(queued)
    assert failed.status == 502
    assert failed.json["code"] == "BATCH_ERROR"
    assert re.match(r"\d+: ", failed.json["error"])


@pytest.mark.parametrize("assumption", [{"batch.failed": "error"}, {"batch.failed": "status"}], ids=str)
def test_a_batch_that_failed_is_told_alike(assumption: dict[str, str], pair: Pair) -> None:
    pair.both(lambda account: account.settings.patch(script="failed:5001", assumptions=assumption))
    queued = pair.submit("orange cloud")
    failed = pair.poll(queued)
    assert "5001" in failed.body or failed.json["status"] == "failed"


@pytest.mark.parametrize("shape", ["responses", "results"])
def test_both_shapes_of_a_finished_batch_are_told_alike(shape: str, pair: Pair) -> None:
    pair.both(lambda account: account.settings.patch(script="instant", assumptions={"done.shape": shape}))
    assert shape in pair.poll(pair.submit("orange cloud")).json


def test_a_batch_that_is_lost_or_was_never_there_is_told_alike(pair: Pair) -> None:
    assert pair.ask("GET", f"/batch/{UNKNOWN}").json == {
        "error": "8007: Request not found",
        "code": "BATCH_ERROR",
    }
    queued = pair.submit("orange cloud")
    pair.both(lambda account: account.batches.lose(queued.json["request_id"]))
    assert pair.poll(queued).json["code"] == "BATCH_ERROR"


def test_a_submit_that_is_too_large_is_told_alike(pair: Pair) -> None:
    pair.both(lambda account: account.settings.patch(limits={"payload_bytes": 100}))
    assert pair.submit("orange cloud " * 20).json["error"].startswith("3006: ")


@pytest.mark.parametrize(("fact", "alternative"), ALTERNATIVES)
def test_whatever_is_assumed_is_told_alike(fact: str, alternative: str, pair: Pair) -> None:
    pair.both(lambda account: account.settings.patch(assumptions={fact: alternative}))
    pair.both(lambda account: account.rules.add(effect={"items": {"indexes": [1], "code": 3030}}))
    queued = pair.submit("orange cloud", "a llama", "more")
    told = [pair.poll(queued) for _ in range(4)]
    assert told[2].json["mode"] == "live"
    assert pair.ask("GET", f"/batch/{UNKNOWN}").status in {200, 502}


BAD_BODIES = [
    b"",
    b"{",
    b"\xff",
    b"null",
    b"[]",
    b'{"texts": "a llama"}',
    b'{"texts": []}',
    b'{"texts": [""]}',
    b'{"texts": ["\\u00a0\\ufeff"]}',
    b'{"texts": [1]}',
    json.dumps({"texts": ["x"] * 21}).encode(),
    json.dumps({"texts": ["x" * 2001]}).encode(),
    json.dumps({"texts": ["\U0001f999" * 1001]}).encode(),
]


@pytest.mark.parametrize("body", BAD_BODIES, ids=lambda body: body[:20].decode("latin-1"))
def test_a_body_that_it_does_not_take_is_told_alike(body: bytes, pair: Pair) -> None:
    refused = pair.ask("POST", "/batch", body)
    assert (refused.status, refused.json["code"]) == (400, "INVALID_BODY")


TAKEN = [
    "x" * 2000,
    "\U0001f999" * 1000,
    "\u2003a llama\ufeff",
    "caf\u00e9",
    '"\\\n',
    "\ud7ff",
    "<b>&amp;</b>",
]


@pytest.mark.parametrize("text", TAKEN, ids=lambda text: ascii(text[:8]))
def test_a_text_that_it_takes_is_told_alike(text: str, pair: Pair) -> None:
    pair.both(lambda account: account.settings.patch(script="instant"))
    assert len(pair.poll(pair.submit(text)).json["responses"]) == 1


@pytest.mark.parametrize("request_id", ["%20", "a" * 129, "a%20b", "a%2Fb", "%C3%A9", "a:b"])
def test_a_request_id_that_it_does_not_take_is_told_alike(request_id: str, pair: Pair) -> None:
    refused = pair.ask("GET", f"/batch/{request_id}")
    assert (refused.status, refused.json["code"]) == (400, "INVALID_REQUEST_ID")


def test_without_a_binding_both_are_a_demo(pair: Pair) -> None:
    pair.ours.settings.patch(worker_binding=False)
    queued = pair.ask_demo("POST", "/batch", {"texts": ["orange cloud"]})
    assert queued.json["mode"] == "demo"
    assert pair.ask_demo("GET", f"/batch/{queued.json['request_id']}").json["status"] == "completed"
    assert pair.ask_demo("POST", "/batch", {"texts": []}).status == 400
