"""A finished batch's reply: when its items are read, and in what pieces it is written."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from workersai_contracts import model
from workersai_emulator import inference
from workersai_emulator.calls import Call
from workersai_emulator.finished import FORESEEN_TEXTS, PIECE_BYTES, Bill, Finished
from workersai_emulator.memory_store import MemoryStore
from workersai_emulator.service import Service
from workersai_emulator.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from workersai_emulator.inference import Usage

BGE_M3 = "@cf/baai/bge-m3"


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    made = Service(MemoryStore(), Settings.parse({"script": "instant"}), seed=1)
    yield made
    await made.close()


async def finished(service: Service, items: int) -> Finished:
    """The outcome of the first poll of a batch of so many items."""
    account = service.accounts.get()
    inputs = {"requests": [{"text": f"text {number}"} for number in range(items)]}
    queued = await service.run(Call(account, BGE_M3, inputs, json.dumps(inputs).encode(), queue=True))
    outcome = await service.run(Call(account, BGE_M3, {"request_id": queued.request_id}, b""))  # type: ignore[union-attr]
    assert isinstance(outcome, Finished)
    return outcome


async def written(outcome: Finished) -> list[bytes]:
    return [piece async for piece in outcome.pieces()]


@pytest.mark.parametrize(("items", "read_before"), [(FORESEEN_TEXTS, True), (FORESEEN_TEXTS + 1, False)])
async def test_items_of_a_large_batch_are_read_once_its_reply_has_begun(
    service: Service, items: int, read_before: bool
) -> None:
    outcome = await finished(service, items)
    assert (len(outcome.requests), outcome.unread is None) == ((items, True) if read_before else (0, False))

    pieces = outcome.pieces()
    assert await anext(pieces) == b'"responses":['
    assert (outcome.unread is None) == read_before
    rest = b"".join([piece async for piece in pieces])

    told = json.loads(b'{"responses":[' + rest + b"}")
    assert sorted(item["id"] for item in told["responses"]) == list(range(items))
    assert told["usage"]["prompt_tokens"] == items * inference.estimate("text 1")


@pytest.mark.parametrize("items", [1, 16, 17, 129, 300])
async def test_pieces_are_the_same_items_however_they_are_cut(service: Service, items: int) -> None:
    outcome = await finished(service, items)
    card = model(BGE_M3)
    assert card is not None

    told = json.loads(b"{" + b"".join(await written(outcome)) + b"}")

    for item in told["responses"]:
        answer = inference.answers(card, [{"text": f"text {item['id']}"}])[0]
        assert item["result"] == json.loads(answer.result)
        assert (item["success"], item["external_reference"]) == (True, None)


async def test_no_piece_is_much_larger_than_the_others(service: Service) -> None:
    longest = max(map(len, await written(await finished(service, 300))))
    assert PIECE_BYTES / 2 < longest < PIECE_BYTES * 1.2


async def test_a_bill_is_settled_once() -> None:
    counted: list[Any] = []

    async def count(usage: Usage) -> float:
        counted.append(usage)
        return 1.5

    bill = Bill(count)
    await asyncio.gather(bill.settle(inference.Usage(1, 0)), bill.settle(inference.Usage(2, 0)))

    assert (len(counted), bill.neurons) == (1, 1.5)
