"""The metrics: what Prometheus reads of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from workersai_emulator.api.exchange import Exchange
from workersai_emulator.counts import BUCKETS, MOST_SERIES, OTHER, Counts

if TYPE_CHECKING:
    from collections.abc import Callable

BGE_M3 = "@cf/baai/bge-m3"


def read(world: Any) -> dict[str, Any]:
    """Every sample by its name; by its labels where it has any."""
    reply = world.http.get("/metrics")
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "text/plain; version=1.0.0; charset=utf-8"
    told: dict[str, Any] = {}
    for family in text_string_to_metric_families(reply.text):
        for sample in family.samples:
            if sample.labels:
                told.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
            else:
                told[sample.name] = sample.value
    return told


@pytest.fixture
def fresh(world_of: Callable[..., Any]) -> Any:
    return world_of(script="queued:1, done")


def test_exchanges_are_counted_by_what_they_were_and_what_came_of_them(fresh: Any) -> None:
    request_id = fresh.submit({"requests": [{"text": "a"}]})
    for _ in range(2):
        fresh.poll(request_id)
    fresh.run({"text": 1})
    fresh.http.get("/client/v4/x")
    fresh.http.post("/batch", json={"texts": []})
    fresh.control("GET", "health")

    told = {
        (labels["dialect"], labels["operation"], labels["model"], labels["status"], labels["code"]): value
        for labels, value in _samples(fresh, "workersai_emulator_exchanges_total")
    }

    assert told == {
        ("rest", "submit", BGE_M3, "200", ""): 1,
        ("rest", "poll", BGE_M3, "200", ""): 2,
        ("rest", "run", BGE_M3, "400", "5006"): 1,
        ("rest", "", "", "400", "7000"): 1,
        ("worker", "submit", BGE_M3, "400", ""): 1,
    }


def _samples(world: Any, name: str) -> list[tuple[dict[str, str], float]]:
    families = text_string_to_metric_families(world.http.get("/metrics").text)
    return [(each.labels, each.value) for family in families for each in family.samples if each.name == name]


def test_durations_are_a_histogram_that_grows_to_the_count(fresh: Any) -> None:
    for _ in range(3):
        fresh.run({"text": "a"})

    buckets = [value for _, value in _samples(fresh, "workersai_emulator_exchange_duration_seconds_bucket")]
    (count,) = [value for _, value in _samples(fresh, "workersai_emulator_exchange_duration_seconds_count")]
    (taken,) = [value for _, value in _samples(fresh, "workersai_emulator_exchange_duration_seconds_sum")]

    assert len(buckets) == len(BUCKETS) + 1
    assert buckets == sorted(buckets)
    assert buckets[-1] == count == 3
    assert 0 < taken < 30


def test_batches_are_told_by_state_and_what_is_kept_by_its_size(fresh: Any) -> None:
    body = b'{"requests":[{"text":"a"}]}'
    first, _ = fresh.submit(body), fresh.submit(body)
    for _ in range(2):
        fresh.poll(first)

    told = read(fresh)

    assert told["workersai_emulator_batches"] == {("done",): 1, ("queued",): 1}
    assert told["workersai_emulator_store_bytes"] == 2 * len(body)
    assert 4 * 500 < told["workersai_emulator_journal_bytes"] < 4 * 5_000
    assert told["process_resident_memory_bytes"] > 10_000_000
    assert told["process_open_fds"] > 3


def test_requests_that_did_not_get_in_are_counted_by_the_door(fresh: Any) -> None:
    fresh.http.get("/", headers={"origin": "https://evil.example"})
    for _ in range(2):
        fresh.http.get("/__emulator__/health", headers={"host": "evil.example"})

    assert read(fresh)["workersai_emulator_refused_total"] == {("control",): 2, ("origin",): 1}


def test_the_control_plane_has_them_too_and_other_methods_are_the_workers(fresh: Any) -> None:
    assert fresh.control("GET", "metrics").text.startswith("# HELP workersai_emulator_exchanges_total")
    assert fresh.http.post("/metrics").json()["errors"][0]["code"] == 7000


def test_looking_at_them_changes_nothing(fresh: Any) -> None:
    request_id = fresh.submit({"text": "a"})
    for _ in range(5):
        read(fresh)

    assert fresh.poll(request_id).json()["result"]["status"] == "queued"
    assert fresh.control("GET", "requests").json()["requests"][-1]["seq"] == 2


def test_made_up_names_become_one_series_and_all_together_have_a_bound() -> None:
    counts = Counts()
    for number in range(MOST_SERIES + 100):
        counts.count(
            Exchange(
                "POST", "/", 0.0, dialect="rest", operation="run", status=number, model=f"@cf/x/{number}"
            )
        )

    assert len(counts) == MOST_SERIES + 1
    assert sum(counts["rest", "run", OTHER, OTHER, OTHER].counts) == 100
    assert {series[2] for series in counts} == {OTHER}


def test_a_reset_forgets_no_count(fresh: Any) -> None:
    fresh.run({"text": "a"})
    fresh.control("POST", "reset")

    assert [value for _, value in _samples(fresh, "workersai_emulator_exchanges_total")] == [1]
