"""Both clients on a real socket: what goes over the wire, what is retried, and what is not."""

from __future__ import annotations

import asyncio
import logging
import socket
from importlib.metadata import version

import httpx
import pytest

from workersai_client import (
    AsyncClient,
    AuthenticationError,
    BatchFailed,
    Client,
    Done,
    Handle,
    InvalidRequest,
    Item,
    Pending,
    QuotaExceeded,
    RateLimited,
    RequestTooLarge,
    ServerError,
    TransportError,
    UnexpectedReply,
    WorkersAIError,
)

ACCOUNT = "0123456789abcdef0123456789abcdef"
TOKEN = "a-token-that-must-stay-secret"
MODEL = "@cf/baai/bge-m3"
PATH = f"/client/v4/accounts/{ACCOUNT}/ai/run/@cf/baai/bge-m3"
ID = "11111111-2222-4333-8444-555555555555"
HANDLE = Handle(ACCOUNT, MODEL, ID)
QUEUED = {"status": "queued", "request_id": ID, "model": MODEL}


def test_a_run_on_the_wire(call, service) -> None:
    service.answers({"shape": [1, 1], "data": [[0.5]]})
    assert call("run", MODEL, {"text": "é"}) == {"shape": [1, 1], "data": [[0.5]]}
    [seen] = service.seen
    assert seen.line == f"POST {PATH} HTTP/1.1"
    assert seen.body == '{"text":"é"}'.encode()
    assert seen.headers["authorization"] == f"Bearer {TOKEN}"
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["accept"] == "application/json"
    assert seen.headers["user-agent"] == f"workersai-client/{version('workersai-emulator')}"
    assert seen.headers["host"] == service.url.removeprefix("http://")


def test_a_submit_on_the_wire(call, service) -> None:
    service.answers(QUEUED)
    handle = call("submit", MODEL, [{"text": "a", "external_reference": {"n": 1}}, {"text": "b"}])
    assert handle == HANDLE
    assert handle.items == 2
    [seen] = service.seen
    assert seen.line == f"POST {PATH}?queueRequest=true HTTP/1.1"
    assert seen.body == b'{"requests":[{"text":"a","external_reference":{"n":1}},{"text":"b"}]}'


def test_a_poll_on_the_wire(call, service) -> None:
    service.answers({"status": "running", "request_id": ID})
    assert call("poll", HANDLE) == Pending("running")
    [seen] = service.seen
    assert seen.line == f"POST {PATH}?queueRequest=true HTTP/1.1"
    assert seen.body == b'{"request_id":"11111111-2222-4333-8444-555555555555"}'


def test_a_handle_read_in_another_process_finds_its_batch(call, service) -> None:
    service.answers(QUEUED)
    service.answers({"responses": [{"id": 0, "result": {}, "success": True}]})
    text = call("submit", MODEL, [{"text": "a"}]).to_json()
    assert call("poll", Handle.from_json(text)) == Done((Item(0, True, {}),))


RETRIED = [
    pytest.param(lambda service: service.refuses(429, 3021), id="3021"),
    pytest.param(lambda service: service.refuses(429, 3040), id="3040"),
    pytest.param(lambda service: service.refuses(500, 1234), id="500"),
    pytest.param(lambda service: service.refuses(503, 3050), id="503"),
    pytest.param(lambda service: service.says(502, b"<html>", {"content-type": "text/html"}), id="html"),
    pytest.param(lambda service: service.refuses(408, 3046), id="408"),
    pytest.param(lambda service: service.refuses(200, 3040), id="200"),
    pytest.param(lambda service: service.resets_before_reading(), id="reset before"),
    pytest.param(lambda service: service.resets_after_reading(), id="reset after"),
    pytest.param(lambda service: service.says(200, b"{}", {"content-length": "999"}), id="cut short"),
    pytest.param(lambda service: service.says(200, b"junk", {"content-encoding": "gzip"}), id="not gzip"),
]


@pytest.mark.parametrize("fail", RETRIED)
def test_a_run_is_tried_again_after_what_may_pass(call, service, fail) -> None:
    fail(service)
    service.answers("fine")
    assert call("run", MODEL, {}) == "fine"
    assert call.pauses == [0.5]


@pytest.mark.parametrize("fail", RETRIED)
def test_a_poll_is_tried_again_after_what_may_pass(call, service, fail) -> None:
    fail(service)
    service.answers({"status": "queued", "request_id": ID})
    assert call("poll", HANDLE) == Pending("queued")
    assert call.pauses == [0.5]


@pytest.mark.parametrize(("code", "seconds"), [(3021, "7"), (3040, "0.25")])
@pytest.mark.parametrize("operation", ["run", "poll", "submit"])
def test_retry_after_is_obeyed(call, service, operation: str, code: int, seconds: str) -> None:
    service.refuses(429, code, headers={"retry-after": seconds})
    service.answers(QUEUED)
    call(operation, *{"run": (MODEL, {}), "poll": (HANDLE,), "submit": (MODEL, [])}[operation])
    assert call.pauses == [float(seconds)]


def test_a_retry_after_date_is_measured_on_the_server_s_clock(call, service) -> None:
    dates = {"retry-after": "Sun, 29 Nov 2026 12:00:09 GMT", "date": "Sun, 29 Nov 2026 12:00:00 GMT"}
    service.refuses(429, 3040, headers=dates)
    service.answers("fine")
    assert call("run", MODEL, {}) == "fine"
    assert call.pauses == [9.0]


def test_a_retry_after_beyond_patience_is_left_to_the_caller(call, service) -> None:
    service.refuses(429, 3040, headers={"retry-after": "3600"})
    with pytest.raises(RateLimited) as raised:
        call("run", MODEL, {})
    assert raised.value.retry_after == 3600.0
    assert raised.value.retryable
    assert call.pauses == []


def test_pauses_double_until_the_retries_are_used_up(call, service) -> None:
    service.refuses(429, 3040, times=5)
    with pytest.raises(RateLimited) as raised:
        call("run", MODEL, {})
    assert (raised.value.status, raised.value.code, raised.value.retryable) == (429, 3040, True)
    assert call.pauses == [0.5, 1.0, 2.0, 4.0]


def test_pauses_grow_no_longer_than_15_seconds(call, service) -> None:
    call.options["max_retries"] = 7
    service.refuses(429, 3040, times=8)
    with pytest.raises(RateLimited):
        call("run", MODEL, {})
    assert call.pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0]


def test_a_pause_is_drawn_from_the_whole_range(call, service) -> None:
    draws = iter([0.0, 0.25])
    call.options["jitter"] = lambda: next(draws)
    service.refuses(429, 3040, times=2)
    service.answers("fine")
    assert call("run", MODEL, {}) == "fine"
    assert call.pauses == [0.0, 0.25]


def test_nothing_is_tried_again_without_retries(call, service) -> None:
    call.options["max_retries"] = 0
    service.refuses(429, 3040)
    with pytest.raises(RateLimited):
        call("run", MODEL, {})
    assert call.pauses == []


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (429, 4006, QuotaExceeded),
        (429, 3036, QuotaExceeded),
        (401, 10000, AuthenticationError),
        (403, 10000, AuthenticationError),
        (413, 3006, RequestTooLarge),
        (400, 5006, InvalidRequest),
        (404, 7003, InvalidRequest),
    ],
)
@pytest.mark.parametrize("operation", ["run", "submit"])
def test_what_is_final_is_not_tried_again(call, service, operation, status, code, kind) -> None:
    service.refuses(status, code, "AiError: no (uuid)", {"retry-after": "1", "cf-ai-req-id": "quoted"})
    with pytest.raises(kind) as raised:
        call(operation, MODEL, {} if operation == "run" else [])
    assert (raised.value.status, raised.value.code, raised.value.message) == (
        status,
        code,
        "AiError: no (uuid)",
    )
    assert raised.value.cf_request_id == "quoted"
    assert raised.value.body["errors"] == [{"message": "AiError: no (uuid)", "code": code}]
    assert call.pauses == []


def test_a_failed_batch_is_not_polled_again(call, service) -> None:
    service.refuses(500, 5001, "Model execution failed")
    with pytest.raises(BatchFailed) as raised:
        call("poll", HANDLE)
    assert (raised.value.handle, raised.value.code) == (HANDLE, 5001)


@pytest.mark.parametrize(
    "fail",
    [lambda service: service.refuses(429, 3021), lambda service: service.refuses(429, 3040)],
    ids=["3021", "3040"],
)
def test_a_submit_that_was_refused_is_sent_again(call, service, fail) -> None:
    fail(service)
    service.answers(QUEUED)
    assert call("submit", MODEL, [{"text": "a"}]) == HANDLE
    assert call.pauses == [0.5]
    assert [seen.json for seen in service.seen] == [{"requests": [{"text": "a"}]}] * 2


IN_DOUBT = [
    pytest.param(lambda service: service.refuses(500, 1234), ServerError, id="500"),
    pytest.param(lambda service: service.says(502, b"<html>"), ServerError, id="html"),
    pytest.param(lambda service: service.refuses(408, 3046), InvalidRequest, id="408"),
    pytest.param(lambda service: service.resets_after_reading(), TransportError, id="reset after"),
    pytest.param(
        lambda service: service.says(200, b"{}", {"content-length": "999"}), TransportError, id="cut"
    ),
]


@pytest.mark.parametrize(("fail", "kind"), IN_DOUBT)
def test_a_submit_that_may_have_arrived_is_not_sent_again(call, service, fail, kind) -> None:
    fail(service)
    with pytest.raises(kind) as raised:
        call("submit", MODEL, [{"text": "a"}])
    assert raised.value.retryable is False
    assert raised.value.__notes__ == ["it may have taken effect all the same: a repetition may do it twice"]
    assert call.pauses == []


@pytest.mark.parametrize(("fail", "kind"), IN_DOUBT)
def test_a_submit_may_be_sent_twice_when_the_caller_allows(call, service, fail, kind) -> None:
    fail(service)
    service.answers(QUEUED)
    assert call("submit", MODEL, [{"text": "a"}], allow_duplicates=True) == HANDLE
    assert call.pauses == [0.5]


def test_a_submit_that_times_out_is_not_sent_again(call, service) -> None:
    call.options["timeout"] = 0.05
    service.hangs()
    with pytest.raises(TransportError) as raised:
        call("submit", MODEL, [{"text": "a"}])
    assert raised.value.may_have_arrived
    assert not raised.value.retryable


@pytest.mark.parametrize("operation", ["run", "poll", "submit"])
def test_no_connection_is_tried_again_by_every_operation(call, operation: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    call.url = f"http://127.0.0.1:{port}"
    with pytest.raises(TransportError) as raised:
        call(operation, *{"run": (MODEL, {}), "poll": (HANDLE,), "submit": (MODEL, [])}[operation])
    assert raised.value.may_have_arrived is False
    assert raised.value.retryable
    assert raised.value.message.startswith(f"no reply from 127.0.0.1:{port} (ConnectError: ")
    assert call.pauses == [0.5, 1.0, 2.0, 4.0]


def test_a_reply_that_is_not_json_is_final(call, service) -> None:
    service.says(200, b"<html>", {"content-type": "text/html"})
    with pytest.raises(UnexpectedReply) as raised:
        call("run", MODEL, {})
    assert raised.value.body == "<html>"


def test_the_content_type_of_a_reply_does_not_matter(call, service) -> None:
    service.says(200, b'{"result":1}', {"content-type": "text/plain"})
    assert call("run", MODEL, {}) == 1


@pytest.mark.parametrize(
    "fail",
    [
        lambda service: service.refuses(401, 10000),
        lambda service: service.resets_after_reading(),
        lambda service: service.says(200, b"?"),
    ],
    ids=["refused", "reset", "junk"],
)
def test_the_token_is_in_no_error_and_no_log(call, service, fail, caplog: pytest.LogCaptureFixture) -> None:
    call.options["max_retries"] = 0
    fail(service)
    with caplog.at_level(logging.DEBUG), pytest.raises(WorkersAIError) as raised:
        call("run", MODEL, {})
    assert service.seen[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert caplog.text
    assert TOKEN not in caplog.text
    assert TOKEN not in repr(raised.value) + str(raised.value) + repr(vars(raised.value))
    assert TOKEN not in repr(raised.value.__cause__) + repr(raised.value.__context__)


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_client_shows_where_it_calls_and_not_its_token(kind) -> None:
    client = kind(ACCOUNT, TOKEN, "http://localhost:1")
    expected = f"{kind.__name__}(account_id='{ACCOUNT}', base_url='http://localhost:1/client/v4')"
    assert repr(client) == expected


def test_a_transport_can_be_handed_in() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"result": str(request.url), "success": True})

    with Client(ACCOUNT, TOKEN, "http://nowhere", transport=httpx.MockTransport(answer)) as client:
        assert client.run(MODEL, {}) == f"http://nowhere{PATH}"


async def test_an_asynchronous_transport_can_be_handed_in() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"result": str(request.url), "success": True})

    async with AsyncClient(ACCOUNT, TOKEN, "http://nowhere", transport=httpx.MockTransport(answer)) as client:
        assert await client.run(MODEL, {}) == f"http://nowhere{PATH}"


def test_a_closed_client_cannot_be_used() -> None:
    client = Client(ACCOUNT, TOKEN, "http://localhost:1")
    client.close()
    with pytest.raises(RuntimeError, match="closed"):
        client.run(MODEL, {})


async def test_a_closed_asynchronous_client_cannot_be_used() -> None:
    client = AsyncClient(ACCOUNT, TOKEN, "http://localhost:1")
    await client.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await client.run(MODEL, {})


async def test_asynchronous_calls_run_side_by_side(service) -> None:
    service.answers("one")
    service.answers("two")
    async with AsyncClient(ACCOUNT, TOKEN, service.url) as client:
        answers = await asyncio.gather(client.run(MODEL, {}), client.run(MODEL, {}))
    assert sorted(answers) == ["one", "two"]
