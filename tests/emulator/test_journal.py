"""The journal: what is kept of each exchange, how it is found again, and that it stays within its bounds."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import TYPE_CHECKING

import cloudflare
import httpx
import pytest

from workersai_client import Client, InvalidRequest, RateLimited, TransportError
from workersai_emulator import Emulator, WorkersAI
from workersai_emulator.api.exchange import Exchange
from workersai_emulator.api.observing import client_of
from workersai_emulator.clock import system_now
from workersai_emulator.ids import fresh_account
from workersai_emulator.journal import ENTRY_BYTES, Filter, MemoryJournal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BGE_M3 = "@cf/baai/bge-m3"
ACCOUNT = "ab" * 16
OTHER = "cd" * 16


@pytest.fixture(scope="module")
def server() -> Iterator[Emulator]:
    with Emulator(seed=1) as emulator:
        yield emulator


@pytest.fixture
def account(server: Emulator, request: pytest.FixtureRequest) -> WorkersAI:
    return server.account(fresh_account(2, request.node.nodeid))


@pytest.fixture
def client(account: WorkersAI) -> Iterator[Client]:
    with Client(account.account_id, account.token, account.base_url, max_retries=0) as made:
        yield made


@pytest.fixture
def send(account: WorkersAI) -> Iterator[Callable[..., httpx.Response]]:
    """POST a body to bge-m3, or to a path."""
    with httpx.Client(base_url=account.url, headers={"authorization": "Bearer a-secret"}) as http:

        def post(body: object, query: str = "", path: str = "", **headers: str) -> httpx.Response:
            target = path or f"/client/v4/accounts/{account.account_id}/ai/run/{BGE_M3}{query}"
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            return http.post(target, content=content, headers=headers)

        yield post


def over(account_id: str = ACCOUNT, **known: object) -> Exchange:
    """An exchange that is over."""
    return Exchange("POST", "/path", 0.0, account_id=account_id, **known)  # type: ignore[arg-type]


def test_a_submit_and_its_poll_are_told_with_all_that_is_known(account: WorkersAI, client: Client) -> None:
    noon = datetime(2126, 11, 29, 12, tzinfo=UTC)
    account.clock.freeze()
    account.clock.set(noon)
    before = system_now()
    handle = client.submit(BGE_M3, [{"text": "orange cloud"}])
    account.clock.advance(30)
    client.poll(handle)
    submit, poll = account.requests.list()

    assert (submit.operation, submit.model, submit.status, submit.code) == ("submit", BGE_M3, 200, None)
    assert (submit.state, submit.request_id, submit.why) == ("queued", handle.request_id, "")
    assert (submit.dialect, submit.method, submit.client) == ("rest", "POST", "workersai-client")
    assert submit.path == f"/client/v4/accounts/{account.account_id}/ai/run/{BGE_M3}"
    assert submit.body_bytes == len('{"requests":[{"text":"orange cloud"}]}')
    assert (submit.limit_share, submit.clock) == (0.0, noon)
    assert before - 0.001 <= submit.time.timestamp() <= system_now()
    assert 0 < submit.duration_ms < 30_000
    assert (poll.operation, poll.state, poll.request_id, poll.digest) == (
        "poll",
        "queued",
        handle.request_id,
        "",
    )
    assert (poll.seq, poll.clock) == (submit.seq + 1, noon + timedelta(seconds=30))


def test_a_refusal_is_told_with_its_code_and_where_in_the_body_it_is_about(
    account: WorkersAI, client: Client
) -> None:
    with pytest.raises(InvalidRequest):
        client.submit("@cf/baai/bge-base-en-v1.5", [{"text": "a"}, {"pooling": "cls"}])
    (refused,) = account.requests.list()
    assert (refused.operation, refused.status, refused.code) == ("submit", 400, 5006)
    assert "/requests/1" in refused.why


def test_a_refusal_that_asks_for_a_pause_is_told_with_it(account: WorkersAI, client: Client) -> None:
    account.fail("run", 3040, retry_after=2)
    with pytest.raises(RateLimited):
        client.run(BGE_M3, {"text": "a"})
    (refused,) = account.requests.list()
    assert (refused.status, refused.code, refused.retry_after) == (429, 3040, 2.0)


@pytest.mark.parametrize(
    ("body", "query", "slips"),
    [
        ({"text": "a", "queueRequest": True}, "", ("queue-in-body",)),
        ({"text": "a", "queueRequest": True}, "?queueRequest=true", ("bare-body",)),
        ({"text": "a"}, "?queueRequest=true", ("bare-body",)),
        (
            {
                "requests": [
                    {"query": "a", "contexts": [{"text": "b"}, {"text": "c", "external_reference": "r"}]}
                ]
            },
            "?queueRequest=true",
            ("reference-in-contexts",),
        ),
        ({"contexts": [{"text": "c", "external_reference": "r"}]}, "", ("reference-in-contexts",)),
        ({"requests": [{"text": "a", "external_reference": "r"}]}, "?queueRequest=true", ()),
        ({"text": "a"}, "", ()),
    ],
    ids=[
        "queue in body",
        "queue in both",
        "bare",
        "reference within",
        "within a run",
        "reference beside",
        "run",
    ],
)
def test_what_its_sender_will_be_sorry_for_is_told(
    account: WorkersAI, send: Callable[..., httpx.Response], body: object, query: str, slips: tuple[str, ...]
) -> None:
    assert send(body, query).status_code == 200
    assert account.requests.list()[0].slips == slips


def test_neither_bodies_nor_credentials_are_kept(
    server: Emulator, account: WorkersAI, send: Callable[..., httpx.Response]
) -> None:
    send({"text": "a private text"})
    told = json.dumps(server.plane.ask("GET", "requests", {"account_id": account.account_id}))
    assert "a private text" not in told
    assert "a-secret" not in told


def test_the_same_payload_has_the_same_digest_and_another_another(account: WorkersAI, client: Client) -> None:
    for text in ("a", "b", "a"):
        client.run(BGE_M3, {"text": text})
    first, other, again = (exchange.digest for exchange in account.requests.list())
    assert first == again != other


def test_the_rule_that_decided_and_the_one_that_nearly_did_are_told(
    account: WorkersAI, client: Client
) -> None:
    rule = account.fail("run", 3040)
    handle = client.submit(BGE_M3, [{"text": "a"}])
    with pytest.raises(RateLimited):
        client.run(BGE_M3, {"text": "a"})
    client.poll(handle)
    account.rules.clear()
    client.poll(handle)
    told = [(exchange.rule, exchange.nearly) for exchange in account.requests.list()]
    assert told == [
        ("", f"{rule.id} is for operation run, not submit"),
        (rule.id, ""),
        ("", f"{rule.id} is for operation run, not poll"),
        ("", ""),
    ]


def test_a_reply_that_is_kept_from_arriving_is_told_as_spoiled(account: WorkersAI, client: Client) -> None:
    account.rules.add(effect={"transport": "reset-before"}, times=1)
    with pytest.raises(TransportError):
        client.run(BGE_M3, {"text": "a"})
    client.run(BGE_M3, {"text": "a"})
    assert [exchange.spoiled for exchange in account.requests.list()] == [True, False]


def test_a_body_too_large_to_be_looked_at_in_the_loop_is_told_too(
    account: WorkersAI, send: Callable[..., httpx.Response]
) -> None:
    requests = [{"text": "x" * 1000, "contexts": [{"external_reference": 1}]} for _ in range(1000)]
    send({"requests": requests}, "?queueRequest=true")
    (submit,) = account.requests.list()
    assert submit.slips == ("reference-in-contexts",)
    assert submit.limit_share == pytest.approx(submit.body_bytes / 10_000_000, abs=1e-4)
    assert submit.body_bytes > 1_000_000


def test_the_worker_s_exchanges_are_told_as_its_own(
    account: WorkersAI, send: Callable[..., httpx.Response]
) -> None:
    named = {"x-emulator-account": account.account_id, "user-agent": "curl/8.5.0"}
    account.fail("poll", 3040)
    request_id = send({"texts": ["a"]}, path="/batch", **named).json()["request_id"]
    httpx.get(f"{account.url}/batch/{request_id}", headers=named)
    submit, poll = account.requests.list()
    assert (submit.dialect, submit.operation, submit.client) == ("worker", "submit", "curl")
    assert (submit.request_id, submit.state) == (request_id, "queued")
    assert (poll.request_id, poll.status, poll.code) == (request_id, 502, 3040)


def test_what_has_no_account_is_told_among_all(server: Emulator, send: Callable[..., httpx.Response]) -> None:
    assert send({}, path="/client/v4/nowhere").status_code == 400
    last = server.requests.list()[-1]
    assert (last.path, last.status, last.code, last.account_id) == ("/client/v4/nowhere", 400, 7000, "")
    assert last.clock == last.time


def test_the_control_plane_is_not_told(account: WorkersAI, server: Emulator) -> None:
    account.clock.now()
    assert account.requests.list() == []
    assert not [exchange for exchange in server.requests.list() if "__emulator__" in exchange.path]


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("Cloudflare/Python 5.9.0", "cloudflare-python"),
        ("AsyncCloudflare/Python 5.9.0", "cloudflare-python"),
        ("Cloudflare/JS 7.3.0", "cloudflare-npm"),
        ("OpenAI/Python 3.57.0", "openai-python"),
        ("OpenAI/JS 6.49.0", "openai-npm"),
        ("litellm/1.110.2", "litellm"),
        ("python-httpx/0.28.1", "httpx"),
        ("python-requests/2.34.2", "requests"),
        ("Python/3.11 aiohttp/3.14.5", "aiohttp"),
        ("Python-urllib/3.11", "urllib"),
        ("node", "node"),
        ("undici", "node"),
        ("workersai-client/0.1.0", "workersai-client"),
        (None, "unknown"),
        ("our-own-thing/1.0 " + "x" * 100, "our-own-thing/1.0 " + "x" * 22),
    ],
)
def test_the_client_is_guessed_from_its_user_agent(agent: str | None, name: str) -> None:
    assert client_of(agent) == name


def test_the_official_sdk_is_known(account: WorkersAI) -> None:
    with cloudflare.Cloudflare(api_token="t", base_url=account.base_url) as sdk:
        sdk.ai.run(BGE_M3, account_id=account.account_id, text="a")
    assert [exchange.client for exchange in account.requests.list()] == ["cloudflare-python"]


def test_filters_take_what_they_say_and_together_what_all_say(account: WorkersAI, client: Client) -> None:
    account.fail("run", 3040)
    with pytest.raises(RateLimited):
        client.run(BGE_M3, {"text": "a"})
    client.run(BGE_M3, {"text": "a"})
    handle = client.submit(BGE_M3, [{"text": "a"}])
    client.poll(handle)
    refused, run, submit, poll = account.requests.list()

    def seqs(**filters: object) -> list[int]:
        return [exchange.seq for exchange in account.requests.list(**filters)]

    assert seqs(operation="run") == [refused.seq, run.seq]
    assert seqs(operation="run", status=200) == [run.seq]
    assert seqs(code=3040) == [refused.seq]
    assert seqs(model="@cf/meta/m2m100-1.2b") == []
    assert seqs(since=run.seq) == [submit.seq, poll.seq]
    assert seqs(since=submit.time) == [submit.seq, poll.seq]
    assert seqs(since=poll.time + timedelta(seconds=1)) == []


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"status": "4xx"}, "status: '4xx' is not a number"),
        ({"since": "yesterday"}, "since: 'yesterday' is neither a seq nor an RFC 3339 time"),
        ({"wait_for": "many"}, "wait_for: 'many' is not a number"),
        ({"timeout": 1}, "timeout goes with wait_for"),
        ({"wait_for": 1, "timeout": "soon"}, "'soon' is not a duration"),
        ({"operatoin": "poll"}, "there is no 'operatoin' here; there are operation, model, status"),
    ],
    ids=["status", "since", "wait_for", "timeout alone", "timeout", "misspelt"],
)
def test_a_filter_that_cannot_be_is_one_line_that_names_it(
    server: Emulator, said: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ValueError, match="^" + complaint.replace("(", r"\(")):
        server.plane.ask("GET", "requests", said)


def test_waiting_ends_as_soon_as_so_many_have_come(account: WorkersAI, client: Client) -> None:
    client.run(BGE_M3, {"text": "a"})
    handle = client.submit(BGE_M3, [{"text": "a"}])

    def poll_thrice() -> None:
        for _ in range(3):
            client.poll(handle)

    polling = Thread(target=poll_thrice)
    polling.start()
    polls = account.requests.wait_for(3, operation="poll", timeout=60)
    polling.join()
    assert [poll.state for poll in polls] == ["queued", "running", "done"]


def test_waiting_for_what_does_not_come_ends_in_time_and_says_what_came(
    account: WorkersAI, client: Client
) -> None:
    client.run(BGE_M3, {"text": "a"})
    with pytest.raises(TimeoutError, match=r"^1 of 2 requests \(operation=run\) within 0\.05 s$"):
        account.requests.wait_for(2, operation="run", timeout=0.05)
    assert account.requests.wait_for(1, timeout=0) == account.requests.list()


def test_clearing_and_resetting_forget_one_account_and_no_other(
    server: Emulator, account: WorkersAI, client: Client
) -> None:
    other = server.account(fresh_account(3, account.account_id))
    with Client(other.account_id, other.token, other.base_url) as others:
        others.run(BGE_M3, {"text": "a"})
    for forget in (account.requests.clear, account.reset):
        client.run(BGE_M3, {"text": "a"})
        forget()
        assert account.requests.list() == []
    assert len(other.requests.list()) == 1


async def test_accounts_are_found_apart_and_together_in_the_order_of_all() -> None:
    journal = MemoryJournal()
    for account_id in (ACCOUNT, OTHER, ACCOUNT):
        await journal.add(over(account_id))
    assert [exchange.seq for exchange in await journal.find(ACCOUNT)] == [1, 3]
    assert [exchange.seq for exchange in await journal.find(None)] == [1, 2, 3]
    await journal.clear(ACCOUNT)
    assert [exchange.seq for exchange in await journal.find(None)] == [2]
    await journal.add(over())
    assert [exchange.seq for exchange in await journal.find(ACCOUNT)] == [4]


async def test_beyond_its_number_the_oldest_of_all_accounts_goes() -> None:
    journal = MemoryJournal(max_exchanges=3)
    for account_id in (OTHER, ACCOUNT, ACCOUNT, ACCOUNT):
        await journal.add(over(account_id))
    assert (await journal.find(OTHER), len(journal)) == ([], 3)


async def test_beyond_its_bytes_the_oldest_goes_and_what_is_cleared_makes_room() -> None:
    journal = MemoryJournal(max_bytes=3 * (ENTRY_BYTES + 1000))
    for _ in range(5):
        await journal.add(over(why="x" * 900))
    assert [exchange.seq for exchange in await journal.find(None)] == [3, 4, 5]
    await journal.clear(ACCOUNT)
    for _ in range(3):
        await journal.add(over(OTHER, why="x" * 900))
    assert len(journal) == 3


@pytest.mark.parametrize("member", ["path", "model", "why", "nearly"])
async def test_a_client_s_long_texts_are_cut(member: str) -> None:
    journal = MemoryJournal()
    long = over()
    setattr(long, member, "x" * 10_000_000)
    await journal.add(long)
    (kept,) = await journal.find(None)
    assert getattr(kept, member) == "x" * 3999 + "…"
    assert 4000 <= journal.size - ENTRY_BYTES < 4100


async def test_what_is_reckoned_is_what_it_takes() -> None:
    journal = MemoryJournal()
    tracemalloc.start()
    try:
        for number in range(5000):
            known = {"request_id": f"{number:036}", "digest": f"{number:016}", "why": f"{number:0100}"}
            await journal.add(
                over(
                    f"{number % 10:032}",
                    seconds=number / 7,
                    clock=number / 3,
                    limit_share=number / 9,
                    **known,
                )
            )
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 5000 * (ENTRY_BYTES + 100 + len("/path"))


async def test_waiters_see_only_what_they_asked_for() -> None:
    journal = MemoryJournal()
    waiting = [
        asyncio.create_task(journal.wait(ACCOUNT, Filter(operation="poll"), 2, 60)),
        asyncio.create_task(journal.wait(None, Filter(), 3, 60)),
    ]
    for exchange in (over(operation="poll"), over(OTHER, operation="poll"), over(operation="poll")):
        await journal.add(exchange)
    first, second = await asyncio.gather(*waiting)
    assert [exchange.seq for exchange in first] == [1, 3]
    assert [exchange.seq for exchange in second] == [1, 2, 3]
