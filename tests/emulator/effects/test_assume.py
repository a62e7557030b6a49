"""`{"assume": …}`: for one request, open facts are answered otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from workersai_client import BatchFailed, Pending

M3, BASE = "@cf/baai/bge-m3", "@cf/baai/bge-base-en-v1.5"
UNKNOWN = "00000000-0000-4000-8000-000000000000"


def test_submit_is_answered_with_202_once(world: Any) -> None:
    world.rule({"assume": {"submit.status": "202"}}, {"operation": "submit"}, times=1)
    body = {"requests": [{"text": "a"}]}

    replies = [world.send(body, queue=True) for _ in range(2)]

    assert [reply.status_code for reply in replies] == [202, 200]
    assert world.batches() == 2


def test_our_client_takes_202(world: Any) -> None:
    world.rule({"assume": {"submit.status": "202"}})

    assert isinstance(world.client.poll(world.client.submit(M3, [{"text": "a"}])), Pending)


def test_one_poll_shows_another_shape_and_the_next_the_usual(world: Any) -> None:
    wanted = world.submit("a", "b")
    chosen = {"done.shape": "results", "done.status": "completed", "done.order": "request"}
    world.rule({"assume": chosen}, {"operation": "poll"}, times=1)

    other, usual = world.poll(wanted).json()["result"], world.poll(wanted).json()["result"]

    assert list(other) == ["status", "results", "usage"]
    assert [item["index"] for item in other["results"]] == [0, 1]
    assert list(usual) == ["responses", "usage"]


@pytest.mark.parametrize(("alternative", "status"), [("refused", 400), ("not-found", 404)])
def test_unknown_batch_is_refused_as_chosen(world: Any, alternative: str, status: int) -> None:
    world.rule({"assume": {"poll.unknown": alternative}})

    assert world.poll(UNKNOWN).status_code == status


def test_batch_that_is_polled_under_another_model_is_answered_once(world: Any) -> None:
    wanted = world.submit("a")
    world.rule({"assume": {"poll.other-model": "answered"}}, times=1)

    assert [world.poll(wanted, model=BASE).status_code for _ in range(2)] == [200, 400]


def test_done_batch_is_read_once(world: Any) -> None:
    world.rule({"assume": {"poll.retention": "once"}})
    wanted = world.submit("a")

    assert [world.poll(wanted).status_code for _ in range(2)] == [200, 400]


def test_failed_batch_is_told_as_a_status(world: Any) -> None:
    handle = world.client.submit(M3, [{"text": "a"}])
    world.control("POST", f"batches/{handle.request_id}", action="fail")
    world.control("PATCH", "settings", assumptions={"batch.failed": "status"})

    with pytest.raises(BatchFailed, match="Model execution failed") as caught:
        world.client.poll(handle)
    assert caught.value.status == 200


def test_failed_item_is_told_otherwise_by_the_poll_that_is_matched(world: Any) -> None:
    world.rule({"items": {"indexes": [0]}}, times=1)
    wanted = world.submit("a")
    world.rule({"assume": {"item.failed": "error"}}, {"operation": "poll"}, times=1)

    assert world.items(wanted)[0]["error"] == "AiError: Model execution failed"
    assert world.items(wanted)[0]["errors"] == [{"message": "AiError: Model execution failed", "code": 5001}]


def test_model_of_which_nobody_knows_queues_for_one_request(world: Any) -> None:
    world.rule({"assume": {"model.queue": "queued"}}, times=1)
    body = {"requests": [{"text": "a"}]}

    replies = [world.send(body, model="@cf/google/embeddinggemma-300m", queue=True) for _ in range(2)]

    assert [reply.status_code for reply in replies] == [200, 400]


def test_requests_without_the_query_are_refused(world: Any) -> None:
    world.rule({"assume": {"submit.no-query": "refused"}}, {"operation": "run"}, times=1)

    replies = [world.send({"requests": [{"text": "a"}]}) for _ in range(2)]

    assert [reply.status_code for reply in replies] == [400, 200]
    assert replies[0].json()["errors"][0]["code"] == 5006


def test_settings_stay_as_they_were(world: Any) -> None:
    account = world.emulator.account(world.id)
    before = account.settings.get()
    world.rule({"assume": {"submit.status": "202", "submit.empty": "refused"}})

    assert world.send({"requests": []}, queue=True).status_code == 400
    assert account.settings.get() == before
