"""The `/batch` Worker, row by row as its behaviour is written down, with its binding and without."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from workersai_emulator import embed, ids
from workersai_emulator.inference.tokens import estimate

BGE_M3 = "@cf/baai/bge-m3"
INVALID_JSON = b'{"error":"Request body must be valid JSON","code":"INVALID_BODY"}'
INVALID_BODY = (
    '{"error":"Body must include texts: string[] with 1\u201320 non-empty items (max 2000 chars each)",'
    '"code":"INVALID_BODY"}'
).encode()
INVALID_ID = b'{"error":"Missing or invalid requestId path parameter","code":"INVALID_REQUEST_ID"}'

#: What String.prototype.trim takes away: white space and line ends of the ECMAScript standard.
JS_SPACE = "\t\n\x0b\x0c\r \xa0\u1680\u2000\u2005\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
#: What Python's strip() takes away, and JavaScript's trim() does not.
NOT_JS_SPACE = ["\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\u200b", "\u180e", "\x00"]


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def batch_error(message: str) -> bytes:
    return compact({"error": message, "code": "BATCH_ERROR"})


@dataclass(frozen=True)
class Worker:
    """The Worker's two routes, for one account."""

    world: Any

    @property
    def headers(self) -> dict[str, str]:
        return {"x-emulator-account": self.world.id}

    def submit(self, body: Any, script: str | None = None) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = self.headers if script is None else {**self.headers, "x-emulator-script": script}
        return self.world.http.post("/batch", content=content, headers=headers)

    def poll(self, raw_id: str) -> httpx.Response:
        return self.world.http.get(f"/batch/{raw_id}", headers=self.headers)

    def queued(self, *texts: str, script: str = "done") -> str:
        reply = self.submit({"texts": list(texts)}, script)
        assert reply.status_code == 200, reply.text
        return reply.json()["request_id"]

    def payload(self, request_id: str) -> Any:
        return self.world.control("GET", f"batches/{request_id}").json()["request"]


@pytest.fixture
def worker(world):
    return Worker(world)


@pytest.fixture
def demo(world, worker):
    assert world.control("PATCH", "settings", {"worker_binding": False}).json()["worker_binding"] is False
    return worker


@pytest.mark.parametrize("path", ["/", "/?a=b"])
def test_GET_root_says_what_the_worker_is(world, path):
    reply = world.http.get(path)

    told = reply.json()
    assert reply.status_code == 200
    assert list(told) == ["name", "description", "usage", "cloudflareFeatures"]
    assert told["name"] == "ai-batch-infer"
    assert list(told["usage"]) == ["submit", "poll"]
    assert told["cloudflareFeatures"] == ["Workers AI", "Asynchronous Batch API"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"texts",
        b'{"texts":["a"]',
        b'{"texts":[NaN]}',
        b"{'texts':['a']}",
        b'{"texts":["\xff"]}',
        b'{"texts":["a"]}x',
        b"[" * 10_000 + b"]" * 10_000,
        b"\xef\xbb\xbf",
        b'{"texts":["a' + b"a" * 1_000_000 + b'"]}',
    ],
    ids=lambda body: repr(body[:20]),
)
def test_body_that_is_not_json_is_INVALID_BODY(worker, body):
    reply = worker.submit(body)

    assert (reply.status_code, reply.content) == (400, INVALID_JSON)


@pytest.mark.parametrize(
    "body",
    [
        None,
        True,
        1,
        "texts",
        [],
        ["a"],
        {},
        {"text": ["a"]},
        {"texts": None},
        {"texts": "a"},
        {"texts": {}},
        {"texts": {"0": "a", "length": 1}},
        {"texts": []},
        {"texts": [""]},
        {"texts": ["a", " "]},
        {"texts": ["a", 1]},
        {"texts": ["a", None]},
        {"texts": [["a"]]},
        {"texts": ["a"] * 21},
        {"texts": ["a" * 2001]},
        {"texts": ["\U0001f600" * 1001]},
        {"texts": ["\U0001f600" * 1000 + "a"]},
        {"texts": [JS_SPACE]},
        {"__proto__": {"texts": ["a"]}},
    ],
    ids=lambda body: ascii(body)[:40],
)
def test_body_that_is_not_1_to_20_texts_is_INVALID_BODY(worker, body):
    reply = worker.submit(body)

    assert (reply.status_code, reply.content) == (400, INVALID_BODY)


def test_refused_submit_queues_nothing(world, worker):
    worker.submit({"texts": []})
    worker.submit(b"{")

    assert world.control("GET", "batches").json() == {"batches": []}


@pytest.mark.parametrize(
    "texts",
    [
        ["a"],
        ["a"] * 20,
        ["a" * 2000],
        ["\U0001f600" * 1000],
        ["\u010d" * 2000],
        ["\ud83d" * 2000],
        ["'; drop table", "\x00", "\u200b"],
    ],
    ids=lambda texts: ascii(texts)[:24],
)
def test_1_to_20_texts_of_2000_units_are_queued(world, worker, texts):
    reply = worker.submit({"texts": texts})

    request_id = ids.request_id(world.emulator.seed, world.id, 1)
    expected = {"status": "queued", "model": BGE_M3, "request_id": request_id, "mode": "live"}
    assert (reply.status_code, reply.content) == (200, compact(expected))
    assert worker.payload(request_id) == {"requests": [{"text": text} for text in texts]}


def test_texts_are_trimmed_as_javascript_does(worker):
    request_id = worker.queued(f"{JS_SPACE}a b{JS_SPACE}")

    assert worker.payload(request_id) == {"requests": [{"text": "a b"}]}


@pytest.mark.parametrize("space", NOT_JS_SPACE, ids=ascii)
def test_what_only_python_calls_space_stays(worker, space):
    request_id = worker.queued(f"{space}a{space}", space)

    assert worker.payload(request_id) == {"requests": [{"text": f"{space}a{space}"}, {"text": space}]}


def test_other_members_of_the_body_are_ignored(worker):
    reply = worker.submit({"texts": ["a"], "model": "x", "queueRequest": False, "request_id": "x"})

    assert (reply.status_code, reply.json()["mode"]) == (200, "live")


def test_polls_see_queued_running_and_done_without_an_envelope(worker):
    request_id = worker.submit({"texts": ["a", "b"]}).json()["request_id"]

    seen = [worker.poll(request_id) for _ in range(4)]

    assert [reply.status_code for reply in seen] == [200] * 4
    for reply, status in zip(seen, ("queued", "running"), strict=False):
        assert reply.content == compact({"status": status, "request_id": request_id, "mode": "live"})
    items = []
    for place in ids.completion_order(request_id, 2):
        vectors = [[float(number) for number in row] for row in embed(BGE_M3, ["ab"[place]])]
        result = {"shape": [1, 1024], "data": vectors, "pooling": "cls"}
        items.append({"id": place, "result": result, "success": True, "external_reference": None})
    tokens = estimate("a") + estimate("b")
    usage = {"prompt_tokens": tokens, "completion_tokens": 0, "total_tokens": tokens}
    assert seen[2].content == compact({"responses": items, "usage": usage, "mode": "live"})
    assert seen[3].content == seen[2].content


def test_batch_of_the_worker_and_of_REST_are_the_same_queue(world, worker):
    by_worker = worker.queued("a")
    by_rest = world.submit({"requests": [{"text": "a"}]}, script="done")

    assert world.poll(by_worker).json()["result"]["responses"][0]["id"] == 0
    assert worker.poll(by_rest).json()["responses"][0]["id"] == 0


def test_header_script_is_the_batchs_life(worker):
    request_id = worker.queued("a", script="running:1, failed:3040")

    assert worker.poll(request_id).json()["status"] == "running"
    assert worker.poll(request_id).content == batch_error(
        "3040: Capacity temporarily exceeded, please try again."
    )


def test_bad_script_in_the_header_is_told_in_one_line(worker):
    reply = worker.submit({"texts": ["a"]}, script="sleeping")

    assert (reply.status_code, list(reply.json())) == (400, ["error"])
    assert reply.json()["error"].startswith("x-emulator-script: script: 'sleeping'")


def test_header_account_keeps_batches_apart(worker, other_world):
    request_id = worker.queued("a")

    reply = other_world.http.get(f"/batch/{request_id}", headers={"x-emulator-account": other_world.id})

    assert (reply.status_code, reply.content) == (502, batch_error("8007: Request not found"))


def test_without_the_header_the_development_account_is_meant(world):
    request_id = world.http.post("/batch", content=b'{"texts":["a"]}').json()["request_id"]

    shown = world.http.get(f"/__emulator__/batches/{request_id}").json()

    assert shown["account_id"] == "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize("name", ["me", "", "0" * 31, "g" * 32])
def test_header_account_that_is_none_is_told_in_one_line(world, name):
    reply = world.http.post("/batch", content=b'{"texts":["a"]}', headers={"x-emulator-account": name})

    assert (reply.status_code, reply.json()) == (
        400,
        {"error": f"x-emulator-account: {name!r} is not 32 hex digits"},
    )


INVALID_IDS = {
    "blanks": "%20%09",
    "no-break space": "%C2%A0",
    "too long": "a" * 129,
    "slash": "a%2Fb",
    "blank inside": "a%20b",
    "not ascii": "%C4%8D",
    "digit of another script": "%D9%A1",
    "percent": "a%25b",
    "colon": "a:b",
    "quote": "a%27",
    "null": "a%00",
    "line end inside": "a%0Ab",
    "not utf-8": "%FF",
}


@pytest.mark.parametrize("raw_id", INVALID_IDS.values(), ids=INVALID_IDS)
@pytest.mark.parametrize("binding", [True, False], ids=["live", "demo"])
def test_request_id_that_is_none_is_INVALID_REQUEST_ID(world, worker, raw_id, binding):
    world.control("PATCH", "settings", {"worker_binding": binding})

    reply = worker.poll(raw_id)

    assert (reply.status_code, reply.content) == (400, INVALID_ID)


@pytest.mark.parametrize(
    "raw_id", ["x", "a" * 128, "A-Z_0.9", "__proto__", ".", "-", "%61", "x%0A", "%20x%EF%BB%BF"]
)
def test_unknown_request_id_is_BATCH_ERROR(worker, raw_id, converse, world, read):
    request = f"GET /batch/{raw_id} HTTP/1.1\r\nHost: x\r\nx-emulator-account: {world.id}\r\nConnection: close\r\n\r\n"

    (answer,) = read(converse(request.encode()))

    assert (answer.status, answer.body) == (502, batch_error("8007: Request not found"))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (3040, "3040: Capacity temporarily exceeded, please try again."),
        (
            4006,
            "4006: you have used up your daily free allocation of 10,000 neurons, please upgrade to "
            "Cloudflare's Workers Paid plan if you would like to continue usage.",
        ),
        (3021, "3021: rate limiting: inference request per min rate reached"),
        (5001, "5001: Model execution failed"),
        (3050, "3050: Max retries exhausted"),
        ("model.unknown", "5007: No such model @cf/baai/bge-m3 or task"),
    ],
    ids=str,
)
@pytest.mark.parametrize("operation", ["submit", "poll"])
def test_rule_that_fails_the_queue_comes_out_as_BATCH_ERROR(world, worker, operation, error, message):
    request_id = worker.queued("a")
    world.rule({"error": error}, {"operation": operation}, times=1)

    failed = worker.submit({"texts": ["a"]}) if operation == "submit" else worker.poll(request_id)
    after = worker.submit({"texts": ["a"]}) if operation == "submit" else worker.poll(request_id)

    assert (failed.status_code, failed.content) == (502, batch_error(message))
    assert after.status_code == 200


def test_payload_over_the_limit_is_BATCH_ERROR(world, worker):
    payload = len(b'{"requests":[{"text":"abc"}]}')
    world.control("PATCH", "settings", {"limits": {"payload_bytes": payload}})

    over, under = worker.submit({"texts": ["abc"]}), worker.submit({"texts": ["ab"]})

    assert (over.status_code, over.content) == (502, batch_error("3006: Request is too large"))
    assert under.status_code == 200


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ({"action": "fail"}, "5001: Model execution failed"),
        (
            {"action": "fail", "code": 3030},
            "3030: Max context reached 135630 tokens but model supports only 60000",
        ),
        ({"action": "lose"}, "8007: Request not found"),
    ],
    ids=["failed", "failed by code", "lost"],
)
def test_batch_ended_by_hand_is_BATCH_ERROR(world, worker, action, message):
    request_id = worker.queued("a", script="queued:hold, done")
    assert world.control("POST", f"batches/{request_id}", action).status_code == 200

    reply = worker.poll(request_id)

    assert (reply.status_code, reply.content) == (502, batch_error(message))


def test_expired_batch_is_BATCH_ERROR(world, worker):
    request_id = worker.queued("a")
    world.control("POST", "clock", {"advance": "24h"})

    assert worker.poll(request_id).content == batch_error("8007: Request not found")


def test_model_of_the_worker_without_a_queue_is_BATCH_ERROR(world_of):
    queueless = world_of(worker_model="@cf/google/embeddinggemma-300m")

    reply = queueless.http.post("/batch", content=b'{"texts":["a"]}')

    expected = batch_error("8007: This model does not support request queuing")
    assert (reply.status_code, reply.content) == (502, expected)


def test_model_of_the_worker_can_be_chosen_and_blank_counts_as_unset(world_of):
    for chosen, used in ((" ", BGE_M3), ("@cf/baai/bge-small-en-v1.5", "@cf/baai/bge-small-en-v1.5")):
        one = world_of(worker_model=chosen)
        assert one.http.post("/batch", content=b'{"texts":["a"]}').json()["model"] == used


@pytest.mark.parametrize("texts", [["a"], ["a"] * 20])
def test_demo_pretends_to_queue(world, demo, texts):
    first, second = demo.submit({"texts": texts}), demo.submit({"texts": texts})

    for number, reply in enumerate((first, second), 1):
        expected = {
            "status": "queued",
            "model": BGE_M3,
            "request_id": ids.demo_request_id(world.emulator.seed, world.id, number),
            "mode": "demo",
            "note": "AI binding unavailable; returning a demo queued response",
        }
        assert (reply.status_code, reply.content) == (200, compact(expected))
    assert world.control("GET", "batches").json() == {"batches": []}


@pytest.mark.parametrize("body", [b"{", b"{}"])
def test_demo_refuses_a_bad_body_like_the_live_worker(demo, body):
    expected = INVALID_JSON if body == b"{" else INVALID_BODY

    assert demo.submit(body).content == expected


@pytest.mark.parametrize("raw_id", ["anything", "demo-1", "%20x%20"])
def test_demo_poll_is_completed_whatever_the_id(demo, raw_id):
    reply = demo.poll(raw_id)

    expected = {
        "status": "completed",
        "model": BGE_M3,
        "request_id": raw_id.replace("%20", ""),
        "mode": "demo",
        "note": "AI binding unavailable; returning demo poll results",
        "responses": [{"id": 0, "success": True, "result": {"data": [0.1, 0.2, 0.3]}}],
    }
    assert (reply.status_code, reply.content) == (200, compact(expected))


def test_no_rule_reaches_the_demo(world, demo):
    world.rule({"error": 3040})

    assert demo.submit({"texts": ["a"]}).status_code == 200
    assert demo.poll("x").status_code == 200


def test_worker_without_binding_from_the_start(world_of):
    bare = world_of(worker_binding=False)

    assert bare.http.post("/batch", content=b'{"texts":["a"]}').json()["mode"] == "demo"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/batch"),
        ("PUT", "/batch"),
        ("POST", "/batch/x"),
        ("DELETE", "/batch/x"),
        ("GET", "/batch/x/y"),
        ("GET", "/batch/x/"),
        ("POST", "/"),
        ("GET", "/Batch/x"),
        ("GET", "/favicon.ico"),
    ],
)
def test_other_routes_are_not_the_workers(world, method, path):
    reply = world.http.request(method, path)

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (400, 7000)


def test_worker_wants_no_token(world):
    with httpx.Client(base_url=world.emulator.url) as stranger:
        reply = stranger.post("/batch", content=b'{"texts":["a"]}', headers={"x-emulator-account": world.id})

    assert reply.status_code == 200
