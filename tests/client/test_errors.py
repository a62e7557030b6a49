from __future__ import annotations

import copy
import pickle

import pytest

from workersai_client import (
    AuthenticationError,
    BatchFailed,
    ConfigurationError,
    Handle,
    InvalidRequest,
    Item,
    ItemFailed,
    QuotaExceeded,
    RateLimited,
    RequestTooLarge,
    ServerError,
    TransportError,
    UnexpectedReply,
    WaitTimeout,
    WorkersAIError,
)

HANDLE = Handle("0" * 32, "@cf/baai/bge-m3", "some-id", 2)

ERRORS = [
    ConfigurationError("no account"),
    TransportError("reset", may_have_arrived=True),
    AuthenticationError("no", status=401, code=10000),
    InvalidRequest("bad", status=400, code=5006, body={"errors": []}, cf_request_id="id"),
    RequestTooLarge("big", status=413, code=3006),
    RateLimited("slow down", status=429, code=3021, retryable=True, retry_after=2.0),
    QuotaExceeded("used up", status=429, code=4006),
    ServerError("oops", status=502, retryable=True),
    BatchFailed("failed", handle=HANDLE, status=500, code=5001),
    ItemFailed("failed", item=Item(3, False, {}), handle=HANDLE, code=3030),
    WaitTimeout("late", handle=HANDLE, last_status="queued", waited=3.5),
    UnexpectedReply("what", path="/result", body=[1]),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    "through", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))], ids=["copy", "pickle"]
)
def test_an_error_survives_a_copy_and_another_process(error: WorkersAIError, through) -> None:
    error.handles = (HANDLE, None)
    again = through(error)
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_every_error_is_one_of_ours_and_too_large_is_an_invalid_request() -> None:
    assert all(isinstance(error, WorkersAIError) for error in ERRORS)
    assert [type(error) for error in ERRORS if isinstance(error, InvalidRequest)] == [
        InvalidRequest,
        RequestTooLarge,
    ]


def test_an_error_reads_as_its_message_with_status_and_code() -> None:
    assert str(InvalidRequest("bad", status=400, code=5006)) == "bad [HTTP 400, code 5006]"
    assert str(ServerError("oops", status=502)) == "oops [HTTP 502]"
    assert str(ConfigurationError("no account")) == "no account"
