"""The same Worker under every real runtime, with its env.AI on an emulator: no network, no credentials.

`make test-workers` installs the runtimes once, and cuts the network off where the machine can do that.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from runtimes import LISTED, REFERENCE, RUNTIMES, Runtime
from worker_environments import is_newest, names, version_of
from worker_runs import PAGE, emulator, run_program

from workersai_contracts import models
from workersai_emulator import embed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from worker_runs import Ran

    Run = Callable[[Runtime], Ran]

pytestmark = pytest.mark.workers
EMBEDDING = "@cf/baai/bge-m3"
TEXT = "@cf/meta/llama-3.1-8b-instruct"
PICTURE = "@cf/stabilityai/stable-diffusion-xl-base-1.0"
TEXTS = ["orange cloud", "a llama"]
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
each = pytest.mark.parametrize(
    "runtime",
    [
        pytest.param(
            runtime, id=runtime.proved, marks=[pytest.mark.workers_short] if runtime.is_short else []
        )
        for runtime in RUNTIMES
    ],
)


@dataclass(frozen=True)
class Rest:
    """The REST API of an emulator with the same seed and rules."""

    run_url: str
    client: httpx.Client

    def ask(self, model: str, **inputs: Any) -> Any:
        """The result of a run."""
        return self._sent(model, inputs).json()["result"]

    def bytes(self, model: str, **inputs: Any) -> bytes:
        """What a run that is not JSON has for a body."""
        return self._sent(model, inputs).content

    def _sent(self, model: str, inputs: dict[str, Any]) -> httpx.Response:
        return self.client.post(f"{self.run_url}/{model}", json=inputs).raise_for_status()


@pytest.fixture(scope="module")
def rest() -> Iterator[Rest]:
    with emulator() as account, httpx.Client(headers={"Authorization": "Bearer emulator"}) as client:
        yield Rest(f"{account.base_url}/accounts/{account.account_id}/ai/run", client)


def differences(got: Any, wanted: Any, place: str = "") -> list[str]:
    """Each place where two answers differ, with both sides of it."""
    if isinstance(got, dict) and isinstance(wanted, dict):
        keys = [*wanted, *(key for key in got if key not in wanted)]
        return [
            line
            for key in keys
            for line in differences(got.get(key, "nothing"), wanted.get(key, "nothing"), f"{place}.{key}")
        ]
    if isinstance(got, list) and isinstance(wanted, list) and len(got) == len(wanted):
        return [
            line
            for at, pair in enumerate(zip(got, wanted, strict=True))
            for line in differences(*pair, f"{place}[{at}]")
        ]
    return [] if got == wanted else [f"{place.lstrip('.')}: {got!r:.200}, not {wanted!r:.200}"]


def comparable(ran: Ran, *, keeps_names: bool) -> dict[str, Any]:
    """The answers without what a runtime may decide: how a stream is cut, and names that it loses."""
    told = {
        part: dict(answer) if isinstance(answer, dict) else answer for part, answer in ran.answers.items()
    }
    for answer in told.values():
        if isinstance(answer, dict):
            answer.pop("pieces", None)
            if "message" in answer and not keeps_names:
                answer.pop("name")
    return told


@each
def test_its_answers_are_those_of_plain_workerd(runtime: Runtime, run: Run) -> None:
    [reference] = [each for each in RUNTIMES if str(each) == REFERENCE]
    ran = run(runtime)
    keeps_names = runtime.keeps_names
    got, wanted = (
        comparable(ran, keeps_names=keeps_names),
        comparable(run(reference), keeps_names=keeps_names),
    )
    assert differences(got, wanted) == [], f"{runtime}: {ran.versions}"
    assert list(got) == list(wanted)


@each
def test_its_batch_is_queued_then_running_then_done(runtime: Runtime, run: Run, rest: Rest) -> None:
    told = run(runtime).answers["batch"]
    request_id = told["queued"]["request_id"]
    assert UUID.fullmatch(request_id)
    assert told["queued"] == {"status": "queued", "model": EMBEDDING, "request_id": request_id}
    queued, running, done = told["polls"]
    assert queued["status"] == "queued"
    assert running["status"] == "running"
    assert "status" not in done
    items = {item["id"]: item for item in done["responses"]}
    assert sorted(items) == [0, 1]
    for at, vector in enumerate(embed(EMBEDDING, TEXTS).tolist()):
        assert items[at]["result"]["data"][0] == vector
        assert items[at]["external_reference"] == f"ref-{at}"
        assert items[at]["success"] is True


@each
def test_what_is_run_at_once_is_what_the_rest_api_has_for_a_result(
    runtime: Runtime, run: Run, rest: Rest
) -> None:
    told = run(runtime).answers
    assert told["embedding"]["answer"] == rest.ask(EMBEDDING, text=TEXTS[:1])
    assert told["raw"] == {
        "status": 200,
        "type": "application/json",
        "answer": rest.ask(EMBEDDING, text=TEXTS[1]),
    }
    assert told["gateway"]["answer"] == told["raw"]["answer"]
    assert told["chat"] == rest.ask(TEXT, prompt="Say hello")
    assert "heard 2048 bytes" in told["speech"]["text"]


@each
def test_a_picture_comes_as_its_bytes(runtime: Runtime, run: Run, rest: Rest) -> None:
    picture = rest.bytes(PICTURE, prompt="a llama")
    assert picture.startswith(b"\x89PNG")
    digest = hashlib.sha256(picture).hexdigest()
    assert run(runtime).answers["picture"] == {"length": len(picture), "digest": digest}


@each
def test_what_is_no_http_is_refused_and_does_not_hang(runtime: Runtime, run: Run) -> None:
    assert run(runtime).answers["rpc"] == "refused"


@each
def test_it_tells_the_id_of_its_request(runtime: Runtime, run: Run) -> None:
    told = run(runtime).answers
    assert UUID.fullmatch(told["embedding"]["lastRequestId"])
    assert told["embedding"]["aiGatewayLogId"] is None
    assert isinstance(told["gateway"]["aiGatewayLogId"], str)
    assert told["gateway"]["aiGatewayLogId"]


@each
def test_its_stream_is_events_in_pieces(runtime: Runtime, run: Run) -> None:
    told = run(runtime).answers
    events = [line.removeprefix("data: ") for line in told["stream"]["events"].split("\n\n") if line]
    assert events[-1] == "[DONE]"
    said = [json.loads(event) for event in events[:-1]]
    assert "".join(event["response"] for event in said) == told["chat"]["response"]
    assert said[-1]["usage"] == told["chat"]["usage"]
    assert told["slow stream"]["pieces"] >= 10
    assert told["slow stream"]["events"].endswith("data: [DONE]\n\n")


ERRORS = {
    "no such model": ("AiError", 400, 5007, "5007: No such model @cf/nobody/nothing or task"),
    "bad input": ("AiError", 400, 5006, "5006: Error: oneOf at '/' not met, 0 matches: "),
    "no such batch": ("AiError", 400, 8007, "8007: Request not found"),
    "does not queue": ("AiError", 400, 8007, "8007: This model does not support request queuing"),
    "out of capacity": ("AiError", 429, 3040, "3040: Capacity temporarily exceeded, please try again."),
    "bad gateway": ("InferenceUpstreamError", 502, None, PAGE),
}


@each
@pytest.mark.parametrize("part", ERRORS)
def test_what_the_service_refuses_is_thrown(part: str, runtime: Runtime, run: Run) -> None:
    name, status, code, message = ERRORS[part]
    told = run(runtime).answers[part]
    assert told["name"] == (name if runtime.keeps_names else "Error")
    assert told["status"] == status
    assert told["message"].startswith(message)
    if code is not None:
        assert told["code"] == code


@each
def test_it_lists_models(runtime: Runtime, run: Run) -> None:
    told = run(runtime).answers["models"]
    assert len(told) == 3
    for model in told:
        assert UUID.fullmatch(model["id"])
        assert model["name"] in models()
        assert model["task"] == "Text Embeddings"
    assert all(one["name"] < next_one["name"] for one, next_one in pairwise(told))


@pytest.mark.workers_short
@pytest.mark.parametrize("name", names())
def test_the_versions_that_run_are_those_that_are_listed(name: str, environments: dict[str, Path]) -> None:
    listed = LISTED[name]
    if is_newest(name):
        pytest.skip("WORKERS_NEWEST=1 takes others on purpose")
    there = {package: version_of(environments[name], package) for package in listed}
    assert there == listed


@pytest.mark.parametrize("end", ["newest", "oldest"])
def test_each_binding_has_the_account_of_its_options(end: str, environments: dict[str, Path]) -> None:
    with emulator() as account:
        ran = run_program(environments[end], "accounts.mjs", account.url)
        assert ran.returncode == 0, ran.stderr
        for digit in "ab":
            [request] = account.account(digit * 32).requests.list()
            assert (request.dialect, request.operation, request.model) == ("binding", "run", EMBEDDING)
        assert account.requests.list() == []


@pytest.mark.workers_short
def test_no_network_is_there() -> None:
    if os.environ.get("WORKERS_OFFLINE") != "1":
        pytest.skip("this machine cannot cut the network off: there is no unshare, or it may not")
    with pytest.raises(OSError, match="unreachable"):
        socket.create_connection(("192.0.2.1", 443), 5)
