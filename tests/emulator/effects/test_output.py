"""`{"output": …}`: a test says what the model answers."""

from __future__ import annotations

from typing import Any

import pytest

M3, BASE = "@cf/baai/bge-m3", "@cf/baai/bge-base-en-v1.5"
LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"


def prompts(*texts: str) -> list[dict[str, str]]:
    return [{"prompt": text} for text in texts]


def results(world: Any, request_id: str) -> list[Any]:
    """What the items of a batch of prompts are answered, a placeholder told as None."""
    shown = (item["result"] for item in world.items(request_id, model=LLAMA))
    return [None if isinstance(result, dict) and "usage" in result else result for result in shown]


def test_run_is_answered_by_model(world: Any) -> None:
    world.rule({"output": {"data": [[1.0]]}}, {"model": M3})

    assert world.client.run(M3, {"text": "a"}) == {"data": [[1.0]]}
    assert world.client.run(BASE, {"text": "a"})["shape"] == [1, 768]


def test_run_is_answered_by_prompt(world: Any) -> None:
    world.rule({"output": {"response": "billing"}}, {"text": "invoice"})

    assert world.client.run(LLAMA, {"prompt": "which queue: an invoice"}) == {"response": "billing"}
    messages = [{"role": "user", "content": "my invoice"}]
    assert world.client.run(LLAMA, {"messages": messages}) == {"response": "billing"}
    assert world.client.run(LLAMA, {"prompt": "a parcel"})["response"] != "billing"


def test_official_sdk_gets_the_output(world: Any) -> None:
    world.rule({"output": {"response": "billing"}})

    assert world.sdk.ai.run(LLAMA, account_id=world.id, prompt="a") == {"response": "billing"}


@pytest.mark.parametrize("output", ["a text", 5, None, False, [], {"a": {"ü": "\ud83d"}}], ids=repr)
def test_output_is_any_json_of_a_run_and_of_an_item(world: Any, output: Any) -> None:
    world.rule({"output": output})

    assert world.send({"text": "a"}).json()["result"] == output
    assert world.items(world.submit("a"))[0]["result"] == output


def test_items_of_a_batch_are_answered_each_by_its_own_text(world: Any) -> None:
    world.rule({"output": {"response": "billing"}}, {"text": "invoice"})
    world.rule({"output": {"response": "shipping"}}, {"text": "parcel"})

    wanted = world.submit(*prompts("a parcel", "an invoice", "a llama", "invoice for a parcel"), model=LLAMA)

    billing, shipping = {"response": "billing"}, {"response": "shipping"}
    assert results(world, wanted) == [shipping, billing, None, shipping]
    assert world.fired() == [1, 2]


def test_our_client_finds_the_outputs_in_order_with_their_references(world: Any) -> None:
    world.rule({"output": "odd"}, {"text": "odd"})
    requests = [{"text": f"{'odd' if n % 2 else 'even'} {n}", "external_reference": n} for n in range(40)]

    done = world.client.wait(world.client.submit(M3, requests), timeout=20, interval=0.01)

    assert [item.external_reference for item in done.items] == list(range(40))
    assert [item.id for item in done.items if item.result == "odd"] == list(range(1, 40, 2))
    assert done.items[0].result["shape"] == [1, 1024]


def test_times_are_counted_by_item_and_the_order_of_the_request(world: Any) -> None:
    world.rule({"output": "any"}, times=1)
    world.rule({"output": "newest"}, times=2)

    wanted = world.submit(*prompts("a", "b", "c", "d"), model=LLAMA)

    assert results(world, wanted) == ["newest", "newest", "any", None]
    assert world.fired() == [1, 2]


@pytest.mark.parametrize(
    ("match", "answered"), [({"nth": 2}, [1]), ({"every": 2}, [1, 3])], ids=["nth", "every"]
)
def test_nth_and_every_count_items(world: Any, match: dict[str, int], answered: list[int]) -> None:
    world.rule({"output": "chosen"}, match)

    shown = results(world, world.submit(*prompts("a", "b", "c", "d"), model=LLAMA))

    assert [index for index, result in enumerate(shown) if result == "chosen"] == answered


def test_what_a_batch_is_answered_is_decided_once(world: Any) -> None:
    rule_id = world.rule({"output": "first"}, times=1)
    wanted = world.submit("a", "b")

    first = world.poll(wanted).content
    world.control("DELETE", f"rules/{rule_id}")
    world.rule({"output": "later"})

    assert world.poll(wanted).content == first
    assert world.items(wanted)[0]["result"] == "first"


@pytest.mark.parametrize(("operation", "run", "item"), [("run", True, False), ("submit", False, True)])
def test_rule_can_be_for_runs_or_for_items_alone(world: Any, operation: str, run: bool, item: bool) -> None:
    world.rule({"output": "chosen"}, {"operation": operation})

    assert (world.send({"text": "a"}).json()["result"] == "chosen") == run
    assert (world.items(world.submit("a"))[0]["result"] == "chosen") == item


def test_requests_that_are_run_at_once_are_answered_by_item_too(world: Any) -> None:
    world.rule({"output": "chosen"}, {"operation": "run", "text": "b"}, times=1)

    reply = world.send({"requests": [{"text": "a"}, {"text": "b"}, {"text": "b"}]})

    items = {item["id"]: item["result"] for item in reply.json()["result"]["responses"]}
    assert items[1] == "chosen"
    assert items[0]["shape"] == items[2]["shape"] == [1, 1024]
    assert world.fired() == [1]


def test_output_for_items_leaves_an_older_rule_of_the_submit_alone(world: Any) -> None:
    world.rule({"items": {"indexes": [0], "code": 3030}})
    world.rule({"output": "chosen"})

    failed, answered = world.items(world.submit("a", "b"))

    assert (failed["success"], failed["errors"][0]["code"]) == (False, 3030)
    assert answered["result"] == "chosen"


def test_bare_body_that_was_queued_is_answered(world: Any) -> None:
    world.rule({"output": {"chosen": 1}})

    reply = world.send({"text": "a"}, queue=True, headers={"x-emulator-script": "done"})

    done = world.poll(reply.json()["result"]["request_id"])
    assert done.content == b'{"result":{"chosen":1},"success":true,"errors":[],"messages":[]}'


def test_input_is_looked_at_before_it_is_answered(world: Any) -> None:
    world.rule({"output": "chosen"})

    assert world.send({"words": "a"}).json()["errors"][0]["code"] == 5006
    assert world.send({"requests": [{}]}, queue=True).json()["errors"][0]["code"] == 5006


def test_usage_counts_what_was_read(world: Any) -> None:
    plain = world.poll(world.submit("orange cloud", "a llama")).json()["result"]["usage"]
    world.rule({"output": "chosen"})

    assert world.poll(world.submit("orange cloud", "a llama")).json()["result"]["usage"] == plain
