"""What every reply has around its content: key order, ids, the spelling of headers."""

from __future__ import annotations

import json
import re

import pytest

from workersai_emulator import ids

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
RAY = re.compile(r"[0-9a-f]{16}-[A-Z]{3}")
NAMES_REQUEST = re.compile(r" \(([0-9a-f-]{36})\)$")

# what is asked, and the status and the content type of the answer
ASKED = {
    "run": ("POST", "{run}", b'{"text":"a"}', 200),
    "submit": ("POST", "{run}?queueRequest=true", b'{"requests":[{"text":"a"}]}', 200),
    "poll refused": ("POST", "{run}", b'{"request_id":"x"}', 400),
    "input refused": ("POST", "{run}", b"{}", 400),
    "not JSON": ("POST", "{run}", b"{", 400),
    "no route": ("POST", "/client/v4/zones", b"", 400),
    "wrong method": ("GET", "{run}", b"", 405),
    "account": ("POST", "/client/v4/accounts/me/ai/run/x", b"", 404),
    "worker": ("GET", "/", b"", 200),
    "worker submit": ("POST", "/batch", b'{"texts":["a"]}', 200),
    "worker refused": ("POST", "/batch", b"", 400),
    "worker failed": ("GET", "/batch/x", b"", 502),
    "health": ("GET", "/__emulator__/health", b"", 200),
    "facts": ("GET", "/__emulator__/facts", b"", 200),
    "control refused": ("POST", "/__emulator__/clock", b'{"x":1}', 400),
    "control unknown": ("GET", "/__emulator__/x", b"", 404),
}


@pytest.fixture(params=ASKED.items(), ids=ASKED)
def exchange(request, world):
    """One request of each kind, and the status that it must get."""
    method, path, body, status = request.param[1]
    headers = {"x-emulator-account": world.id}
    reply = world.http.request(method, path.replace("{run}", world.target()), content=body, headers=headers)
    assert reply.status_code == status
    return reply


def test_content_type_is_exactly_application_json(exchange):
    assert exchange.headers.get_list("content-type") == ["application/json"]


def test_cf_ray_is_on_everything(exchange):
    assert RAY.fullmatch(exchange.headers["cf-ray"])


def test_body_is_json_without_blanks_and_its_length_is_told(exchange):
    told = json.dumps(exchange.json(), separators=(",", ":"), ensure_ascii=False).encode()
    assert exchange.content == told
    assert exchange.headers["content-length"] == str(len(told))


@pytest.mark.parametrize("cross_site", ["/", "/__emulator__/health", "/client/v4/x", "/batch/x"])
def test_refused_origin_has_the_headers_too(world, cross_site):
    reply = world.http.get(cross_site, headers={"origin": "https://evil.example"})

    assert (reply.status_code, reply.headers["content-type"]) == (403, "application/json")
    assert RAY.fullmatch(reply.headers["cf-ray"])


def test_reply_without_content_has_no_content_type(world):
    reply = world.control("POST", "reset")

    assert (reply.status_code, reply.content) == (204, b"")
    assert "content-type" not in reply.headers
    assert RAY.fullmatch(reply.headers["cf-ray"])


def test_streamed_reply_has_the_same_headers(world):
    request_id = world.submit({"requests": [{"text": str(n)} for n in range(60)]}, script="done")

    reply = world.poll(request_id)

    assert reply.headers["transfer-encoding"] == "chunked"
    assert reply.headers.get_list("content-type") == ["application/json"]
    assert UUID4.fullmatch(reply.headers["cf-ai-req-id"])
    assert RAY.fullmatch(reply.headers["cf-ray"])


def test_header_names_are_spelled_as_the_service_spells_them(world, converse, read):
    request = (
        f"POST {world.target()} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\n"
        f'Connection: close\r\nContent-Length: 12\r\n\r\n{{"text":"a"}}'
    )

    (answer,) = read(converse(request.encode()))

    names = [name for name, _ in answer.headers]
    assert ("Content-Type", "application/json") in answer.headers
    assert {"cf-ray", "cf-ai-req-id"} <= set(names)
    assert len(names) == len({name.lower() for name in names})


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"text":"a"}', 200),
        (b'{"requests":[{"text":"a"}]}', 200),
        (b"{}", 400),
        (b"", 400),
        (b'{"request_id":"x"}', 400),
    ],
)
def test_whatever_reached_the_model_has_the_id_of_its_exchange(world, body, status):
    reply = world.run(body)

    assert reply.status_code == status
    assert reply.headers["cf-ai-req-id"] == ids.exchange_id(world.emulator.seed, world.id, 1)
    assert UUID4.fullmatch(reply.headers["cf-ai-req-id"])


def test_every_exchange_has_ids_of_its_own(world, other_world):
    replies = [one.run(body) for _ in range(20) for one in (world, other_world) for body in (b"{}", b"")]

    assert len({reply.headers["cf-ai-req-id"] for reply in replies}) == 80
    assert len({reply.headers["cf-ray"] for reply in replies}) == 80


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "{run}", {}),
        ("POST", "/client/v4/accounts/me/ai/run/@cf/baai/bge-m3", {}),
        ("POST", "{run}0", {}),
        ("POST", "/nowhere", {}),
        ("POST", "{run}", {"authorization": "Basic x"}),
        ("GET", "/", {}),
        ("GET", "/batch/x", {}),
        ("GET", "/__emulator__/health", {}),
    ],
)
def test_what_never_reached_the_model_has_no_cf_ai_req_id(world, method, path, headers):
    reply = world.http.request(method, path.replace("{run}", world.target()), headers=headers)

    assert "cf-ai-req-id" not in reply.headers


@pytest.mark.parametrize("row", ["route.none", "auth.forbidden", "auth.missing"])
def test_refusal_of_the_router_by_a_rule_has_no_cf_ai_req_id_either(world, row):
    world.rule({"error": row})

    reply = world.run({"text": "a"})

    assert list(reply.json()) == ["result", "success", "errors", "messages"]
    assert "cf-ai-req-id" not in reply.headers


@pytest.mark.parametrize("body", [b"{}", b"{", b'{"request_id":"x"}'], ids=["5006", "3003", "8007"])
def test_message_names_the_request_as_the_header_does(world, body):
    reply = world.run(body)

    named = NAMES_REQUEST.search(reply.json()["errors"][0]["message"])
    assert named is not None
    assert named[1] == reply.headers["cf-ai-req-id"]


def test_keys_of_the_three_envelopes_are_in_their_order(world):
    success, refused = world.run({"text": "a"}).json(), world.run({}).json()
    router = world.http.get(world.target()).json()

    assert list(success) == ["result", "success", "errors", "messages"]
    assert list(refused) == ["errors", "success", "result", "messages"]
    assert list(refused["errors"][0]) == ["message", "code"]
    assert list(router) == ["result", "success", "errors", "messages"]
    assert list(router["errors"][0]) == ["code", "message"]
    assert (refused["result"], router["result"]) == ({}, None)


@pytest.mark.parametrize(
    ("wait", "told"),
    [(None, None), (2, "2"), ("1500ms", "2"), (0.2, "1"), (0, "0"), ("5m", "300"), (1e-05, "1")],
    ids=str,
)
def test_retry_after_comes_only_when_a_rule_asks_for_it(world, wait, told):
    world.rule({"error": 3040} if wait is None else {"error": 3040, "retry_after": wait})

    reply = world.run({"text": "a"})

    assert reply.status_code == 429
    assert reply.headers.get("retry-after") == told
