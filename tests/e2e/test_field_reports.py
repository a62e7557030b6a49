"""What people reported of the batch API, of errors and quota: each reproduced, and survived by the client."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from workersai_client import (
    BatchFailed,
    Client,
    Done,
    Handle,
    InvalidRequest,
    Pending,
    QuotaExceeded,
    RateLimited,
    RequestTooLarge,
    TransportError,
    WaitTimeout,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from workersai_emulator import Emulator

M3, BASE = "@cf/baai/bge-m3", "@cf/baai/bge-base-en-v1.5"
LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
SCOUT = "@cf/meta/llama-4-scout-17b-16e-instruct"
GPT_OSS = "@cf/openai/gpt-oss-120b"


@pytest.fixture
def client(emulator: Emulator) -> Iterator[Client]:
    with Client(emulator.account_id, emulator.token, emulator.base_url, max_retries=0) as client:
        yield client


def ask(emulator: Emulator, model: str, body: Any, query: str = "") -> httpx.Response:
    """What a program without a client library sends and sees."""
    return httpx.post(
        f"{emulator.base_url}/accounts/{emulator.account_id}/ai/run/{model}{query}",
        json=body,
        headers={"Authorization": f"Bearer {emulator.token}"},
        timeout=30,
    )


def test_report_1_model_that_was_said_to_queue_does_not(emulator: Emulator, client: Client) -> None:
    emulator.fail("submit", "model.no-queue")

    with pytest.raises(InvalidRequest) as refused:
        client.submit(LLAMA, [{"prompt": "a"}])

    assert (refused.value.status, refused.value.code) == (400, 8007)
    words = r"AiError: Ai: This model does not support request queuing \([0-9a-f-]{36}\)"
    assert re.fullmatch(words, refused.value.message)


def test_report_2_bare_body_is_taken_and_fails_only_when_it_is_run(
    emulator: Emulator, client: Client
) -> None:
    queued = ask(emulator, LLAMA, {"prompt": "a"}, "?queueRequest=true").json()
    assert (queued["success"], queued["result"]["status"]) == (True, "queued")
    handle = Handle(emulator.account_id, LLAMA, queued["result"]["request_id"])

    assert [client.poll(handle) for _ in range(2)] == [Pending("queued"), Pending("running")]
    with pytest.raises(BatchFailed, match="1 validation error for VllmBatchRequest") as failed:
        client.poll(handle)

    assert (failed.value.code, failed.value.retryable) == (3030, False)


def test_report_3_queue_request_in_the_body_runs_at_once(emulator: Emulator) -> None:
    reply = ask(emulator, M3, {"text": "a", "queueRequest": True})

    assert reply.status_code == 200
    assert reply.json()["result"]["shape"] == [1, 1024]
    assert emulator.batches.list() == []


def test_report_4_text_of_a_refusal_is_told_whole(client: Client) -> None:
    with pytest.raises(InvalidRequest) as refused:
        client.submit(GPT_OSS, [{"messages": [{"role": "user", "content": "hello"}]}])

    message = refused.value.message
    assert (refused.value.status, refused.value.code) == (400, 5006)
    assert "oneOf at '/' not met" in message
    assert len(message) > 200
    assert message[200:] in str(refused.value)


def test_report_5_items_that_nobody_collects_for_eleven_hours_are_there(
    emulator: Emulator, client: Client
) -> None:
    emulator.clock.freeze()
    handles = [client.submit(M3, [{"text": f"text {number}"}]) for number in range(139)]
    emulator.clock.advance("11h")

    # 231 polls at about 58 a minute drew no 429.
    seen = []
    for handle in (handles * 3)[:231]:
        seen.append(client.poll(handle))
        emulator.clock.advance(60 / 58)
    late = [client.poll(handle) for handle in handles for _ in range(2)][1::2]

    assert len(seen) == 231
    assert all(isinstance(found, Done) and len(found.items) == 1 for found in late)


def test_report_5_batch_of_forty_is_back_after_33_seconds(emulator: Emulator, client: Client) -> None:
    emulator.clock.freeze()
    emulator.script = "queued:3s, running:30s, done"
    handle = client.submit(M3, [{"text": f"text {number}"} for number in range(40)])

    emulator.clock.advance("32s")
    assert client.poll(handle) == Pending("running")
    emulator.clock.advance("1s")
    found = client.poll(handle)

    assert isinstance(found, Done)
    assert [item.id for item in found.items] == list(range(40))


@pytest.mark.parametrize(("alternative", "finished"), [("none", False), ("completed", True)])
def test_report_6_program_that_waits_for_completed_never_finishes(
    emulator: Emulator, client: Client, alternative: str, finished: bool
) -> None:
    emulator.settings.patch(assumptions={"done.status": alternative})
    handle = client.submit(M3, [{"text": "a"}])

    statuses = [
        ask(emulator, M3, {"request_id": handle.request_id}).json()["result"].get("status") for _ in range(50)
    ]

    assert ("completed" in statuses) == finished
    assert isinstance(client.poll(handle), Done)


def test_report_7_reference_comes_back_from_the_request_and_not_from_a_context(client: Client) -> None:
    new = {"query": "q", "contexts": [{"text": "a"}], "external_reference": "on the request"}
    old = {"query": "q", "contexts": [{"text": "a", "external_reference": "in a context"}]}

    done = client.wait(client.submit(M3, [new, old]), timeout=20, interval=0.01)

    assert [item.success for item in done.items] == [True, True]
    assert [item.external_reference for item in done.items] == ["on the request", None]


def test_report_8_resubmission_after_a_timeout_queues_the_work_twice(
    emulator: Emulator, client: Client
) -> None:
    emulator.rules.add(match={"operation": "submit"}, effect={"transport": "reset-after"}, times=1)
    requests = [{"text": "a"}]

    with pytest.raises(TransportError) as lost:
        client.submit(M3, requests)
    assert lost.value.may_have_arrived
    client.submit(M3, requests)

    first, second = emulator.batches.list()
    assert first.request_id != second.request_id
    assert emulator.batches.get(first.request_id).request == emulator.batches.get(second.request_id).request


COLLECT = """
import os, pathlib, sys
from workersai_client import Client, Handle
handle = Handle.from_json(pathlib.Path(sys.argv[1]).read_text())
with Client(handle.account_id) as client:
    print(len(client.wait(handle, timeout=20, interval=0.01).raise_for_items().items))
"""


def test_report_9_handle_in_a_file_is_collected_by_another_process(
    emulator: Emulator, client: Client, tmp_path: Path
) -> None:
    marker = tmp_path / "batch.json"
    marker.write_text(client.submit(M3, [{"text": "a"}, {"text": "b"}]).to_json())

    collected = subprocess.run(
        [sys.executable, "-c", COLLECT, str(marker)],
        env={"CLOUDFLARE_BASE_URL": emulator.base_url, "CLOUDFLARE_API_TOKEN": emulator.token},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert collected.stdout == "2\n"


def test_report_10_poll_needs_the_model_as_well_as_the_id(emulator: Emulator, client: Client) -> None:
    handle = client.submit(M3, [{"text": "a"}])

    with pytest.raises(BatchFailed, match="Request not found"):
        client.poll(Handle(handle.account_id, BASE, handle.request_id))

    assert json.loads(handle.to_json())["model"] == M3
    assert client.poll(Handle.from_json(handle.to_json())) == Pending("queued")


@pytest.mark.parametrize("body", [{"inputs": [{"text": "a"}]}, {"request": [{"text": "a"}]}, {}], ids=repr)
def test_report_11_payload_without_requests_is_refused_where_a_mock_would_queue_it(
    emulator: Emulator, body: dict[str, Any]
) -> None:
    reply = ask(emulator, M3, body, "?queueRequest=true")

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (400, 5006)
    assert "required properties at '/' are 'requests'" in reply.json()["errors"][0]["message"]
    assert emulator.batches.list() == []


def test_report_12_five_minutes_of_waiting_take_none(emulator: Emulator) -> None:
    emulator.clock.freeze()
    emulator.script = "queued:2m, running:3m, done"
    began, started = emulator.clock.now(), time.perf_counter()

    with Client(
        emulator.account_id,
        emulator.token,
        emulator.base_url,
        sleep=emulator.sleep,
        monotonic=lambda: emulator.clock.now().timestamp(),
    ) as client:
        handle = client.submit(M3, [{"text": "a"}])
        with pytest.raises(WaitTimeout) as early:
            client.wait(handle, timeout=240)
        done = client.wait(handle, timeout=240)

    assert early.value.last_status == "running"
    assert len(done.items) == 1
    assert 300 <= (emulator.clock.now() - began).total_seconds() < 330
    assert time.perf_counter() - started < 20


def test_report_12_clock_that_jumps_is_done_in_as_many_polls_as_there_are_changes(
    emulator: Emulator, client: Client
) -> None:
    emulator.clock.jump()
    emulator.script = "queued:2m, running:3m, done"
    handle = client.submit(M3, [{"text": "a"}])

    assert client.poll(handle) == Pending("running")
    assert isinstance(client.poll(handle), Done)


@pytest.mark.parametrize("code", [4006, 3036], ids=["on the wire", "in the documentation"])
def test_report_16_end_of_the_allocation_is_final_though_it_is_429(emulator: Emulator, code: int) -> None:
    emulator.fail("run", code, times=None)
    pauses: list[float] = []

    with (
        Client(emulator.account_id, "a", emulator.base_url, sleep=pauses.append) as client,
        pytest.raises(QuotaExceeded) as refused,
    ):
        client.run(M3, {"text": "a"})

    assert (refused.value.status, refused.value.code, refused.value.retryable) == (429, code, False)
    assert pauses == []
    assert [rule.fired for rule in emulator.rules.list()] == [1]


def test_report_17_no_capacity_comes_without_retry_after_and_passes(emulator: Emulator) -> None:
    emulator.fail("run", 3040, times=4)
    assert "retry-after" not in ask(emulator, M3, {"text": "a"}).headers
    pauses: list[float] = []

    with Client(
        emulator.account_id, "a", emulator.base_url, sleep=pauses.append, jitter=lambda: 1.0
    ) as client:
        assert client.run(M3, {"text": "a"})["shape"] == [1, 1024]

    assert pauses == [0.5, 1.0, 2.0]


def test_report_18_rate_limit_is_worth_another_try_also_as_a_binding_throws_it(
    emulator: Emulator, client: Client
) -> None:
    emulator.fail("run", 3021)
    with pytest.raises(RateLimited) as refused:
        client.run(M3, {"text": "a"})
    emulator.fail("submit", 3021)
    thrown = httpx.post(f"{emulator.worker_url}/batch", json={"texts": ["a"]})

    assert (refused.value.status, refused.value.code, refused.value.retryable) == (429, 3021, True)
    assert thrown.json()["error"] == "3021: rate limiting: inference request per min rate reached"


def test_report_19_context_that_is_too_long_has_three_forms(emulator: Emulator, client: Client) -> None:
    emulator.fail("run", "model.refused")
    with pytest.raises(InvalidRequest) as json_inside:
        client.run(LLAMA, {"prompt": "a"})
    emulator.fail("run", 5021)
    with pytest.raises(RequestTooLarge) as too_large:
        client.run(LLAMA, {"prompt": "a"})

    assert (json_inside.value.status, json_inside.value.code) == (400, 8007)
    inside = re.fullmatch(r"AiError: AiError: (\{.*\}) \([0-9a-f-]{36}\)", json_inside.value.message)
    assert inside is not None
    assert json.loads(inside[1])["object"] == "error"
    assert (too_large.value.status, too_large.value.code) == (413, 5021)


def test_report_19_on_bge_m3_the_longest_text_counts_for_all(emulator: Emulator, client: Client) -> None:
    emulator.rules.add(match={"model": M3, "text": "much too long"}, effect={"error": "model.context"})

    assert client.run(M3, {"text": ["short"] * 99})["shape"] == [99, 1024]
    with pytest.raises(
        InvalidRequest, match="Max context reached 135630 tokens but model supports only 60000"
    ):
        client.run(M3, {"text": ["a text that is much too long", *["short"] * 99]})


def test_report_20_setting_for_retries_is_what_applies_to_capacity(emulator: Emulator) -> None:
    emulator.fail("run", 3040, times=5)
    slept: list[float] = []

    with Client(emulator.account_id, "a", emulator.base_url, max_retries=2, sleep=slept.append) as client:
        with pytest.raises(RateLimited) as refused:
            client.run(M3, {"text": "a"})
        assert client.run(M3, {"text": "a"})["shape"] == [1, 1024]

    assert refused.value.retryable
    assert len(slept) == 2 + 2


def test_report_21_newer_models_answer_choices_and_older_ones_a_response(client: Client) -> None:
    asked = {"messages": [{"role": "user", "content": "hello"}]}

    older, newer = client.run(LLAMA, asked), client.run(SCOUT, asked)
    items = client.wait(client.submit(SCOUT, [{"prompt": "hello"}]), timeout=20, interval=0.01).items

    assert isinstance(older["response"], str)
    assert "choices" not in older
    assert isinstance(newer["choices"][0]["message"]["content"], str)
    assert "response" not in newer
    assert "choices" in items[0].result
