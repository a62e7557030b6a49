"""The proxy passes everything on as it is, as it comes, and tells what departs from the contract, both ways."""

from __future__ import annotations

import gzip
import json
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import pytest
from lying_proxy import LyingProxy

from workersai_client import Client
from workersai_contracts.passing import Request
from workersai_contracts.proxy import Proxy, redacted
from workersai_contracts.recording import Recorder, Recording
from workersai_emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

M3 = "@cf/baai/bge-m3"
TOKEN = "a-secret-token-0123456789"


@contextmanager
def proxied(upstream: str, recorder: Recorder | None = None) -> Iterator[tuple[Proxy, list[str]]]:
    told: list[str] = []
    proxy = Proxy(upstream, told.append, recorder=recorder)
    thread = threading.Thread(target=proxy.serve)
    thread.start()
    try:
        yield proxy, told
    finally:
        proxy.stop()
        thread.join()
        proxy.close()


def test_a_client_that_holds_to_the_contract_passes_in_silence(tmp_path: Path) -> None:
    recorder = Recorder("proxy", tmp_path / "r")
    with (
        Emulator() as emulator,
        proxied(emulator.base_url, recorder) as (proxy, told),
        Client(emulator.account_id, TOKEN, proxy.url) as client,
    ):
        handle = client.submit(M3, [{"text": "orange cloud"}])
        assert client.wait(handle, timeout=30, interval=0.01).items[0].success
        assert client.embed(["a", "b"]).shape == (2, 1024)
    assert (told, proxy.breaches) == ([], 0)
    exchanges = Recording.read(tmp_path / "r").exchanges
    assert [one.operation for one in exchanges] == ["submit", "poll", "poll", "poll", "run"]
    assert proxy.passed == len(exchanges)
    assert TOKEN not in "".join(path.read_text() for path in (tmp_path / "r").iterdir())


def test_a_request_and_a_reply_that_depart_are_each_told_in_one_line_without_the_token() -> None:
    with Emulator() as emulator, LyingProxy(emulator.url) as lying, proxied(lying.url) as (proxy, told):
        url = f"{proxy.url}/client/v4/accounts/{emulator.account_id}/ai/run/{M3}"
        with httpx.Client(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
            http.post(url, json={"text": "a", "queueRequest": True, "note": TOKEN})
            lying.lie = lambda passing: passing.headers.__setitem__("content-type", f"text/{TOKEN}")
            reply = http.post(url, json={"text": "a"})
            http.get(f"{proxy.url}/__emulator__/health")  # on no route of the contract
    assert reply.json()["success"] is True
    line = f"POST /client/v4/accounts/{{account_id}}/ai/run/{M3}"
    assert told == [
        f"{line}: in the request, by request: "
        "$.queueRequest: queueRequest belongs in the query; in the body it is ignored",
        f"{line}: in the reply, HTTP 200, by run/embedding.reply: content-type: the content type is "
        "'text/{token}', not exactly application/json",
    ]
    assert proxy.breaches == 2


def test_what_passes_is_the_same_bytes() -> None:
    with Upstream() as upstream, proxied(upstream.url) as (proxy, told):
        upstream.reply = (
            b"HTTP/1.1 207 Odd Words\r\nX-Odd:  one\r\nx-ODD: two\r\n"
            b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
            % len(packed := gzip.compress(b'{"a":1}', mtime=0))
        ) + packed
        sent = (
            b"PUT /a%2Fb/%40c?x=%20y&&z HTTP/1.1\r\nHost: elsewhere\r\nX-Own: A\r\nx-own: b\r\n"
            b"Content-Length: 5\r\nConnection: close\r\n\r\n\x00\xff\r\n!"
        )
        with socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2]))) as raw:
            raw.sendall(sent)
            got = b"".join(iter(lambda: raw.recv(65536), b""))
    head, _, body = upstream.received.partition(b"\r\n\r\n")
    assert head.startswith(b"PUT /a%2Fb/%40c?x=%20y&&z HTTP/1.1\r\n")
    assert b"X-Own: A\r\nx-own: b\r\n" in head + b"\r\n"
    assert b"user-agent" not in head.lower()
    assert body == b"\x00\xff\r\n!"
    head, _, body = got.partition(b"\r\n\r\n")
    assert head.startswith(
        b"HTTP/1.1 207 Odd Words\r\nX-Odd: one\r\nx-ODD: two\r\nContent-Encoding: gzip\r\n"
    )
    assert b"server" not in head.lower()
    assert body == packed
    assert told == []


def test_a_stream_is_handed_on_as_it_comes() -> None:
    with Upstream() as upstream, proxied(upstream.url) as (proxy, told):
        upstream.reply = (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        upstream.reply += b'13\r\ndata: {"p":"one"}\n\n\r\n'
        body = {"prompt": "hi", "stream": True}
        path = "/client/v4/accounts/" + "a" * 32 + "/ai/run/@cf/meta/llama-3.3-70b-instruct-fp8-fast"
        with httpx.stream("POST", proxy.url + path, json=body) as reply:
            pieces = reply.iter_raw()
            assert next(pieces) == b'data: {"p":"one"}\n\n'  # while the rest has not been sent
            upstream.go_on(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
            assert b"".join(pieces) == b"data: [DONE]\n\n"
    assert len(told) == 1
    assert "events[0]" in told[0]
    assert upstream.received.endswith(json.dumps(body, separators=(",", ":")).encode())


def test_an_upstream_that_is_not_there_is_a_502_and_told() -> None:
    with proxied("http://127.0.0.1:1") as (proxy, told):
        reply = httpx.get(f"{proxy.url}/client/v4/accounts/{'a' * 32}/ai/models/search")
    assert reply.status_code == 502
    assert told == [
        "GET /client/v4/accounts/{account_id}/ai/models/search: no reply: ConnectError: [Errno 111] Connection refused"
    ]
    assert told[0] in reply.text
    assert proxy.breaches == 1


def test_a_request_that_is_not_framed_as_http_is_told() -> None:
    head = b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n"
    with (
        proxied("http://127.0.0.1:1") as (proxy, told),
        socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2]))) as raw,
    ):
        raw.sendall(head)
        assert raw.recv(1) == b""
    assert proxy.breaches == 1
    assert told[0].startswith("a request that is not framed as HTTP: ValueError: invalid literal")


def test_credentials_of_every_kind_are_taken_out_of_a_line() -> None:
    headers = [("authorization", "Bearer abc"), ("X-Auth-Key", "key-1"), ("x-auth-email", "a@b.c")]
    request = Request("GET", f"/accounts/{'f' * 32}/ai/x", headers, b"")
    assert redacted(request, f"{'f' * 32} abc key-1 a@b.c") == "{account_id} {token} {token} {token}"


@pytest.mark.parametrize("wrong", [False, True], ids=["nothing departs", "something departs"])
def test_the_command_ends_with_what_it_found(wrong: bool) -> None:
    with Emulator() as emulator:
        command = [sys.executable, "-m", "workersai_contracts.verify", "proxy", "--upstream", emulator.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            target = f"{url}/client/v4/accounts/{emulator.account_id}/ai/run/{M3}"
            body = {"text": "a", "queueRequest": True} if wrong else {"text": "a"}
            assert httpx.post(target, json=body, headers={"Authorization": "Bearer x"}).status_code == 200
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=20)
    assert process.returncode == int(wrong)
    assert told.splitlines()[-1] == f"workersai-verify: 1 exchanges, {int(wrong)} departures"


def test_an_upstream_that_is_no_url_is_one_line() -> None:
    command = [sys.executable, "-m", "workersai_contracts.verify", "proxy", "--upstream", "nonsense"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 2
    assert ran.stderr == "workersai-verify: --upstream nonsense: give a URL such as http://127.0.0.1:8799\n"


class Upstream:
    """A server of raw bytes: takes one request, answers, and goes on when it is told to."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.reply = b""
        self.received = b""
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Upstream:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done()
        self._listener.close()

    def go_on(self, more: bytes) -> None:
        self._connection.sendall(more)
        self._connection.shutdown(socket.SHUT_WR)

    def done(self) -> None:
        self._thread.join()
        self._connection.close()

    def _serve(self) -> None:
        self._connection, _ = self._listener.accept()
        head = b""
        while b"\r\n\r\n" not in head:
            head += self._connection.recv(65536)
        length = next(
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        while len(head.partition(b"\r\n\r\n")[2]) < length:
            head += self._connection.recv(65536)
        self.received = head
        self._connection.sendall(self.reply)
