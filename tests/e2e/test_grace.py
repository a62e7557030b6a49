"""A server that is told to end: replies under way finish within the grace, and nothing new begins."""

from __future__ import annotations

import json
import signal
import socket
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

import httpx
import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    Serve = Callable[..., AbstractContextManager[subprocess.Popen[str]]]

RUN = "/client/v4/accounts/0123456789abcdef0123456789abcdef/ai/run/@cf/baai/bge-m3"
AUTHORIZED = {"authorization": "Bearer t"}


@contextmanager
def under_way(url: str, effect: dict[str, Any]) -> Iterator[Future[httpx.Response]]:
    """A run that a rule keeps waiting, once the server has it."""
    rule = {"match": {"operation": "run"}, "times": 1, "effect": effect}
    httpx.post(f"{url}/__emulator__/rules", json=rule).raise_for_status()
    with ThreadPoolExecutor(1) as sender:
        sent = sender.submit(httpx.post, url + RUN, json={"text": "a"}, headers=AUTHORIZED, timeout=30)
        while httpx.get(f"{url}/__emulator__/rules").json()["rules"][0]["fired"] == 0:
            pass
        yield sent


def end(process: subprocess.Popen[str]) -> tuple[int, float]:
    began = monotonic()
    return process.wait(timeout=30), monotonic() - began


def wait_until_closed(url: str) -> None:
    """Return once nothing new is taken."""
    with suppress(httpx.TransportError):
        while True:
            httpx.get(f"{url}/__emulator__/health")


def test_a_reply_under_way_finishes_and_nothing_new_begins(serve: Serve) -> None:
    with serve() as process:
        url: str = process.url  # type: ignore[attr-defined]
        with under_way(url, {"delay": "1s"}) as sent:
            process.send_signal(signal.SIGTERM)
            wait_until_closed(url)
            assert not sent.done()
            code, _ = end(process)

            assert sent.result().status_code == 200
            assert sent.result().json()["result"]["shape"] == [1, 1024]
        assert code == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_a_large_batch_that_is_being_written_is_written_to_its_end(serve: Serve) -> None:
    with serve("--script", "instant") as process:
        url: str = process.url  # type: ignore[attr-defined]
        body = {"requests": [{"text": f"text {number}"} for number in range(1_000)]}
        queued = httpx.post(f"{url}{RUN}?queueRequest=true", json=body, headers=AUTHORIZED, timeout=30).json()
        poll = {"request_id": queued["result"]["request_id"]}
        with httpx.stream("POST", url + RUN, json=poll, headers=AUTHORIZED, timeout=30) as reply:
            pieces = reply.iter_raw()
            first = next(pieces)
            process.send_signal(signal.SIGTERM)
            whole = first + b"".join(pieces)

        assert len(json.loads(whole)["result"]["responses"]) == 1_000
        assert end(process)[0] == 0


def test_the_grace_has_an_end(serve: Serve) -> None:
    with serve("--grace", "200ms") as process:
        url: str = process.url  # type: ignore[attr-defined]
        with under_way(url, {"delay": "60s"}) as sent:
            process.send_signal(signal.SIGTERM)
            code, taken = end(process)
            assert isinstance(sent.exception(), httpx.TransportError)
        assert (code, taken < 3) == (0, True)


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_told_twice_it_ends_at_once(serve: Serve, second: signal.Signals) -> None:
    with serve("--grace", "1h") as process:
        url: str = process.url  # type: ignore[attr-defined]
        with under_way(url, {"delay": "60s"}) as sent:
            process.send_signal(signal.SIGTERM)
            wait_until_closed(url)
            process.send_signal(second)
            code, taken = end(process)
            assert isinstance(sent.exception(), httpx.TransportError)
        assert (code, taken < 3) == (0, True)


def test_neither_a_reply_that_never_comes_nor_a_head_that_never_ends_is_waited_for(serve: Serve) -> None:
    with serve("--grace", "1h") as process:
        url: str = process.url  # type: ignore[attr-defined]
        with (
            socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as half,
            under_way(url, {"transport": "hang"}) as sent,
        ):
            half.sendall(b"GET / HT")
            process.send_signal(signal.SIGTERM)
            code, taken = end(process)
            assert isinstance(sent.exception(), httpx.TransportError)
        assert (code, taken < 3) == (0, True)


def test_the_grace_is_a_duration(serve: Serve) -> None:
    with serve("--grace", "soon") as process:
        assert process.wait(timeout=10) == 2
        assert process.stderr is not None
        assert process.stderr.read().startswith("workersai-emulator: --grace: 'soon' is not a duration")
