"""Bodies: bounded while they arrive, unpacked within bounds, and never waited for in vain."""

from __future__ import annotations

import gzip
import json
import re
import socket
import subprocess
import sys
import zlib
from typing import TYPE_CHECKING, Any

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

BGE_M3 = "@cf/baai/bge-m3"
MEGABYTE = 1_000_000


def submit_of(size: int) -> bytes:
    """A good submit of exactly so many bytes."""
    empty = b'{"requests":[{"text":"a","external_reference":""}]}'
    return empty.replace(b'e":""', b'e":"' + b"x" * (size - len(empty)) + b'"')


def run_of(size: int) -> bytes:
    """A good run of exactly so many bytes."""
    return b'{"text":"a"}' + b" " * (size - 12)


def is_too_large(reply: Any) -> bool:
    """Whether the reply is the service's refusal of a body that is too large, byte for byte."""
    message = f"AiError: Request is too large ({reply.headers['cf-ai-req-id']})"
    errors = [{"message": message, "code": 3006}]
    expected = {"errors": errors, "success": False, "result": {}, "messages": []}
    return reply.status_code == 413 and reply.content == json.dumps(expected, separators=(",", ":")).encode()


def is_not_json(reply: Any) -> bool:
    message = f"AiError: Request is missing headers or body: body ({reply.headers['cf-ai-req-id']})"
    return reply.status_code == 400 and reply.json()["errors"] == [{"message": message, "code": 3003}]


def pieces(body: bytes, size: int = 65536) -> Iterator[bytes]:
    """A body for a request without a length, in chunks."""
    for start in range(0, len(body), size):
        yield body[start : start + size]


def head(world: Any, *fields: str, query: str = "") -> bytes:
    lines = [f"POST {world.target(query=query)} HTTP/1.1", "Host: x", "Authorization: Bearer t", *fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@pytest.mark.parametrize("framing", ["length", "chunks"])
@pytest.mark.parametrize(
    ("kind", "limit"),
    [("submit", 10 * MEGABYTE), ("run", 25 * MEGABYTE)],
)
def test_body_is_taken_up_to_its_limit_and_refused_from_there_on(world, kind, limit, framing):
    query, make = ("?queueRequest=true", submit_of) if kind == "submit" else ("", run_of)

    def reply(size: int) -> Any:
        body = make(size)
        content = body if framing == "length" else pieces(body)
        return world.http.post(world.target(query=query), content=content)

    assert reply(limit - 1).status_code == 200
    assert is_too_large(reply(limit))


@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.parametrize(
    ("query", "limits"),
    [
        ("?queueRequest=true", {"payload_bytes": 1000, "body_bytes": 5}),
        ("", {"payload_bytes": 5, "body_bytes": 1000}),
    ],
    ids=["submit", "run"],
)
def test_limits_are_settings_that_small_tests_can_meet(world, query, limits, coding):
    world.control("PATCH", "settings", {"limits": limits})

    def reply(size: int) -> Any:
        body = submit_of(size)
        packed = gzip.compress(body) if coding == "gzip" else body
        return world.run(packed, query=query, headers={"content-encoding": coding})

    assert reply(999).status_code == 200
    assert is_too_large(reply(1000))


def test_binary_reading_of_10_MB_is_an_alternative(world):
    world.assume(submit__too_large="binary")

    assert world.run(submit_of(10 * 2**20 - 1), query="?queueRequest=true").status_code == 200
    assert is_too_large(world.run(submit_of(10 * 2**20), query="?queueRequest=true"))


@pytest.mark.parametrize(
    "limits", [{"limits": {"body_bytes": None}}, {"assumptions": {"body.limit": "none"}}], ids=str
)
def test_without_a_limit_a_run_takes_more(world, limits):
    world.control("PATCH", "settings", limits)

    assert world.run(run_of(26 * MEGABYTE)).status_code == 200


@pytest.mark.parametrize("length", [10_000_000, 2_000_000_000, 9_223_372_036_854_775_807])
def test_declared_length_over_the_limit_is_refused_before_anything_is_sent(world, converse, read, length):
    (answer,) = read(
        converse(head(world, f"Content-Length: {length}", query="?queueRequest=true"), once=True)
    )

    assert (answer.status, json.loads(answer.body)["errors"][0]["code"]) == (413, 3006)


def test_refused_length_leaves_nothing_queued(world, converse):
    converse(head(world, "Content-Length: 10000000", query="?queueRequest=true"), once=True)

    assert world.control("GET", "batches").json() == {"batches": []}


def test_body_over_the_limit_that_never_ends_is_refused_and_the_connection_closed(world_of, monkeypatch):
    monkeypatch.setattr("workersai_emulator.connection.LINGER_SECONDS", 0.2)
    small = world_of(limits={"payload_bytes": 1000})
    chunk = b"400\r\n" + b" " * 0x400 + b"\r\n"

    with socket.create_connection(("127.0.0.1", small.port), timeout=20) as connection:
        connection.sendall(head(small, "Transfer-Encoding: chunked", query="?queueRequest=true"))
        received, sent = b"", 0
        connection.settimeout(0.01)
        while sent < 100_000:
            try:
                connection.sendall(chunk)
                sent += 1
                if not (piece := connection.recv(65536)):
                    break
                received += piece
            except TimeoutError:
                continue
            except ConnectionError:
                break

    assert received.startswith(b"HTTP/1.1 413 ")
    assert b'"code":3006' in received
    assert sent < 1000
    assert small.run({"text": "a"}).status_code == 200


def test_keep_alive_goes_on_after_a_refused_body_that_ended(world, converse, read):
    refused = head(world, "Content-Length: 10000000", query="?queueRequest=true") + submit_of(10_000_000)
    good = head(world, "Content-Length: 12", "Connection: close") + b'{"text":"a"}'

    answers = read(converse(refused + good))

    assert [answer.status for answer in answers] == [413, 200]


def test_2_GB_in_chunks_never_get_into_memory():
    command = [sys.executable, "-m", "workersai_emulator.cli", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().strip().rpartition(":")[2])
            received, growth = _stream_2_gb(port, psutil.Process(process.pid))
        finally:
            process.terminate()

    assert received.startswith(b"HTTP/1.1 413 ")
    assert b'"code":3006' in received
    assert growth < 50_000_000


def _stream_2_gb(port: int, process: psutil.Process) -> tuple[bytes, int]:
    """Send 2 GB, or as much as is taken; what came back, and by how much the process grew at its largest."""
    account = "0123456789abcdef0123456789abcdef"
    fields = (
        f"POST /client/v4/accounts/{account}/ai/run/{BGE_M3}?queueRequest=true HTTP/1.1\r\nHost: x\r\n"
        "Authorization: Bearer t\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    chunk = b"400000\r\n" + b" " * 0x400000 + b"\r\n"
    before = largest = process.memory_info().rss
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 0x400000)
        connection.sendall(fields.encode())
        try:
            for number in range(2_000_000_000 // 0x400000):
                connection.sendall(chunk)
                largest = max(largest, process.memory_info().rss)
                if number == 10:  # the limit is well behind
                    received = connection.recv(65536)
        except ConnectionError:
            pass  # the server has had enough of it
    return received, largest - before


CODINGS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "GZIP": gzip.compress,
    "deflate": zlib.compress,
    "identity": bytes,
}


@pytest.mark.parametrize("coding", CODINGS)
def test_packed_body_is_unpacked(world, coding):
    plain = world.run({"text": "a"})

    packed = world.run(CODINGS[coding](b'{"text":"a"}'), headers={"content-encoding": coding})

    assert (packed.status_code, packed.content) == (200, plain.content)


@pytest.mark.parametrize("size", [2**20 - 1, 2**20, 2**20 + 1, 3 * 2**20])
@pytest.mark.parametrize("level", [0, 1, 9])
def test_packed_body_of_any_size_is_unpacked_whole(world, size, level):
    body = gzip.compress(submit_of(size), level)

    reply = world.run(body, query="?queueRequest=true", headers={"content-encoding": "gzip"})

    request_id = reply.json()["result"]["request_id"]
    assert world.control("GET", f"batches/{request_id}").json()["bytes"] == size


def test_packed_body_that_arrives_byte_by_byte_is_unpacked(world):
    packed = gzip.compress(b'{"text":["a","b"]}')

    reply = world.http.post(world.target(), content=pieces(packed, 1), headers={"content-encoding": "gzip"})

    assert reply.json()["result"]["shape"] == [2, 1024]


GOOD = gzip.compress(b'{"text":"a"}')
BROKEN = {
    "not gzip at all": ("gzip", b'{"text":"a"}'),
    "zlib called gzip": ("gzip", zlib.compress(b'{"text":"a"}')),
    "gzip called deflate": ("deflate", GOOD),
    "corrupt": ("gzip", GOOD[:12] + b"\xff\xff\xff" + GOOD[15:]),
    "bad checksum": ("gzip", GOOD[:-8] + b"\0\0\0\0" + GOOD[-4:]),
    "bad length": ("gzip", GOOD[:-1] + b"\1"),
    "truncated": ("gzip", GOOD[:-1]),
    "header only": ("gzip", GOOD[:10]),
    "empty": ("gzip", b""),
    "more after its end": ("gzip", GOOD + b"x"),
    "two members": ("gzip", gzip.compress(b'{"text":') + gzip.compress(b'"a"}')),
    "packs no JSON": ("gzip", gzip.compress(b"{")),
    "unknown coding": ("br", b"\x0b\x05\x80{}\x03"),
    "two codings": ("gzip, br", GOOD),
}


@pytest.mark.parametrize(("coding", "body"), BROKEN.values(), ids=BROKEN)
def test_packed_body_that_is_broken_is_no_body(world, coding, body):
    reply = world.run(body, headers={"content-encoding": coding})

    assert is_not_json(reply)


def bomb(window: int, megabytes: int) -> bytes:
    """So many megabytes of zeros, packed a thousand to one without packing them all."""
    first = zlib.compressobj(9, zlib.DEFLATED, window)
    start = first.compress(b"0" * MEGABYTE) + first.flush(zlib.Z_FULL_FLUSH)
    again = zlib.compressobj(9, zlib.DEFLATED, -15)
    return start + (again.compress(b"0" * MEGABYTE) + again.flush(zlib.Z_FULL_FLUSH)) * (megabytes - 1)


@pytest.mark.parametrize(("coding", "window"), [("gzip", 31), ("deflate", 15)])
def test_bomb_is_refused_at_the_limit_without_being_unpacked(world, coding, window):
    packed = bomb(window, 9_900)
    assert 9 * MEGABYTE < len(packed) < 10 * MEGABYTE
    before = psutil.Process().memory_info().rss

    reply = world.run(packed, query="?queueRequest=true", headers={"content-encoding": coding})

    assert is_too_large(reply)
    assert psutil.Process().memory_info().rss - before < 60 * MEGABYTE


def test_packed_body_of_nothing_does_not_go_on_for_ever(world):
    """Empty blocks unpack to nothing: what arrives is bounded too."""
    world.control("PATCH", "settings", {"limits": {"body_bytes": 100_000}})
    packed = gzip.compress(b"")[:10] + b"\x00\x00\x00\xff\xff" * 30_000

    assert is_too_large(world.run(packed, headers={"content-encoding": "gzip"}))


@pytest.mark.parametrize(
    "rest", [b"ZZ\r\nabc", b"-1\r\n", b"3\r\nabcd\r\n", b"FFFFFFFFFFFFFFFFF\r\n"], ids=repr
)
def test_body_with_broken_chunks_gets_an_answer_and_a_close(world, rest):
    with socket.create_connection(("127.0.0.1", world.port), timeout=20) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(head(world, "Transfer-Encoding: chunked") + b"3\r\nabc\r\n")
        assert world.run({"text": "a"}).status_code == 200
        connection.sendall(rest)
        received = b""
        while piece := connection.recv(65536):
            received += piece

    assert re.match(rb"HTTP/1\.[01] 400 ", received)
    assert received.count(b"HTTP/1.") == 1


@pytest.mark.parametrize("rest", [b"", b'{"text"'], ids=["nothing", "half"])
@pytest.mark.parametrize("framing", ["Content-Length: 12", "Transfer-Encoding: chunked"])
def test_client_that_goes_away_in_the_middle_of_its_body_is_no_fault(world, converse, framing, rest):
    chunked = framing.startswith("T")
    part = b"7\r\n" + rest + b"\r\n" if chunked and rest else rest

    converse(head(world, framing) + part, half_close=True)

    assert world.run({"text": "a"}).status_code == 200


def test_client_that_goes_away_in_the_middle_of_a_large_reply_is_no_fault(world):
    request_id = world.submit({"requests": [{"text": str(n)} for n in range(2000)]}, script="done")
    body = json.dumps({"request_id": request_id}).encode()
    with socket.create_connection(("127.0.0.1", world.port), timeout=20) as connection:
        connection.sendall(head(world, f"Content-Length: {len(body)}") + body)
        assert connection.recv(100).startswith(b"HTTP/1.1 200")

    assert world.run({"text": "a"}).status_code == 200
    assert world.control("GET", "batches").json()["batches"][0]["state"] == "done"
