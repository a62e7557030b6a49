"""`{"transport": …}`: the connection is spoiled, as a bare socket, our client and the official SDK see it."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import nullcontext
from typing import Any

import cloudflare
import httpx
import pytest

from workersai_client import AsyncClient, Client, TransportError
from workersai_emulator import Emulator
from workersai_emulator.spoiling import DRIPS, GARBAGE

M3 = "@cf/baai/bge-m3"
RUN = {"text": "a"}
SUBMIT = {"requests": [{"text": "a"}]}
SPOILINGS = ["reset-before", "reset-after", "truncate", "garbage", "slow", "hang", "wrong-length"]
MANY = [f"text {number}" for number in range(100)]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that spoiled connections make, each over after a turn of the loop."""
    made: list[float] = []

    async def pause(seconds: float) -> None:
        made.append(seconds)
        await asyncio.sleep(0)  # noqa: TID251 - in place of the emulator's own pause

    monkeypatch.setattr("workersai_emulator.spoiling.pause", pause)
    return made


@pytest.fixture(params=["small", "streamed"])
def reply(request: pytest.FixtureRequest, world: Any) -> tuple[Any, bytes]:
    """A request with the body of its reply: one that is written whole, and one that is streamed."""
    body: Any = RUN
    if request.param == "streamed":
        body = {"request_id": world.submit(*MANY)}
    plain = world.http.post(world.target(), json=body)
    assert ("transfer-encoding" in plain.headers) == (request.param == "streamed")
    return body, plain.content


def head_and_body(data: bytes) -> tuple[dict[str, str], bytes]:
    """The headers, in lower case, and what came of the body."""
    head, end, body = data.partition(b"\r\n\r\n")
    assert end
    first, *lines = head.decode().split("\r\n")
    assert first == "HTTP/1.1 200 OK"
    return {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}, body


@pytest.mark.parametrize("spoiling", ["reset-before", "reset-after"])
def test_reset_gives_not_one_byte(world: Any, reply: tuple[Any, bytes], spoiling: str) -> None:
    world.rule({"transport": spoiling})

    assert world.bytes_of(reply[0]) == (b"", "reset")


def test_truncated_reply_promises_more_than_comes(world: Any, reply: tuple[Any, bytes]) -> None:
    body, whole = reply
    world.rule({"transport": "truncate"})

    received, ending = world.bytes_of(body)

    headers, came = head_and_body(received)
    assert (int(headers["content-length"]), headers["connection"]) == (len(whole), "close")
    assert came == whole[: len(whole) // 2]
    assert ending == "end"


def test_wrong_length_promises_more_than_there_is(world: Any, reply: tuple[Any, bytes]) -> None:
    body, whole = reply
    world.rule({"transport": "wrong-length"})

    headers, came = head_and_body(world.bytes_of(body)[0])

    assert came == whole
    assert int(headers["content-length"]) > len(whole)


def test_garbage_is_no_http(world: Any, reply: tuple[Any, bytes]) -> None:
    world.rule({"transport": "garbage"})

    received, ending = world.bytes_of(reply[0])

    assert (received, ending) == (GARBAGE, "end")
    assert not received.startswith(b"HTTP/")


def test_slow_reply_drips_and_is_whole(world: Any, quick: list[float], reply: tuple[Any, bytes]) -> None:
    body, whole = reply
    world.rule({"transport": "slow"})

    headers, came = head_and_body(world.bytes_of(body)[0])

    assert (int(headers["content-length"]), came) == (len(whole), whole)
    assert len(quick) == DRIPS


def test_slow_reply_is_one_that_clients_take(world: Any, quick: list[float]) -> None:
    world.rule({"transport": "slow"})

    assert world.client.run(M3, RUN)["shape"] == [1, 1024]
    assert world.sdk.ai.run(M3, account_id=world.id, text="a")["shape"] == [1, 1024]
    assert len(quick) == 2 * DRIPS


@pytest.mark.parametrize("spoiling", ["slow", "truncate", "wrong-length"])
def test_refusal_is_spoiled_as_an_answer_is(world: Any, quick: list[float], spoiling: str) -> None:
    plain = world.send({})
    world.rule({"transport": spoiling})

    received, _ = world.bytes_of({})

    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert body[:40] == plain.content[:40]


BROKEN = {
    "reset-before": "ReadError|RemoteProtocolError",
    "reset-after": "ReadError|RemoteProtocolError",
    "truncate": "RemoteProtocolError",
    "garbage": "RemoteProtocolError",
    "wrong-length": "RemoteProtocolError",
    "hang": "ReadTimeout",
}


def impatient(world: Any, **options: Any) -> Client:
    return Client(world.id, "a", world.emulator.base_url, timeout=0.3, **{"max_retries": 0, **options})


@pytest.mark.parametrize(("spoiling", "reason"), BROKEN.items(), ids=list(BROKEN))
def test_our_client_has_no_reply_and_may_try_again(
    world: Any, reply: tuple[Any, bytes], spoiling: str, reason: str
) -> None:
    body, _ = reply
    world.rule({"transport": spoiling})

    with impatient(world) as client, pytest.raises(TransportError, match=reason) as caught:
        client.run(M3, body)

    assert (caught.value.retryable, caught.value.may_have_arrived, caught.value.status) == (True, True, None)


@pytest.mark.parametrize(("spoiling", "reason"), BROKEN.items(), ids=list(BROKEN))
async def test_asynchronous_client_has_no_reply_either(world: Any, spoiling: str, reason: str) -> None:
    world.rule({"transport": spoiling})

    async with AsyncClient(world.id, "a", world.emulator.base_url, timeout=0.3, max_retries=0) as client:
        with pytest.raises(TransportError, match=reason):
            await client.run(M3, RUN)


@pytest.mark.parametrize("spoiling", list(BROKEN))
def test_official_sdk_has_a_connection_error(world: Any, spoiling: str) -> None:
    world.rule({"transport": spoiling})

    with pytest.raises((cloudflare.APIConnectionError, httpx.RemoteProtocolError)):
        world.sdk.with_options(timeout=0.3).ai.run(M3, account_id=world.id, text="a")


@pytest.mark.parametrize("spoiling", list(BROKEN))
def test_client_that_tries_again_gets_past_it(world: Any, spoiling: str) -> None:
    world.rule({"transport": spoiling}, times=2)

    with impatient(world, max_retries=2, sleep=lambda seconds: None) as client:
        assert client.run(M3, RUN)["shape"] == [1, 1024]

    assert world.fired() == [2]


@pytest.mark.parametrize(
    ("spoiling", "queued"),
    [
        ("reset-before", 0),
        ("hang", 0),
        ("reset-after", 1),
        ("truncate", 1),
        ("garbage", 1),
        ("wrong-length", 1),
        ("slow", 1),
    ],
)
def test_submit_was_taken_or_not(world: Any, quick: list[float], spoiling: str, queued: int) -> None:
    world.rule({"transport": spoiling})

    if spoiling == "hang":
        with pytest.raises(httpx.ReadTimeout):
            world.http.post(world.target(queue=True), json=SUBMIT, timeout=0.1)
    else:
        world.bytes_of(SUBMIT, queue=True)

    assert world.batches() == queued


@pytest.mark.parametrize(("spoiling", "batches"), [("reset-after", 2), ("reset-before", 1), ("truncate", 2)])
def test_submit_that_is_repeated_may_be_a_second_batch(world: Any, spoiling: str, batches: int) -> None:
    world.rule({"transport": spoiling}, {"operation": "submit"}, times=1)

    with impatient(world, max_retries=1, sleep=lambda seconds: None) as client:
        handle = client.submit(M3, [RUN], allow_duplicates=True)
        assert len(client.wait(handle, timeout=20, interval=0.01).items) == 1

    assert world.batches() == batches


def test_submit_in_doubt_is_not_repeated_unasked(world: Any) -> None:
    world.rule({"transport": "reset-after"}, {"operation": "submit"}, times=1)

    with impatient(world, max_retries=3) as client, pytest.raises(TransportError):
        client.submit(M3, [RUN])

    assert world.batches() == 1


def test_poll_whose_reply_is_lost_was_counted(world: Any) -> None:
    wanted = world.submit("a", script="queued:1, done")
    world.rule({"transport": "reset-after"}, times=1)

    world.bytes_of({"request_id": wanted})

    assert "responses" in world.poll(wanted).json()["result"]


def test_poll_that_was_reset_before_was_not(world: Any) -> None:
    wanted = world.submit("a", script="queued:1, done")
    world.rule({"transport": "reset-before"}, times=1)

    world.bytes_of({"request_id": wanted})

    assert world.poll(wanted).json()["result"]["status"] == "queued"


@pytest.mark.parametrize("spoiling", SPOILINGS)
def test_nothing_is_left_of_a_spoiled_exchange(
    world: Any, tasks: Any, quick: list[float], reply: tuple[Any, bytes], spoiling: str
) -> None:
    world.rule({"transport": spoiling}, times=3)

    for _ in range(3):
        broken = pytest.raises(TransportError) if spoiling in BROKEN else nullcontext()
        with impatient(world) as client, broken:
            client.run(M3, reply[0])

    assert world.fired() == [3]
    assert tasks.left() == []
    assert world.client.run(M3, RUN)["shape"] == [1, 1024]


def test_others_are_served_while_one_hangs(world: Any) -> None:
    world.rule({"transport": "hang"}, times=1)
    port = int(world.emulator.url.rpartition(":")[2])
    content = b'{"text":"a"}'
    head = (
        f"POST {world.target()} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\nContent-Length: 12\r\n\r\n"
    )

    with socket.create_connection(("127.0.0.1", port), timeout=0.2) as hanging:
        hanging.sendall(head.encode() + content)
        with pytest.raises(TimeoutError):
            hanging.recv(1)
        assert world.fired() == [1]
        assert world.client.run(M3, RUN)["shape"] == [1, 1024]


def test_emulator_stops_with_a_connection_that_hangs() -> None:
    emulator = Emulator(seed=1).start()
    emulator.rules.add(effect={"transport": "hang"})
    url = f"{emulator.base_url}/accounts/{emulator.account_id}/ai/run/{M3}"
    ended: list[str] = []

    def ask() -> None:
        try:
            httpx.post(url, json=RUN, headers={"Authorization": "Bearer a"}, timeout=30)
        except httpx.RequestError as error:
            ended.append(type(error).__name__)

    asking = threading.Thread(target=ask)
    asking.start()
    while not emulator.rules.list()[0].fired:
        pass
    emulator.stop()
    asking.join(10)

    assert ended in (["RemoteProtocolError"], ["ReadError"])
