"""`{"items": …}`: some items of a batch fail; the poll itself succeeds."""

from __future__ import annotations

from typing import Any

import pytest

from workersai_client import ItemFailed
from workersai_contracts import errors

M3 = "@cf/baai/bge-m3"


def failing(world: Any, *texts: str) -> list[int]:
    """The items of a batch of these texts that fail."""
    return [item["id"] for item in world.items(world.submit(*texts)) if not item["success"]]


def test_items_fail_by_index(world: Any) -> None:
    world.rule({"items": {"indexes": [0, 2, 9], "code": 3030}})

    assert failing(world, "a", "b", "c", "d") == [0, 2]
    assert failing(world, "a") == [0]


def test_items_fail_by_text_wherever_it_is(world: Any) -> None:
    world.rule({"items": {"text": "bad"}})

    assert failing(world, "good", "a bad one", "Bad", "worse") == [1]
    contexts = {"query": "q", "contexts": [{"text": "fine"}, {"text": "bad"}]}
    assert [item["success"] for item in world.items(world.submit(contexts, "good"))] == [False, True]


def test_share_of_items_fails_and_the_same_ones_again(world: Any) -> None:
    world.rule({"items": {"share": 0.3}})
    texts = [f"text {number}" for number in range(400)]

    first = failing(world, *texts)

    assert len(first) == pytest.approx(0.3 * 400, abs=30)
    assert failing(world, *texts) == first
    assert failing(world, *texts[:-1], "another") != first


@pytest.mark.parametrize(("share", "failed"), [(0, []), (1, [0, 1, 2])])
def test_share_can_be_none_and_all(world: Any, share: int, failed: list[int]) -> None:
    world.rule({"items": {"share": share}})

    assert failing(world, "a", "b", "c") == failed


def test_failing_items_of_a_large_batch_are_drawn_while_others_are_served(world: Any) -> None:
    world.rule({"items": {"share": 0.5}})
    texts = ["x" * 4000] * 2000

    assert len(failing(world, *texts)) == pytest.approx(1000, abs=120)


@pytest.mark.parametrize(
    ("said", "code"),
    [({}, 5001), ({"code": 3040}, 3040), ({"code": "3021"}, 3021), ({"code": "model.context"}, 3030)],
    ids=["default", "code", "digits", "row"],
)
def test_code_says_what_the_items_fail_with(world: Any, said: dict[str, Any], code: int) -> None:
    world.rule({"items": {"indexes": [0], **said}})

    item = world.items(world.submit("a"))[0]

    assert item["errors"][0]["code"] == code
    assert item["errors"][0]["message"].startswith("AiError: ")


def test_failed_item_is_told_as_the_open_fact_has_it(world: Any) -> None:
    world.rule({"items": {"indexes": [0], "code": "model.context"}})
    item = {"text": "a", "external_reference": "first"}
    message = "AiError: AiError: Max context reached 135630 tokens but model supports only 60000"
    failed = {"id": 0, "result": {}, "success": False}

    assert world.items(world.submit(item, "b"))[0] == {
        **failed,
        "errors": [{"message": message, "code": 3030}],
        "external_reference": "first",
    }
    world.control("PATCH", "settings", assumptions={"item.failed": "error"})
    assert world.items(world.submit(item, "b"))[0] == {
        **failed,
        "error": message,
        "external_reference": "first",
    }


def test_poll_succeeds_and_our_client_raises_for_the_items(world: Any) -> None:
    world.rule({"items": {"text": "b", "code": 3030}})

    done = world.client.wait(
        world.client.submit(M3, [{"text": text} for text in "abc"]), timeout=20, interval=0.01
    )

    assert [item.success for item in done.items] == [True, False, True]
    with pytest.raises(ItemFailed, match="1 of 3 items failed, the first is item 1: AiError") as caught:
        done.raise_for_items()
    assert (caught.value.item.id, caught.value.code) == (1, 3030)


def test_bare_body_fails_as_an_item_would(world: Any) -> None:
    world.rule({"items": {"indexes": [0], "code": 3040}})
    reply = world.send({"text": "a"}, queue=True, headers={"x-emulator-script": "done"})

    polled = world.poll(reply.json()["result"]["request_id"])

    assert (polled.status_code, polled.json()["errors"][0]["code"]) == (429, 3040)


def test_usage_leaves_out_what_failed(world: Any) -> None:
    alone = world.poll(world.submit("a llama")).json()["result"]["usage"]
    world.rule({"items": {"indexes": [0]}})

    assert world.poll(world.submit("orange cloud", "a llama")).json()["result"]["usage"] == alone


def test_only_the_batches_of_the_rule_fail_and_they_stay_failed(world: Any) -> None:
    before = world.submit("a")
    world.rule({"items": {"indexes": [0]}}, times=1)
    during, after = world.submit("a"), world.submit("a")
    world.control("DELETE", "rules")

    seen = [world.items(wanted)[0]["success"] for wanted in (before, during, after, during)]

    assert seen == [True, False, True, False]


@pytest.mark.parametrize("row", list(errors()))
def test_every_row_can_be_what_an_item_fails_with(world: Any, row: str) -> None:
    world.rule({"items": {"indexes": [0], "code": row}})

    assert world.items(world.submit("a"))[0]["errors"][0]["code"] == errors()[row].code


@pytest.mark.parametrize(
    "said",
    [{"indexes": []}, {"indexes": [3, 0]}, {"share": 0}, {"share": 0.25}, {"text": ""}, {"text": "a"}],
    ids=repr,
)
def test_rule_is_shown_so_that_it_can_be_said_again(world: Any, said: dict[str, Any]) -> None:
    shown = world.control("POST", "rules", effect={"items": said}).json()["effect"]

    again = world.control("POST", "rules", effect=shown).json()["effect"]

    kept = {**said, "indexes": sorted(said["indexes"])} if "indexes" in said else said
    assert shown == again == {"items": {**kept, "code": "batch.failed"}}
