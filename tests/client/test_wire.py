from __future__ import annotations

import math

import pytest

from workersai_client import ConfigurationError, Handle
from workersai_client.wire import json_bytes, model_url, poll_request, run_request, submit_request

BASE = "http://host/client/v4"
ACCOUNT = "0123456789abcdef0123456789abcdef"
MODEL = "@cf/baai/bge-m3"
PATH = f"/client/v4/accounts/{ACCOUNT}/ai/run/@cf/baai/bge-m3"


def test_a_run_has_no_query() -> None:
    request = run_request(BASE, ACCOUNT, MODEL, {"text": ["a", "é"]})
    assert request.method == "POST"
    assert request.url == f"http://host{PATH}"
    assert request.content == '{"text":["a","é"]}'.encode()
    assert dict(request.headers) == {"accept": "application/json", "content-type": "application/json"}


def test_a_submit_has_the_query_and_a_list_of_requests() -> None:
    request = submit_request(BASE, ACCOUNT, MODEL, ({"text": "a"}, {"text": "b", "external_reference": None}))
    assert request.url == f"http://host{PATH}?queueRequest=true"
    assert request.content == b'{"requests":[{"text":"a"},{"text":"b","external_reference":null}]}'


def test_a_poll_goes_to_the_account_and_model_of_its_handle() -> None:
    request = poll_request(BASE, Handle("f" * 32, "@hf/other/model", "an-id"))
    assert request.url == f"{BASE}/accounts/{'f' * 32}/ai/run/@hf/other/model?queueRequest=true"
    assert request.content == b'{"request_id":"an-id"}'


@pytest.mark.parametrize("account", ["", "..", "0123/../secret"])
def test_a_handle_cannot_lead_to_another_path(account: str) -> None:
    with pytest.raises(ConfigurationError):
        poll_request(BASE, Handle(account, MODEL, "an-id"))


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("@cf/a b", "@cf/a%20b"),
        ("@cf/a?b#c", "@cf/a%3Fb%23c"),
        ("plain", "plain"),
        ("@cf/a%2Fb", "@cf/a%252Fb"),
    ],
)
def test_what_has_a_meaning_in_urls_is_encoded(model: str, path: str) -> None:
    assert model_url(BASE, ACCOUNT, model) == f"{BASE}/accounts/{ACCOUNT}/ai/run/{path}"


@pytest.mark.parametrize("model", ["", "/", "@cf/../x", "@cf//x", "@cf/x/", "./x"])
def test_a_model_that_would_lead_elsewhere_is_refused(model: str) -> None:
    with pytest.raises(ConfigurationError, match="not a model's name"):
        model_url(BASE, ACCOUNT, model)


def nested(depth: int) -> list:
    inner: list = []
    for _ in range(depth):
        inner = [inner]
    return inner


@pytest.mark.parametrize(
    "value",
    [math.nan, {"a": math.inf}, "\ud800", object(), b"bytes", nested(100_000)],
    ids=["nan", "inf", "surrogate", "object", "bytes", "nested"],
)
def test_what_is_no_json_is_refused_before_it_is_sent(value: object) -> None:
    with pytest.raises(ConfigurationError, match="the request is no JSON"):
        json_bytes(value)


def test_numbers_of_any_size_are_written_exactly() -> None:
    assert json_bytes([2**70, 0.1]) == b"[1180591620717411303424,0.1]"
