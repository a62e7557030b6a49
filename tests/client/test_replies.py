from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workersai_client import (
    AuthenticationError,
    InvalidRequest,
    QuotaExceeded,
    RateLimited,
    RequestTooLarge,
    ServerError,
    UnexpectedReply,
    WorkersAIError,
)
from workersai_client.replies import error_in, is_retryable, result_of, retry_after
from workersai_client.wire import Reply


def reply(status: int, body: Any, **headers: str) -> Reply:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Reply(status, {name.replace("_", "-"): value for name, value in headers.items()}, content)


def refused(status: int, code: int | None, **headers: str) -> WorkersAIError:
    errors = [{"message": "the text", "code": code}]
    body = {"errors": errors, "success": False, "result": {}, "messages": []}
    with pytest.raises(WorkersAIError) as raised:
        result_of(reply(status, body, **headers))
    return raised.value


@pytest.mark.parametrize("result", [{"data": []}, [], None, 0, "text"])
def test_the_result_is_handed_back_whatever_it_is(result: Any) -> None:
    assert result_of(reply(200, {"result": result, "success": True, "errors": [], "messages": []})) == result


@pytest.mark.parametrize("status", [200, 202])
def test_nobody_minds_a_missing_success(status: int) -> None:
    assert result_of(reply(status, {"result": 1})) == 1


@pytest.mark.parametrize(
    ("status", "code", "kind", "retryable"),
    [
        (429, 3021, RateLimited, True),
        (429, 3040, RateLimited, True),
        (429, None, RateLimited, True),
        (429, 4006, QuotaExceeded, False),
        (429, 3036, QuotaExceeded, False),
        (401, 10000, AuthenticationError, False),
        (403, 10000, AuthenticationError, False),
        (403, 9106, AuthenticationError, False),
        (400, 9106, AuthenticationError, False),
        (403, 5035, AuthenticationError, False),
        (413, 3006, RequestTooLarge, False),
        (413, 5021, RequestTooLarge, False),
        (400, 5006, InvalidRequest, False),
        (400, 8007, InvalidRequest, False),
        (404, 7003, InvalidRequest, False),
        (410, 5028, InvalidRequest, False),
        (408, 3046, InvalidRequest, True),
        (408, 3007, InvalidRequest, True),
        (500, 5001, ServerError, True),
        (503, 3050, ServerError, True),
    ],
)
def test_a_refusal_is_the_error_that_says_what_to_do(
    status: int, code: int | None, kind: type[WorkersAIError], retryable: bool
) -> None:
    error = refused(status, code)
    assert type(error) is kind
    assert (error.status, error.code, error.message) == (status, code, "the text")
    assert error.retryable is retryable


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        (3040, RateLimited, True),
        (4006, QuotaExceeded, False),
        (10000, AuthenticationError, False),
        (3006, RequestTooLarge, False),
        (5006, InvalidRequest, False),
        (3046, InvalidRequest, True),
        (5035, AuthenticationError, False),
        (3050, ServerError, True),
    ],
)
def test_a_refusal_with_status_200_is_told_by_its_code(
    code: int, kind: type[WorkersAIError], retryable: bool
) -> None:
    error = refused(200, code)
    assert type(error) is kind
    assert (error.status, error.code) == (200, code)
    assert error.retryable is retryable


@pytest.mark.parametrize("code", [None, 987654321])
def test_a_refusal_with_status_200_and_no_known_code_is_unexpected(code: int | None) -> None:
    error = refused(200, code)
    assert isinstance(error, UnexpectedReply)
    assert (error.path, error.message, error.code) == ("/success", "the text", code)


def test_errors_without_success_are_a_refusal() -> None:
    with pytest.raises(QuotaExceeded):
        result_of(reply(200, {"result": {}, "errors": [{"code": 4006, "message": "used up"}]}))


def test_an_error_keeps_the_whole_body_and_the_long_text() -> None:
    text = "oneOf at '/' not met, " * 50
    body = {"errors": [{"message": text, "code": 5006}], "success": False, "result": {}, "messages": []}
    with pytest.raises(InvalidRequest) as raised:
        result_of(reply(400, body))
    assert raised.value.message == text
    assert raised.value.body == body


def test_an_html_page_is_told_by_its_status() -> None:
    with pytest.raises(ServerError) as raised:
        result_of(reply(502, b"<html>Bad gateway</html>"))
    assert raised.value.status == 502
    assert raised.value.retryable
    assert raised.value.body == "<html>Bad gateway</html>"


@pytest.mark.parametrize(
    ("status", "body", "path"),
    [
        (200, b"", ""),
        (200, b'{"result":', ""),
        (200, b"<html>", ""),
        (200, b"\xff\xfe", ""),
        (200, b"NaN", ""),
        (200, [], ""),
        (200, "text", ""),
        (200, {}, "/result"),
        (200, {"success": True}, "/result"),
        (200, {"success": "yes", "result": {}}, "/success"),
        (302, b"", ""),
        (304, {"result": 1, "success": True}, ""),
    ],
)
def test_a_reply_that_the_service_does_not_give_says_where_it_is_wrong(
    status: int, body: Any, path: str
) -> None:
    with pytest.raises(UnexpectedReply) as raised:
        result_of(reply(status, body))
    assert (raised.value.status, raised.value.path) == (status, path)
    assert not raised.value.retryable


def test_the_id_to_quote_is_the_request_s_and_else_the_connection_s() -> None:
    assert refused(400, 5006, cf_ai_req_id="model-id", cf_ray="ray-id").cf_request_id == "model-id"
    assert refused(404, 7003, cf_ray="ray-id").cf_request_id == "ray-id"
    assert refused(404, 7003).cf_request_id is None


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({"errors": [{"code": 9106, "message": "a"}, {"code": 9107, "message": "b"}]}, (9106, "a; b")),
        ({"errors": [{"message": "a"}, {"code": "5006", "message": "b"}]}, (5006, "a; b")),
        ({"errors": ["a"]}, (None, "a")),
        ({"errors": {"code": 1, "message": "a"}}, (1, "a")),
        ({"error": "a"}, (None, "a")),
        ({"error": {"code": "invalid_prompt", "message": "a"}}, (None, "a")),
        ({"errors": [], "error": {"code": 3030, "message": "a"}}, (3030, "a")),
        ({"errors": [{"code": True, "message": 7}, None, 3]}, (None, None)),
        ({}, (None, None)),
        ("text", (None, None)),
    ],
)
def test_an_error_is_found_in_every_shape_that_occurs(
    body: Any, found: tuple[int | None, str | None]
) -> None:
    assert error_in(body) == found


@pytest.mark.parametrize(
    ("value", "date", "seconds"),
    [
        ("2", None, 2.0),
        (" 0 ", None, 0.0),
        ("1.5", None, 1.5),
        ("Sun, 29 Nov 2026 12:00:30 GMT", "Sun, 29 Nov 2026 12:00:00 GMT", 30.0),
        ("Sun, 29 Nov 2026 12:00:00 -0000", "Sun, 29 Nov 2026 12:00:00 GMT", 0.0),
        ("Sun, 29 Nov 2026 11:59:00 GMT", "Sun, 29 Nov 2026 12:00:00 GMT", 0.0),
        ("Sun, 29 Nov 2026 12:00:30 GMT", None, None),
        ("-1", None, None),
        ("soon", "Sun, 29 Nov 2026 12:00:00 GMT", None),
        ("9" * 400, None, None),
        ("nan", None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date_on_the_server_s_clock(
    value: str, date: str | None, seconds: float | None
) -> None:
    headers = {"retry-after": value} | ({"date": date} if date else {})
    assert retry_after(headers) == seconds


@given(st.text(), st.text() | st.just("Sun, 29 Nov 2026 12:00:00 GMT"))
def test_any_retry_after_is_seconds_or_nothing(value: str, date: str) -> None:
    seconds = retry_after({"retry-after": value, "date": date})
    assert seconds is None or 0 <= seconds < float("inf")


@pytest.mark.parametrize(
    ("code", "retryable"),
    [(3040, True), (3021, True), (3050, True), (3046, True), (4006, False), (3030, False), (None, False)],
)
def test_a_code_alone_says_whether_the_failure_may_pass(code: int | None, retryable: bool) -> None:
    assert is_retryable(code) is retryable
