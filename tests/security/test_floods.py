"""Floods: more headers, lines, names and connections than anybody needs, and no growth from any."""

from __future__ import annotations

import gc
import os
import tracemalloc
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
import pytest

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    import httpx

    from workersai_emulator import Emulator

HEAD = b"GET /__emulator__/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
CHUNKED = (
    b"POST /batch HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
)
BARE = (b"HTTP/1.1 400 Bad Request\r\n", b"HTTP/1.0 400 Bad Request\r\n")
FLOODS = {
    "129 headers": HEAD + b"X: y\r\n" * 129 + b"\r\n",
    "100,000 headers": HEAD + b"X: y\r\n" * 100_000 + b"\r\n",
    "a header of 9,000 bytes": HEAD + b"X: " + b"y" * 9_000 + b"\r\n\r\n",
    "a header's name of 9,000 bytes": HEAD + b"x" * 9_000 + b": y\r\n\r\n",
    "a header of a megabyte": HEAD + b"X: " + b"y" * 1_000_000 + b"\r\n\r\n",
    "a target of 9,000 bytes": b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a method of 9,000 bytes": b"G" * 9_000 + b" / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "no line at all": b"x" * 1_000_000,
    "a folded header": HEAD + b"X: y\r\n z\r\n\r\n",
    "a header without a name": HEAD + b": y\r\n\r\n",
    "a header with a blank in its name": HEAD + b"X Y: z\r\n\r\n",
    "two lengths": b"POST /batch HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "a length and chunks": CHUNKED[:-2] + b"Content-Length: 2\r\n\r\n0\r\n\r\n",
    "a length below nothing": b"POST /batch HTTP/1.1\r\nHost: x\r\nContent-Length: -2\r\n\r\n{}",
    "a length beyond all numbers": b"POST /batch HTTP/1.1\r\nHost: x\r\nContent-Length: "
    + b"9" * 40
    + b"\r\n\r\n{}",
    "an unknown framing": b"POST /batch HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n{}",
}


@pytest.mark.parametrize("sent", FLOODS.values(), ids=FLOODS)
def test_what_is_no_http_gets_a_bare_400_and_a_close(
    emulator: Emulator, talk: Callable[[str, bytes], bytes], sent: bytes
) -> None:
    received = talk(emulator.url, sent + b"GET /__emulator__/health HTTP/1.1\r\nHost: localhost\r\n\r\n")

    assert received == b"" or received.startswith(BARE)
    assert received.count(b"HTTP/1.") <= 1
    assert b'"status":"ok"' not in received


def test_128_headers_are_taken(emulator: Emulator, talk: Callable[[str, bytes], bytes]) -> None:
    assert talk(emulator.url, HEAD + b"X: y\r\n" * 126 + b"\r\n").startswith(b"HTTP/1.1 200 OK")


def resident() -> int:
    return int(psutil.Process(os.getpid()).memory_info().rss)


def grows_by(flood: Callable[[], object]) -> int:
    flood()
    before = resident()
    for _ in range(3):
        flood()
    return resident() - before


def test_chunks_with_long_extensions_and_trailers_do_not_grow_the_server(
    emulator: Emulator, talk: Callable[[str, bytes], bytes]
) -> None:
    extended = CHUNKED + b"2;" + b"x" * 5_000_000 + b"\r\n{}\r\n0\r\n\r\n"
    trailed = CHUNKED + b"2\r\n{}\r\n0\r\n" + b"X: y\r\n" * 500_000 + b"\r\n"

    assert grows_by(lambda: (talk(emulator.url, extended), talk(emulator.url, trailed))) < 40_000_000


def test_requests_in_a_row_that_nobody_waits_for_do_not_grow_the_server(
    emulator: Emulator, opened: Callable[..., socket.socket]
) -> None:
    one = b"GET /client/v4/x HTTP/1.1\r\nHost: x\r\n\r\n"

    def flood() -> None:
        # It takes no more than it answers.
        with opened(emulator.url, timeout=2) as connection, suppress(TimeoutError):
            connection.sendall(one * 100_000)

    assert grows_by(flood) < 40_000_000


def test_connections_that_say_nothing_leave_no_trace(
    emulator: Emulator, http: httpx.Client, opened: Callable[..., socket.socket]
) -> None:
    before = psutil.Process().num_fds()
    connections = [opened(emulator.url) for _ in range(300)]
    assert http.get("/__emulator__/health").status_code == 200
    for connection in connections:
        connection.close()
    assert http.get("/__emulator__/health").status_code == 200

    assert psutil.Process().num_fds() <= before + 5


def test_long_names_that_clients_make_up_are_not_kept(http: httpx.Client) -> None:
    """Of a model, and of the one member of an input, which a model without required members takes."""

    def send(number: int) -> None:
        name = f"{number}" + "x" * 1_000_000
        model = {"model": name, "input": "a"}
        assert http.post(f"/client/v4/accounts/{1:032x}/ai/v1/embeddings", json=model).status_code == 400
        run = f"/client/v4/accounts/{1:032x}/ai/run/@cf/qwen/qwen3-embedding-0.6b"
        assert http.post(run, json={name: "a text of some length"}).status_code == 200

    send(0)
    tracemalloc.start()
    try:
        for number in range(1, 11):
            send(number)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 6_000_000  # of 20 that were sent; the last may still be on its way out


def test_names_that_clients_make_up_become_no_series(emulator: Emulator, http: httpx.Client) -> None:
    for number in range(200):
        http.post(
            f"/client/v4/accounts/{number:032x}/ai/run", json={"model": f"@cf/made/up-{number}", "input": {}}
        )

    told = http.get("/metrics").text

    assert "made/up" not in told
    assert 'model="other"' in told
