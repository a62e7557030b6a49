"""The minute and the day of an account, by its own clock."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workersai_contracts import model
from workersai_emulator.accounts import Accounts
from workersai_emulator.limits import check_allowance, check_tokens
from workersai_emulator.refusals import Refused
from workersai_emulator.settings import Settings
from workersai_emulator.usage import MinuteCount

if TYPE_CHECKING:
    from workersai_contracts import ModelCard

M3 = "@cf/baai/bge-m3"


def card(name: str) -> ModelCard:
    found = model(name)
    assert found is not None
    return found


def taken(account: Any, model_card: ModelCard, settings: Settings, tries: int) -> int:
    """How many requests of so many an account gets answered before its minute is full."""
    return [rate_refuses(account, model_card, settings) for _ in range(tries)].index(True)


def rate_refuses(account: Any, model_card: ModelCard, settings: Settings) -> bool:
    try:
        check_allowance(account, model_card, settings)
    except Refused as refused:
        return refused.row.id == "rate.minute"
    return False


# The figures of the documentation: by task, and its exceptions.
@pytest.mark.parametrize(
    ("name", "rate"),
    [
        (M3, 3000),
        ("@cf/baai/bge-large-en-v1.5", 1500),
        ("@cf/baai/bge-reranker-base", 2000),
        ("@cf/meta/m2m100-1.2b", 720),
        ("@cf/meta/llama-4-scout-17b-16e-instruct", 300),
        ("@cf/facebook/bart-large-cnn", 1500),
        ("@cf/microsoft/resnet-50", 3000),
        ("@cf/openai/whisper-large-v3-turbo", 720),
    ],
)
def test_the_documented_minute_goes_by_task_and_its_exceptions(name: str, rate: int) -> None:
    accounts = Accounts(Settings.parse({"limits": {"requests_per_minute": "documented"}}))
    account = accounts.get()
    account.own_clock().freeze()
    assert taken(account, card(name), account.settings, rate + 5) == rate


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 50)), max_size=60),
    st.integers(1, 5),
    st.floats(0, 1e9),
)
def test_a_whole_minute_never_has_more_than_it_may_and_refuses_none_before(
    asked: list[tuple[str, float]], most: int, began: float
) -> None:
    now = began
    minute = MinuteCount(lambda: now)
    granted: Counter[tuple[str, int]] = Counter()
    for name, pause in asked:
        now += pause
        key = name, int(now // 60)
        assert minute.take(name, most) is (granted[key] < most)
        granted[key] = min(most, granted[key] + 1)


@pytest.mark.parametrize(("tokens", "refused"), [(10**6 - 1, False), (10**6, True), (10**6 + 1, True)])
def test_an_allocation_that_is_used_to_the_last_neuron_is_used_up(tokens: int, refused: bool) -> None:
    account = Accounts(Settings.parse({"limits": {"daily_neurons": 1075}})).get()
    account.usage.add(card(M3), tokens, 0)
    try:
        check_allowance(account, card(M3), account.settings)
    except Refused as refusal:
        found = refusal.row.id
    else:
        found = ""
    assert found == ("quota.daily" if refused else "")


async def test_a_reset_account_begins_its_minute_and_its_day_anew() -> None:
    accounts = Accounts(Settings.parse({"limits": {"requests_per_minute": 1, "daily_neurons": 1}}))
    account = accounts.get()
    check_allowance(account, card(M3), account.settings)
    account.usage.add(card(M3), 10**6, 0)
    await accounts.reset(None)
    check_allowance(accounts.get(), card(M3), account.settings)


@given(
    st.lists(st.text("ab č", max_size=30), max_size=8),
    st.integers(1, 40),
    st.integers(1, 200),
    st.booleans(),
)
def test_bge_m3_s_refusal_says_by_how_much(texts: list[str], text: int, call: int, cut: bool) -> None:
    settings = Settings.parse({"limits": {"text_tokens": text, "call_tokens": call}})
    longest = max((-(-len(one.encode()) * 5 // 24) for one in texts), default=0)
    expected = None
    if longest > text and not cut:
        expected = f"Sequence too long: {longest} > {text}"
    elif longest * len(texts) > call:
        expected = f"Max context reached {longest * len(texts)} tokens but model supports only {call}"
    assert told_of({"text": texts, "truncate_inputs": cut}, settings) == expected


def told_of(inputs: dict[str, Any], settings: Settings) -> str | None:
    """What bge-m3 says against these inputs."""
    try:
        check_tokens(card(M3), inputs, settings)
    except Refused as refused:
        return refused.description
    return None
