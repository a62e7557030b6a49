from __future__ import annotations

import re
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workersai_emulator.accounts import is_account_id
from workersai_emulator.ids import (
    DEVELOPMENT_ACCOUNT,
    chance,
    completion_order,
    demo_request_id,
    exchange_id,
    new_seed,
    ray,
    request_id,
)

ACCOUNTS = st.text("0123456789abcdef", min_size=32, max_size=32)


@given(st.integers(), ACCOUNTS, st.integers(1))
def test_ids_are_lowercase_uuid4(seed: int, account_id: str, number: int) -> None:
    for made in (request_id(seed, account_id, number), exchange_id(seed, account_id, number)):
        read = uuid.UUID(made)
        assert (read.version, read.variant, str(read)) == (4, uuid.RFC_4122, made)


def test_request_id_is_pinned_by_seed_account_and_number() -> None:
    ids = [
        request_id(seed, account_id, number)
        for seed in range(3)
        for account_id in (DEVELOPMENT_ACCOUNT, "f" * 32)
        for number in range(1, 100)
    ]
    assert len(set(ids)) == len(ids)
    assert ids[0] == request_id(0, DEVELOPMENT_ACCOUNT, 1)


def test_ids_of_batch_demo_and_exchange_never_meet() -> None:
    made = {make(7, DEVELOPMENT_ACCOUNT, 1) for make in (request_id, exchange_id)}
    demo = demo_request_id(7, DEVELOPMENT_ACCOUNT, 1)
    assert len(made) == 2
    assert demo.startswith("demo-")
    assert uuid.UUID(demo.removeprefix("demo-")).version == 4
    assert demo.removeprefix("demo-") not in made


def test_ray_is_sixteen_hex_digits_and_a_place() -> None:
    assert re.fullmatch("[0-9a-f]{16}-EMU", ray(7, 1))
    assert len({ray(7, number) for number in range(100)}) == 100


def test_development_account_is_an_account() -> None:
    assert is_account_id(DEVELOPMENT_ACCOUNT)


def test_seeds_are_short_and_differ() -> None:
    seeds = {new_seed() for _ in range(50)}
    assert all(0 <= seed < 10**9 for seed in seeds)
    assert len(seeds) > 45


def test_chance_is_decided_by_seed_and_occasion() -> None:
    draws = [chance(1, "a", occasion) for occasion in range(2000)]
    assert draws == [chance(1, "a", occasion) for occasion in range(2000)]
    assert draws != [chance(2, "a", occasion) for occasion in range(2000)]
    assert all(0 <= draw < 1 for draw in draws)
    assert sum(draws) / len(draws) == pytest.approx(0.5, abs=0.03)


@given(st.text() | st.binary(), st.integers(0, 200))
def test_completion_order_tells_each_item_once_and_never_in_request_order(
    drawn_from: str | bytes, count: int
) -> None:
    order = completion_order(drawn_from, count)
    assert sorted(order) == list(range(count))
    assert count < 2 or order != list(range(count))
    assert order == completion_order(drawn_from, count)
    assert all(abs(place - item) <= 4 for place, item in enumerate(order))


def test_completion_order_differs_from_batch_to_batch() -> None:
    assert len({tuple(completion_order(f"batch {number}", 10)) for number in range(50)}) > 40
