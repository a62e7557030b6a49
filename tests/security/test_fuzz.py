"""The fuzzer's short form, and that it notices what it is there to notice."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, ClassVar

import fuzz
import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def test_some_hundred_broken_exchanges_break_nothing() -> None:
    report = fuzz.fuzz(seconds=120, seed=20_261_130, most=200)

    assert report.findings == []
    assert report.executions >= 200
    assert report.replies > report.executions / 2
    assert {200, 400, 404, 405} <= set(report.statuses)


def test_the_same_seed_sends_the_same_bytes() -> None:
    def drawn(seed: int) -> list[bytes]:
        mutator = fuzz.Mutator(seed)
        return [mutator.exchange() for _ in range(50)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


class Faulty(BaseHTTPRequestHandler):
    """A server that answers 500 to everything but the plain run and the control plane."""

    hoard: ClassVar[list[bytes]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        ours = self.path.endswith("bge-m3") or self.path.startswith("/__emulator__/")
        self.send_response(200 if ours else 500)
        self.end_headers()
        self.wfile.write(json.dumps({}).encode())

    do_DELETE = do_POST  # noqa: N815 - the library's name

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def faulty() -> Iterator[Callable[[], str]]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Faulty) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_server_that_fails_is_found_out(faulty: str) -> None:
    report = fuzz.Fuzzer(faulty, psutil.Process()).run(seconds=60, seed=1, most=400)

    assert [finding for finding in report.findings if finding.startswith("answers 500: b'POST")]


def test_growth_is_found_out() -> None:
    fuzzer = fuzz.Fuzzer("http://127.0.0.1:1", psutil.Process())
    fuzzer.report.before = {"rss": 50_000_000, "files": 10, "threads": 3}
    fuzzer.report.after = {"rss": 150_000_000, "files": 30, "threads": 9}

    fuzzer._check_growth()

    assert len(fuzzer.report.findings) == 3
