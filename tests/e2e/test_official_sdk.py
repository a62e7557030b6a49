"""The official Python SDK, unmodified, pointed at the emulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cloudflare
import pytest
from cloudflare import Cloudflare

from workersai_emulator import embed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workersai_emulator import Emulator

MODEL = "@cf/baai/bge-m3"


@pytest.fixture
def sdk(emulator: Emulator) -> Iterator[Cloudflare]:
    with Cloudflare(api_token=emulator.token, base_url=emulator.base_url, max_retries=0) as client:
        yield client


def test_the_sdk_submits_and_polls_to_done(emulator: Emulator, sdk: Cloudflare) -> None:
    requests = [{"text": "orange cloud", "external_reference": "first"}, {"text": ["a llama", "a cat"]}]
    queued = sdk.ai.run(
        MODEL,
        account_id=emulator.account_id,
        extra_query={"queueRequest": "true"},
        extra_body={"requests": requests},
    )
    assert (queued["status"], queued["model"]) == ("queued", MODEL)
    polls = [
        sdk.ai.run(MODEL, account_id=emulator.account_id, extra_body={"request_id": queued["request_id"]})
        for _ in range(3)
    ]
    assert [poll.get("status") for poll in polls] == ["queued", "running", None]
    items = {item["id"]: item for item in polls[2]["responses"]}
    assert items[0]["external_reference"] == "first"
    assert items[0]["result"]["data"] == embed(MODEL, ["orange cloud"]).tolist()
    assert items[1]["result"]["data"] == embed(MODEL, ["a llama", "a cat"]).tolist()


def test_the_sdk_gets_synchronous_embeddings(emulator: Emulator, sdk: Cloudflare) -> None:
    result = sdk.ai.run(MODEL, account_id=emulator.account_id, text=["orange cloud"])
    assert result["shape"] == [1, 1024]  # type: ignore[index]
    assert result["data"] == embed(MODEL, ["orange cloud"]).tolist()  # type: ignore[index]


def test_the_sdk_meets_a_refusal_with_its_code_and_words(emulator: Emulator, sdk: Cloudflare) -> None:
    with pytest.raises(cloudflare.BadRequestError) as caught:
        sdk.ai.run(
            "@cf/google/embeddinggemma-300m",
            account_id=emulator.account_id,
            extra_query={"queueRequest": "true"},
            text="a",
        )
    assert [error.code for error in caught.value.errors] == [8007]
    assert caught.value.errors[0].message.startswith(
        "AiError: Ai: This model does not support request queuing ("
    )


def test_the_sdk_in_its_parameters_queues_nothing_as_with_the_service(
    emulator: Emulator, sdk: Cloudflare
) -> None:
    result = sdk.ai.run(MODEL, account_id=emulator.account_id, text="a", extra_body={"queueRequest": True})
    assert result["shape"] == [1, 1024]  # type: ignore[index]
