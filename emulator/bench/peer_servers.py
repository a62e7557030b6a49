"""The emulator beside other stand-ins that install from the registries; `make bench-peers` installs them.

Each answers what it has nearest to one embedding: canned where it knows none, a list of queues from moto. The same
client asks all of them. They do different things, so a ratio tells what one pays, not who is better.
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
from wire import ACCOUNT, TEXT

from workersai_emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).with_name("peers")
INSTALLED = Path(__file__).parents[2] / ".bench"
PYTHON, NODE = INSTALLED / "py/bin", INSTALLED / "npm/node_modules"
PATIENCE = 60
EMBEDDING = (
    "/v1/embeddings",
    {"model": "text-embedding-3-small", "input": TEXT},
    {"Authorization": "Bearer mock-key"},
)
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
OURS = (
    f"/client/v4/accounts/{ACCOUNT}/ai/v1/embeddings",
    {"model": "@cf/baai/bge-m3", "input": TEXT},
    {"Authorization": "Bearer bench"},
)
EMULATOR = [sys.executable, "-m", "workersai_emulator.cli", "serve", "--port", "PORT"]


def commands() -> dict[str, tuple[list[str], tuple[str, Any, dict[str, str]]]]:
    """How each peer is started on PORT, and what it is asked."""
    node = shutil.which("node") or "node"
    aimock, prism = NODE / "@copilotkit/aimock", NODE / "@stoplight/prism-cli/dist/index.js"
    fixtures = ["--fixtures", str(aimock / "fixtures/example-greeting.json"), "--log-level", "silent"]
    return {
        "aimock": ([node, str(aimock / "dist/cli.js"), "--port", "PORT", *fixtures], EMBEDDING),
        "llmock": ([str(PYTHON / "llmock"), "serve", "--port", "PORT", "--log-level", "error"], EMBEDDING),
        "moto": ([str(PYTHON / "moto_server"), "--port", "PORT"], QUEUES),
        "prism": ([node, prism.as_posix(), "mock", str(HERE / "openapi.json"), "--port", "PORT"], EMBEDDING),
        "pytest-httpserver": ([str(PYTHON / "python"), str(HERE / "canned.py"), "PORT"], EMBEDDING),
    }


def figures(*, short: bool) -> Iterator[Figure]:
    """For each peer its cold start, one exchange, and its memory after some."""
    if not INSTALLED.exists():
        raise SystemExit("the peers are not installed: run make bench-peers")
    count, rounds = (300, 2) if short else (2000, 5)
    for name, (command, asked) in commands().items():
        pairs = [(_seen(EMULATOR, OURS, count), _seen(command, asked, count)) for _ in range(rounds)]
        for place, (measure, unit) in enumerate(
            (("cold start", "ms"), ("an answer", "µs"), ("memory", "MB"))
        ):
            ours, theirs = ([pair[side][place] for pair in pairs] for side in (0, 1))
            yield Figure.of(f"{measure}, beside {name}", unit, ours, theirs, name)
    lives = 20 if short else 200
    for name in ("moto", "pytest-httpserver"):
        ran = subprocess.run(
            [PYTHON / "python", HERE / "lives.py", name, str(lives)], capture_output=True, check=True
        )
        theirs = json.loads(ran.stdout.splitlines()[-1])
        ours = [_life() for _ in range(lives)]
        yield Figure.of(f"a server per test, beside {name}", "ms", [median(ours)], [median(theirs)], name)


def _life() -> float:
    began = perf_counter()
    with Emulator():
        pass
    return (perf_counter() - began) * 1000


def _seen(
    command: list[str], asked: tuple[str, Any, dict[str, str]], count: int
) -> tuple[float, float, float]:
    """Milliseconds to the first answer, microseconds of each of the next, and megabytes after them."""
    began = perf_counter()
    with _running(command) as (process, port):
        while not _answered(port, asked):
            if perf_counter() - began > PATIENCE or process.poll() is not None:
                raise SystemExit(f"no answer from {' '.join(command)}")
            sleep(0.002)
        cold = perf_counter() - began
        connection = HTTPConnection("127.0.0.1", port)
        warm = perf_counter()
        for _ in range(count):
            _ask(connection, asked)
        took = (perf_counter() - warm) / count
        connection.close()
        memory = psutil.Process(process.pid).memory_info().rss
    return cold * 1e3, took * 1e6, memory / 1e6


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


def _answered(port: int, asked: tuple[str, Any, dict[str, str]]) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        _ask(connection, asked)
    except (OSError, HTTPException):
        return False  # it does not listen yet
    finally:
        connection.close()
    return True


def _ask(connection: HTTPConnection, asked: tuple[str, Any, dict[str, str]]) -> None:
    path, message, headers = asked
    connection.request("POST", path, json.dumps(message), {"Content-Type": "application/json", **headers})
    reply = connection.getresponse()
    body = reply.read()
    if reply.status != 200:
        raise SystemExit(f"HTTP {reply.status} from the server at {path}: {body[:300]!r}")
