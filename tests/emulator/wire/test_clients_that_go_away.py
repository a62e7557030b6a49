"""A client that dies in any phase of an exchange leaves the server whole."""

from __future__ import annotations

import json
import socket
import struct
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx
import pytest

from workersai_emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RUN = "/client/v4/accounts/0123456789abcdef0123456789abcdef/ai/run/@cf/baai/bge-m3?queueRequest=true"


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator(script="instant") as running:
        yield running


def request(message: object) -> bytes:
    body = json.dumps(message).encode()
    head = f"POST {RUN} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def leave(connection: socket.socket) -> None:
    connection.close()


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


LARGE = {"requests": [{"text": f"text number {number} of many"} for number in range(400)]}
SUBMIT = request(LARGE)
PHASES = {
    "connected": (b"", 0),
    "within the request line": (SUBMIT[:20], 0),
    "within the headers": (SUBMIT[:90], 0),
    "before the body": (SUBMIT[: SUBMIT.index(b"\r\n\r\n") + 4], 0),
    "within the body": (SUBMIT[: len(SUBMIT) // 2], 0),
    "before the last byte": (SUBMIT[:-1], 0),
    "before the reply": (SUBMIT, 0),
    "within the reply": (SUBMIT, 10),
    "between two exchanges": (SUBMIT, 4096),
}


@pytest.mark.parametrize("going", [leave, reset], ids=["closed", "reset"])
@pytest.mark.parametrize(("sent", "read"), PHASES.values(), ids=PHASES)
def test_the_server_is_whole_after(
    emulator: Emulator, sent: bytes, read: int, going: Callable[[socket.socket], None]
) -> None:
    emulator.reset()
    address = urlsplit(emulator.url)
    for _ in range(5):
        connection = socket.create_connection((address.hostname, address.port))
        connection.sendall(sent)
        if read:
            connection.recv(read)
        going(connection)
    _check_whole(emulator)
    # What was taken is a whole batch, however its client ended.
    assert {batch.items for batch in emulator.batches.list()} <= {1, 400}


@pytest.mark.parametrize("going", [leave, reset], ids=["closed", "reset"])
@pytest.mark.parametrize("read", [0, 1, 1000, 1_000_000], ids=lambda size: f"after {size} bytes")
def test_the_server_is_whole_after_a_download_that_is_given_up(
    emulator: Emulator, read: int, going: Callable[[socket.socket], None]
) -> None:
    emulator.reset()
    queued = httpx.post(emulator.url + RUN, json=LARGE, headers={"Authorization": "Bearer t"}).json()
    address = urlsplit(emulator.url)
    for _ in range(3):
        connection = socket.create_connection((address.hostname, address.port))
        connection.sendall(request({"request_id": queued["result"]["request_id"]}))
        left = read
        while left > 0:
            left -= len(connection.recv(min(left, 65536)))
        going(connection)
    _check_whole(emulator)
    again = httpx.post(
        emulator.url + RUN,
        json={"request_id": queued["result"]["request_id"]},
        headers={"Authorization": "Bearer t"},
        timeout=30,
    )
    assert len(again.json()["result"]["responses"]) == 400


def _check_whole(emulator: Emulator) -> None:
    assert emulator.plane.ask("GET", "health", {})["status"] == "ok"
    queued = httpx.post(
        emulator.url + RUN, json={"requests": [{"text": "a"}]}, headers={"Authorization": "Bearer t"}
    )
    done = httpx.post(
        emulator.url + RUN,
        json={"request_id": queued.json()["result"]["request_id"]},
        headers={"Authorization": "Bearer t"},
    )
    assert [item["id"] for item in done.json()["result"]["responses"]] == [0]
