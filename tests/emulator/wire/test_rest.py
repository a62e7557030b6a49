"""The REST dialect: submit, poll, run, and what the router refuses. Right bytes, on a real socket."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from workersai_emulator import embed, ids
from workersai_emulator.inference.tokens import estimate

BGE_M3 = "@cf/baai/bge-m3"
LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
SPELLINGS = ("@cf/baai/bge-m3", "%40cf/baai/bge-m3", "@cf%2Fbaai%2Fbge-m3", "%40cf%2fbaai%2Fbge-m3")


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def embedding(*texts: str, model: str = BGE_M3) -> bytes:
    """The result for texts, from the public function and nothing else."""
    vectors = [[float(number) for number in row] for row in embed(model, list(texts))]
    return compact({"shape": [len(texts), len(vectors[0])], "data": vectors, "pooling": "cls"})


def success(result: bytes) -> bytes:
    return b'{"result":' + result + b',"success":true,"errors":[],"messages":[]}'


def refusal(code: int, message: str) -> bytes:
    errors = [{"message": message, "code": code}]
    return compact({"errors": errors, "success": False, "result": {}, "messages": []})


def router(code: int, message: str) -> bytes:
    errors = [{"code": code, "message": message}]
    return compact({"result": None, "success": False, "errors": errors, "messages": []})


def head(world: Any, method: str = "POST", version: str = "1.1", more: str = "") -> bytes:
    return (
        f"{method} {world.target()} HTTP/{version}\r\nHost: api.cloudflare.com\r\n"
        f"Authorization: Bearer t\r\n{more}"
    ).encode()


def test_submit_reply_has_the_documented_bytes(world):
    reply = world.run({"requests": [{"text": "a"}]}, query="?queueRequest=true")

    request_id = ids.request_id(world.emulator.seed, world.id, 1)
    assert UUID4.fullmatch(request_id)
    result = compact({"status": "queued", "request_id": request_id, "model": BGE_M3})
    assert (reply.status_code, reply.content) == (200, success(result))


def test_polls_see_queued_then_running_then_done_and_done_again(world):
    request_id = world.submit({"requests": [{"text": "a"}]})

    seen = [world.poll(request_id).content for _ in range(4)]

    assert seen[0] == success(compact({"status": "queued", "request_id": request_id}))
    assert seen[1] == success(compact({"status": "running", "request_id": request_id}))
    item = b'{"id":0,"result":' + embedding("a") + b',"success":true,"external_reference":null}'
    usage = compact({"prompt_tokens": estimate("a"), "completion_tokens": 0, "total_tokens": estimate("a")})
    assert seen[2] == success(b'{"responses":[' + item + b'],"usage":' + usage + b"}")
    assert seen[3] == seen[2]


REFERENCES = {
    "text": "row-1",
    "empty": "",
    "zero": 0,
    "false": False,
    "number": 1.5,
    "list": [1, {"a": None}],
    "object": {"b": 1, "a": 2},
    "not ascii": "čaj ☕ 😀",
}


def test_items_come_in_completion_order_each_with_its_own_vectors_and_reference(world):
    texts = [f"text number {place}" for place in range(len(REFERENCES))]
    requests = [
        {"text": text, "external_reference": reference}
        for text, reference in zip(texts, REFERENCES.values(), strict=True)
    ]
    request_id = world.submit({"requests": requests}, script="done")

    reply = world.poll(request_id)

    items = [
        b'{"id":%d,"result":%b,"success":true,"external_reference":%b}'
        % (place, embedding(texts[place]), compact(requests[place]["external_reference"]))
        for place in ids.completion_order(request_id, len(texts))
    ]
    tokens = sum(map(estimate, texts))
    usage = compact({"prompt_tokens": tokens, "completion_tokens": 0, "total_tokens": tokens})
    assert reply.content == success(b'{"responses":[' + b",".join(items) + b'],"usage":' + usage + b"}")
    assert [item["id"] for item in reply.json()["result"]["responses"]] != list(range(len(texts)))


def test_large_finished_batch_is_streamed_with_every_item_once(world):
    texts = [f"text number {place}" for place in range(150)]
    request_id = world.submit({"requests": [{"text": text} for text in texts]}, script="done")

    reply = world.poll(request_id)

    assert reply.headers["transfer-encoding"] == "chunked"
    result = reply.json()["result"]
    assert reply.content.startswith(b'{"result":{"responses":[{"id":')
    assert reply.content.endswith(b'},"success":true,"errors":[],"messages":[]}')
    vectors = embed(BGE_M3, texts)
    assert sorted(item["id"] for item in result["responses"]) == list(range(150))
    for item in result["responses"]:
        assert item["result"]["data"] == [[float(number) for number in vectors[item["id"]]]]
    assert result["usage"]["total_tokens"] == sum(map(estimate, texts))


@pytest.mark.parametrize("query", ["", "?queueRequest=true", "?queueRequest=false", "?tags=a"])
def test_poll_is_the_same_with_and_without_the_query(world, query):
    request_id = world.submit({"requests": [{"text": "a"}]}, script="queued:hold, done")

    reply = world.poll(request_id, query=query)

    assert reply.content == success(compact({"status": "queued", "request_id": request_id}))


@pytest.mark.parametrize(
    ("query", "queued"),
    [
        ("?queueRequest=true", True),
        ("?tags=a&queueRequest=true", True),
        ("?queueRequest=%74rue", True),
        ("?queueRequest=True", False),
        ("?queueRequest=1", False),
        ("?queueRequest=", False),
        ("?queueRequest", False),
        ("?queueRequest=false", False),
        ("?queuerequest=true", False),
        ("?", False),
        ("", False),
    ],
)
def test_only_queueRequest_true_queues(world, query, queued):
    reply = world.run({"text": "a"}, query=query)

    assert reply.status_code == 200
    if queued:
        assert reply.json()["result"]["status"] == "queued"
    else:
        assert reply.content == success(embedding("a"))


def test_queueRequest_in_the_body_is_ignored(world):
    reply = world.run({"text": "a", "queueRequest": True})

    assert reply.content == success(embedding("a"))


def test_request_id_beside_requests_polls(world):
    request_id = world.submit({"requests": [{"text": "a"}]})

    reply = world.run({"request_id": request_id, "requests": [{"text": "b"}]}, query="?queueRequest=true")

    assert reply.content == success(compact({"status": "queued", "request_id": request_id}))
    assert len(world.control("GET", "batches").json()["batches"]) == 1


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_the_model_path_is_one_model(world, spelling):
    assert world.run({"text": "a"}, spelling).content == success(embedding("a"))

    request_id = world.submit({"requests": [{"text": "a"}]}, spelling)

    assert request_id == ids.request_id(world.emulator.seed, world.id, 1)
    states = [world.poll(request_id, other).json()["result"].get("status") for other in SPELLINGS]
    assert states == ["queued", "running", None, None]
    shown = world.control("GET", "batches").json()["batches"]
    assert [batch["model"] for batch in shown] == [BGE_M3]


@pytest.mark.parametrize("text", ["a", ["a"], ["b", "a", "b"]], ids=["string", "one", "three"])
def test_run_answers_vectors_in_the_order_of_the_texts(world, text):
    texts = [text] if isinstance(text, str) else text

    assert world.run({"text": text}).content == success(embedding(*texts))


def test_requests_without_the_query_are_run_at_once(world):
    reply = world.run({"requests": [{"text": "a", "external_reference": "x"}]})

    result = reply.json()["result"]
    assert list(result) == ["responses", "usage"]
    assert compact(result["responses"][0]["result"]) == embedding("a")
    assert result["responses"][0]["external_reference"] == "x"


def test_bare_body_is_queued_and_its_poll_gives_the_bare_output(world):
    request_id = world.submit({"text": ["a", "b"]}, script="done")

    assert world.poll(request_id).content == success(embedding("a", "b"))


@pytest.mark.parametrize(
    "model",
    [
        "@cf/google/embeddinggemma-300m",
        "@cf/qwen/qwen3-embedding-0.6b",
        "@cf/pfnet/plamo-embedding-1b",
        "@cf/baai/bge-reranker-base",
    ],
)
def test_model_without_a_queue_is_8007(world, model):
    reply = world.run({"requests": [{"text": "a"}]}, model, "?queueRequest=true")

    message = f"AiError: Ai: This model does not support request queuing ({reply.headers['cf-ai-req-id']})"
    assert (reply.status_code, reply.content) == (400, refusal(8007, message))


@pytest.mark.parametrize("case", ["never made", "another account's", "another model's", "lost", "expired"])
def test_poll_of_what_is_not_to_be_found_is_refused(world, other_world, case):
    request_id = world.submit({"requests": [{"text": "a"}]})
    asked, model = world, BGE_M3
    match case:
        case "never made":
            request_id = "00000000-0000-4000-8000-000000000000"
        case "another account's":
            asked = other_world
        case "another model's":
            model = "@cf/baai/bge-small-en-v1.5"
        case "lost":
            world.control("POST", f"batches/{request_id}", {"action": "lose"})
        case "expired":
            world.control("POST", "clock", {"advance": "24h"})

    reply = asked.poll(request_id, model)

    message = f"AiError: AiError: Request not found ({reply.headers['cf-ai-req-id']})"
    assert (reply.status_code, reply.content) == (400, refusal(8007, message))


@pytest.mark.parametrize(
    ("script", "status", "code", "message"),
    [
        ("failed", 500, 5001, "AiError: Model execution failed"),
        ("failed:3040", 429, 3040, "AiError: AiError: Capacity temporarily exceeded, please try again."),
        ("failed:batch.invalid", 400, 3030, "AiError: AiError: 1 validation error for VllmBatchRequest"),
    ],
)
def test_failed_batch_fails_its_polls(world, script, status, code, message):
    request_id = world.submit({"requests": [{"text": "a"}]}, script=script)

    for _ in range(2):
        reply = world.poll(request_id)
        told = f"{message} ({reply.headers['cf-ai-req-id']})"
        assert (reply.status_code, reply.content) == (status, refusal(code, told))


def test_bare_body_on_a_text_model_is_queued_and_then_fails_with_3030(world):
    request_id = world.submit({"prompt": "hello"}, LLAMA)

    states = [world.poll(request_id, LLAMA).json() for _ in range(3)]

    assert [state["result"].get("status") for state in states] == ["queued", "running", None]
    assert states[2]["errors"][0]["code"] == 3030


def test_item_that_the_model_refuses_fails_alone(world):
    texts = ["t"] * 101
    request_id = world.submit({"requests": [{"text": "a"}, {"text": texts}]}, script="done")

    reply = world.poll(request_id)

    items = {item["id"]: item for item in reply.json()["result"]["responses"]}
    assert compact(items[0]["result"]) == embedding("a")
    assert list(items[1]) == ["id", "result", "success", "errors", "external_reference"]
    complaint = "AiError: Bad input: Error: Length of '/text' must be <= 100 not met"
    assert items[1] == {
        "id": 1,
        "result": {},
        "success": False,
        "errors": [{"message": complaint, "code": 5006}],
        "external_reference": None,
    }
    assert reply.status_code == 200
    assert reply.json()["success"] is True


def test_requests_that_are_an_object_pass_the_validator_but_no_model_runs_them(world):
    body = {"requests": {"0": {"text": "a"}}}
    message = "AiError: AiError: 1 validation error for VllmBatchRequest"

    at_once = world.run(body)
    queued = world.poll(world.submit(body, script="done"))

    for reply in (at_once, queued):
        told = f"{message} ({reply.headers['cf-ai-req-id']})"
        assert (reply.status_code, reply.content) == (400, refusal(3030, told))


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (
            {},
            "oneOf at '/' not met, 0 matches: required properties at '/' are 'contexts', "
            "required properties at '/' are 'text', required properties at '/' are 'requests'",
        ),
        (
            {"request_id": 5},
            "oneOf at '/' not met, 0 matches: required properties at '/' are 'contexts', "
            "required properties at '/' are 'text', required properties at '/' are 'requests'",
        ),
    ],
    ids=["empty object", "request_id that is no string"],
)
def test_refused_input_carries_the_validators_words(world, body, complaint):
    reply = world.run(body)

    message = f"AiError: Bad input: Error: {complaint} ({reply.headers['cf-ai-req-id']})"
    assert (reply.status_code, reply.content) == (400, refusal(5006, message))


@pytest.mark.parametrize(
    "path",
    [
        "/client/v4",
        "/client/v4/",
        "/client/v4/accounts",
        "/client/v4/accounts/{id}",
        "/client/v4/accounts/{id}/ai",
        "/client/v4/accounts/{id}/ai/run/",
        "/client/v4/accounts/{id}/ai/walk/@cf/baai/bge-m3",
        "/client/v4/accounts/{id}/ai/run/@cf/baai/bge-m4",
        "/client/v4/accounts/{id}/ai/run/@cf/baai/bge-m3/",
        "/client/v4/accounts/{id}/ai/run//@cf/baai/bge-m3",
        "/client/v4/accounts/{id}/ai/run/@cf%252Fbaai%252Fbge-m3",
        "/client/v4/accounts/{id}/ai/run/__proto__",
        "/client/v4/accounts/{id}/r2/buckets",
        "/client/v5/accounts/{id}/ai/run/@cf/baai/bge-m3",
        "//client/v4/accounts/{id}/ai/run/@cf/baai/bge-m3",
        "/nowhere",
        "/batch/",
    ],
)
def test_unroutable_path_is_7000(world, path):
    reply = world.http.post(path.replace("{id}", world.id), content=b'{"text":"a"}')

    assert (reply.status_code, reply.content) == (400, router(7000, "No route for that URI"))


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "PURGE"])
def test_other_methods_are_7001(world, method):
    reply = world.http.request(method, world.target())

    expected = router(7001, f"{method} not supported for requested URI.")
    assert (reply.status_code, reply.content) == (405, expected)


@pytest.mark.parametrize(
    "account",
    [
        "me",
        "0123456789abcdef0123456789abcde",
        "0123456789abcdef0123456789abcdef0",
        "0123456789abcdef0123456789abcdeg",
        "%7Baccount%7D",
        "a%20b",
        "%2F",
        "%C4%8D",
        "__proto__",
        "a" * 4000,
        "",
    ],
    ids=lambda account: account[:40] or "empty",
)
def test_account_that_is_not_32_hex_digits_is_7003_with_the_path_as_sent(world, account, converse, read):
    path = f"/client/v4/accounts/{account}/ai/run/@cf%2Fbaai/bge-m3"

    (answer,) = read(
        converse(f"POST {path}?queueRequest=true HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    )

    message = f"Could not route to {path}, perhaps your object identifier is invalid?"
    assert (answer.status, answer.body) == (404, router(7003, message))


MISSING = compact(
    {
        "result": None,
        "success": False,
        "errors": [
            {"code": 9106, "message": "Missing X-Auth-Email header"},
            {"code": 9107, "message": "Missing X-Auth-Key header"},
        ],
        "messages": [],
    }
)
MALFORMED = router(9106, "Authentication failed (status: 400)")


@pytest.mark.parametrize(
    ("credentials", "status", "body"),
    [
        ("", 403, MISSING),
        ("X-Auth-Key: k\r\n", 403, MISSING),
        ("X-Auth-Email: a@b.c\r\n", 403, MISSING),
        ("Authorization: \r\n", 400, MALFORMED),
        ("Authorization: Bearer\r\n", 400, MALFORMED),
        ("Authorization: Bearer \r\n", 400, MALFORMED),
        ("Authorization: Bearer two words\r\n", 400, MALFORMED),
        ("Authorization: Basic dTpw\r\n", 400, MALFORMED),
        ("Authorization: token\r\n", 400, MALFORMED),
        ("Authorization: Bearer any\r\n", 200, None),
        ("authorization: bearer any\r\n", 200, None),
        ("X-Auth-Email: a@b.c\r\nX-Auth-Key: k\r\n", 200, None),
    ],
    ids=lambda value: value.strip() or "nothing" if isinstance(value, str) else None,
)
def test_credentials(world, converse, read, credentials, status, body):
    request = (
        f"POST {world.target()} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{credentials}"
        f'Content-Length: 12\r\n\r\n{{"text":"a"}}'
    )

    (answer,) = read(converse(request.encode()))

    assert (answer.status, answer.body) == (status, success(embedding("a")) if body is None else body)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"authorization": "Bearer good"}, 200),
        ({"authorization": "Bearer other"}, 200),
        ({"authorization": "Bearer bad"}, 401),
        ({"authorization": "Bearer Good"}, 401),
        ({"authorization": "Bearer goo"}, 401),
        ({"authorization": "Bearer \u010daj".encode()}, 401),
        ({"x-auth-email": "a@b.c", "x-auth-key": "good"}, 200),
        ({"x-auth-email": "a@b.c", "x-auth-key": "bad"}, 401),
    ],
    ids=str,
)
def test_with_tokens_named_any_other_is_10000(world_of, headers, status):
    strict = world_of(tokens=frozenset({"good", "other"}))
    del strict.http.headers["authorization"]

    reply = strict.http.post(strict.target(), content=b'{"text":"a"}', headers=headers)

    expected = success(embedding("a")) if status == 200 else router(10000, "Authentication error")
    assert (reply.status_code, reply.content) == (status, expected)


def test_router_looks_at_account_then_method_then_credentials_then_model(world, converse, read):
    def answer(method: str, account: str, model: str, credentials: str) -> int:
        path = f"/client/v4/accounts/{account}/ai/run/{model}"
        request = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{credentials}\r\n"
        (reply,) = read(converse(request.encode()))
        return int(json.loads(reply.body)["errors"][0]["code"])

    assert answer("GET", "me", "nothing", "") == 7003
    assert answer("GET", world.id, "nothing", "") == 7001
    assert answer("POST", world.id, "nothing", "") == 9106
    assert answer("POST", world.id, "nothing", "Authorization: Bearer t\r\n") == 7000


def test_unknown_query_keys_and_headers_are_ignored(world):
    headers = {
        "x-unknown": "1",
        "cf-aig-authorization": "Bearer x",
        "x-stainless-retry-count": "0",
        "accept": "text/html",
        "content-type": "text/plain; charset=utf-16",
    }

    reply = world.run({"text": "a"}, query="?tags=a&unknown=1&=&%ff&a;b", headers=headers)

    assert (reply.status_code, reply.content) == (200, success(embedding("a")))
    assert reply.headers["content-type"] == "application/json"


@pytest.mark.parametrize("origin", ["http://api.cloudflare.com", "https://anything:1", "HTTP://x"])
def test_absolute_form_of_the_target_is_routed_by_its_path(world, converse, read, origin):
    request = head(world, more="Connection: close\r\nContent-Length: 12\r\n\r\n").replace(
        b"POST ", b"POST " + origin.encode()
    )

    (answer,) = read(converse(request + b'{"text":"a"}'))

    assert (answer.status, answer.body) == (200, success(embedding("a")))


def test_http_1_0_gets_its_answer_and_a_close(world, converse, read):
    (answer,) = read(
        converse(head(world, version="1.0", more="Content-Length: 12\r\n\r\n") + b'{"text":"a"}')
    )

    assert (answer.version, answer.status, answer.body) == ("HTTP/1.0", 200, success(embedding("a")))


def test_http_1_0_gets_a_large_batch_without_chunks(world, converse):
    request_id = world.submit({"requests": [{"text": str(n)} for n in range(80)]}, script="done")
    body = compact({"request_id": request_id})

    data = converse(head(world, version="1.0", more=f"Content-Length: {len(body)}\r\n\r\n") + body)

    fields, _, told = data.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in fields.lower()
    assert told == world.poll(request_id).content


def test_pipelined_requests_are_answered_in_order(world, converse, read):
    one = head(world, more="Content-Length: 12\r\n\r\n") + b'{"text":"a"}'
    two = head(world, "GET", more="\r\n")
    three = head(world, more="Connection: close\r\nContent-Length: 12\r\n\r\n") + b'{"text":"b"}'

    answers = read(converse(one + two + one + three))

    assert [answer.status for answer in answers] == [200, 405, 200, 200]
    assert [answers[place].body for place in (0, 2, 3)] == [success(embedding(x)) for x in "aab"]


def test_HEAD_is_refused_like_any_other_method_but_without_a_body(world, converse, read):
    data = converse(head(world, "HEAD", more="Connection: close\r\n\r\n"))

    (answer,) = read(data, bodiless=True)
    assert data.endswith(b"\r\n\r\n")
    length = len(router(7001, "HEAD not supported for requested URI."))
    assert (answer.status, answer.header("content-length")) == (405, str(length))


def test_body_that_waits_for_100_continue_is_asked_for(world, converse, read):
    request = head(world, more="Connection: close\r\nExpect: 100-continue\r\nContent-Length: 12\r\n\r\n")

    told, answer = read(converse(request, b'{"text":"a"}'))

    assert (told.status, answer.status, answer.body) == (100, 200, success(embedding("a")))


@pytest.mark.parametrize(
    ("method", "size", "status"),
    [("POST", 25_000_000, 413), ("GET", 12, 405)],
    ids=["too large", "wrong method"],
)
def test_body_that_waits_for_100_continue_and_is_refused_is_never_asked_for(
    world, converse, read, method, size, status
):
    request = head(world, method, more=f"Expect: 100-continue\r\nContent-Length: {size}\r\n\r\n")

    (answer,) = read(converse(request, once=True))

    assert (answer.status, answer.header("connection")) == (status, "close")


def test_offer_of_http_2_is_passed_over(world, converse, read):
    """Java's own client offers it on every request."""
    offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAM\r\n"
    request = head(world, more=f"{offer}Content-Length: 12\r\n\r\n") + b'{"text":"a"}'

    (answer,) = read(converse(request, once=True))

    assert (answer.status, answer.body) == (200, success(embedding("a")))


@pytest.mark.parametrize("script", ["sleeping", "done, done", "queued", "failed:1", ""])
def test_bad_script_in_the_header_is_told_in_one_line_and_queues_nothing(world, script):
    reply = world.run({"text": "a"}, query="?queueRequest=true", headers={"x-emulator-script": script})

    assert (reply.status_code, list(reply.json())) == (400, ["error"])
    assert reply.json()["error"].startswith("x-emulator-script: script: ")
    assert world.control("GET", "batches").json() == {"batches": []}


def test_alternatives_of_open_facts_change_the_reply(world):
    world.assume(submit__status="202", done__shape="results", done__status="completed", done__order="request")

    submitted = world.run({"requests": [{"text": "a"}, {"text": "b"}]}, query="?queueRequest=true")
    request_id = submitted.json()["result"]["request_id"]
    world.control("POST", f"batches/{request_id}", {"action": "go-on"})
    world.control("POST", f"batches/{request_id}", {"action": "go-on"})
    done = world.poll(request_id).content

    assert submitted.status_code == 202
    assert done.startswith(b'{"result":{"status":"completed","results":[{"index":0,"result":{"shape"')
    assert b'"external_reference":null},{"index":1,"result":{"shape"' in done


@pytest.mark.parametrize(
    ("alternative", "status", "result"),
    [("not-found", 404, {}), ("queued", 200, {"status": "queued", "request_id": "nobody's"})],
)
def test_unknown_poll_can_be_answered_otherwise(world, alternative, status, result):
    world.assume(poll__unknown=alternative)

    reply = world.poll("nobody's")

    assert (reply.status_code, reply.json()["result"]) == (status, result)


def test_failed_batch_can_be_told_as_a_status(world):
    world.assume(batch__failed="status")
    request_id = world.submit({"requests": [{"text": "a"}]}, script="failed")

    reply = world.poll(request_id)

    expected = success(compact({"status": "failed", "error": "AiError: Model execution failed"}))
    assert (reply.status_code, reply.content) == (200, expected)
