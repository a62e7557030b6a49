"""Which messages go over which route: what an exchange is held to, by its method, its path and its body."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn
from urllib.parse import parse_qsl, unquote

from workersai_contracts.catalogue import model
from workersai_contracts.mismatch import ContractMismatch, Mismatch, mismatches

if TYPE_CHECKING:
    from workersai_contracts.catalogue import ModelCard

Operation = Literal["submit", "poll", "run", "run-all", "worker-submit", "worker-poll"]

JSON_TYPE = "application/json"
STREAM_TYPE = "text/event-stream"

_RUN = re.compile(r"/accounts/[^/]+/ai/run/(.+)")
_WORKER_POLL = re.compile(r"/batch/[^/]+")
_REQUESTS: dict[Operation, str] = {
    "submit": "batch/submit.request",
    "poll": "batch/poll.request",
    "run-all": "batch/submit.request",
    "worker-submit": "worker/submit.request",
}
_REPLIES: dict[Operation, str] = {
    "submit": "batch/submit.reply",
    "run-all": "batch/poll.done",
    "worker-submit": "worker/submit.reply",
    "worker-poll": "worker/poll.reply",
}
_M3 = "@cf/baai/bge-m3"
_NOT_JSON = object()


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request on a route of the contract; the checks say how it, or its reply, departs from it.

    `run-all` is a body of `requests` without the query: they are run at once (Fact: `submit.no-query`).
    """

    operation: Operation
    inputs: Any
    model: str | None = None

    def check_request(self) -> ContractMismatch | None:
        """Hold the request to its schema. Facts: `batch.submit`, `poll.request`, `worker.submit`.

        What an item or a run holds is not looked at, since the service's validator is not JSON Schema (Fact:
        `input.semantics`). A submit without `requests` is no contract, although it is taken (Fact:
        `batch.bare`), nor is `queueRequest` in a body (Fact: `batch.query.body`).
        """
        name = _REQUESTS.get(self.operation, "")
        if self.operation == "worker-poll":
            return None
        if self.inputs is _NOT_JSON:
            return _breach(name or "request", [_differs("JSON", "the body is not JSON")])
        found = mismatches(self.inputs, name) if name else []
        if not isinstance(self.inputs, dict):
            found = found or [_differs("an object", "the body is not an object")]
        elif "queueRequest" in self.inputs and self.model is not None:
            message = "queueRequest belongs in the query; in the body it is ignored"
            found.append(_differs("?queueRequest=true", message, "$.queueRequest"))
        return _breach(name or "request", found)

    def check_reply(self, status: int, content_type: str, content: bytes) -> ContractMismatch | None:
        """Hold the reply to the schema that its status and its kind ask for; streams of events pass.

        Facts: `env.success`, `env.ai`, `env.edge`, `head.content-type`, `worker.error`.
        """
        if content_type.startswith(STREAM_TYPE):
            return None
        body = _parsed(content)
        if body is _NOT_JSON:
            return _breach("reply", [_differs("JSON", f"HTTP {status} with a body that is not JSON")])
        name = self._reply_schema(status, body)
        found = mismatches(body, name)
        if name == "batch/poll.done":
            found += self._item_mismatches(body)
        if self.model is not None and content_type != JSON_TYPE:
            message = f"the content type is {content_type!r}, not exactly {JSON_TYPE}"
            found.append(_differs(JSON_TYPE, message, "content-type"))
        return _breach(name, found)

    def _reply_schema(self, status: int, body: Any) -> str:
        if self.operation in {"worker-submit", "worker-poll"}:
            return _REPLIES[self.operation] if status < 300 else "worker/error.reply"
        if status >= 300:
            refused_by_router = isinstance(body, dict) and body.get("result") is None
            return "envelope/edge-error" if refused_by_router else "envelope/ai-error"
        result = body.get("result") if isinstance(body, dict) else None
        if self.operation == "poll":
            waiting = isinstance(result, dict) and "status" in result and "responses" not in result
            return "batch/poll.pending" if waiting else "batch/poll.done"
        return _REPLIES.get(self.operation) or _output_schema(self._card, result)

    def _item_mismatches(self, body: Any) -> list[Mismatch]:
        """Hold each item's result to what its model answers. Fact: `models.items`."""
        result = body.get("result") if isinstance(body, dict) else None
        items = result.get("responses") if isinstance(result, dict) else None
        found: list[Mismatch] = []
        for position, item in enumerate(items if isinstance(items, list) else []):
            if (
                isinstance(item, dict)
                and item.get("success") is True
                and isinstance(item.get("result"), dict)
            ):
                output = item["result"]
                alone = {"result": output, "success": True, "errors": [], "messages": []}
                place = f"$.result.responses[{position}].result"
                found += (_moved(one, place) for one in mismatches(alone, _output_schema(self._card, output)))
        return found

    @property
    def _card(self) -> ModelCard | None:
        return model(self.model) if self.model is not None else None


def exchange_of(method: str, target: str, content: bytes) -> Exchange | None:
    """Recognize a request by its method, its path with the query, and its body; None on any other route.

    The routes are `…/accounts/{account_id}/ai/run/{model}` over REST, below any base, with the model raw,
    with `%40` or with `%2F` (Fact: `sync.path`), and those of the `/batch` Worker.
    """
    path, _, query = target.partition("?")
    if method == "GET" and _WORKER_POLL.fullmatch(path):
        return Exchange("worker-poll", None)
    if method != "POST":
        return None
    if path == "/batch":
        return Exchange("worker-submit", _parsed(content))
    if (run := _RUN.search(path)) is None:
        return None
    inputs = _parsed(content)
    queued = dict(parse_qsl(query)).get("queueRequest") == "true"
    return Exchange(_operation(inputs, queued=queued), inputs, unquote(run[1]))


def _operation(inputs: Any, *, queued: bool) -> Operation:
    """A request_id is looked for before anything else. Facts: `poll.request`, `batch.query`."""
    if isinstance(inputs, dict) and "request_id" in inputs:
        return "poll"
    if queued:
        return "submit"
    return "run-all" if isinstance(inputs, dict) and "requests" in inputs else "run"


def _output_schema(card: ModelCard | None, output: Any) -> str:
    """What a model answers with; bge-m3, which also ranks, has no shape then. Fact: `models.items`."""
    if card is None:
        return "envelope/success"
    ranks = card.name == _M3 and isinstance(output, dict) and not {"shape", "data"} & output.keys()
    return f"run/{'reranking' if ranks else card.answers}.reply"


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _differs(expected: str, message: str, path: str = "$") -> Mismatch:
    return Mismatch(path, "", expected, None, f"{path}: {message}")


def _moved(found: Mismatch, place: str) -> Mismatch:
    path = place + found.path.removeprefix("$.result")
    return replace(found, path=path, message=path + found.message.removeprefix(found.path))


def _breach(name: str, found: list[Mismatch]) -> ContractMismatch | None:
    return ContractMismatch(name, found) if found else None
