"""The verdict: each finding is earned by a real client over a real socket, and what comes close to it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cloudflare
import httpx
import pytest

from workersai_client import (
    BatchFailed,
    Client,
    Handle,
    InvalidRequest,
    QuotaExceeded,
    RateLimited,
    TransportError,
    WorkersAIError,
)
from workersai_emulator import Emulator, WorkersAI
from workersai_emulator.ids import fresh_account

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BGE_M3 = "@cf/baai/bge-m3"
BGE_BASE = "@cf/baai/bge-base-en-v1.5"
LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
ITEMS = [{"text": "orange cloud"}]
TIMED = "queued:20s, running:40s, done"

Post = "Callable[..., httpx.Response]"


@pytest.fixture(scope="module")
def server() -> Iterator[Emulator]:
    with Emulator(seed=1) as emulator:
        yield emulator


@pytest.fixture
def account(server: Emulator, request: pytest.FixtureRequest) -> WorkersAI:
    fresh = server.account(fresh_account(4, request.node.nodeid))
    fresh.clock.freeze()
    return fresh


@pytest.fixture
def client(account: WorkersAI) -> Iterator[Client]:
    """Our client without retries, and with no time to lose."""
    with Client(
        account.account_id, account.token, account.base_url, max_retries=0, sleep=account.sleep
    ) as made:
        yield made


@pytest.fixture
def post(account: WorkersAI) -> Iterator[Callable[..., httpx.Response]]:
    """A client that was written in a hurry."""
    with httpx.Client(base_url=account.base_url, headers={"authorization": "Bearer t"}) as http:

        def send(body: Any, query: str = "", model: str = BGE_M3) -> httpx.Response:
            return http.post(f"/accounts/{account.account_id}/ai/run/{model}{query}", json=body)

        yield send


def found(account: WorkersAI) -> list[tuple[str, str]]:
    """The verdict in short."""
    return [(finding.code, finding.severity) for finding in account.verdict().findings]


def shown(account: WorkersAI, code: str) -> list[str]:
    """What the exchanges of one finding were, in the order in which it names them."""
    (finding,) = [finding for finding in account.verdict().findings if finding.code == code]
    by_seq = {exchange.seq: exchange for exchange in account.requests.list()}
    return [by_seq[seq].operation for seq in finding.seqs]


def test_a_client_without_fault_is_clean(account: WorkersAI, client: Client) -> None:
    account.script = TIMED
    client.wait(client.submit(BGE_M3, ITEMS), timeout=600)
    client.embed(["a", "b"])
    assert account.verdict().findings == ()
    account.verdict().assert_clean()


def test_an_account_without_exchanges_is_clean(account: WorkersAI) -> None:
    assert account.verdict().clean


def test_polling_a_timed_batch_without_a_pause(account: WorkersAI, client: Client) -> None:
    account.script = TIMED
    handle = client.submit(BGE_M3, ITEMS)
    for _ in range(3):
        client.poll(handle)
    assert found(account) == [("polled-without-pause", "warning")]
    assert shown(account, "polled-without-pause") == ["poll"] * 3


@pytest.mark.parametrize(
    ("script", "pauses"),
    [
        (TIMED, [0.1, 0.1, 0.1, 0.1]),
        (TIMED, [0, 5, 0, 5]),
        ("queued:9, done", [0, 0, 0, 0]),
        ("queued:hold, done", [0, 0, 0, 0]),
    ],
    ids=["short pauses", "one at a time", "a script of polls", "held"],
)
def test_polling_with_pauses_or_where_time_does_nothing_is_no_fault(
    account: WorkersAI, client: Client, script: str, pauses: list[float]
) -> None:
    account.script = script
    handle = client.submit(BGE_M3, ITEMS)
    client.poll(handle)
    for pause in pauses:
        account.clock.advance(pause)
        client.poll(handle)
    assert found(account) == []


def test_a_clock_that_jumps_is_a_pause(account: WorkersAI, client: Client) -> None:
    account.clock.jump()
    account.script = "queued:2m, running:3m, queued:1m, done"
    handle = client.submit(BGE_M3, ITEMS)
    states = [getattr(client.poll(handle), "status", "done") for _ in range(3)]
    assert states == ["running", "queued", "done"]
    assert found(account) == []


def test_polling_on_after_the_result(account: WorkersAI, post: Callable[..., httpx.Response]) -> None:
    request_id = post({"requests": ITEMS}, "?queueRequest=true").json()["result"]["request_id"]
    for _ in range(5):
        if post({"request_id": request_id}).json()["result"].get("status") == "completed":
            break
    assert found(account) == [("polled-finished", "warning")]
    assert shown(account, "polled-finished") == ["poll"] * 3


def test_polling_on_after_a_status_of_failure(account: WorkersAI, client: Client) -> None:
    account.settings.patch(script="failed", assumptions={"batch.failed": "status"})
    handle = client.submit(BGE_M3, ITEMS)
    for _ in range(2):
        with pytest.raises(BatchFailed):
            client.poll(handle)
    assert found(account) == [("polled-finished", "warning")]


def test_reading_each_result_once_is_no_fault(account: WorkersAI, client: Client) -> None:
    account.script = "instant"
    for text in ("a", "b"):
        client.poll(client.submit(BGE_M3, [{"text": text}]))
    assert found(account) == []


def test_coming_back_before_retry_after(account: WorkersAI, client: Client) -> None:
    account.fail("run", 3040, retry_after=30)
    with pytest.raises(RateLimited):
        client.run(BGE_M3, {"text": "a"})
    account.clock.advance(29)
    client.run(BGE_M3, {"text": "a"})
    assert found(account) == [("ignored-retry-after", "error")]
    (finding,) = account.verdict().findings
    assert "29.00 s after a refusal that asked for 30 s" in finding.evidence


def test_coming_back_after_retry_after_or_with_something_else_is_no_fault(
    account: WorkersAI, client: Client
) -> None:
    account.fail("run", 3040, retry_after=30)
    with pytest.raises(RateLimited):
        client.run(BGE_M3, {"text": "a"})
    client.run(BGE_M3, {"text": "another"})
    account.clock.advance(30)
    client.run(BGE_M3, {"text": "a"})
    assert found(account) == []


def test_our_client_s_own_retries_heed_retry_after(account: WorkersAI) -> None:
    account.fail("run", 3040, times=2, retry_after=7)
    with Client(account.account_id, account.token, account.base_url, sleep=account.sleep) as client:
        client.run(BGE_M3, {"text": "a"})
    assert len(account.requests.list(code=3040)) == 2
    account.verdict().assert_clean()


def test_submitting_again_instead_of_polling(account: WorkersAI, client: Client) -> None:
    account.script = TIMED
    for _ in range(3):
        client.poll(client.submit(BGE_M3, ITEMS))
    assert found(account) == [("resubmitted", "error")] * 2


def test_submitting_other_things_or_to_another_model_is_no_fault(account: WorkersAI, client: Client) -> None:
    client.submit(BGE_M3, ITEMS)
    client.submit(BGE_BASE, ITEMS)
    client.submit(BGE_M3, [*ITEMS, *ITEMS])
    assert found(account) == []


@pytest.mark.parametrize("script", ["instant", "failed", "lost"])
def test_submitting_again_after_the_end_is_known_is_no_fault(
    account: WorkersAI, client: Client, script: str
) -> None:
    account.script = script
    handle = client.submit(BGE_M3, ITEMS)
    if script == "instant":
        client.poll(handle)
    else:
        with pytest.raises(WorkersAIError):
            client.poll(handle)
    account.script = "default"
    client.submit(BGE_M3, ITEMS)
    assert found(account) == []


def test_a_submit_that_was_refused_may_be_made_again(account: WorkersAI, client: Client) -> None:
    account.fail("submit", 3040)
    with pytest.raises(RateLimited):
        client.submit(BGE_M3, ITEMS)
    client.submit(BGE_M3, ITEMS)
    assert found(account) == []


@pytest.mark.parametrize("code", [4006, 3036])
def test_trying_again_after_the_daily_limit(account: WorkersAI, client: Client, code: int) -> None:
    account.fail("run", code)
    with pytest.raises(QuotaExceeded):
        client.run(BGE_M3, {"text": "a"})
    client.run(BGE_M3, {"text": "a"})
    assert found(account) == [("retried-final", "error")]
    assert "midnight UTC" in account.verdict().findings[0].advice


def test_trying_again_on_the_next_day_is_no_fault(account: WorkersAI, client: Client) -> None:
    account.fail("run", 4006)
    with pytest.raises(QuotaExceeded):
        client.run(BGE_M3, {"text": "a"})
    account.clock.advance("24h")
    client.run(BGE_M3, {"text": "a"})
    assert found(account) == []


def test_sending_input_again_that_was_refused(account: WorkersAI, client: Client) -> None:
    for _ in range(2):
        with pytest.raises(InvalidRequest):
            client.submit(BGE_M3, [{"text": 1, "contexts": 1}])
    assert found(account) == [("retried-final", "error")]


def test_polling_an_unknown_id_again(account: WorkersAI, client: Client) -> None:
    handle = Handle(account.account_id, BGE_M3, "00000000-0000-4000-8000-000000000000")
    for _ in range(2):
        with pytest.raises(WorkersAIError):
            client.poll(handle)
    assert found(account) == [("retried-final", "error")]


def test_the_official_sdk_takes_the_daily_limit_for_a_rate(account: WorkersAI) -> None:
    account.fail("run", 4006, times=None)
    sdk = cloudflare.Cloudflare(api_token="t", base_url=account.base_url, max_retries=1)
    with sdk, pytest.raises(cloudflare.RateLimitError):
        sdk.ai.run(BGE_M3, account_id=account.account_id, text="a")
    assert found(account) == [("retried-final", "error")]


@pytest.mark.parametrize("code", [3021, 3040, 3046, 3050], ids=["rate", "capacity", "timeout", "503"])
def test_trying_again_after_what_passes_is_no_fault(account: WorkersAI, client: Client, code: int) -> None:
    account.fail("run", code)
    with pytest.raises(WorkersAIError):
        client.run(BGE_M3, {"text": "a"})
    client.run(BGE_M3, {"text": "a"})
    assert found(account) == []


@pytest.mark.parametrize("code", [3021, 3040])
def test_giving_up_on_what_passes_is_a_note(account: WorkersAI, client: Client, code: int) -> None:
    account.fail("run", code)
    with pytest.raises(RateLimited):
        client.run(BGE_M3, {"text": "a"})
    client.run(BGE_M3, {"text": "another"})
    assert found(account) == [("gave-up", "note")]
    account.verdict().assert_clean()


def test_giving_up_on_the_daily_limit_is_right(account: WorkersAI, client: Client) -> None:
    account.fail("run", 4006)
    with pytest.raises(QuotaExceeded):
        client.run(BGE_M3, {"text": "a"})
    assert found(account) == []


def test_a_wish_for_the_queue_in_the_body(account: WorkersAI, post: Callable[..., httpx.Response]) -> None:
    post({"text": "a", "queueRequest": True})
    post({"text": "b", "queueRequest": "true"})
    assert found(account) == [("queue-in-body", "error")]
    assert shown(account, "queue-in-body") == ["run", "run"]


def test_a_wish_for_the_queue_in_both_places_is_no_fault(
    account: WorkersAI, post: Callable[..., httpx.Response]
) -> None:
    post({"requests": ITEMS, "queueRequest": True}, "?queueRequest=true")
    assert found(account) == []


def test_a_bare_body_in_the_queue(account: WorkersAI, post: Callable[..., httpx.Response]) -> None:
    post({"prompt": "a"}, "?queueRequest=true", LLAMA)
    assert found(account) == [("bare-body", "warning")]


def test_a_bare_body_outside_the_queue_is_no_fault(
    account: WorkersAI, post: Callable[..., httpx.Response]
) -> None:
    post({"prompt": "a"}, "", LLAMA)
    assert found(account) == []


def test_a_reference_inside_contexts(account: WorkersAI, client: Client) -> None:
    client.submit(BGE_M3, [{"query": "a", "contexts": [{"text": "b", "external_reference": "row-1"}]}])
    assert found(account) == [("reference-in-contexts", "warning")]


def test_a_reference_on_the_request_is_no_fault(account: WorkersAI, client: Client) -> None:
    client.submit(BGE_M3, [{"query": "a", "contexts": [{"text": "b"}], "external_reference": "row-1"}])
    assert found(account) == []


@pytest.mark.parametrize(("limit", "findings"), [(110, ["near-limit"]), (111, [])], ids=["90.9 %", "89.2 %"])
def test_a_body_near_its_limit_is_a_note(
    account: WorkersAI, client: Client, limit: int, findings: list[str]
) -> None:
    frame = len('{"requests":[{"text":""}]}')
    account.settings.patch(limits={"payload_bytes": limit})
    client.submit(BGE_M3, [{"text": "x" * (99 - frame)}])
    assert [finding.code for finding in account.verdict().findings] == findings
    assert account.verdict().clean


def test_a_finished_batch_that_nobody_collected(account: WorkersAI, client: Client) -> None:
    account.script = TIMED
    handle = client.submit(BGE_M3, ITEMS)
    client.poll(handle)
    assert found(account) == []
    account.clock.advance(60)
    assert found(account) == [("never-collected", "warning")]
    assert shown(account, "never-collected") == ["submit"]
    client.poll(handle)
    assert found(account) == []


def test_a_failed_batch_that_nobody_asked_after(account: WorkersAI, client: Client) -> None:
    account.script = "queued:20s, failed"
    client.submit(BGE_M3, ITEMS)
    account.clock.advance(20)
    assert found(account) == [("never-collected", "warning")]


@pytest.mark.parametrize("collected", [False, True])
def test_an_expired_batch_was_collected_or_not(account: WorkersAI, client: Client, collected: bool) -> None:
    account.script = "instant"
    handle = client.submit(BGE_M3, ITEMS)
    if collected:
        client.poll(handle)
    account.clock.advance("25h")
    assert found(account) == ([] if collected else [("never-collected", "warning")])


def test_polling_under_another_model(account: WorkersAI, client: Client) -> None:
    handle = client.submit(BGE_M3, ITEMS)
    with pytest.raises(WorkersAIError):
        client.poll(Handle(account.account_id, BGE_BASE, handle.request_id))
    assert found(account) == [("polled-other-model", "error")]
    client.poll(handle)
    assert shown(account, "polled-other-model") == ["poll"]


def test_an_id_that_nobody_knows_is_not_under_another_model(account: WorkersAI, client: Client) -> None:
    with pytest.raises(WorkersAIError):
        client.poll(Handle(account.account_id, BGE_BASE, "00000000-0000-4000-8000-000000000000"))
    assert found(account) == []


def test_a_verdict_that_is_not_clean_says_what_to_do_the_gravest_first(
    account: WorkersAI, post: Callable[..., httpx.Response]
) -> None:
    account.settings.patch(limits={"body_bytes": 34})
    post({"prompt": "a"}, "?queueRequest=true", LLAMA)
    post({"text": "a", "queueRequest": True})
    verdict = account.verdict()
    assert not verdict.clean
    assert [finding.severity for finding in verdict.findings] == ["error", "warning", "note"]
    with pytest.raises(AssertionError) as raised:
        verdict.assert_clean()
    first, *rest = str(raised.value).splitlines()
    assert first == "the verdict on the client is not clean:"
    assert [line.split(":")[0] for line in rest] == ["  error queue-in-body", "  warning bare-body"]
    assert "?queueRequest=true" in rest[0]


def test_a_verdict_is_one_account_s_unless_all_are_meant(
    server: Emulator, account: WorkersAI, post: Callable[..., httpx.Response]
) -> None:
    post({"text": "a", "queueRequest": True})
    other = server.account(fresh_account(5, account.account_id))
    assert other.verdict().clean
    assert not server.verdict().clean
    account.requests.clear()
    assert account.verdict().clean


def test_polling_on_after_a_result_that_did_not_arrive_is_no_fault(
    account: WorkersAI, client: Client
) -> None:
    account.script = "instant"
    handle = client.submit(BGE_M3, ITEMS)
    account.rules.add(match={"operation": "poll"}, effect={"transport": "truncate"}, times=1)
    with pytest.raises(TransportError):
        client.poll(handle)
    client.poll(handle)
    assert found(account) == []


def test_submitting_again_after_a_reply_that_did_not_arrive(account: WorkersAI, client: Client) -> None:
    account.script = "instant"
    account.rules.add(match={"operation": "submit"}, effect={"transport": "reset-after"}, times=1)
    with pytest.raises(TransportError):
        client.submit(BGE_M3, ITEMS)
    client.poll(client.submit(BGE_M3, ITEMS))
    assert found(account) == [("resubmitted", "error"), ("never-collected", "warning")]
    assert account.verdict().findings[0].evidence.endswith("though its reply was lost")
