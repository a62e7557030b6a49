"""The log for programs: every line is JSON, and every exchange is one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    Serve = Callable[..., AbstractContextManager[subprocess.Popen[str]]]

ACCOUNT = "0123456789abcdef0123456789abcdef"
RUN = f"/client/v4/accounts/{ACCOUNT}/ai/run/@cf/baai/bge-m3"


def events(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=10) == 0
    assert process.stderr is not None
    return [json.loads(line) for line in process.stderr.read().splitlines()]


def test_each_exchange_is_one_line_between_a_start_and_an_end(serve: Serve) -> None:
    with serve("--log", "json", "--seed", "42") as process:
        url: str = process.url  # type: ignore[attr-defined]
        with httpx.Client(base_url=url, headers={"authorization": "Bearer t"}) as client:
            queued = client.post(f"{RUN}?queueRequest=true", json={"requests": [{"text": "a"}]}).json()
            client.post(RUN, json={"text": 1}, headers={"user-agent": "curl/8"})
            client.get("/__emulator__/health")
            client.get("/client/v4/x")
        start, submit, refused, nowhere, ended = events(process)

    assert (start["event"], start["url"], start["seed"], ended["event"]) == ("start", url, 42, "end")
    assert datetime.fromisoformat(submit.pop("time")).tzinfo is not None
    assert 0 < submit.pop("duration_ms") < 10_000
    assert submit == {
        "event": "exchange",
        "account_id": ACCOUNT,
        "dialect": "rest",
        "operation": "submit",
        "model": "@cf/baai/bge-m3",
        "method": "POST",
        "path": RUN,
        "status": 200,
        "code": None,
        "client": "httpx",
        "request_id": queued["result"]["request_id"],
        "state": "queued",
        "rule": "",
        "why": "",
    }
    assert (refused["status"], refused["code"], refused["client"]) == (400, 5006, "curl")
    assert refused["why"].startswith("Error: oneOf at '/' not met")
    assert (nowhere["status"], nowhere["code"], nowhere["operation"]) == (400, 7000, "")


def test_warnings_are_lines_of_json_too(serve: Serve) -> None:
    with serve("--log", "json", "--store-batches", "1") as process:
        url: str = process.url  # type: ignore[attr-defined]
        for _ in range(2):
            httpx.post(f"{url}/batch", json={"texts": ["a"]})
        told = [event for event in events(process) if event["event"] == "warning"]

    assert [event["message"].partition(":")[0] for event in told] == ["out of room"]


def test_exec_logs_in_the_same_way_and_the_command_keeps_its_streams() -> None:
    program = "import os, urllib.request as u; print(u.urlopen(os.environ['CLOUDFLARE_BASE_URL'][:-10] + '/').status)"
    command = [
        sys.executable,
        "-m",
        "workersai_emulator.cli",
        "exec",
        "--log",
        "json",
        "--",
        sys.executable,
        "-c",
        program,
    ]

    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)

    assert ran.stdout == "200\n"
    assert [json.loads(line)["event"] for line in ran.stderr.splitlines()] == ["start", "exchange", "end"]
