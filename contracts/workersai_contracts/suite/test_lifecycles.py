"""Batches from their submit to their last poll."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from workersai_contracts.exchange import GPT_OSS, LLAMA, QUEUE, SMALL, Lifecycle, Refusal, Vectors
from workersai_contracts.exchanges import LIFECYCLES
from workersai_contracts.suite.checks import Checks, card_of, first_code
from workersai_contracts.suite.history import (
    check_done,
    check_items,
    check_pending,
    check_submit,
    check_the_same_again,
    check_vectors_are_their_texts,
    follow,
)

if TYPE_CHECKING:
    from workersai_contracts.suite.wire import Wire


@pytest.mark.parametrize("lifecycle", LIFECYCLES, ids=lambda lifecycle: lifecycle.name)
def test_lifecycle(lifecycle: Lifecycle, wire: Wire, checks: Checks) -> None:
    """A batch is queued, waits, and is done; each item answers its own request."""
    history = follow(wire, lifecycle.model, {"requests": list(lifecycle.requests)})
    if not check_submit(checks, history):
        return
    check_pending(checks, history)
    told = check_done(checks, history, lifecycle)
    if told is None:
        return
    check_items(checks, told, lifecycle)
    check_the_same_again(checks, history)
    if card_of(lifecycle.model).answers == "embedding" and isinstance(lifecycle.results[0], Vectors):
        check_vectors_are_their_texts(checks, wire, told, lifecycle)


def test_the_same_submit_is_queued_twice(wire: Wire, checks: Checks) -> None:
    """There is no idempotency key. Fact: `batch.duplicate`."""
    histories = [follow(wire, SMALL, {"requests": [{"text": "a"}]}) for _ in range(2)]
    if all(check_submit(checks, history) for history in histories):
        ids = {history.request_id for history in histories}
        checks.that("batch.duplicate", len(ids) == 2, "two submits have one request_id")


def test_request_id_beside_requests_polls(wire: Wire, checks: Checks) -> None:
    """Fact: `settled.poll-first`."""
    history = follow(wire, SMALL, {"requests": [{"text": "a"}]})
    if check_submit(checks, history):
        body = {"requests": [{"text": "b"}], "request_id": history.request_id}
        answer = wire.run(SMALL, body, QUEUE)
        polled = answer.status == 200 and "model" not in (answer.result or {})
        checks.that("settled.poll-first", polled, f"it is not a poll: HTTP {answer.status}, {answer.result}")


def test_a_bare_body_on_a_text_model_is_queued_and_fails(wire: Wire, checks: Checks) -> None:
    """Facts: `batch.bare`, `batch.invalid`."""
    history = follow(wire, LLAMA, {"prompt": "Say yes.", "max_tokens": 8})
    if not check_submit(checks, history):
        return
    told = history.end.content.decode("utf-8", "replace")
    failed = "VllmBatchRequest" in told
    checks.that("batch.bare", failed, f"it does not fail as bare bodies were seen to: {told[:200]}")
    if history.end.status >= 400:
        code = history.end.status, first_code(history.end)
        checks.that("batch.invalid", code == (400, 3030), f"HTTP {code[0]}/{code[1]}, not 400/3030")


def test_a_bad_item_of_a_batch(wire: Wire, checks: Checks) -> None:
    """Where items are checked at submit, the refusal names the item. Facts: `batch.schema`, `input.text`."""
    answer = wire.run(SMALL, {"requests": [{"text": "a"}, {"pooling": "mean"}]}, QUEUE)
    if answer.status in {200, 202}:
        pytest.skip("this target checks items when the batch is run")
    complaint = (
        "Error: oneOf at '/' not met, 0 matches: required properties at '/' are 'text', Type mismatch of "
        "'/requests/0/text', 'array' not in 'string', required properties at '/requests/1' are 'text'"
    )
    held = checks.refusal(answer, Refusal("input.text", {"complaint": complaint}))
    checks.that("batch.schema", held, f"a bad item is answered HTTP {answer.status}")


def test_gpt_oss_takes_no_messages_in_a_batch(wire: Wire, checks: Checks) -> None:
    """Fact: `batch.gpt-oss`."""
    messages = [{"role": "user", "content": "Say yes."}]
    answer = wire.run(GPT_OSS, {"requests": [{"messages": messages}]}, QUEUE)
    code = first_code(answer)
    told = f"HTTP {answer.status}, code {code}, not 400/5006"
    checks.that("batch.gpt-oss", (answer.status, code) == (400, 5006), told)
