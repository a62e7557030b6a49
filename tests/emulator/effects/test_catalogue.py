"""Each row of the error catalogue, as our client and the official SDK meet it when a rule asks for it."""

from __future__ import annotations

from typing import Any

import cloudflare
import pytest

from workersai_client import (
    AuthenticationError,
    BatchFailed,
    Client,
    InvalidRequest,
    QuotaExceeded,
    RateLimited,
    RequestTooLarge,
    ServerError,
    WorkersAIError,
)
from workersai_contracts import errors

M3 = "@cf/baai/bge-m3"

Official = cloudflare.APIStatusError
BAD = cloudflare.BadRequestError

# A row: HTTP status, code, our client's error, whether it may pass, the official SDK's error.
ROWS: dict[str, tuple[int, int, type[WorkersAIError], bool, type[Official]]] = {
    "route.method": (405, 7001, InvalidRequest, False, Official),
    "route.account": (404, 7003, InvalidRequest, False, cloudflare.NotFoundError),
    "route.none": (400, 7000, InvalidRequest, False, BAD),
    "auth.unknown": (401, 10000, AuthenticationError, False, cloudflare.AuthenticationError),
    "auth.forbidden": (403, 10000, AuthenticationError, False, cloudflare.PermissionDeniedError),
    "auth.malformed": (400, 9106, AuthenticationError, False, BAD),
    "auth.missing": (403, 9106, AuthenticationError, False, cloudflare.PermissionDeniedError),
    "input.text": (400, 5006, InvalidRequest, False, BAD),
    "model.unknown": (400, 5007, InvalidRequest, False, BAD),
    "model.no-queue": (400, 8007, InvalidRequest, False, BAD),
    "model.refused": (400, 8007, InvalidRequest, False, BAD),
    "poll.unknown": (400, 8007, InvalidRequest, False, BAD),
    "model.invalid": (400, 8001, InvalidRequest, False, BAD),
    "model.context": (400, 3030, InvalidRequest, False, BAD),
    "model.sequence": (400, 3030, InvalidRequest, False, BAD),
    "batch.invalid": (400, 3030, InvalidRequest, False, BAD),
    "batch.failed": (500, 5001, ServerError, True, cloudflare.InternalServerError),
    "data.base64": (400, 5004, InvalidRequest, False, BAD),
    "request.incomplete": (400, 3003, InvalidRequest, False, BAD),
    "request.too-large": (413, 3006, RequestTooLarge, False, Official),
    "context.window": (413, 5021, RequestTooLarge, False, Official),
    "timeout": (408, 3046, InvalidRequest, True, Official),
    "timeout.old": (408, 3007, InvalidRequest, True, Official),
    "timeout.aborted": (408, 3008, InvalidRequest, True, Official),
    "quota.daily": (429, 4006, QuotaExceeded, False, cloudflare.RateLimitError),
    "quota.documented": (429, 3036, QuotaExceeded, False, cloudflare.RateLimitError),
    "rate.minute": (429, 3021, RateLimited, True, cloudflare.RateLimitError),
    "capacity": (429, 3040, RateLimited, True, cloudflare.RateLimitError),
    "retries": (503, 3050, ServerError, True, cloudflare.InternalServerError),
    "plan.paid": (403, 5035, AuthenticationError, False, cloudflare.PermissionDeniedError),
    "account.terms": (403, 5016, AuthenticationError, False, cloudflare.PermissionDeniedError),
    "account.model": (403, 5018, AuthenticationError, False, cloudflare.PermissionDeniedError),
    "account.private": (403, 3041, AuthenticationError, False, cloudflare.PermissionDeniedError),
    "account.blocked": (403, 3023, AuthenticationError, False, cloudflare.PermissionDeniedError),
    "model.lora": (405, 5005, InvalidRequest, False, Official),
    "sdk.old": (405, 5019, InvalidRequest, False, Official),
    "model.name": (404, 3042, InvalidRequest, False, cloudflare.NotFoundError),
    "finetune.files": (400, 3039, InvalidRequest, False, BAD),
    "model.deprecated": (410, 5028, InvalidRequest, False, Official),
    "model.unprocessable": (422, 5012, InvalidRequest, False, cloudflare.UnprocessableEntityError),
    "json-mode.unmet": (400, 5024, InvalidRequest, False, BAD),
    "schema.unknown": (404, 6002, InvalidRequest, False, cloudflare.NotFoundError),
}
ROUTER = {row for row in ROWS if row.startswith(("route.", "auth."))}


def test_every_row_is_met() -> None:
    assert set(ROWS) == set(errors())


@pytest.mark.parametrize("row", ROWS)
def test_our_client_meets_the_row(world: Any, row: str) -> None:
    status, code, kind, retryable, _ = ROWS[row]
    world.rule({"error": row})

    with pytest.raises(WorkersAIError) as caught:
        world.client.run(M3, {"text": "a"})

    met = caught.value
    assert (type(met), met.status, met.code, met.retryable) == (kind, status, code, retryable)
    assert errors()[row].describe(model=M3) in met.message
    assert met.message.startswith("AiError: ") == (row not in ROUTER)
    assert met.retry_after is None
    assert met.cf_request_id
    assert met.cf_request_id.endswith("-EMU") == (row in ROUTER)


@pytest.mark.parametrize("row", ROWS)
def test_official_sdk_meets_the_row(world: Any, row: str) -> None:
    status, code, _, _, kind = ROWS[row]
    world.rule({"error": row})

    with pytest.raises(cloudflare.APIStatusError) as caught:
        world.sdk.ai.run(M3, account_id=world.id, text="a")

    met = caught.value
    assert (type(met), met.status_code) == (kind, status)
    assert [error.code for error in met.errors] == [code, *(code for code, _ in errors()[row].also)]


@pytest.mark.parametrize("row", ROWS)
def test_our_client_repeats_what_may_pass_and_nothing_else(world: Any, row: str) -> None:
    retryable = ROWS[row][3]
    world.rule({"error": row}, times=1)
    pauses: list[float] = []

    with Client(world.id, "a", world.emulator.base_url, max_retries=1, sleep=pauses.append) as client:
        try:
            client.run(M3, {"text": "a"})
        except WorkersAIError:
            assert not retryable
        else:
            assert retryable

    assert len(pauses) == retryable


@pytest.mark.parametrize("row", ROWS)
def test_refused_submit_is_the_row_and_queues_nothing(world: Any, row: str) -> None:
    status, code, kind, _, _ = ROWS[row]
    world.rule({"error": row}, {"operation": "submit"})

    with pytest.raises(kind) as caught:
        world.client.submit(M3, [{"text": "a"}])

    assert (caught.value.status, caught.value.code) == (status, code)
    assert world.batches() == 0


# What says nothing of the batch itself leaves it to be polled again; the rest is its end.
PASSES = {
    "retries",
    "timeout",
    "timeout.old",
    "timeout.aborted",
    "quota.daily",
    "quota.documented",
    "rate.minute",
    "capacity",
    "route.method",
    "route.account",
    "route.none",
}


@pytest.mark.parametrize("row", ROWS)
def test_batch_that_failed_with_the_row_is_over_unless_the_row_may_pass(world: Any, row: str) -> None:
    status, code, kind, _, _ = ROWS[row]
    world.rule({"script": f"failed:{row}"})
    handle = world.client.submit(M3, [{"text": "a"}])

    with pytest.raises(WorkersAIError) as caught:
        world.client.poll(handle)

    passes = row in PASSES or kind is AuthenticationError
    met = caught.value
    assert (type(met), met.status, met.code) == (kind if passes else BatchFailed, status, code)
    assert passes or not met.retryable
