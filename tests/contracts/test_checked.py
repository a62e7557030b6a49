"""The checked transport: what holds passes untouched, what does not is named, raised or collected."""

from __future__ import annotations

import gzip
import json
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from workersai_client import AsyncClient, BatchFailed, Client, InvalidRequest, WorkersAIError
from workersai_contracts import ContractMismatch, load_schema, mismatches
from workersai_contracts.checked import AsyncCheckedTransport, CheckedTransport
from workersai_emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

ACCOUNT = "0123456789abcdef0123456789abcdef"
ID = "3f0c1f9e-7b1a-4c55-9d0e-2a6b8f4c1d23"
M3 = "@cf/baai/bge-m3"
LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
RUN = f"http://service.test/client/v4/accounts/{ACCOUNT}/ai/run/{M3}"
QUEUE = f"{RUN}?queueRequest=true"
ASK = {"request_id": ID}
SUBMIT = {"requests": [{"text": "a"}]}


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    with Emulator(seed=7) as running:
        yield running


def client_of(emulator: Emulator, transport: httpx.BaseTransport) -> Client:
    return Client(
        emulator.account_id, emulator.token, emulator.base_url, transport=transport, sleep=lambda _: None
    )


INPUTS: list[tuple[str, dict[str, Any]]] = [
    ("@cf/baai/bge-small-en-v1.5", {"text": ["a", "b"]}),
    (M3, {"text": "a"}),
    (M3, {"query": "a", "contexts": [{"text": "a"}, {"text": "b"}]}),
    (M3, {"contexts": [{"text": "a"}]}),
    (LLAMA, {"prompt": "a"}),
    ("@cf/qwen/qwen3-30b-a3b-fp8", {"prompt": "a"}),
    ("@cf/openai/gpt-oss-120b", {"input": "a"}),
    ("@cf/meta/m2m100-1.2b", {"text": "a", "target_lang": "fr"}),
]


@pytest.mark.parametrize(("model", "inputs"), INPUTS, ids=lambda value: str(value)[:60])
def test_a_whole_batch_and_a_run_of_the_emulator_hold(
    emulator: Emulator, model: str, inputs: dict[str, Any]
) -> None:
    transport = CheckedTransport()
    with client_of(emulator, transport) as client:
        alone = client.run(model, inputs)
        handle = client.submit(model, [inputs, inputs])
        done = client.wait(handle, timeout=60)
    assert [item.result for item in done.items] == [alone, alone]
    assert transport.mismatches == []


async def test_the_asynchronous_transport_checks_the_same(emulator: Emulator) -> None:
    transport = AsyncCheckedTransport()
    options = {"account_id": emulator.account_id, "api_token": emulator.token, "base_url": emulator.base_url}
    async with AsyncClient(**options, transport=transport, sleep=_no_sleep) as client:
        handle = await client.submit(M3, [{"text": "a"}])
        done = await client.wait(handle, timeout=60)
        assert len(done.items) == 1
    lying = AsyncCheckedTransport(httpx.MockTransport(lambda _: reply({"status": "queued"})))
    async with httpx.AsyncClient(transport=lying) as http:
        with pytest.raises(ContractMismatch, match=r"\$\.result: 'request_id' is a required property"):
            await http.post(QUEUE, json=ASK)
    assert len(lying.mismatches) == 1


def test_refusals_of_the_emulator_hold_and_reach_the_client(emulator: Emulator) -> None:
    transport = CheckedTransport()
    with client_of(emulator, transport) as client:
        with pytest.raises(InvalidRequest):
            client.run(M3, {"nothing": 1})
        with pytest.raises(InvalidRequest):
            client.run("@cf/unknown/model", {"text": "a"})
    assert transport.mismatches == []


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"assumptions": {"done.shape": "results"}}, "$.result"),
        ({"assumptions": {"done.status": "completed"}}, "$.result"),
        ({"assumptions": {"batch.failed": "status"}, "script": "failed"}, "$.result.status"),
        ({"assumptions": {"item.failed": "error"}}, "$.result.responses[0]"),
    ],
    ids=["results", "completed", "status failed", "string error"],
)
def test_every_alternative_of_a_reply_departs_from_the_contract(settings: dict[str, Any], place: str) -> None:
    transport = CheckedTransport(collect=True)
    with Emulator(seed=7, **settings) as emulator, client_of(emulator, transport) as client:
        handle = client.submit(M3, [{"text": ["a"] * 101}])  # too many for one item, which fails
        with suppress(BatchFailed):
            client.wait(handle, timeout=60)
    assert len(transport.mismatches) == 1
    assert place in [one.path for one in transport.mismatches[0].mismatches]


def test_the_worker_s_routes_are_checked(emulator: Emulator) -> None:
    transport = CheckedTransport()
    with httpx.Client(transport=transport, base_url=emulator.worker_url) as http:
        queued = http.post("/batch", json={"texts": ["a"]}).json()
        states = [http.get(f"/batch/{queued['request_id']}").json().get("status") for _ in range(3)]
        assert http.get("/batch/not-there").json()["code"] == "BATCH_ERROR"
        with pytest.raises(ContractMismatch, match=r"not a worker/submit\.request"):
            http.post("/batch", json={"texts": []})
    assert states == ["queued", "running", None]


DONE = load_schema("batch/poll.done")["examples"][0]["result"]
VECTOR = {"shape": [1, 2], "data": [[0.5, "x"]], "pooling": "cls"}
ITEM = {"id": 0, "result": VECTOR, "success": True, "external_reference": None}

#: address, request, status, reply, schema, place of the one difference
LIES: list[tuple[str, Any, int, Any, str, str]] = [
    (
        QUEUE,
        SUBMIT,
        200,
        {"result": {"status": "queued", "request_id": ID}},
        "batch/submit.reply",
        "$.result",
    ),
    (
        QUEUE,
        ASK,
        200,
        {"result": {"status": "done", "request_id": ID}},
        "batch/poll.pending",
        "$.result.status",
    ),
    (RUN, ASK, 200, {"result": {**DONE, "status": "completed"}}, "batch/poll.done", "$.result"),
    (RUN, ASK, 200, {"result": {}, "success": 1}, "batch/poll.done", "$.success"),
    (
        QUEUE,
        ASK,
        200,
        {"result": {**DONE, "responses": [ITEM]}},
        "batch/poll.done",
        "$.result.responses[0].result.data[0][1]",
    ),
    (RUN, SUBMIT, 200, {"result": {"usage": DONE["usage"]}}, "batch/poll.done", "$.result"),
    (RUN, {"text": "a"}, 200, {"result": VECTOR}, "run/embedding.reply", "$.result.data[0][1]"),
    (
        RUN,
        {"text": "a"},
        200,
        {"result": {"response": [{"id": 0}]}},
        "run/reranking.reply",
        "$.result.response[0]",
    ),
    (
        RUN,
        {"text": "a"},
        429,
        {"result": {}, "success": False, "errors": []},
        "envelope/ai-error",
        "$.errors",
    ),
    (RUN, {"text": "a"}, 404, {"result": None, "success": False}, "envelope/edge-error", "$.errors"),
    (RUN, {"text": "a"}, 502, "<html>", "reply", "$"),
    (RUN, {"text": "a"}, 200, '{"result":NaN}', "reply", "$"),
    ("http://service.test/batch", {"texts": ["a"]}, 200, {"mode": "live"}, "worker/submit.reply", "$"),
    (
        "http://service.test/batch",
        {"texts": ["a"]},
        502,
        {"error": "", "code": "BATCH_ERROR"},
        "worker/error.reply",
        "$.error",
    ),
]


@pytest.mark.parametrize(("url", "sent", "status", "said", "schema", "place"), LIES)
def test_a_reply_that_departs_is_raised_with_its_place(
    url: str, sent: Any, status: int, said: Any, schema: str, place: str
) -> None:
    transport = CheckedTransport(httpx.MockTransport(lambda _: envelope(status, said, url)))
    with httpx.Client(transport=transport) as http, pytest.raises(ContractMismatch) as raised:
        http.post(url, json=sent)
    assert raised.value.schema_name == schema
    assert place in [one.path for one in raised.value.mismatches]
    assert all(one.message.startswith(one.path) for one in raised.value.mismatches)
    path = url.removeprefix("http://service.test")
    assert raised.value.__notes__ == [f"in the reply, HTTP {status}, to POST {path}"]
    assert transport.mismatches == [raised.value]


@pytest.mark.parametrize(
    ("url", "sent", "schema", "place"),
    [
        (QUEUE, b'{"text":"a"}', "batch/submit.request", "$"),
        (QUEUE, b'{"requests":{"text":"a"}}', "batch/submit.request", "$.requests"),
        (RUN, b'{"requests":["a"]}', "batch/submit.request", "$.requests[0]"),
        (RUN, b'{"request_id":7}', "batch/poll.request", "$.request_id"),
        (RUN, b'{"requests":[],"queueRequest":true}', "batch/submit.request", "$.queueRequest"),
        (RUN, b'{"text":"a","queueRequest":true}', "request", "$.queueRequest"),
        (RUN, b"[]", "request", "$"),
        (RUN, b"", "request", "$"),
        (QUEUE, b'{"requests":', "batch/submit.request", "$"),
        (RUN.replace("@", "%40"), b"[]", "request", "$"),
        (RUN.replace(M3, "@cf%2Fbaai%2Fbge-m3"), b"[]", "request", "$"),
    ],
)
def test_a_request_that_departs_is_not_sent(url: str, sent: bytes, schema: str, place: str) -> None:
    reached: list[httpx.Request] = []
    transport = CheckedTransport(httpx.MockTransport(lambda request: reached.append(request) or reply({})))
    with httpx.Client(transport=transport) as http, pytest.raises(ContractMismatch) as raised:
        http.post(url, content=sent)
    assert (raised.value.schema_name, raised.value.mismatches[0].path) == (schema, place)
    assert raised.value.__notes__[0].startswith("in the request POST /client/v4/accounts/")
    assert reached == []


def test_what_is_collected_is_not_raised_and_the_exchange_goes_on() -> None:
    transport = CheckedTransport(httpx.MockTransport(lambda _: reply({"status": "done"})), collect=True)
    with httpx.Client(transport=transport) as http:
        answered = http.post(QUEUE, json={"text": "a"})
    assert answered.json()["result"] == {"status": "done"}
    assert [found.schema_name for found in transport.mismatches] == [
        "batch/submit.request",
        "batch/submit.reply",
    ]


def test_a_breach_is_raised_past_the_client_s_own_errors() -> None:
    transport = CheckedTransport(httpx.MockTransport(lambda _: reply({"status": "done"})))
    client = Client(ACCOUNT, "token", "http://service.test", transport=transport)
    with client, pytest.raises(ContractMismatch) as raised:
        client.submit(M3, [{"text": "a"}])
    assert not isinstance(raised.value, WorkersAIError)


def test_a_content_type_with_a_charset_is_a_breach() -> None:
    answer = httpx.Response(
        200,
        content=reply(VECTOR | {"data": [[1]]}).content,
        headers={"content-type": "application/json; charset=utf-8"},
    )
    transport = CheckedTransport(httpx.MockTransport(lambda _: answer))
    with httpx.Client(transport=transport) as http, pytest.raises(ContractMismatch) as raised:
        http.post(RUN, json={"text": "a"})
    assert [found.path for found in raised.value.mismatches] == ["content-type"]


def test_a_compressed_reply_is_checked_and_handed_on_as_it_came() -> None:
    body = json.dumps({"result": {"translated_text": 7}, "success": True, "errors": [], "messages": []})
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    transport = CheckedTransport(
        httpx.MockTransport(
            lambda _: httpx.Response(
                200, headers=headers, stream=httpx.ByteStream(gzip.compress(body.encode()))
            )
        ),
        collect=True,
    )
    url = RUN.replace(M3, "@cf/meta/m2m100-1.2b")
    with httpx.Client(transport=transport) as http, http.stream("POST", url, json={}) as streamed:
        raw = b"".join(streamed.iter_raw())
    assert gzip.decompress(raw).decode() == body
    assert [found.path for found in transport.mismatches[0].mismatches] == ["$.result.translated_text"]


def test_a_reply_that_cannot_be_unpacked_is_a_breach() -> None:
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    junk = httpx.MockTransport(
        lambda _: httpx.Response(200, headers=headers, stream=httpx.ByteStream(b"junk"))
    )
    transport = CheckedTransport(junk)
    with httpx.Client(transport=transport) as http, pytest.raises(ContractMismatch, match="not JSON"):
        http.post(RUN, json={"text": "a"})


class Pieces(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that is handed out piece by piece, and tells which pieces were."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces
        self.handed_out: list[bytes] = []
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.handed_out.append(piece)
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece

    def close(self) -> None:
        self.closed = True

    async def aclose(self) -> None:
        self.closed = True


def streamed(pieces: Pieces) -> httpx.MockTransport:
    headers = {"content-type": "text/event-stream"}
    return httpx.MockTransport(lambda _: httpx.Response(200, headers=headers, stream=pieces))


def test_a_stream_of_events_comes_piece_by_piece() -> None:
    pieces = Pieces(b'data: {"response":"a"}\n\n', b"data: [DONE]\n\n")
    transport = CheckedTransport(streamed(pieces))
    with (
        httpx.Client(transport=transport) as http,
        http.stream("POST", RUN, json={"stream": True}) as answer,
    ):
        raw = answer.iter_raw()
        first = next(raw)
        assert pieces.handed_out == [first]
        assert [first, *raw] == pieces.handed_out
    assert pieces.closed
    assert transport.mismatches == []


def test_a_stream_is_checked_when_it_has_been_read() -> None:
    pieces = Pieces(b'data: {"answer":"a"}\n\n', b"data: [DONE]\n\n")
    transport = CheckedTransport(streamed(pieces))
    with httpx.Client(transport=transport) as http, pytest.raises(ContractMismatch) as raised:
        http.post(RUN, json={"stream": True})
    assert raised.value.schema_name == "run/stream.event"
    assert [found.path for found in raised.value.mismatches] == ["events[0]"]
    assert raised.value.__notes__[0].startswith("in the reply, HTTP 200, to POST ")
    assert pieces.handed_out[-1] == b"data: [DONE]\n\n"


async def test_the_asynchronous_transport_checks_streams_too() -> None:
    pieces = Pieces(b'data: {"response":"a"}\n\n')
    transport = AsyncCheckedTransport(streamed(pieces))
    async with httpx.AsyncClient(transport=transport) as http:
        with pytest.raises(ContractMismatch, match=r"does not end in \[DONE\]"):
            await http.post(RUN, json={"stream": True})
    assert pieces.closed


def test_a_stream_that_is_not_read_to_its_end_is_not_judged() -> None:
    pieces = Pieces(b'data: {"response":"a"}\n\n', b"data: {}\n\n")
    transport = CheckedTransport(streamed(pieces))
    with (
        httpx.Client(transport=transport) as http,
        http.stream("POST", RUN, json={"stream": True}) as answer,
    ):
        next(answer.iter_raw())
    assert pieces.closed
    assert transport.mismatches == []


@pytest.mark.parametrize(
    ("method", "url"),
    [
        ("POST", "http://service.test/client/v4/accounts/a/ai/models/search"),
        ("POST", "http://service.test/__emulator__/rules"),
        ("GET", RUN),
        ("DELETE", RUN),
        ("GET", "http://service.test/client/v4/accounts/a/ai"),
        ("POST", "http://service.test/client/v4/accounts/a/ai/to-markdown"),
        ("POST", "http://service.test/v1/a/gateway/openai/chat/completions"),
        ("POST", "http://service.test/batch/a"),
    ],
)
def test_other_routes_are_left_alone(method: str, url: str) -> None:
    transport = CheckedTransport(httpx.MockTransport(lambda _: httpx.Response(200, text="anything")))
    with httpx.Client(transport=transport) as http:
        assert http.request(method, url).text == "anything"
    assert transport.mismatches == []


def test_vectors_are_checked_as_arrays_with_the_same_differences() -> None:
    vectors: list[list[Any]] = [[0.5] * 8 for _ in range(4)]
    body = {"result": {"shape": [4, 8], "data": vectors}, "success": True, "errors": [], "messages": []}
    assert mismatches(body, "run/embedding.reply") == []
    vectors[1][2], vectors[2][0], vectors[3] = True, "0.5", []
    found = [(one.path, one.schema_path) for one in mismatches(body, "run/embedding.reply")]
    place = "properties/result/properties/data/items"
    assert found == [
        ("$.result.data[1][2]", f"{place}/items/type"),
        ("$.result.data[2][0]", f"{place}/items/type"),
        ("$.result.data[3]", f"{place}/minItems"),
    ]


def test_a_large_reply_is_not_checked_number_by_number() -> None:
    vectors = [[0.5] * 1024 for _ in range(100)]
    body = {"result": {"shape": [100, 1024], "data": vectors}, "success": True, "errors": [], "messages": []}
    mismatches(body, "run/embedding.reply")
    calls: list[str] = []
    sys.setprofile(lambda frame, event, _: calls.append(event) if event == "call" else None)
    try:
        assert mismatches(body, "run/embedding.reply") == []
    finally:
        sys.setprofile(None)
    assert 0 < len(calls) < 5000


async def _no_sleep(_: float) -> None:
    """Time costs nothing here."""


def reply(result: Any) -> httpx.Response:
    return httpx.Response(200, json={"result": result, "success": True, "errors": [], "messages": []})


def envelope(status: int, said: Any, url: str) -> httpx.Response:
    if isinstance(said, str):
        return httpx.Response(status, text=said, headers={"content-type": "application/json"})
    rest = (
        {"success": True, "errors": [], "messages": []} if "/ai/run/" in url and "errors" not in said else {}
    )
    return httpx.Response(status, json={**rest, **said})
