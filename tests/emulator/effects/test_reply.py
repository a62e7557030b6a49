"""`{"reply": …}`: the reply is this, whatever was asked; nothing is done."""

from __future__ import annotations

from typing import Any

import cloudflare
import pytest

from workersai_client import Client, InvalidRequest, QuotaExceeded, RateLimited, ServerError, UnexpectedReply

M3 = "@cf/baai/bge-m3"
LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
PAGE = "<html><body>502 Bad Gateway</body></html>"
HTML = {"reply": {"status": 502, "headers": {"content-type": "text/html; charset=UTF-8"}, "body": PAGE}}


def test_page_of_a_gateway_goes_out_as_it_is(world: Any) -> None:
    world.rule(HTML)

    reply = world.send({"text": "a"})

    assert (reply.status_code, reply.text) == (502, PAGE)
    assert reply.headers["content-type"] == "text/html; charset=UTF-8"
    assert "cf-ai-req-id" not in reply.headers
    assert "cf-ray" in reply.headers


def test_our_client_takes_a_page_for_a_fault_that_may_pass(world: Any) -> None:
    world.rule(HTML)

    with pytest.raises(ServerError) as caught:
        world.client.run(M3, {"text": "a"})

    assert (caught.value.status, caught.value.code, caught.value.body) == (502, None, PAGE)
    assert caught.value.retryable


def test_our_client_gets_past_a_page(world: Any) -> None:
    world.rule(HTML, times=2)
    pauses: list[float] = []

    with Client(
        world.id, "a", world.emulator.base_url, max_retries=2, sleep=pauses.append, jitter=lambda: 1
    ) as client:
        assert client.run(M3, {"text": "a"})["shape"] == [1, 1024]

    assert pauses == [0.5, 1.0]
    assert world.fired() == [2]


def test_official_sdk_takes_a_page_for_a_server_error(world: Any) -> None:
    world.rule(HTML)

    with pytest.raises(cloudflare.InternalServerError) as caught:
        world.sdk.ai.run(M3, account_id=world.id, text="a")

    assert (caught.value.status_code, caught.value.response.text) == (502, PAGE)


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        (3040, RateLimited, True),
        (4006, QuotaExceeded, False),
        (8007, InvalidRequest, False),
        (99999, UnexpectedReply, False),
    ],
)
def test_success_false_with_200_is_the_error_that_its_code_says(
    world: Any, code: int, kind: type[Exception], retryable: bool
) -> None:
    body = {"result": None, "success": False, "errors": [{"code": code, "message": "m"}], "messages": []}
    world.rule({"reply": {"status": 200, "body": body}})

    reply = world.send({"text": "a"})
    assert (reply.status_code, reply.json(), reply.headers["content-type"]) == (200, body, "application/json")

    with pytest.raises(kind, match=r"^m ") as caught:
        world.client.run(M3, {"text": "a"})
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.code) == (200, code)  # type: ignore[attr-defined]
    assert caught.value.retryable == retryable  # type: ignore[attr-defined]


@pytest.mark.parametrize("status", [200, 202])
def test_empty_body_is_unexpected(world: Any, status: int) -> None:
    world.rule({"reply": {"status": status}})

    assert world.send({"text": "a"}).content == b""
    with pytest.raises(UnexpectedReply, match="the reply is not JSON"):
        world.client.run(M3, {"text": "a"})


def test_reply_without_a_body_is_one_without_an_end_to_wait_for(world: Any) -> None:
    world.rule({"reply": {"status": 204, "body": "never sent"}}, times=1)

    assert (world.send({"text": "a"}).status_code, world.send({"text": "a"}).status_code) == (204, 200)


def test_recorded_replies_are_told_apart_by_the_body(world: Any) -> None:
    recorded = {
        "invoice": {"result": {"response": "billing"}, "success": True, "errors": [], "messages": []},
        "parcel": {"result": {"response": "shipping"}, "success": True, "errors": [], "messages": []},
    }
    for text, body in recorded.items():
        world.rule({"reply": {"body": body}}, {"text": text, "model": LLAMA})

    answers = [world.client.run(LLAMA, {"prompt": f"a lost {text}"}) for text in recorded]

    assert answers == [{"response": "billing"}, {"response": "shipping"}]
    assert "usage" in world.client.run(LLAMA, {"prompt": "a llama"})


def test_nothing_is_done(world: Any) -> None:
    wanted = world.submit("a", script="queued:1, done")
    world.rule({"reply": {"status": 503, "body": "later"}})

    assert world.send({"requests": [{"text": "a"}]}, queue=True).status_code == 503
    assert world.poll(wanted).text == "later"
    world.control("DELETE", "rules")

    assert world.batches() == 1
    assert world.poll(wanted).json()["result"]["status"] == "queued"


def test_recorded_batch_in_the_other_shape_is_read_by_our_client(world: Any) -> None:
    items = [{"index": 1, "result": "b"}, {"index": 0, "result": "a"}]
    handle = world.client.submit(M3, [{"text": "a"}, {"text": "b"}])
    world.rule({"reply": {"body": {"result": {"results": items}, "success": True}}}, {"operation": "poll"})

    assert [item.result for item in world.client.poll(handle).items] == ["a", "b"]


@pytest.mark.parametrize(
    ("said", "content_type"),
    [
        ({"body": {"a": 1}}, "application/json"),
        ({"body": "plain"}, "application/json"),
        ({"body": " <html>"}, "text/html"),
        ({"body": "plain", "headers": {"Content-Type": "text/plain"}}, "text/plain"),
        (
            {"body": {"a": 1}, "headers": {"content-TYPE": "application/problem+json"}},
            "application/problem+json",
        ),
    ],
    ids=["JSON", "text", "page", "said of text", "said of JSON"],
)
def test_content_type_is_what_is_said_or_what_the_body_looks_like(
    world: Any, said: dict[str, Any], content_type: str
) -> None:
    world.rule({"reply": said})

    assert world.send({"text": "a"}).headers.get_list("content-type") == [content_type]


def test_headers_go_out_with_it_and_retry_after_is_obeyed(world: Any) -> None:
    world.rule({"reply": {"status": 429, "headers": {"Retry-After": "7", "x-mine": "ü"}}}, times=1)
    pauses: list[float] = []

    with Client(world.id, "a", world.emulator.base_url, max_retries=1, sleep=pauses.append) as client:
        client.run(M3, {"text": "a"})

    assert pauses == [7.0]


@pytest.mark.parametrize("body", [None, 5, [], "ü\ud83d", {"ü": "\ud83d"}], ids=ascii)
def test_body_is_any_json(world: Any, body: Any) -> None:
    world.rule({"reply": {"body": body}})

    content = world.send({"text": "a"}).content
    if isinstance(body, str):
        assert content == body.encode("utf-8", "surrogatepass")
    else:
        assert world.send({"text": "a"}).json() == body
