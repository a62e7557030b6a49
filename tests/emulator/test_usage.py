"""Usage: what a day took by model, counted once, on the account's own clock, and what it would have cost."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workersai_client import Client, RateLimited
from workersai_contracts import model
from workersai_emulator import Emulator, WorkersAI
from workersai_emulator.ids import fresh_account
from workersai_emulator.usage import DayTotal, DayUsage, ModelUsage

if TYPE_CHECKING:
    from collections.abc import Iterator

BGE_M3 = "@cf/baai/bge-m3"
M2M100 = "@cf/meta/m2m100-1.2b"
NOON = datetime(2126, 11, 29, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def server() -> Iterator[Emulator]:
    with Emulator(seed=1) as emulator:
        yield emulator


@pytest.fixture
def account(server: Emulator, request: pytest.FixtureRequest) -> WorkersAI:
    fresh = server.account(fresh_account(6, request.node.nodeid))
    fresh.clock.freeze()
    fresh.clock.set(NOON)
    return fresh


@pytest.fixture
def client(account: WorkersAI) -> Iterator[Client]:
    with Client(account.account_id, account.token, account.base_url, max_retries=0) as made:
        yield made


def test_an_account_without_traffic_used_nothing(account: WorkersAI) -> None:
    assert account.usage == DayTotal("2126-11-29")


def test_a_run_is_counted_by_the_model_s_published_rate(account: WorkersAI, client: Client) -> None:
    client.run(BGE_M3, {"text": ["a" * 48, "b" * 24]})
    client.run(BGE_M3, {"text": "a" * 24})
    assert account.usage == DayTotal(
        "2126-11-29",
        neurons=20 * 1075 / 1e6,
        models={BGE_M3: ModelUsage(requests=2, prompt_tokens=20, neurons=20 * 1075 / 1e6)},
    )


def test_what_a_model_writes_is_counted_at_its_own_rate(account: WorkersAI, client: Client) -> None:
    client.run(M2M100, {"text": "a" * 24, "target_lang": "fr"})
    used = account.usage.models[M2M100]
    assert used.prompt_tokens == 5
    assert used.completion_tokens > 0
    assert used.neurons == pytest.approx((5 + used.completion_tokens) * 31050 / 1e6)


def test_a_batch_is_counted_when_its_result_is_first_read_and_never_again(
    account: WorkersAI, client: Client
) -> None:
    handle = client.submit(BGE_M3, [{"text": "a" * 24}, {"text": "b" * 24}])
    client.poll(handle)
    client.poll(handle)
    assert account.usage.models == {}
    for _ in range(3):
        client.poll(handle)
    assert account.usage.models == {BGE_M3: ModelUsage(1, 10, 0, 0.01075)}


def test_a_bare_body_s_batch_is_counted_once_too(account: WorkersAI, client: Client) -> None:
    account.script = "instant"
    url = f"{account.base_url}/accounts/{account.account_id}/ai/run/{BGE_M3}"
    headers = {"authorization": "Bearer t"}
    queued = httpx.post(f"{url}?queueRequest=true", json={"text": "a" * 24}, headers=headers).json()
    for _ in range(2):
        httpx.post(url, json={"request_id": queued["result"]["request_id"]}, headers=headers)
    assert account.usage.models == {BGE_M3: ModelUsage(1, 5, 0, 0.005375)}


def test_a_batch_larger_than_a_slice_is_counted_whole(account: WorkersAI, client: Client) -> None:
    account.script = "instant"
    client.poll(client.submit(BGE_M3, [{"text": "a" * 24}] * 100))
    assert account.usage.models[BGE_M3].prompt_tokens == 500


def test_what_was_refused_costs_nothing(account: WorkersAI, client: Client) -> None:
    account.fail("run", 3040)
    with pytest.raises(RateLimited):
        client.run(BGE_M3, {"text": "a"})
    assert account.usage.models == {}


def test_a_day_ends_at_midnight_utc_on_the_account_s_clock(account: WorkersAI, client: Client) -> None:
    client.run(BGE_M3, {"text": "a"})
    account.clock.set(datetime(2126, 11, 29, 23, 59, 59, tzinfo=UTC))
    assert account.usage.models[BGE_M3].requests == 1
    account.clock.advance(1)
    assert account.usage == DayTotal("2126-11-30")
    client.run(BGE_M3, {"text": "a"})
    assert account.usage.models[BGE_M3].requests == 1


def test_accounts_are_counted_apart_and_together(
    server: Emulator, account: WorkersAI, client: Client
) -> None:
    before = server.usage.models.get(BGE_M3, ModelUsage()).requests
    other = server.account(fresh_account(7, account.account_id))
    with Client(other.account_id, other.token, other.base_url) as others:
        others.run(BGE_M3, {"text": "a"})
    client.run(BGE_M3, {"text": "a"})
    assert account.usage.models[BGE_M3].requests == other.usage.models[BGE_M3].requests == 1
    assert server.usage.models[BGE_M3].requests == before + 2


def test_a_reset_begins_anew(account: WorkersAI, client: Client) -> None:
    client.run(BGE_M3, {"text": "a"})
    account.reset()
    assert account.usage.models == {}


def test_a_model_without_a_published_rate_says_so(account: WorkersAI, client: Client) -> None:
    unpriced = "@cf/google/embeddinggemma-300m"
    client.run(unpriced, {"text": "a" * 24})
    shown = account.plane.ask("GET", "usage", {"account_id": account.account_id})
    assert shown == {
        "day": "2126-11-29",
        "plan": "free",
        "allocation": 10_000,
        "neurons": 0,
        "left": 10_000,
        "cost_usd": 0,
        "models": {
            unpriced: {
                "requests": 1,
                "prompt_tokens": 5,
                "completion_tokens": 0,
                "neurons": 0,
                "unpriced": True,
            }
        },
    }


@pytest.mark.parametrize(
    ("plan", "neurons", "cost"),
    [("free", 30_000, 0), ("paid", 10_000, 0), ("paid", 11_000, 0.011), ("paid", 1_010_000, 11)],
    ids=["free", "within the allocation", "a thousand beyond", "a million beyond"],
)
def test_what_is_beyond_the_allocation_costs_on_the_paid_plan(plan: str, neurons: int, cost: float) -> None:
    total = DayTotal.of("2126-11-29", plan, {BGE_M3: ModelUsage(neurons=neurons)})  # type: ignore[arg-type]
    assert (total.neurons, total.cost_usd, total.allocation) == (neurons, cost, 10_000)


def test_the_plan_is_a_setting(account: WorkersAI) -> None:
    assert account.usage.plan == "free"
    account.settings.patch(plan="paid")
    assert (account.usage.plan, account.settings.get()["plan"]) == ("paid", "paid")
    with pytest.raises(ValueError, match=r"^plan: 'gold' is not one of free, paid$"):
        account.settings.patch(plan="gold")


def test_the_plan_is_an_option_of_a_server() -> None:
    with Emulator(plan="paid") as emulator:
        assert emulator.usage.plan == "paid"


counted = st.tuples(st.sampled_from([BGE_M3, M2M100]), st.integers(0, 10**6), st.integers(0, 10**6))


@given(st.lists(counted, max_size=20))
def test_a_day_is_the_sum_of_what_was_counted_in_it(calls: list[tuple[str, int, int]]) -> None:
    usage = DayUsage(lambda: 0.0)
    for name, read, written in calls:
        card = model(name)
        assert card is not None
        usage.add(card, read, written)
    total = DayTotal.of("1970-01-01", "free", usage.today)
    assert sum(used.requests for used in total.models.values()) == len(calls)
    assert sum(used.prompt_tokens for used in total.models.values()) == sum(read for _, read, _ in calls)
    rates = {BGE_M3: (1075, 0), M2M100: (31050, 31050)}
    cost = sum(read * rates[name][0] + written * rates[name][1] for name, read, written in calls) / 1e6
    assert total.neurons == pytest.approx(cost, abs=1e-6)
    assert DayTotal.read(total.as_json()).neurons == total.neurons
