"""`serve`, whose event loop is not the one of tests in a thread, spoils connections as rules ask for it."""

from __future__ import annotations

import json
import socket
import struct
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest

from workersai_emulator.effects import SPOILINGS
from workersai_emulator.ids import DEVELOPMENT_ACCOUNT
from workersai_emulator.spoiling import GARBAGE

if TYPE_CHECKING:
    from collections.abc import Callable

TARGET = f"/client/v4/accounts/{DEVELOPMENT_ACCOUNT}/ai/run/@cf/baai/bge-m3"
BODY = b'{"text": "orange cloud"}'
HEAD = (
    f"POST {TARGET} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a\r\n"
    f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n"
).encode()


def received(url: str, *, patience: float = 20) -> tuple[bytes, str]:
    """What a bare socket gets for a run, and how that ends: `end`, `reset`, or `silence`."""
    port = urlsplit(url).port
    got = b""
    with socket.create_connection(("127.0.0.1", port), timeout=patience) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
        connection.sendall(HEAD + BODY)
        try:
            while piece := connection.recv(65536):
                got += piece
        except ConnectionResetError:
            return got, "reset"
        except TimeoutError:
            return got, "silence"
    return got, "end"


def spoil(url: str, spoiling: str) -> None:
    rule = {"match": {}, "times": 1, "effect": {"transport": spoiling}}
    assert httpx.post(f"{url}/__emulator__/rules", json=rule).status_code == 200


def length_and_body(got: bytes) -> tuple[int, bytes]:
    head, _, body = got.partition(b"\r\n\r\n")
    lengths = [
        line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
    ]
    return int(lengths[0]), body


def test_every_spoiling_does_what_it_says(serve: Callable[..., Any]) -> None:
    with serve("--seed", "1") as process:
        whole = httpx.post(process.url + TARGET, content=BODY, headers={"authorization": "Bearer a"}).content
        seen = {}
        for spoiling in SPOILINGS:
            spoil(process.url, spoiling)
            seen[spoiling] = received(process.url, patience=0.5 if spoiling == "hang" else 20)
        after = received(process.url, patience=0.5)  # kept alive, so it ends in silence
        journal = httpx.get(f"{process.url}/__emulator__/requests").json()["requests"]

    assert seen["reset-before"] == seen["reset-after"] == (b"", "reset")
    assert seen["hang"] == (b"", "silence")
    assert seen["garbage"] == (GARBAGE, "end")
    for spoiling, told, came in (
        ("truncate", len(whole), whole[: len(whole) // 2]),
        ("wrong-length", len(whole) + 16, whole),
        ("slow", len(whole), whole),
    ):
        got, end = seen[spoiling]
        assert (end, *length_and_body(got)) == ("end", told, came), spoiling
    assert json.loads(after[0].partition(b"\r\n\r\n")[2]) == json.loads(whole)
    assert {exchange["status"] for exchange in journal} <= {0, 200}


@pytest.mark.parametrize("scenario", ["flaky-network", "duplicate-submit"])
def test_scenarios_of_bad_networks_end_in_nothing_that_is_a_fault(
    serve: Callable[..., Any], scenario: str
) -> None:
    with serve("--seed", "1", "--scenario", scenario) as process:
        ends = [received(process.url, patience=0.3) for _ in range(8)]

    assert all(b" 500 " not in got[:16] for got, _ in ends)
    if scenario == "flaky-network":
        assert {end for _, end in ends} >= {"reset", "silence"}
