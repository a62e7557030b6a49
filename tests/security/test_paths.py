"""Paths that mean something else than they say: none of them leads further than it should."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from workersai_emulator import Emulator

ACCOUNT = "0123456789abcdef0123456789abcdef"
AI = f"/client/v4/accounts/{ACCOUNT}/ai"
TO_CONTROL = [
    f"{AI}/../../../../../__emulator__/health",
    "/x/../__emulator__/health",
    "/%2e%2e/__emulator__/health",
    "/./__emulator__/health",
    "/__emulator__%2fhealth",
    "/__emulator__\\health",
    "//__emulator__/health",
    "/__emulator__;/health",
    "/__emulator__\t/health",
    "/__EMULATOR__/health",
    "/_%5femulator__/health",
    "/metrics/",
    "//metrics",
    "/%6detrics",
]
TO_FILES = [
    f"{AI}/run/../../../../../etc/passwd",
    f"{AI}/run/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    f"{AI}/run/@cf/baai/..%2f..%2fbge-m3",
    f"{AI}/run/@cf/baai/bge-m3%00",
    f"{AI}/run/@cf/baai/bge-m3.json",
    f"{AI}/run/../models/bge-m3",
    "/__emulator__/batches/..%2f..%2fetc%2fpasswd",
    "/__emulator__/scenarios/..%2f..%2fetc%2fpasswd",
    "/batch/..%2f..%2fetc%2fpasswd",
]


def ask(talk: Callable[[str, bytes], bytes], url: str, target: str, method: str = "GET") -> tuple[int, bytes]:
    fields = "Host: localhost\r\nAuthorization: Bearer t\r\nContent-Length: 2\r\nConnection: close"
    sent = f"{method} {target} HTTP/1.1\r\n{fields}\r\n\r\n{{}}"
    received = talk(url, sent.encode("latin-1"))
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head[9:12]), body


@pytest.mark.parametrize("target", TO_CONTROL)
def test_no_other_spelling_leads_to_the_control_plane(
    emulator: Emulator, talk: Callable[[str, bytes], bytes], target: str
) -> None:
    status, body = ask(talk, emulator.url, target)

    assert status == 400
    assert b'"status":"ok"' not in body
    assert b"workersai_emulator_" not in body


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("target", TO_FILES)
def test_no_path_leads_to_a_file(
    emulator: Emulator, talk: Callable[[str, bytes], bytes], target: str, method: str
) -> None:
    status, body = ask(talk, emulator.url, target, method)

    assert status in {400, 404, 405}
    assert b"root:" not in body
    assert b"Traceback" not in body


@pytest.mark.parametrize("planted", ["\x00", "\x01", "\x7f", "\x1b[31m", "\n", "\r"], ids=ascii)
def test_control_characters_in_a_target_are_no_http(
    emulator: Emulator, talk: Callable[[str, bytes], bytes], planted: str
) -> None:
    status, _ = ask(talk, emulator.url, f"/batch/{planted}x")

    assert status == 400


def test_escaped_control_characters_come_to_no_terminal() -> None:
    from workersai_emulator.api.exchange import Exchange
    from workersai_emulator.console import described

    told = described(
        Exchange("GET", "/batch/\x1b[31m\x9b31m\u202e\r\nfake line", 0.0, why="a\x1b]0;title\x07")
    )

    assert told.isprintable()


@pytest.mark.parametrize(("length", "status"), [(7_000, 400), (9_000, 400), (1_000_000, 400)])
def test_a_path_of_any_length_is_answered(
    emulator: Emulator, talk: Callable[[str, bytes], bytes], length: int, status: int
) -> None:
    assert ask(talk, emulator.url, f"/client/{'a' * length}")[0] == status
