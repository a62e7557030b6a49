"""A fuzzer of the raw socket: valid exchanges of every dialect, broken in their bytes and in their structure.

    python tests/security/fuzz.py [SECONDS] [SEED]

It watches what must hold whatever comes in: no reply says 5xx but the Worker's own 502, no connection hangs, the
server's log tells of no fault, it still answers, and in the end it has neither more memory, nor tasks, nor open
files than after warming up. The same seed sends the same bytes.
"""

from __future__ import annotations

import json
import random  # noqa: TID251 - the seed is given
import re
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

import httpx
import psutil

if TYPE_CHECKING:
    from collections.abc import Callable

ACCOUNT = "0123456789abcdef0123456789abcdef"
AI = f"/client/v4/accounts/{ACCOUNT}/ai"
M3, LLAMA = "@cf/baai/bge-m3", "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
MESSAGES = [{"role": "user", "content": "hi"}]
#: No connection may take longer than this until it is answered or closed, its sender having said all it has to say.
HANG_SECONDS = 20.0
#: After so long without a word a sender takes it that more is expected of it, which will not come.
QUIET_SECONDS = 0.3
#: So many connections are open at once, and so many are drawn at a time.
AT_ONCE, DRAWN = 8, 400
#: What the server may have more of in the end: bytes, and open files.
GROWTH_BYTES, GROWTH_FILES = 40_000_000, 4
KEPT = ("--store-bytes", "2000000", "--store-batches", "500")

HOSTILE: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 2**63, 2**64, -(2**63) - 1, 10**400, 1e308, 1e-320),
    *("", " ", "\x00", "\ud800", "\u202e", "a" * 5_000, "é" * 300, "\r\n", "../..", "%00", "{}"),
    *([], [[]], [None], {}, {"": ""}, [0] * 500, {"$ref": "#"}, {"pattern": "(a+)+$b"}),
    *("true", "@cf/", M3, ACCOUNT, "urn:x", "data:image/png;base64,AAAA", "-" * 36),
]
TOKENS = [
    *(
        b"\x00",
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b"\t",
        b":",
        b"%",
        b"/",
        b"?",
        b"#",
        b"\xff",
        b"\x80",
        b"{",
        b"}",
        b'"',
    ),
    *(b"HTTP/1.1", b"HTTP/9.9", b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n", b"0\r\n\r\n"),
    *(b"Content-Length: -1\r\n", b"Content-Length: 99999999999999999999\r\n", b"Expect: 100-continue\r\n"),
    *(
        b"Content-Encoding: gzip\r\n",
        b"Content-Encoding: deflate\r\n",
        b"Upgrade: websocket\r\n",
        b"..%2f",
        b"%2e%2e/",
    ),
    *(
        b"Connection: close\r\n",
        b"Connection: keep-alive\r\n",
        b"Host: evil\r\n",
        b"Origin: null\r\n",
        b"ffffffff\r\n",
    ),
    *(b"X-Emulator-Script: queued:hold\r\n", b"X-Emulator-Account: x\r\n", b"MF-URL: http://x/run\r\n"),
]


def _http(method: str, target: str, body: Any = None, *fields: str) -> bytes:
    content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    head = [f"{method} {target} HTTP/1.1", "Host: localhost", "Authorization: Bearer t", *fields]
    if body is not None:
        head += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
    return "\r\n".join(head).encode("utf-8", "surrogatepass") + b"\r\n\r\n" + content


@dataclass(frozen=True)
class Sample:
    """One valid exchange, to be broken."""

    method: str
    target: str
    body: Any = None
    fields: tuple[str, ...] = ()


REQUEST_ID = "3f0c1f9e-7b1a-4c55-9d0e-2a6b8f4c1d23"
SAMPLES = [
    Sample("POST", f"{AI}/run/{M3}", {"text": ["a", "b"], "truncate_inputs": True}),
    Sample("POST", f"{AI}/run/{M3}", {"query": "a", "contexts": [{"text": "b"}]}),
    Sample(
        "POST", f"{AI}/run/{M3}?queueRequest=true", {"requests": [{"text": "a", "external_reference": 1}]}
    ),
    Sample("POST", f"{AI}/run/{M3}", {"request_id": REQUEST_ID}),
    Sample("POST", f"{AI}/run/{M3}?queueRequest=true", {"text": "a"}, ("X-Emulator-Script: queued:1, done",)),
    Sample("POST", f"{AI}/run", {"model": M3, "input": {"text": "a"}}),
    Sample("POST", f"{AI}/run/{LLAMA}", {"messages": MESSAGES, "max_tokens": 8, "stream": True}),
    Sample(
        "POST",
        f"{AI}/run/{LLAMA}",
        {
            "messages": MESSAGES,
            "response_format": {
                "type": "json_schema",
                "json_schema": {
                    "type": "object",
                    "properties": {
                        "a": {"type": "string", "pattern": "^[a-z]{3}$"},
                        "b": {"anyOf": [{"type": "integer", "minimum": 3}, {"$ref": "#/$defs/c"}]},
                    },
                    "required": ["a", "b"],
                    "$defs": {"c": {"type": "array", "items": {"enum": [1, "x"]}, "minItems": 2}},
                },
            },
        },
    ),
    Sample(
        "POST",
        f"{AI}/v1/chat/completions",
        {
            "model": LLAMA,
            "messages": MESSAGES,
            "tools": [{"type": "function", "function": {"name": "hi", "parameters": {"type": "object"}}}],
        },
    ),
    Sample("POST", f"{AI}/v1/embeddings", {"model": M3, "input": ["a"], "encoding_format": "base64"}),
    Sample("POST", f"{AI}/v1/responses", {"model": "@cf/openai/gpt-oss-120b", "input": "hi"}),
    Sample("POST", f"{AI}/run/@cf/openai/whisper", {"audio": [1, 2, 3]}),
    Sample("POST", f"{AI}/run/@cf/black-forest-labs/flux-1-schnell", {"prompt": "a", "steps": 4}),
    Sample("POST", f"{AI}/run/@cf/meta/m2m100-1.2b", {"text": "hi", "target_lang": "fr"}),
    Sample(
        "POST",
        f"{AI}/run/@cf/baai/bge-reranker-base",
        {"query": "a", "top_k": 1, "contexts": [{"text": "b"}]},
    ),
    Sample(
        "POST", f"{AI}/run/@cf/deepgram/aura-1", {"text": "a", "encoding": "linear16", "sample_rate": 8000}
    ),
    Sample("POST", f"{AI}/run/@cf/deepgram/flux", {"sample_rate": "16000", "encoding": "linear16"}),
    Sample("POST", f"{AI}/run/@cf/facebook/bart-large-cnn", {"input_text": "a b c", "max_length": 8}),
    Sample("POST", f"{AI}/run/@cf/facebook/detr-resnet-50", {"image": [137, 80, 78, 71]}),
    Sample("POST", f"{AI}/run/@cf/facebook/detr-resnet-50", b"\x89PNG\r\n\x1a\n" + bytes(20)),
    Sample("POST", f"{AI}/run/@cf/huggingface/distilbert-sst-2-int8", {"text": "a"}),
    Sample("POST", f"{AI}/run/@cf/llava-hf/llava-1.5-7b-hf", {"image": [1], "prompt": "a", "max_tokens": 8}),
    Sample("POST", f"{AI}/run/@cf/openai/whisper-large-v3-turbo", {"audio": "AAAA", "task": "translate"}),
    Sample("POST", f"{AI}/run/@cf/pipecat-ai/smart-turn-v2", {"audio": "AAAA", "dtype": "uint8"}),
    Sample(
        "POST",
        f"{AI}/run/@cf/lykon/dreamshaper-8-lcm",
        {"prompt": "a", "width": 256, "height": 256, "seed": 1},
    ),
    Sample("GET", f"{AI}/models/search?search=bge&per_page=2&page=1"),
    Sample("GET", f"{AI}/models/schema?model=%40cf%2Fbaai%2Fbge-m3"),
    Sample("POST", f"/v1/{ACCOUNT}/gateway/workers-ai/{M3}", {"text": "a"}),
    Sample("GET", "/"),
    Sample("POST", "/batch", {"texts": ["a", "b"]}, ("X-Emulator-Script: done",)),
    Sample("GET", f"/batch/{REQUEST_ID}"),
    Sample("POST", "/run", {"text": "a"}, (f"cf-consn-model-id: {M3}",)),
    Sample(
        "POST", "/ai-gateway/run", {"inputs": {"text": "a"}, "options": {}}, (f"cf-consn-model-id: {M3}",)
    ),
    Sample(
        "POST",
        "/to-everything/markdown/transformer",
        [{"name": "a.csv", "mimeType": "text/csv", "data": "YQ=="}],
    ),
    Sample(
        "POST",
        "/x",
        {"text": "a"},
        ("MF-URL: https://workers-binding.ai/run", f"MF-Header-cf-consn-model-id: {M3}"),
    ),
    Sample("GET", "/__emulator__/health"),
    Sample("GET", "/__emulator__/verdict"),
    Sample("GET", "/__emulator__/requests?since=1"),
    Sample("GET", "/metrics"),
    Sample("POST", "/__emulator__/clock", {"account_id": "ab" * 16, "advance": "1s"}),
    Sample("PATCH", "/__emulator__/settings", {"account_id": "ab" * 16, "script": "queued:1, done"}),
    Sample(
        "POST",
        "/__emulator__/rules",
        {"account_id": "ab" * 16, "match": {"operation": "run"}, "effect": {"error": 3040}},
    ),
    Sample("POST", "/__emulator__/scenarios/stuck", {"account_id": "ab" * 16, "times": 1}),
]


class Mutator:
    """Draws broken exchanges, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def exchange(self) -> bytes:
        """What is sent over one connection: one exchange or a few, whole or cut."""
        number = self._random.choice((1, 1, 1, 2, 3))
        pieces = [self._one(last=place == number - 1) for place in range(number)]
        sent = b"".join(pieces)
        return sent[: self._random.randrange(len(sent))] if self._random.random() < 0.1 and sent else sent

    def _one(self, *, last: bool) -> bytes:
        draw = self._random
        sample = draw.choice(SAMPLES)
        method, target, body, fields = sample.method, sample.target, sample.body, list(sample.fields)
        if draw.random() < 0.6 and body is not None and not isinstance(body, bytes):
            body = json.loads(json.dumps(body))
            for _ in range(draw.randint(1, 4)):
                body = self._bent(body)
        if draw.random() < 0.2:
            target = self._bent_text(target)
        if draw.random() < 0.1:
            method = draw.choice(
                ("GET", "PUT", "HEAD", "OPTIONS", "DELETE", "PATCH", "CONNECT", "TRACE", "get", "X" * 40)
            )
        if draw.random() < 0.15:
            fields.append(draw.choice(TOKENS).decode("latin-1").strip() or "X:")
        if last:
            fields.append("Connection: close")
        sent = _http(method, target.replace(" ", "%20"), body, *fields)
        if draw.random() < 0.15:
            sent = sent.replace(b"HTTP/1.1\r\n", b"HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", 1)
        if draw.random() < 0.35:
            sent = self._broken(sent)
        return sent

    def _bent(self, node: Any) -> Any:
        """The same message with one place replaced, dropped, repeated or renamed."""
        draw = self._random
        if isinstance(node, dict) and node and draw.random() < 0.8:
            key = draw.choice(list(node))
            kind = draw.random()
            if kind < 0.6:
                node[key] = self._bent(node[key])
            elif kind < 0.75:
                del node[key]
            elif kind < 0.9:
                node[self._bent_text(key)] = node.pop(key)
            else:
                node[draw.choice(("requests", "stream", "text", "model", "options", "request_id"))] = (
                    deepcopy(draw.choice(HOSTILE))
                )
            return node
        if isinstance(node, list) and node and draw.random() < 0.8:
            place = draw.randrange(len(node))
            if draw.random() < 0.7:
                node[place] = self._bent(node[place])
            else:
                node += [node[place]] * draw.choice((1, 2, 30))
            return node
        if draw.random() < 0.05:
            deep = node
            for _ in range(draw.choice((10, 100, 200))):
                deep = [deep]
            return deep if draw.random() < 0.9 else {"a": deep}
        return deepcopy(draw.choice(HOSTILE))

    def _bent_text(self, text: str) -> str:
        draw = self._random
        place = draw.randrange(len(text) + 1)
        planted = draw.choice(
            ("", "%00", "%2f", "..", "//", "é", "%", "a" * 200, "?", "&", "=", "%ff", "\\", ";", "@", ":")
        )
        return text[:place] + planted + text[place + draw.choice((0, 0, 1, 5)) :]

    def _broken(self, sent: bytes) -> bytes:
        """The same bytes with some flipped, dropped, doubled, or with something planted between them."""
        draw, data = self._random, bytearray(sent)
        for _ in range(draw.randint(1, 4)):
            place = draw.randrange(len(data) + 1)
            match draw.randrange(5):
                case 0 if place < len(data):
                    data[place] = draw.randrange(256)
                case 1:
                    del data[place : place + draw.choice((1, 1, 4, 40))]
                case 2:
                    data[place:place] = data[place : place + draw.choice((1, 10, 100))]
                case _:
                    data[place:place] = draw.choice(TOKENS)
        return bytes(data)


@dataclass
class Report:
    """What a run saw."""

    executions: int = 0
    replies: int = 0
    statuses: dict[int, int] = field(default_factory=dict)
    slowest: float = 0.0
    findings: list[str] = field(default_factory=list)
    before: dict[str, int] = field(default_factory=dict)
    after: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        told = ", ".join(f"{status}: {number}" for status, number in sorted(self.statuses.items()))
        lines = [
            f"{self.executions} connections, {self.replies} replies ({told}), the slowest in {self.slowest:.2f} s",
            f"before {self.before}, after {self.after}",
            *self.findings,
        ]
        return "\n".join(lines)


class Fuzzer:
    """Sends what a mutator draws to one server process, and watches it."""

    def __init__(self, url: str, process: psutil.Process) -> None:
        self._url = url
        self._port = int(url.rpartition(":")[2])
        self._process = process
        self.report = Report()

    def run(self, seconds: float, seed: int, most: int = sys.maxsize) -> Report:
        """Fuzz for so long, or so many connections; the first tenth is to warm up."""
        mutator, began = Mutator(seed), monotonic()
        warm_until = began + seconds / 10
        with ThreadPoolExecutor(AT_ONCE) as senders:
            while monotonic() - began < seconds and self.report.executions < most:
                if not self.report.before and monotonic() > warm_until:
                    self.report.before = self._measured()
                drawn = [mutator.exchange() for _ in range(min(DRAWN, most))]
                for sent, (received, taken) in zip(drawn, senders.map(self._timed, drawn), strict=True):
                    self._judge(sent, received, taken)
                self._check_alive()
                if len(self.report.findings) > 20:
                    break
        self.report.before = self.report.before or self._measured()
        self._check_alive()
        self.report.after = self._measured()
        self._check_growth()
        return self.report

    def _timed(self, sent: bytes) -> tuple[bytes | None, float]:
        began = monotonic()
        return self._answer(sent), monotonic() - began

    def _judge(self, sent: bytes, received: bytes | None, taken: float) -> None:
        self.report.executions += 1
        self.report.slowest = max(self.report.slowest, taken)
        if received is None:
            self._found("hangs", sent)
            return
        for status in map(int, re.findall(rb"(?:^|\n|\})HTTP/1\.[01] (\d{3}) ", received)):
            self.report.replies += 1
            self.report.statuses[status] = self.report.statuses.get(status, 0) + 1
            if status >= 500 and status not in {501, 502, 503}:
                self._found(f"answers {status}", sent)

    def _answer(self, sent: bytes) -> bytes | None:
        """All that comes back until the server closes; None when it never does."""
        received = bytearray()
        with socket.create_connection(("127.0.0.1", self._port), timeout=HANG_SECONDS) as connection:
            try:
                connection.sendall(sent)
                self._read(connection, received, QUIET_SECONDS)
                connection.shutdown(socket.SHUT_WR)
                if not self._read(connection, received, HANG_SECONDS):
                    return None
            except OSError:
                pass  # it closed while bytes of ours were on their way
        return bytes(received)

    @staticmethod
    def _read(connection: socket.socket, received: bytearray, patience: float) -> bool:
        """Read until the server closes, which gives True, or says nothing for so long."""
        connection.settimeout(patience)
        try:
            while piece := connection.recv(262_144):
                received += piece
        except TimeoutError:
            return False
        return True

    def _check_alive(self) -> None:
        try:
            httpx.post(f"{self._url}/__emulator__/reset", timeout=HANG_SECONDS)
            reply = httpx.post(
                f"{self._url}{AI}/run/{M3}",
                json={"text": "a"},
                headers={"authorization": "Bearer t"},
                timeout=HANG_SECONDS,
            )
            if reply.status_code != 200:
                self.report.findings.append(f"a plain run is answered {reply.status_code} afterwards")
        except httpx.HTTPError as fault:
            self.report.findings.append(f"the server is gone: {fault!r}")

    def _measured(self) -> dict[str, int]:
        self._check_alive()
        httpx.delete(f"{self._url}/__emulator__/requests", timeout=HANG_SECONDS)
        with self._process.oneshot():
            return {
                "rss": self._process.memory_info().rss,
                "files": self._process.num_fds(),
                "threads": self._process.num_threads(),
            }

    def _check_growth(self) -> None:
        before, after = self.report.before, self.report.after
        if after["rss"] - before["rss"] > GROWTH_BYTES:
            self.report.findings.append(f"memory grows from {before['rss']} to {after['rss']} bytes")
        if after["files"] - before["files"] > GROWTH_FILES:
            self.report.findings.append(f"{after['files'] - before['files']} more files stay open")
        if after["threads"] > before["threads"] + 1:
            self.report.findings.append(f"{after['threads'] - before['threads']} more threads run")

    def _found(self, what: str, sent: bytes) -> None:
        self.report.findings.append(f"{what}: {sent[:3000]!r}")


def fuzz(seconds: float, seed: int, most: int = sys.maxsize, tell: Callable[[str], object] = print) -> Report:
    """Fuzz a server process of its own, and take its log for a witness."""
    command = [sys.executable, "-m", "workersai_emulator.cli", "serve", "--port", "0", "--seed", "1", *KEPT]
    with subprocess.Popen(
        [*command, "--log", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        log = _Log(process.stderr)
        try:
            url = process.stdout.readline().strip()
            report = Fuzzer(url, psutil.Process(process.pid)).run(seconds, seed, most)
        finally:
            process.terminate()
            code = process.wait(timeout=30)
        report.findings += log.faults()
        if code:
            report.findings.append(f"the server ended with {code}")
        tell(str(report))
        return report


class _Log:
    """The server's log, read on the way; what is no exchange is kept."""

    def __init__(self, stream: Any) -> None:
        from threading import Thread

        self._odd: list[str] = []
        self._thread = Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream: Any) -> None:
        for line in stream:
            try:
                event = json.loads(line)["event"]
            except (ValueError, KeyError, TypeError):
                event = "no JSON"
            if event not in {"exchange", "start", "end", "warning"}:
                self._odd.append(line)

    def faults(self) -> list[str]:
        self._thread.join(timeout=10)
        return [f"the log tells of: {line[:3000]}" for line in self._odd[:10]]


if __name__ == "__main__":
    for_seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    drawn_from = int(sys.argv[2]) if len(sys.argv) > 2 else 20_261_130
    sys.exit(1 if fuzz(for_seconds, drawn_from).findings else 0)
