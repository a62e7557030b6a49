"""Secrets: none that a client sends, and none that the server was given, is told to anybody."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ACCOUNT = "0123456789abcdef0123456789abcdef"
RUN = f"/client/v4/accounts/{ACCOUNT}/ai/run/@cf/baai/bge-m3"
CONTROL, API = "c0ntrol-pl4ne-token", "4pi-t0ken-of-the-server"
SECRET = "s3cr3t-of-a-client"
IN_HEADERS = [
    {"authorization": f"Bearer {SECRET}"},
    {"authorization": f"Token {SECRET}"},
    {"authorization": f"Bearer {SECRET} {SECRET}"},
    {"authorization": f"Basic {base64.b64encode(SECRET.encode()).decode()}"},
    {"authorization": f"Bearer {API}", "cookie": f"session={SECRET}"},
    {"x-auth-email": f"{SECRET}@example.com", "x-auth-key": SECRET},
    {"authorization": f"Bearer {API}", "cf-aig-authorization": f"Bearer {SECRET}", "x-api-key": SECRET},
    {"authorization": f"Bearer {API}", "x-emulator-script": "queued:1, done", "proxy-authorization": SECRET},
]
BODIES = [
    {"text": SECRET},
    {"text": 1, "x": SECRET},
    {"requests": [{"text": SECRET, "external_reference": SECRET}]},
    {"request_id": "3f0c1f9e-7b1a-4c55-9d0e-2a6b8f4c1d23", "x": SECRET},
]


def test_no_secret_is_in_a_log_the_journal_the_metrics_or_an_error(
    serve: Callable[..., object], talk: Callable[[str, bytes], bytes]
) -> None:
    told: list[str] = []
    options = ("--log", "json", "--api-token", API, "--control-token", CONTROL)
    with serve(*options) as running:  # type: ignore[attr-defined]
        http = running.http
        for headers in IN_HEADERS:
            http.headers.pop("authorization", None)
            for body in BODIES:
                reply = http.post(
                    f"{RUN}?queueRequest=true&token={SECRET}&api_key={SECRET}", json=body, headers=headers
                )
                told += [json.dumps(dict(reply.headers)), reply.text] if reply.status_code >= 400 else []
        basic = base64.b64encode(f"user:{SECRET}".encode()).decode()
        wholly = (
            f"GET http://user:{SECRET}@localhost/client/v4/x?token={SECRET} HTTP/1.1\r\nHost: localhost\r\n"
        )
        told.append(
            talk(
                running.url, f"{wholly}Authorization: Basic {basic}\r\nConnection: close\r\n\r\n".encode()
            ).decode()
        )
        for path in ("/__emulator__/health", "/metrics"):
            refused = http.get(path, headers={"authorization": f"Bearer {SECRET}"})
            assert refused.status_code == 403
            told.append(refused.text)
        allowed = {"authorization": f"Bearer {CONTROL}"}
        for path in (
            "requests",
            "verdict",
            "usage",
            "settings",
            "rules",
            "metrics",
            "openapi.json",
            "health",
        ):
            told.append(http.get(f"/__emulator__/{path}", headers=allowed).text)
        journal = http.get("/__emulator__/requests", headers=allowed).json()["requests"]
        running.process.terminate()
        running.ended()
        exchanges = [event for event in running.events() if event["event"] == "exchange"]
        told += running.lines

    assert len(exchanges) == len(journal) == len(IN_HEADERS) * len(BODIES) + 1
    found = [line for line in told for secret in (SECRET, API, CONTROL, basic) if secret in line]
    assert found == []


def test_the_text_log_and_the_greeting_tell_none_either(serve: Callable[..., object]) -> None:
    with serve("--api-token", API, "--control-token", CONTROL) as running:  # type: ignore[attr-defined]
        running.http.post(RUN, json={"text": SECRET}, headers={"authorization": f"Bearer {SECRET}"})
        running.http.post(RUN, json={"text": 1, "x": SECRET}, headers={"authorization": f"Bearer {API}"})
        running.process.terminate()
        running.ended()
        told = "".join(running.lines)

    assert "export CLOUDFLARE_API_TOKEN" in told
    assert not [secret for secret in (SECRET, API, CONTROL) if secret in told]
