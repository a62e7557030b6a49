"""Scenarios and chosen answers as a test in Python says them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from workersai_client import Client, RateLimited
from workersai_emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

MODEL = "@cf/baai/bge-m3"
LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    with Emulator(script="instant") as running:
        yield running


@pytest.fixture
def client(emulator: Emulator) -> Iterator[Client]:
    with Client(emulator.account_id, emulator.token, emulator.base_url, max_retries=0) as connected:
        yield connected


def test_a_scenario_lasts_as_long_as_its_with(emulator: Emulator, client: Client) -> None:
    with emulator.scenario("rate-limited") as begun:
        assert begun.name == "rate-limited"
        assert {rule.scenario for rule in emulator.rules.list()} == {"rate-limited"}
        with pytest.raises(RateLimited) as caught:
            client.run(MODEL, {"text": "a"})
        assert caught.value.code == 3021
    assert emulator.rules.list() == []
    assert client.run(MODEL, {"text": "a"})["shape"] == [1, 1024]


def test_a_scenario_with_times_is_over_after_them(emulator: Emulator, client: Client) -> None:
    emulator.scenario("rate-limited", times=1)
    with pytest.raises(RateLimited):
        client.run(MODEL, {"text": "a"})
    assert client.run(MODEL, {"text": "a"})["shape"] == [1, 1024]


def test_a_scenario_that_does_not_exist_is_named_with_those_that_do(emulator: Emulator) -> None:
    with pytest.raises(LookupError, match="no scenario 'storm'; there are out-of-capacity, "):
        emulator.scenario("storm")


def test_an_answer_is_for_a_text_and_for_each_item_that_has_it(emulator: Emulator, client: Client) -> None:
    emulator.answer({"response": "billing"}, text="invoice", model=LLAMA)
    assert client.run(LLAMA, {"prompt": "Sort this invoice."}) == {"response": "billing"}
    assert client.run(LLAMA, {"prompt": "Sort this letter."})["response"] != "billing"
    handle = client.submit(
        LLAMA, [{"prompt": "an invoice"}, {"prompt": "a letter"}, {"prompt": "the invoice"}]
    )
    items = client.wait(handle, timeout=10).items
    assert [item.result["response"] == "billing" for item in items] == [True, False, True]


def test_an_answer_is_given_as_often_as_it_is_said(emulator: Emulator, client: Client) -> None:
    emulator.answer({"response": "once"}, times=1)
    said = [client.run(LLAMA, {"prompt": "Say it."})["response"] for _ in range(2)]
    assert said[0] == "once"
    assert said[1] != "once"
