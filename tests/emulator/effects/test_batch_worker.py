"""Effects and scenarios through the `/batch` Worker, which is a client of the same service."""

from __future__ import annotations

from typing import Any

import httpx
import pytest


def batch(world: Any, **headers: str) -> httpx.Response:
    """POST a batch of one text to the Worker."""
    return world.http.post(
        "/batch",
        json={"texts": ["orange cloud"]},
        headers={"x-emulator-account": world.id, **{key.replace("_", "-"): headers[key] for key in headers}},
    )


def poll(world: Any, request_id: str) -> httpx.Response:
    return world.http.get(f"/batch/{request_id}", headers={"x-emulator-account": world.id})


def test_output_is_what_the_worker_hands_on(world: Any) -> None:
    world.rule({"output": {"chosen": 1}}, {"text": "cloud"})
    wanted = batch(world, x_emulator_script="done").json()["request_id"]

    assert poll(world, wanted).json()["responses"][0]["result"] == {"chosen": 1}


def test_scenario_of_the_header_is_met_by_the_workers_submit(world: Any) -> None:
    refused = batch(world, x_emulator_scenario="rate-limited")

    assert refused.status_code == 502
    assert refused.json() == {
        "error": "3021: rate limiting: inference request per min rate reached",
        "code": "BATCH_ERROR",
    }
    assert batch(world).status_code == 200


def test_flaky_network_by_header_draws_anew_here_too(world: Any) -> None:
    broken = 0
    for _ in range(60):
        try:
            batch(world, x_emulator_scenario="flaky-network")
        except httpx.TransportError:
            broken += 1

    assert 8 <= broken <= 35


def test_connection_is_spoiled_after_the_worker_queued(world: Any) -> None:
    world.rule({"transport": "reset-after"}, {"operation": "submit"}, times=1)

    with pytest.raises(httpx.TransportError):
        batch(world)

    assert world.batches() == 1
    assert batch(world).json()["status"] == "queued"


def test_reply_is_what_the_workers_caller_gets(world: Any) -> None:
    wanted = batch(world).json()["request_id"]
    world.rule({"reply": {"status": 504, "body": "<html>"}}, {"operation": "poll"}, times=1)

    assert (poll(world, wanted).status_code, poll(world, wanted).status_code) == (504, 200)


def test_failing_item_is_told_as_on_rest(world: Any) -> None:
    world.rule({"items": {"indexes": [0], "code": 3030}})
    wanted = batch(world, x_emulator_script="done").json()["request_id"]

    item = poll(world, wanted).json()["responses"][0]
    assert (item["success"], item["errors"][0]["code"]) == (False, 3030)
