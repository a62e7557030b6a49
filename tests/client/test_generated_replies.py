"""Replies generated from the contract's schemas: those that hold are taken, those that just don't are told.

What JSON Schema cannot say is put right first: a pending reply is about the batch that was asked for, and items
are one for each request.
"""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workersai_client import Client, Done, Handle, Pending, WorkersAIError
from workersai_contracts import mismatches
from workersai_contracts.strategies import nearly_valid, valid

ACCOUNT = "0123456789abcdef0123456789abcdef"
MODEL = "@cf/baai/bge-m3"
ID = "3f0c1f9e-7b1a-4c55-9d0e-2a6b8f4c1d23"
TIMEOUT = 30.0
RUNS = [
    "envelope/success",
    "run/embedding.reply",
    "run/reranking.reply",
    "run/translation.reply",
    "run/response.reply",
    "run/choices.reply",
    "run/output.reply",
]
REFUSALS = ["envelope/ai-error", "envelope/edge-error"]

#: Where the client takes what the contract does not: the place of the difference and why.
LENIENT = {
    "submit": [
        (r"\$: Additional properties", "further keys of an envelope say nothing"),
        (r"\$: '(success|errors|messages)' is a required", "a result says enough"),
        (r"\$\.(errors|messages)\b", "beside success they say nothing"),
        (r"\$\.result: Additional properties", "further keys of the result say nothing"),
        (r"\$\.result: '(status|model)' is a required", "the request_id is all that a poll needs"),
        (r"\$\.result\.(status|model):", "the same"),
        (r"\$\.result\.request_id: '", "an id is any text: the service may change its form"),
    ],
    "poll": [
        (r"\$: Additional properties", "as for a submit"),
        (r"\$: '(success|errors|messages)' is a required", "as for a submit"),
        (r"\$\.(errors|messages)\b", "as for a submit"),
        (r"\$\.result: Additional properties", "further keys say nothing; Fact: `done.status`"),
        (r"\$\.result: 'request_id' is a required", "whoever asks knows it"),
        (r"\$\.result\.request_id: '", "an id is any text, if it is the one asked for"),
        (r"\$\.result: 'usage' is a required", "it is optional to clients; Fact: `poll.usage`"),
        (r"\$\.result\.usage: (None|'\w+' is a required)", "the same"),
        (r"\$\.result\.usage\.\w+: .* is less than the minimum", "counts are handed on as they are"),
        (r"\$\.result\.responses\[\d+\]: Additional properties", "further keys of an item say nothing"),
        (r"\$\.result\.responses\[\d+\]: '(success|external_reference)' is a required", "errors tell"),
        (r"\$\.result\.responses\[\d+\]: '(errors|result)' is a required", "a failure has no need of them"),
        (r"\$\.result\.responses\[\d+\]\.result\b", "a result is handed on as it is"),
        (r"\$\.result\.responses\[\d+\]\.errors\b", "a failed item has failed, whatever its errors say"),
    ],
    "run": [
        (r"\$: Additional properties", "as for a submit"),
        (r"\$: '(success|errors|messages)' is a required", "as for a submit"),
        (r"\$\.(errors|messages)\b", "as for a submit"),
        (r"\$\.result\b", "the model's output is handed on unread"),
    ],
}

unhurried = [HealthCheck.too_slow, HealthCheck.filter_too_much]
a_few = settings(max_examples=settings.default.max_examples // 2, suppress_health_check=unhurried)
many = settings(max_examples=settings.default.max_examples, suppress_health_check=unhurried)


class Told:
    """A client whose every request is answered with one reply; time passes only in its own sleeps."""

    def __init__(self, body: Any, status: int = 200) -> None:
        self.now = 0.0
        self.requests = 0
        self._content = json.dumps(body).encode()
        self._status = status

    def __call__(self, operation: str, *arguments: Any, **options: Any) -> Any:
        transport = httpx.MockTransport(self._answer)
        with Client(
            ACCOUNT,
            "token",
            "http://service.test",
            sleep=self._sleep,
            monotonic=lambda: self.now,
            transport=transport,
        ) as client:
            return getattr(client, operation)(*arguments, **options)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        return httpx.Response(
            self._status, content=self._content, headers={"content-type": "application/json"}
        )

    def _sleep(self, seconds: float) -> None:
        self.now += seconds


@given(valid("batch/submit.reply"))
@a_few
def test_every_submit_is_taken(reply: Any) -> None:
    handle = Told(reply)("submit", MODEL, [{"text": "a"}])
    assert handle == Handle(ACCOUNT, MODEL, reply["result"]["request_id"])


@given(valid("batch/poll.pending"))
@a_few
def test_every_pending_batch_is_pending(reply: Any) -> None:
    handle = Handle(ACCOUNT, MODEL, reply["result"]["request_id"])
    assert Told(reply)("poll", handle) == Pending(reply["result"]["status"])


@given(valid("batch/poll.done"))
@a_few
def test_every_finished_batch_is_done_with_all_its_items(reply: Any) -> None:
    responses = reply["result"]["responses"]
    done = Told(reply)("poll", Handle(ACCOUNT, MODEL, ID, len(responses)))
    sent = {item["id"]: item for item in responses}
    assert [item.id for item in done.items] == sorted(sent)
    for item in done.items:
        assert item.success is sent[item.id]["success"]
        assert item.external_reference == sent[item.id]["external_reference"]
        assert item.result == sent[item.id]["result"]
        assert (item.error is None) is item.success
    assert done.usage.total_tokens == reply["result"]["usage"]["total_tokens"]


@pytest.mark.parametrize("name", RUNS)
@given(data=st.data())
@a_few
def test_every_output_is_handed_on(name: str, data: st.DataObject) -> None:
    reply = data.draw(valid(name))
    assert Told(reply)("run", MODEL, {"text": "a"}) == reply["result"]


@pytest.mark.parametrize("name", REFUSALS)
@pytest.mark.parametrize("make", [valid, nearly_valid])
@given(data=st.data(), status=st.sampled_from([400, 401, 403, 404, 408, 413, 429, 500, 503]))
@a_few
def test_every_refusal_is_an_error_with_its_status(
    name: str, make: Any, data: st.DataObject, status: int
) -> None:
    told = Told(data.draw(make(name)), status)
    with pytest.raises(WorkersAIError) as raised:
        told("poll", Handle(ACCOUNT, MODEL, ID))
    assert raised.value.status == status
    assert told.now <= 0.5 + 1 + 2 + 4


@given(nearly_valid("batch/submit.reply"))
@many
def test_a_submit_that_nearly_holds_is_an_error_or_let_pass_on_purpose(reply: Any) -> None:
    told = Told(reply)
    try:
        handle = told("submit", MODEL, [{"text": "a"}])
    except WorkersAIError:
        return
    assert isinstance(handle.request_id, str)
    _assert_lenient(reply, "batch/submit.reply", "submit")


@pytest.mark.parametrize("name", ["batch/poll.pending", "batch/poll.done"])
@given(data=st.data())
@many
def test_a_poll_that_nearly_holds_is_an_error_or_let_pass_on_purpose(name: str, data: st.DataObject) -> None:
    reply = data.draw(nearly_valid(name))
    try:
        found = Told(reply)("poll", _handle(reply))
    except WorkersAIError:
        return
    assert isinstance(found, Pending | Done)
    _assert_lenient(reply, name, "poll")


@pytest.mark.parametrize("name", RUNS)
@given(data=st.data())
@a_few
def test_a_run_that_nearly_holds_is_an_error_or_let_pass_on_purpose(name: str, data: st.DataObject) -> None:
    reply = data.draw(nearly_valid(name))
    try:
        output = Told(reply)("run", MODEL, {"text": "a"})
    except WorkersAIError:
        return
    assert output == reply["result"]
    _assert_lenient(reply, name, "run")


@pytest.mark.parametrize("name", ["batch/poll.pending", "batch/poll.done", *REFUSALS])
@given(data=st.data(), status=st.sampled_from([200, 200, 400, 408, 429, 500]))
@a_few
def test_a_wait_ends_within_its_deadline_whatever_it_is_told(
    name: str, data: st.DataObject, status: int
) -> None:
    reply = data.draw(nearly_valid(name) | valid(name))
    told = Told(reply, status)
    try:
        found = told("wait", _handle(reply), timeout=TIMEOUT)
    except WorkersAIError:
        assert told.now <= TIMEOUT
    else:
        assert isinstance(found, Done)
        assert told.requests == 1


def test_a_request_in_breach_is_noticed_by_the_scripted_service(call: Any, service: Any) -> None:
    service.any_request = True
    service.answers({"status": "queued", "request_id": "no-uuid"})
    assert call("poll", Handle(ACCOUNT, MODEL, "no-uuid")) == Pending("queued")
    [breach] = service.breaches
    assert breach.startswith("not a batch/poll.request: 1 difference\n  $.request_id: 'no-uuid'")


def _handle(reply: Any) -> Handle:
    """A handle of the batch that the reply is about, as far as it says."""
    result = reply.get("result")
    said = result.get("request_id") if isinstance(result, dict) else None
    return Handle(ACCOUNT, MODEL, said if isinstance(said, str) and said else ID)


def _assert_lenient(reply: Any, name: str, operation: str) -> None:
    patterns = [pattern for pattern, _ in LENIENT[operation]]
    differences = [one.message for one in mismatches(reply, name)]
    assert [line for line in differences if not any(re.match(one, line) for one in patterns)] == []
