"""Waiting for a batch: how often, how long, and what is left when the time is up."""

from __future__ import annotations

import math

import pytest

from workersai_client import (
    BatchFailed,
    Client,
    ConfigurationError,
    Done,
    Handle,
    Item,
    RateLimited,
    ServerError,
    TransportError,
    UnexpectedReply,
    WaitTimeout,
)

MODEL = "@cf/baai/bge-m3"
ID = "11111111-2222-4333-8444-555555555555"
HANDLE = Handle("0123456789abcdef0123456789abcdef", MODEL, ID)
DONE = Done((Item(0, True, "a"),))


def pending(service, status: str = "queued", times: int = 1) -> None:
    for _ in range(times):
        service.answers({"status": status, "request_id": ID})


def done(service) -> None:
    service.answers({"responses": [{"id": 0, "result": "a", "success": True, "external_reference": None}]})


@pytest.fixture
def frozen(call):
    """A clock that stands still, so that only what is slept counts."""
    call.options["monotonic"] = lambda: 0.0
    return call


def test_a_finished_batch_is_not_waited_for(call, service) -> None:
    done(service)
    assert call("wait", HANDLE, timeout=60) == DONE
    assert call.pauses == []


def test_the_interval_doubles_to_15_seconds(call, service) -> None:
    pending(service, "queued", 3)
    pending(service, "running", 4)
    done(service)
    assert call("wait", HANDLE, timeout=600) == DONE
    assert call.pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0]


def test_half_of_the_interval_is_left_to_chance(call, service) -> None:
    draws = iter([0.0, 0.5])
    call.options["jitter"] = lambda: next(draws)
    pending(service, times=2)
    done(service)
    assert call("wait", HANDLE, timeout=600, interval=4) == DONE
    assert call.pauses == [2.0, 6.0]


def test_the_time_is_up_with_the_handle_and_what_was_last_said(frozen, service) -> None:
    pending(service, "queued", 2)
    pending(service, "running", 4)
    with pytest.raises(WaitTimeout) as raised:
        frozen("wait", HANDLE, timeout=10)
    error = raised.value
    assert (error.handle, error.last_status) == (HANDLE, "running")
    assert error.message == f"batch {ID} is still running after 9.0 s; its handle is good for later"
    assert error.waited == 9.0
    # The last pause is cut so that a look fits in before the deadline.
    assert frozen.pauses == [0.5, 1.0, 2.0, 4.0, 1.5]


def test_a_batch_that_is_done_at_the_last_look_is_handed_back(frozen, service) -> None:
    pending(service, times=5)
    done(service)
    assert frozen("wait", HANDLE, timeout=10) == DONE
    assert sum(frozen.pauses) == 9.0


def test_the_handle_of_a_timeout_goes_on(frozen, service) -> None:
    pending(service, times=2)
    with pytest.raises(WaitTimeout) as raised:
        frozen("wait", HANDLE, timeout=0.5)
    done(service)
    assert frozen("wait", Handle.from_json(raised.value.handle.to_json()), timeout=60) == DONE


@pytest.mark.parametrize("timeout", [0, -3])
def test_no_time_is_a_timeout_without_a_look(frozen, timeout: float) -> None:
    with pytest.raises(WaitTimeout) as raised:
        frozen("wait", HANDLE, timeout=timeout)
    assert (raised.value.handle, raised.value.last_status, raised.value.waited) == (HANDLE, None, 0.0)
    assert raised.value.message == f"batch {ID} was not reached after 0.0 s; its handle is good for later"


@pytest.mark.parametrize("timeout", [math.inf, math.nan])
def test_waiting_always_has_a_deadline(call, timeout: float) -> None:
    with pytest.raises(ConfigurationError, match="timeout must be a number of seconds"):
        call("wait", HANDLE, timeout=timeout)


def test_the_timeout_cannot_be_left_out(call) -> None:
    with pytest.raises(TypeError, match="timeout"):
        call("wait", HANDLE)


@pytest.mark.parametrize("interval", [0, -1, math.nan])
def test_an_interval_without_time_is_refused(call, interval: float) -> None:
    with pytest.raises(ConfigurationError, match="interval must be a positive number"):
        call("wait", HANDLE, timeout=1, interval=interval)


def test_time_that_passes_on_the_clock_counts_too(call, service) -> None:
    call.options["monotonic"] = lambda: 29.0 * len(service.seen)
    pending(service)
    with pytest.raises(WaitTimeout) as raised:
        call("wait", HANDLE, timeout=30)
    assert (raised.value.last_status, raised.value.waited) == ("queued", 29.0)
    assert call.pauses == []


def test_failures_that_pass_are_waited_out(call, service) -> None:
    pending(service)
    service.refuses(429, 3040)
    service.says(502, b"<html>")
    service.resets_after_reading()
    done(service)
    assert call("wait", HANDLE, timeout=60) == DONE
    assert call.pauses == [0.5, 0.5, 1.0, 2.0]


def test_every_look_has_its_own_retries(call, service) -> None:
    call.options["max_retries"] = 1
    for _ in range(3):
        service.refuses(429, 3040)
        pending(service)
    done(service)
    assert call("wait", HANDLE, timeout=60) == DONE


def test_failures_that_do_not_pass_are_raised(call, service) -> None:
    service.refuses(503, 3050, times=5)
    with pytest.raises(ServerError):
        call("wait", HANDLE, timeout=60)


def test_the_deadline_covers_the_pauses_of_retries(frozen, service) -> None:
    frozen.options["max_retries"] = 20
    service.refuses(429, 3040, times=4)
    with pytest.raises(WaitTimeout) as raised:
        frozen("wait", HANDLE, timeout=3)
    assert frozen.pauses == [0.5, 1.0, pytest.approx(1.2)]
    assert raised.value.last_status is None
    assert isinstance(raised.value.__cause__, RateLimited)


def test_a_retry_after_beyond_the_deadline_ends_the_wait_at_once(frozen, service) -> None:
    pending(service)
    service.refuses(429, 3040, headers={"retry-after": "30"})
    with pytest.raises(WaitTimeout) as raised:
        frozen("wait", HANDLE, timeout=20)
    assert frozen.pauses == [0.5]
    assert (raised.value.waited, raised.value.last_status) == (0.5, "queued")
    assert raised.value.__cause__.retry_after == 30.0


def test_a_long_retry_after_is_obeyed_when_the_deadline_has_room_for_it(frozen, service) -> None:
    service.refuses(429, 3040, headers={"retry-after": "300"})
    done(service)
    assert frozen("wait", HANDLE, timeout=600) == DONE
    assert frozen.pauses == [300.0]


@pytest.mark.parametrize(
    "after", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"], ids=["silent", "half"]
)
def test_the_deadline_covers_a_request_that_hangs(call, service, after: bytes) -> None:
    service.hangs(after)
    with pytest.raises(WaitTimeout) as raised:
        call("wait", HANDLE, timeout=0.05)
    assert raised.value.handle == HANDLE
    assert 0.05 <= raised.value.waited < 5
    assert isinstance(raised.value.__cause__, TransportError)


def test_the_deadline_covers_a_reply_that_trickles_in(service) -> None:
    clock = {"monotonic": lambda: 40.0 * len(service.seen)}
    pending(service)
    with (
        Client(HANDLE.account_id, "token", service.url, sleep=lambda _: None, **clock) as client,
        pytest.raises(WaitTimeout) as raised,
    ):
        client.wait(HANDLE, timeout=30)
    assert (raised.value.last_status, raised.value.waited) == (None, 40.0)
    assert "no whole reply from 127.0.0.1" in str(raised.value.__cause__)


def test_a_failed_batch_ends_the_wait(call, service) -> None:
    pending(service)
    service.refuses(500, 5001, "Model execution failed")
    with pytest.raises(BatchFailed) as raised:
        call("wait", HANDLE, timeout=60)
    assert raised.value.handle == HANDLE


def test_what_is_neither_pending_nor_done_is_not_waited_on(call, service) -> None:
    service.answers({"status": "processing"})
    with pytest.raises(UnexpectedReply) as raised:
        call("wait", HANDLE, timeout=60)
    assert raised.value.path == "/result/status"
    assert call.pauses == []


def test_a_failed_item_does_not_fail_the_wait(call, service) -> None:
    error = {"message": "AiError: no", "code": 3030}
    service.answers({"responses": [{"id": 0, "result": {}, "success": False, "errors": [error]}]})
    found = call("wait", HANDLE, timeout=60)
    assert [item.success for item in found.items] == [False]
