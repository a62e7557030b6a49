"""The emulator beside other stand-ins that install from the registries; `make bench-peers` installs them.

Each answers what it has nearest to a poll and to a hundred embeddings of 1,024 numbers: canned where it knows none, a
list of queues from moto. The same client asks all of them. They do different things, so a ratio tells what one pays,
not who is better.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

import psutil
from figures import Figure
from wire import ACCOUNT, PATH, TEXT

from workersai_emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).with_name("peers")
INSTALLED = Path(__file__).parents[2] / ".bench"
PYTHON, NODE = INSTALLED / "py/bin", INSTALLED / "npm/node_modules"
PATIENCE = 60
#: A path, a message and headers.
Asked = tuple[str, Any, dict[str, str]]
TEXTS = [f"{number} {TEXT}" for number in range(100)]
OPENAI = {"Authorization": "Bearer mock-key"}
CHAT = (
    "/v1/chat/completions",
    {"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]},
    OPENAI,
)
EMBEDDINGS = (
    "/v1/embeddings",
    {"model": "text-embedding-3-small", "input": TEXTS, "dimensions": 1024},
    OPENAI,
)
CANNED = ("/poll", {"request_id": "00000000-0000-4000-8000-000000000000"}, OPENAI)
QUEUES = (
    "/",
    {},
    {
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": "AmazonSQS.ListQueues",
        "Authorization": "AWS4-HMAC-SHA256 Credential=a/20250101/us-east-1/sqs/aws4_request, "
        "SignedHeaders=host, Signature=0",
    },
)
BENCH = {"Authorization": "Bearer bench"}
OURS = (
    f"/client/v4/accounts/{ACCOUNT}/ai/v1/embeddings",
    {"model": "@cf/baai/bge-m3", "input": TEXTS},
    BENCH,
)
EMULATOR = [
    sys.executable,
    "-m",
    "workersai_emulator.cli",
    "serve",
    "--port",
    "PORT",
    "--script",
    "queued:hold, done",
]


def commands() -> dict[str, tuple[list[str], Asked, Asked | None]]:
    """How each peer is started on PORT, what is most like a poll, and embeddings where it has any."""
    node = shutil.which("node") or "node"
    aimock, prism = NODE / "@copilotkit/aimock", NODE / "@stoplight/prism-cli/dist/index.js"
    fixtures = ["--fixtures", str(aimock / "fixtures/example-greeting.json"), "--log-level", "silent"]
    return {
        "aimock": ([node, str(aimock / "dist/cli.js"), "--port", "PORT", *fixtures], CHAT, EMBEDDINGS),
        "llmock": (
            [str(PYTHON / "llmock"), "serve", "--port", "PORT", "--log-level", "error"],
            CHAT,
            EMBEDDINGS,
        ),
        "moto": ([str(PYTHON / "moto_server"), "--port", "PORT"], QUEUES, None),
        "prism": (
            [node, prism.as_posix(), "mock", str(HERE / "openapi.json"), "--port", "PORT"],
            CANNED,
            None,
        ),
        "pytest-httpserver": ([str(PYTHON / "python"), str(HERE / "canned.py"), "PORT"], CANNED, EMBEDDINGS),
    }


def figures(*, short: bool) -> Iterator[Figure]:
    """For each peer its cold start, a poll, embeddings and its memory after them; and a server per test."""
    if not INSTALLED.exists():
        raise SystemExit("the peers are not installed: run make bench-peers")
    count, rounds = (300, 2) if short else (2000, 5)
    for name, (command, polled, embedded) in commands().items():
        embedding = OURS if embedded is not None else None
        pairs = [
            (_seen(EMULATOR, None, embedding, count), _seen(command, polled, embedded, count))
            for _ in range(rounds)
        ]
        for measure, unit, most in (
            ("cold start", "ms", None),
            ("a poll", "µs", 1),
            ("100 embeddings", "µs", 1),
            ("memory", "MB", None),
        ):
            if measure not in pairs[0][1]:
                continue
            ours, theirs = ([pair[side][measure] for pair in pairs] for side in (0, 1))
            canned = measure == "100 embeddings" and name == "pytest-httpserver"
            limit_is = f"{name}, which sends bytes made before" if canned else name
            aim = None if canned else most
            yield Figure.of(f"{measure}, beside {name}", unit, ours, theirs, limit_is, most_ratio=aim)
    lives = 20 if short else 200
    for name in ("moto", "pytest-httpserver"):
        ran = subprocess.run(
            [PYTHON / "python", HERE / "lives.py", name, str(lives)], capture_output=True, check=True
        )
        theirs = json.loads(ran.stdout.splitlines()[-1])
        ours = [_life() for _ in range(lives)]
        measure = f"a server per test, beside {name}"
        yield Figure.of(measure, "ms", [median(ours)], [median(theirs)], name, most_ratio=1)


def _life() -> float:
    began = perf_counter()
    with Emulator():
        pass
    return (perf_counter() - began) * 1000


def _seen(command: list[str], polled: Asked | None, embedded: Asked | None, count: int) -> dict[str, float]:
    """Milliseconds to the first answer, microseconds of each of the next, and megabytes after them.

    Without a poll of its own it is the emulator, which has a batch to poll.
    """
    began = perf_counter()
    with _running(command) as (process, port):
        asked = polled or (PATH, {"requests": [{"text": TEXT}]}, BENCH)
        while not _answered(port, asked):
            if perf_counter() - began > PATIENCE or process.poll() is not None:
                raise SystemExit(f"no answer from {' '.join(command)}")
            sleep(0.002)
        seen = {"cold start": (perf_counter() - began) * 1e3}
        connection = HTTPConnection("127.0.0.1", port)
        if polled is None:
            queued = json.loads(_ask(connection, asked))
            asked = (PATH, {"request_id": queued["result"]["request_id"]}, BENCH)
        seen["a poll"] = _mean(connection, asked, count)
        if embedded is not None:
            _ask(connection, embedded)
            seen["100 embeddings"] = _mean(connection, embedded, max(10, count // 50))
        connection.close()
        seen["memory"] = psutil.Process(process.pid).memory_info().rss / 1e6
    return seen


def _mean(connection: HTTPConnection, asked: Asked, count: int) -> float:
    began = perf_counter()
    for _ in range(count):
        _ask(connection, asked)
    return (perf_counter() - began) / count * 1e6


@contextmanager
def _running(command: list[str]) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    told = [str(port) if part == "PORT" else part for part in command]
    environment = {**os.environ, "NO_UPDATE_NOTIFIER": "1"}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(told, stdout=quiet, stderr=quiet, env=environment) as process:
        try:
            yield process, port
        finally:
            process.kill()


def _answered(port: int, asked: Asked) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        _ask(connection, asked)
    except (OSError, HTTPException):
        return False  # it does not listen yet
    finally:
        connection.close()
    return True


def _ask(connection: HTTPConnection, asked: Asked) -> bytes:
    path, message, headers = asked
    connection.request("POST", path, json.dumps(message), {"Content-Type": "application/json", **headers})
    reply = connection.getresponse()
    body = reply.read()
    if reply.status != 200:
        raise SystemExit(f"HTTP {reply.status} from the server at {path}: {body[:300]!r}")
    return body
