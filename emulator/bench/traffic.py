"""Mixed traffic of one account: every dialect, moving clocks, replies that nobody reads to their end; all checked."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import httpx

from workersai_contracts.routes import exchange_of

M3, LLAMA = "@cf/baai/bge-m3", "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
MESSAGES = [{"role": "user", "content": "Tell me about the sea, in many words, please."}]
SCRIPT = {"X-Emulator-Script": "queued:20s, running:40s, done"}
#: The script's states are waited for in steps of so many seconds of the account's clock.
_STEP = 15


class Breach(Exception):
    """A reply that is not what it has to be."""


class Traffic:
    """One account's programs, one exchange at a time."""

    def __init__(self, url: str, account_id: str) -> None:
        self._account_id, self._ai = account_id, f"/client/v4/accounts/{account_id}/ai"
        self._client = httpx.Client(base_url=url, headers={"Authorization": "Bearer soak"}, timeout=60)
        self.seen: Counter[str] = Counter()

    def close(self) -> None:
        """End its connections."""
        self._client.close()

    def turn(self, number: int) -> None:
        """One of everything. Raises Breach."""
        text = f"text {number} of {self._account_id}"
        self._rest("run", f"run/{M3}", {"text": [text, "another"]})
        self._through_the_queue([f"{text}, item {item}" for item in range(1 + number % 40)])
        self._rest("stream", f"run/{LLAMA}", {"messages": MESSAGES, "stream": True, "max_tokens": 64})
        self._cut_off()
        self._rest("v1", "v1/embeddings", {"model": M3, "input": text})
        self._rest("v1", "v1/chat/completions", {"model": LLAMA, "messages": MESSAGES, "max_tokens": 16})
        self._rest("v1", "v1/responses", {"model": "@cf/openai/gpt-oss-120b", "input": text})
        self._binding({"text": text})
        self._rest("refusal", f"run/{M3}", {"nothing": "that it knows"}, status=400)
        self._worker([text])

    def _through_the_queue(self, texts: list[str]) -> None:
        target, message = f"run/{M3}?queueRequest=true", {"requests": [{"text": text} for text in texts]}
        request_id = self._rest("submit", target, message, headers=SCRIPT)["result"]["request_id"]
        for _ in range(1 + 60 // _STEP):
            result = self._rest("poll", f"run/{M3}", {"request_id": request_id})["result"]
            if "responses" in result:
                if len(result["responses"]) != len(texts):
                    raise Breach(f"{len(result['responses'])} items of {len(texts)}")
                return
            self._move_clock()
        raise Breach(f"batch {request_id} is not done when it has to be")

    def _rest(
        self,
        kind: str,
        behind: str,
        message: Any,
        *,
        status: int = 200,
        headers: dict[str, str] | None = None,
    ) -> Any:
        return self._checked(kind, f"{self._ai}/{behind}", message, status, headers)

    def _worker(self, texts: list[str]) -> None:
        named = {"X-Emulator-Account": self._account_id}
        submitted = self._checked(
            "worker", "/batch", {"texts": texts}, 200, {**named, "X-Emulator-Script": "done"}
        )
        self._checked("worker", f"/batch/{submitted['request_id']}", None, 200, named)

    def _checked(
        self, kind: str, target: str, message: Any, status: int, headers: dict[str, str] | None
    ) -> Any:
        method = "GET" if message is None else "POST"
        content = b"" if message is None else json.dumps(message).encode()
        said = {"Content-Type": "application/json", **(headers or {})}
        reply = self._client.request(method, target, content=content, headers=said)
        exchange = exchange_of(method, target, content)
        if exchange is None:
            raise Breach(f"{method} {target} is no route of the contract")
        self._hold(kind, reply, status)
        if fault := exchange.check_reply(reply.status_code, reply.headers["content-type"], reply.content):
            raise Breach(f"{kind}: {fault}")
        return None if reply.headers["content-type"].startswith("text/event-stream") else reply.json()

    def _binding(self, inputs: Any) -> None:
        """The binding's reply is the bare result: in an envelope it is held to the same schema."""
        named = {"cf-consn-model-id": M3, "X-Emulator-Account": self._account_id}
        reply = self._client.post(
            "/run?version=3",
            json={"inputs": inputs, "options": {}},
            headers={**named, "Host": "workers-binding.ai"},
        )
        self._hold("binding", reply, 200)
        exchange = exchange_of("POST", f"{self._ai}/run/{M3}", json.dumps(inputs).encode())
        whole = {"result": reply.json(), "success": True, "errors": [], "messages": []}
        if exchange is None or (
            fault := exchange.check_reply(200, "application/json", json.dumps(whole).encode())
        ):
            raise Breach(f"binding: {fault}")

    def _cut_off(self) -> None:
        """Ask for a stream, and hang up when its first bytes are there."""
        message = {"messages": MESSAGES, "stream": True, "max_tokens": 256}
        with self._client.stream("POST", f"{self._ai}/run/{LLAMA}", json=message) as reply:
            next(reply.iter_raw())
            self._hold("cut off", reply, 200)

    def forget_journal(self) -> None:
        """Have the server forget every account's exchanges, of which it keeps more than a soak fills."""
        self._hold("journal", self._client.delete("/__emulator__/requests"), 204)

    def _move_clock(self) -> None:
        message = {"account_id": self._account_id, "advance": f"{_STEP}s"}
        self._hold("clock", self._client.post("/__emulator__/clock", json=message), 200)

    def _hold(self, kind: str, reply: httpx.Response, status: int) -> None:
        self.seen[kind] += 1
        if reply.status_code != status:
            told = reply.read()[:300]
            raise Breach(f"{kind}: HTTP {reply.status_code} for {status}: {told!r}")
