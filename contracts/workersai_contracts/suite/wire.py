"""The suite's client: sends requests as they are written, and keeps what came back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from workersai_contracts.catalogue import model
from workersai_contracts.exchange import AI, QUEUE, RUN
from workersai_contracts.passing import Reply, Request, spelled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workersai_contracts.recording import Recorder
    from workersai_contracts.target import Target

CHARACTERS_PER_TOKEN = 4.8
#: The header of a reply to what a replayed recording does not have.
NOT_RECORDED = "x-emulator-replay"
OUTPUT_TOKENS = 16  # no exchange asks for more
UNKNOWN_TOKEN = "0123456789abcdefghijABCDEFGHIJ0123456789"  # noqa: S105 - nobody's


@dataclass(frozen=True)
class Answer:
    """One reply as it came: status, headers with lower-case names, body."""

    status: int
    headers: Mapping[str, str]
    content: bytes = field(repr=False)

    @cached_property
    def json(self) -> Any:
        """The body, parsed with the order of keys; None where it is not JSON."""
        try:
            return json.loads(self.content)
        except ValueError:
            return None

    @property
    def result(self) -> Any:
        """The envelope's result; None where there is none."""
        return self.json.get("result") if isinstance(self.json, dict) else None


class Wire:
    """Sends to one target, and keeps what was sent and came back as evidence, without the token."""

    def __init__(self, target: Target, recorder: Recorder | None = None) -> None:
        self.target = target
        self._recorder = recorder
        self.evidence: list[dict[str, Any]] = []
        self.spent = 0.0
        self._http = httpx.Client(base_url=target.root, timeout=150.0, follow_redirects=False)

    def run(self, model_name: str, body: Any, query: str = "") -> Answer:
        """Post to a model; bytes are sent as they are."""
        return self.send(
            "POST", RUN.replace("{account_id}", self.target.account_id) + model_name, query, body
        )

    def ai(self, path: str, body: Any) -> Answer:
        """Post to another of the routes of Workers AI, such as `v1/embeddings`."""
        return self.send("POST", AI.replace("{account_id}", self.target.account_id) + path, "", body)

    def poll(self, model_name: str, request_id: str, *, query: bool = True) -> Answer:
        """Poll a batch, in one of the two documented forms. Fact: `poll.request`."""
        return self.run(model_name, {"request_id": request_id}, QUEUE if query else "")

    def send(
        self, method: str, path: str, query: str, body: Any, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send one request; without other headers it carries the target's token."""
        if headers is None:
            headers = {"Authorization": f"Bearer {self.target.token}"}
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        self._spend(path, content)
        url = path + (f"?{query}" if query else "")
        request = self._http.build_request(
            method, url, content=content, headers={"Content-Type": "application/json", **headers}
        )
        try:
            response = self._http.send(request)
        except httpx.HTTPError as fault:
            pytest.fail(f"{method} {path} got no reply: {type(fault).__name__}: {fault}", pytrace=False)
        answer = answer_of(response, content, self._recorder)
        self.evidence.append(self._redacted(method, url, content, answer))
        return answer

    def close(self) -> None:
        """End the connections."""
        self._http.close()

    def _spend(self, path: str, content: bytes) -> None:
        """Skip the test whose request would cost more than what is left of the budget."""
        if self.target.budget is None:
            return
        self.spent += estimated_neurons(path, content)
        if self.spent > self.target.budget:
            pytest.skip(f"the budget of {self.target.budget:g} neurons is used up")

    def _redacted(self, method: str, url: str, content: bytes, answer: Answer) -> dict[str, Any]:
        kept = ("content-type", "cf-ai-req-id", "cf-ai-neurons", "cf-ray", "retry-after", "server")
        return {
            "request": {"method": method, "url": self._anonymous(url), "body": self._shown(content)},
            "reply": {
                "status": answer.status,
                "headers": {name: answer.headers[name] for name in kept if name in answer.headers},
                "body": self._shown(answer.content),
            },
        }

    def _shown(self, content: bytes) -> Any:
        """A body as evidence shows it: JSON with long runs of numbers and of padding counted, not listed."""
        text = self._anonymous(content.decode("utf-8", "replace"))
        try:
            return _counted(json.loads(text))
        except ValueError:
            return text

    def _anonymous(self, text: str) -> str:
        return text.replace(self.target.account_id, "{account_id}").replace(self.target.token, "{token}")


def answer_of(response: httpx.Response, content: bytes, recorder: Recorder | None) -> Answer:
    """The reply to a request of this body, recorded; fails the test where a replayed recording had none."""
    answer = Answer(response.status_code, dict(response.headers), response.content)
    if NOT_RECORDED in answer.headers:
        pytest.fail(str(answer.json["errors"][0]["message"]), pytrace=False)
    if recorder is not None:
        asked = response.request
        target = asked.url.raw_path.decode("ascii")
        request = Request(asked.method, target, spelled(asked.headers), content)
        recorder.keep(request, Reply(answer.status, spelled(response.headers), answer.content))
    return answer


def estimated_neurons(path: str, content: bytes) -> float:
    """What a request may cost, by the size of its body; padding and polls cost nothing. Fact: `limits.prices`."""
    in_path = path.partition("/ai/run/@")[2]
    card = model(f"@{in_path}" if in_path else _named(content))
    if card is None or b'"request_id"' in content or len(content) > 1_000_000:
        return 0.0
    tokens = len(content) / CHARACTERS_PER_TOKEN
    return (
        tokens * (card.neurons_per_million_input or 0)
        + OUTPUT_TOKENS * (card.neurons_per_million_output or 0)
    ) / 1e6


def _named(content: bytes) -> str:
    """The model that a body names."""
    try:
        body = json.loads(content)
    except ValueError:
        return ""
    return str(body.get("model", "")) if isinstance(body, dict) else ""


def _counted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _counted(one) for key, one in value.items()}
    if isinstance(value, list):
        if len(value) > 8 and all(isinstance(one, float) for one in value):
            return {"numbers": len(value), "first": value[:4]}
        return [_counted(one) for one in value]
    if isinstance(value, str) and len(value) > 10_000:
        return {"characters": len(value), "first": value[:20]}
    return value
