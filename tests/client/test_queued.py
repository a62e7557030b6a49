"""Embedding through the queue: several batches in flight, and what is left of them after a failure."""

from __future__ import annotations

from typing import Any

import pytest

from workersai_client import (
    BatchFailed,
    ConfigurationError,
    Handle,
    ItemFailed,
    QuotaExceeded,
    ServerError,
    UnexpectedReply,
    WaitTimeout,
)

ACCOUNT = "0123456789abcdef0123456789abcdef"
MODEL = "@cf/test/one-dimension"
A, B, C, D, E, AGAIN = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "abcdef")


@pytest.fixture(autouse=True)
def two_texts_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workersai_client.embedding.TEXTS_PER_BATCH", 2)


def queued(service, *names: str) -> None:
    for name in names:
        service.answers({"status": "queued", "request_id": name, "model": MODEL})


def pending(service, *names: str) -> None:
    for name in names:
        service.answers({"status": "running", "request_id": name})


def done(service, *values: float, **more: Any) -> None:
    """A finished batch, its items in the reverse of their order."""
    items = [
        {
            "id": number,
            "result": {"shape": [1, 1], "data": [[value]]},
            "success": True,
            "external_reference": None,
        }
        for number, value in enumerate(values)
    ]
    service.answers({"responses": items[::-1], **more})


def handle(name: str, items: int = 2) -> Handle:
    return Handle(ACCOUNT, MODEL, name, items)


def sent(service) -> list[Any]:
    """What was asked, in short: texts of a submit, or the id of a poll."""
    return [
        seen.json["request_id"]
        if "request_id" in seen.json
        else [request["text"] for request in seen.json["requests"]]
        for seen in service.seen
    ]


def test_texts_come_back_in_their_order_one_item_each(call, service) -> None:
    queued(service, A, B)
    done(service, 0, 1)
    done(service, 2)
    vectors = call("embed_batch", ["a", "b", "c"], model=MODEL, timeout=60)
    assert vectors.tolist() == [[0], [1], [2]]
    assert [seen.json for seen in service.seen] == [
        {"requests": [{"text": "a"}, {"text": "b"}]},
        {"requests": [{"text": "c"}]},
        {"request_id": A},
        {"request_id": B},
    ]
    assert {seen.path for seen in service.seen} == {
        f"/client/v4/accounts/{ACCOUNT}/ai/run/@cf/test/one-dimension?queueRequest=true"
    }


def test_at_most_four_batches_are_in_flight(call, service) -> None:
    queued(service, A, B, C, D)
    pending(service, A)
    done(service, 2, 3)
    pending(service, C, D)
    queued(service, E)
    done(service, 0, 1)
    done(service, 4, 5)
    done(service, 6, 7)
    done(service, 8, 9)
    vectors = call("embed_batch", [str(n) for n in range(10)], model=MODEL, timeout=60)
    assert vectors[:, 0].tolist() == list(range(10))
    assert sent(service) == [
        ["0", "1"],
        ["2", "3"],
        ["4", "5"],
        ["6", "7"],
        A,
        B,
        C,
        D,
        ["8", "9"],
        A,
        C,
        D,
        E,
    ]
    assert call.pauses == []


def test_the_interval_doubles_while_nothing_is_done_and_starts_again_after_progress(call, service) -> None:
    queued(service, A, B)
    pending(service, A, B, A, B)
    done(service, 0, 1)
    pending(service, B, B)
    done(service, 2)
    call("embed_batch", ["a", "b", "c"], model=MODEL, timeout=60)
    assert call.pauses == [0.5, 1.0, 0.5, 1.0]


def test_no_texts_are_no_request(call) -> None:
    assert call("embed_batch", [], model=MODEL, timeout=60).shape == (0, 0)


def test_when_the_time_is_up_the_error_has_every_handle(call, service) -> None:
    call.options["monotonic"] = lambda: 0.0
    queued(service, A, B)
    done(service, 0, 1)
    pending(service, B, B, B)
    with pytest.raises(WaitTimeout) as raised:
        call("embed_batch", ["a", "b", "c"], model=MODEL, timeout=1)
    error = raised.value
    assert error.handles == (handle(A), handle(B, 1))
    assert [found.items for found in error.handles] == [2, 1]
    assert (error.handle, error.last_status, error.waited) == (handle(B), "running", pytest.approx(0.9))
    assert error.message == "1 of 2 batches are done after 0.9 s; resume with the handles of this error"


def test_handles_resume_without_a_second_submit(call, service) -> None:
    done(service, 0, 1)
    done(service, 2)
    written = [handle(A).to_json(), handle(B, 1).to_json()]
    resume = [Handle.from_json(text) for text in written]
    vectors = call("embed_batch", ["a", "b", "c"], model=MODEL, timeout=60, resume=resume)
    assert vectors.tolist() == [[0], [1], [2]]
    assert sent(service) == [A, B]


def test_what_was_not_submitted_is_submitted_on_resuming(call, service) -> None:
    queued(service, B)
    done(service, 0, 1)
    done(service, 2)
    resume = [Handle(ACCOUNT, MODEL, A)]
    assert call("embed_batch", ["a", "b", "c"], model=MODEL, timeout=60, resume=resume).shape == (3, 1)
    assert sent(service) == [["c"], A, B]


def test_none_in_place_of_a_handle_submits_its_batch_anew(call, service) -> None:
    queued(service, AGAIN)
    done(service, 0, 1)
    done(service, 2)
    call("embed_batch", ["a", "b", "c"], model=MODEL, timeout=60, resume=[None, handle(B, 1)])
    assert sent(service) == [["a", "b"], AGAIN, B]


def test_a_submit_that_fails_leaves_the_handles_of_those_before(call, service) -> None:
    queued(service, A)
    service.refuses(429, 4006)
    with pytest.raises(QuotaExceeded) as raised:
        call("embed_batch", ["a", "b", "c"], model=MODEL, timeout=60)
    assert raised.value.handles == (handle(A),)


def test_handles_keep_their_places_when_one_before_them_is_missing(call, service) -> None:
    service.says(502, b"<html>")
    with pytest.raises(ServerError) as raised:
        call("embed_batch", ["a", "b", "c"], model=MODEL, timeout=60, resume=[None, handle(B, 1)])
    assert raised.value.handles == (None, handle(B))


def test_a_failed_batch_is_raised_with_every_handle(call, service) -> None:
    queued(service, A, B)
    service.refuses(500, 5001)
    with pytest.raises(BatchFailed) as raised:
        call("embed_batch", ["a", "b", "c"], model=MODEL, timeout=60)
    assert raised.value.handle == handle(A)
    assert raised.value.handles == (handle(A), handle(B))


def test_a_failed_item_is_raised_with_its_text_and_every_handle(call, service) -> None:
    queued(service, A, B)
    done(service, 0, 1)
    errors = [{"message": "AiError: Sequence too long", "code": 3030}]
    service.answers({"responses": [{"id": 0, "result": {}, "success": False, "errors": errors}]})
    with pytest.raises(ItemFailed) as raised:
        call("embed_batch", ["a", "b", "c"], model=MODEL, timeout=60)
    error = raised.value
    assert error.message == f"text 2 (item 0 of batch {B}): AiError: Sequence too long"
    assert (error.item.id, error.item.success, error.code) == (0, False, 3030)
    assert error.handle == handle(B)
    assert error.handles == (handle(A), handle(B))
    assert error.retryable is False


def test_an_item_that_failed_for_lack_of_capacity_is_worth_another_try(call, service) -> None:
    queued(service, A)
    errors = [{"message": "AiError: Capacity", "code": 3040}]
    service.answers({"responses": [{"id": 0, "result": {}, "success": False, "errors": errors}]})
    with pytest.raises(ItemFailed) as raised:
        call("embed_batch", ["a"], model=MODEL, timeout=60)
    assert raised.value.retryable is True


@pytest.mark.parametrize("data", [[], [[1], [2]], [[1, 2]]], ids=["none", "two", "two dimensions"])
def test_an_item_must_have_one_vector_of_the_common_dimension(call, service, data: Any) -> None:
    queued(service, A)
    good = {"id": 0, "result": {"data": [[1]]}, "success": True}
    service.answers({"responses": [good, {"id": 1, "result": {"data": data}, "success": True}]})
    with pytest.raises(UnexpectedReply) as raised:
        call("embed_batch", ["a", "b"], model=MODEL, timeout=60)
    assert raised.value.path.startswith("/result/responses/1/result/data")
    assert raised.value.handles == (handle(A),)


def test_a_lost_item_is_noticed_even_with_a_handle_that_does_not_know_its_items(call, service) -> None:
    done(service, 0)
    with pytest.raises(UnexpectedReply, match="1 of 2 items are missing, the first is item 1"):
        call("embed_batch", ["a", "b"], model=MODEL, timeout=60, resume=[Handle(ACCOUNT, MODEL, A)])


@pytest.mark.parametrize(
    ("resume", "message"),
    [
        ([handle(A), handle(B)], "resume has 2 handles, but these texts make 1 batches"),
        (
            [Handle(ACCOUNT, "@cf/other", A)],
            "handle 0 of resume is not from these texts and model: "
            "it has None items of @cf/other, here are 2 of @cf/test/one-dimension",
        ),
        (
            [handle(A, 1)],
            "handle 0 of resume is not from these texts and model: "
            "it has 1 items of @cf/test/one-dimension, here are 2 of @cf/test/one-dimension",
        ),
    ],
    ids=["too many", "another model", "other texts"],
)
def test_handles_of_other_texts_are_refused_before_anything_is_sent(call, resume: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        call("embed_batch", ["a", "b"], model=MODEL, timeout=60, resume=resume)
    assert str(refused.value) == message


def test_a_refusal_by_capacity_is_retried_on_submit_and_poll(call, service) -> None:
    service.refuses(429, 3040)
    queued(service, A)
    service.refuses(429, 3021, headers={"retry-after": "3"})
    done(service, 0)
    assert call("embed_batch", ["a"], model=MODEL, timeout=60).tolist() == [[0]]
    assert call.pauses == [0.5, 3.0]
