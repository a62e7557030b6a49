from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workersai_client import ConfigurationError, Done, Handle, Item, ItemError, ItemFailed

NAMES = st.text(st.characters(codec="utf-8"), min_size=1)


@given(NAMES, NAMES, NAMES, st.none() | st.integers(min_value=0))
def test_a_handle_comes_back_from_its_json(
    account_id: str, model: str, request_id: str, items: int | None
) -> None:
    handle = Handle(account_id, model, request_id, items)
    again = Handle.from_json(handle.to_json())
    assert again == handle
    assert again.items == items


def test_the_json_of_a_handle_names_its_parts() -> None:
    handle = Handle("0" * 32, "@cf/baai/bge-m3", "an-id")
    assert handle.to_json() == (
        '{"account_id": "00000000000000000000000000000000", "model": "@cf/baai/bge-m3", "request_id": "an-id"}'
    )


def test_handles_of_one_batch_are_equal_whether_or_not_the_items_are_known() -> None:
    assert Handle("a", "m", "r", 3) == Handle("a", "m", "r")
    assert Handle("a", "m", "r") != Handle("a", "m", "other")
    assert len({Handle("a", "m", "r", 3), Handle("a", "m", "r")}) == 1


def test_further_keys_of_a_handle_are_ignored() -> None:
    text = json.dumps({"account_id": "a", "model": "m", "request_id": "r", "comment": 1})
    assert Handle.from_json(text) == Handle("a", "m", "r")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a handle: the text is not JSON"),
        ("[" * 100_000, "not a handle: the text is not JSON"),
        ("[]", "not a handle: the JSON is not an object"),
        ('{"account_id":"a","model":"m"}', "not a handle: request_id must be a string"),
        ('{"account_id":"a","model":7,"request_id":"r"}', "not a handle: model must be a string"),
        ('{"account_id":"","model":"m","request_id":"r"}', "not a handle: account_id must be a string"),
        (
            '{"account_id":"a","model":"m","request_id":"r","items":-1}',
            "not a handle: items must be a number of items",
        ),
        (
            '{"account_id":"a","model":"m","request_id":"r","items":true}',
            "not a handle: items must be a number of items",
        ),
    ],
)
def test_what_is_no_handle_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Handle.from_json(text)
    assert str(refused.value) == message


def test_a_batch_without_failures_is_handed_back() -> None:
    done = Done((Item(0, True, 1), Item(1, True, None)))
    assert done.raise_for_items() is done


def test_the_first_failed_item_is_raised_on_request() -> None:
    failed = Item(1, False, {}, error=ItemError("Sequence too long: 30000 > 8192", 3030))
    done = Done((Item(0, True, 1), failed, Item(2, False, {}, error=ItemError("x"))))
    with pytest.raises(ItemFailed) as raised:
        done.raise_for_items()
    assert raised.value.item is failed
    assert raised.value.code == 3030
    assert raised.value.message == (
        "2 of 3 items failed, the first is item 1: Sequence too long: 30000 > 8192"
    )
