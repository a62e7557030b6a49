"""Clients that take their time: one that gets nowhere is left, one that gets on is not, however slowly.

The server's patience is a tenth of a second where it is 5, and so on.
"""

from __future__ import annotations

import json
import select
import socket
from time import monotonic
from typing import TYPE_CHECKING

import pytest

from workersai_emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


RUN = "/client/v4/accounts/0123456789abcdef0123456789abcdef/ai/run/@cf/baai/bge-m3"
HEAD = f"POST {RUN}?queueRequest=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\n".encode()
PATIENCE = {
    "HEAD_SECONDS": 0.5,
    "IDLE_SECONDS": 0.5,
    "LOOK_SECONDS": 0.1,
    "LINGER_SECONDS": 0.5,
    "UNREAD_SECONDS": 0.5,
    "SLOWEST_BYTES_A_SECOND": 1_000,
}
#: Each is left within this, whatever else the machine does.
LEFT_WITHIN = 10.0


@pytest.fixture(scope="module")
def impatient() -> Iterator[Emulator]:
    with pytest.MonkeyPatch.context() as patch:
        for name, seconds in PATIENCE.items():
            patch.setattr(f"workersai_emulator.connection.{name}", seconds)
        with Emulator(seed=7, script="done") as running:
            yield running


def is_left(connection: socket.socket, drip: bytes, every: float = 0.05) -> bool:
    """Send a byte again and again, around and around, until the server closes; False when it never does."""
    until, sent = monotonic() + LEFT_WITHIN, 0
    while monotonic() < until:
        readable, _, _ = select.select([connection], [], [], every)
        try:
            if readable:
                if connection.recv(65536) == b"":
                    return True
            elif drip:
                connection.sendall(drip[sent % len(drip) :][:1])
                sent += 1
        except (ConnectionResetError, BrokenPipeError):
            return True
    return False


@pytest.mark.parametrize(
    ("first", "drip"),
    [
        (b"", b""),
        (b"", HEAD + b"X: y\r\n"),
        (b"", b"\r\n"),
        (b"GET / HT", b""),
        (HEAD, b"X-A: b\r\n"),
        (HEAD + b"Content-Length: 1000\r\n\r\n{", b""),
        (HEAD + b"Content-Length: 1000\r\n\r\n{", b" "),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1", b"; x=y"),
        (HEAD + b"Content-Encoding: gzip\r\nContent-Length: 1000\r\n\r\n\x1f\x8b", b"\x00"),
        (HEAD + b"Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n", b""),
    ],
    ids=[
        "says nothing",
        "a head a byte at a time",
        "blank lines",
        "part of a head",
        "headers without end",
        "part of a body",
        "a body a byte at a time",
        "a chunk a byte at a time",
        "a chunk's extension without end",
        "a packed body a byte at a time",
        "waits to go on and does not",
    ],
)
def test_a_client_that_gets_nowhere_is_left(
    impatient: Emulator, opened: Callable[..., socket.socket], first: bytes, drip: bytes
) -> None:
    with opened(impatient.url) as connection:
        connection.sendall(first)
        if b"Expect" in first:
            assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert is_left(connection, drip)
    assert impatient.batches.list() == []


def test_a_connection_between_two_exchanges_is_left_in_the_end(
    impatient: Emulator, opened: Callable[..., socket.socket]
) -> None:
    with opened(impatient.url) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK")
        assert is_left(connection, b"")


def test_an_upload_that_gets_on_slowly_goes_through(
    impatient: Emulator, opened: Callable[..., socket.socket]
) -> None:
    """At 50 kB/s it takes many times as long as anybody may take without getting on."""
    body = json.dumps({"requests": [{"text": "a", "external_reference": "x" * 40_000}]}).encode()
    with opened(impatient.url) as connection:
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body))
        for start in range(0, len(body), 1_000):
            readable, _, _ = select.select([connection], [], [], 0.02)
            assert not readable, connection.recv(1000)
            connection.sendall(body[start : start + 1_000])
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK")
    impatient.reset()


def large_reply(emulator: Emulator, opened: Callable[..., socket.socket]) -> socket.socket:
    """A connection with a small window, to which a reply of 20 MB is on its way."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(20)
    connection.connect(("127.0.0.1", int(emulator.url.rpartition(":")[2])))
    body = json.dumps({"requests": [{"text": str(number)} for number in range(2_000)]}).encode()
    connection.sendall(
        HEAD.replace(b"?queueRequest=true", b"") + b"Content-Length: %d\r\n\r\n" % len(body) + body
    )
    return connection


def test_a_client_that_does_not_read_its_reply_is_left(
    impatient: Emulator, opened: Callable[..., socket.socket]
) -> None:
    with large_reply(impatient, opened) as connection:
        gone, until = False, monotonic() + LEFT_WITHIN
        while not gone and monotonic() < until:
            select.select([], [], [], 0.1)
            # Nothing is read; the kernel says by itself that the other side has reset the connection.
            gone = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
    assert gone


def test_a_client_that_reads_its_reply_slowly_gets_on(
    impatient: Emulator, opened: Callable[..., socket.socket]
) -> None:
    with large_reply(impatient, opened) as connection:
        until = monotonic() + 1.2
        while monotonic() < until:
            assert connection.recv(50_000)
            select.select([], [], [], 0.05)


def test_nobody_else_waits_for_the_slow(impatient: Emulator, opened: Callable[..., socket.socket]) -> None:
    import httpx

    slow = [opened(impatient.url) for _ in range(200)]
    for connection in slow:
        connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\n{")

    reply = httpx.post(
        impatient.url + RUN, json={"text": "a"}, headers={"authorization": "Bearer t"}, timeout=10
    )

    assert reply.status_code == 200
    assert all(is_left(connection, b"") for connection in slow)
    for connection in slow:
        connection.close()


def test_what_is_documented_is_what_holds() -> None:
    from pathlib import Path

    from workersai_emulator import connection

    told = (Path(__file__).parents[2] / "SECURITY.md").read_text(encoding="utf-8")

    for name in ("HEAD_SECONDS", "IDLE_SECONDS", "UNREAD_SECONDS"):
        assert f"{getattr(connection, name):.0f} s" in told
    assert f"{connection.SLOWEST_BYTES_A_SECOND:,} bytes a second" in told
