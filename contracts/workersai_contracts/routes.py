"""Which messages go over which route: what an exchange is held to, by its method, its path and its body."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn
from urllib.parse import parse_qsl, unquote

from workersai_contracts.catalogue import model
from workersai_contracts.event_stream import STREAM_TYPE, Streams, stream_mismatches
from workersai_contracts.mismatch import ContractMismatch, Mismatch, differs, mismatches, moved
from workersai_contracts.vectors import vector_mismatches

if TYPE_CHECKING:
    from workersai_contracts.catalogue import ModelCard

Operation = Literal[
    "submit",
    "poll",
    "run",
    "run-all",
    "run-body",
    "chat",
    "embeddings",
    "responses",
    "search",
    "schema",
    "tasks",
    "authors",
    "finetunes",
    "nothing",
    "worker-submit",
    "worker-poll",
]

JSON_TYPE: Final = "application/json"

_REST = re.compile(r"/accounts/[^/]+/ai/(.+)")
_GATEWAY = re.compile(r"/v1/[^/]+/[^/]+/workers-ai/(.+)")
_WORKER_POLL = re.compile(r"/batch/[^/]+")
_OPENAI: dict[str, Operation] = {
    "v1/chat/completions": "chat",
    "v1/embeddings": "embeddings",
    "v1/responses": "responses",
}
_LISTINGS: dict[str, Operation] = {
    "models/search": "search",
    "models/schema": "schema",
    "tasks/search": "tasks",
    "authors/search": "authors",
    "finetunes": "finetunes",
    "finetunes/public": "finetunes",
    "v1/models": "nothing",
}
_REQUESTS: dict[Operation, str] = {
    "submit": "batch/submit.request",
    "poll": "batch/poll.request",
    "run-all": "batch/submit.request",
    "run-body": "run/body.request",
    "chat": "openai/chat.request",
    "embeddings": "openai/embeddings.request",
    "responses": "openai/responses.request",
    "worker-submit": "worker/submit.request",
}
#: What a success is; nothing succeeds where nothing is (Fact: `openai.models`).
_REPLIES: dict[Operation, str] = {
    "submit": "batch/submit.reply",
    "run-all": "batch/poll.done",
    "chat": "openai/chat.reply",
    "embeddings": "openai/embeddings.reply",
    "responses": "openai/responses.reply",
    "search": "models/search.reply",
    "schema": "models/schema.reply",
    "tasks": "models/tasks.reply",
    "authors": "models/authors.reply",
    "finetunes": "models/finetunes.reply",
    "nothing": "envelope/edge-error",
    "worker-submit": "worker/submit.reply",
    "worker-poll": "worker/poll.reply",
}
_STREAMS: dict[Operation, Streams] = {"run": "native", "chat": "chat", "responses": "responses"}
_RUNS: frozenset[Operation] = frozenset({"submit", "poll", "run", "run-all"})
_WORKER: frozenset[Operation] = frozenset({"worker-submit", "worker-poll"})
_BODILESS: frozenset[Operation] = frozenset({*_LISTINGS.values(), "worker-poll"})
_M3 = "@cf/baai/bge-m3"
_NOT_JSON = object()
_NO_BODY = object()


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request on a route of the contract; the checks say how it, or its reply, departs from it.

    `run-all` is a body of `requests` without the query: they are run at once (Fact: `submit.no-query`).
    `nothing` is the route that the router answers with 405 (Fact: `openai.models`). `inputs` are the query of a
    listing; `body` is the whole body where the inputs are a part of it (Fact: `sync.run-body`).
    """

    operation: Operation
    inputs: Any
    model: str | None = None
    body: Any = None

    def check_request(self) -> ContractMismatch | None:
        """Hold the request to its schema. Facts: `batch.submit`, `poll.request`, `openai.run`, `worker.submit`.

        What an item or a run holds is not looked at, since the service's validator is not JSON Schema (Fact:
        `input.semantics`), and a model of images or speech takes a file for a body (Fact: `sync.raw-body`). A
        submit without `requests` is no contract, although it is taken (Fact: `batch.bare`), nor is
        `queueRequest` in a body (Fact: `batch.query.body`).
        """
        if self.operation in _BODILESS:
            return None
        name = _REQUESTS.get(self.operation, "")
        if self.inputs is _NO_BODY or self.inputs is _NOT_JSON:
            raw = self._card is not None and self._card.raw_input is not None and self.operation == "run"
            if raw and self.inputs is _NOT_JSON:
                return None
            return _breach(name or "request", [differs("JSON", "the body is not JSON")])
        if self.body is not None and (found := mismatches(self.body, "run/body.request")):
            return _breach("run/body.request", found)
        place = "$" if self.body is None else "$.input"
        found = [moved(one, place) for one in mismatches(self.inputs, name)] if name else []
        if not isinstance(self.inputs, dict):
            found = found or [differs("an object", "the body is not an object")]
        elif "queueRequest" in self.inputs and self.operation in _RUNS:
            message = "queueRequest belongs in the query; in the body it is ignored"
            found.append(differs("?queueRequest=true", message, f"{place}.queueRequest"))
        return _breach(name or "request", found)

    def check_reply(self, status: int, content_type: str, content: bytes) -> ContractMismatch | None:
        """Hold the reply to the schema that its status and its kind ask for.

        Facts: `env.success`, `env.ai`, `env.edge`, `head.content-type`, `head.sse`, `sync.binary`, `worker.error`.
        """
        if content_type.startswith(STREAM_TYPE):
            return self._check_stream(content_type, content)
        if status < 300 and self._gives_bytes and content_type != JSON_TYPE:
            return self._check_bytes(content_type, content)
        body = _parsed(content)
        if body is _NOT_JSON or body is _NO_BODY:
            return _breach("reply", [differs("JSON", f"HTTP {status} with a body that is not JSON")])
        name = self._reply_schema(status, body)
        found = mismatches(body, name)
        if name == "batch/poll.done":
            found += self._item_mismatches(body)
        if name == "openai/embeddings.reply" and not found:
            found += vector_mismatches(self.inputs, body["data"])
        if self.operation not in _WORKER and content_type != JSON_TYPE:
            message = f"the content type is {content_type!r}, not exactly {JSON_TYPE}"
            found.append(differs(JSON_TYPE, message, "content-type"))
        if status < 300 and self._asks_for_stream:
            message = f"a stream was asked for, and the content type is {content_type!r}"
            found.append(differs(STREAM_TYPE, message, "content-type"))
        return _breach(name, found)

    def _check_stream(self, content_type: str, content: bytes) -> ContractMismatch | None:
        """Fact: `head.sse`."""
        form = _STREAMS.get(self.operation)
        asked = isinstance(self.inputs, dict) and self.inputs.get("stream") is True
        if form is None or not asked:
            message = "a stream of events comes, and none was asked for"
            return _breach("reply", [differs(JSON_TYPE, message, "content-type")])
        name, found = stream_mismatches(content, form)
        if content_type != STREAM_TYPE:
            message = f"the content type is {content_type!r}, not exactly {STREAM_TYPE}"
            found.append(differs(STREAM_TYPE, message, "content-type"))
        return _breach(name, found)

    def _check_bytes(self, content_type: str, content: bytes) -> ContractMismatch | None:
        """Fact: `sync.binary`."""
        wanted = self._card.output_type if self._card is not None else ""
        found = []
        if content_type != wanted:
            message = f"the content type is {content_type!r}, not {wanted}"
            found.append(differs(wanted, message, "content-type"))
        if not content:
            found.append(differs("bytes", "the body is empty"))
        return _breach("reply", found)

    def _reply_schema(self, status: int, body: Any) -> str:
        if self.operation in _WORKER:
            return _REPLIES[self.operation] if status < 300 else "worker/error.reply"
        if status >= 300:
            return self._refusal_schema(status, body)
        result = body.get("result") if isinstance(body, dict) else None
        if self.operation == "poll":
            waiting = isinstance(result, dict) and "status" in result and "responses" not in result
            return "batch/poll.pending" if waiting else "batch/poll.done"
        return _REPLIES.get(self.operation) or _output_schema(self._card, result)

    def _refusal_schema(self, status: int, body: Any) -> str:
        """Facts: `env.edge`, `env.ai`, `openai.responses-error`, `openai.models`."""
        if not isinstance(body, dict):
            return "envelope/ai-error"
        if self.operation == "responses" and status == 400 and "error" in body:
            return "openai/error.reply"
        return "envelope/edge-error" if body.get("result") is None else "envelope/ai-error"

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
                found += (
                    moved(one, place, "$.result")
                    for one in mismatches(alone, _output_schema(self._card, output))
                )
        return found

    @property
    def _card(self) -> ModelCard | None:
        return model(self.model) if self.model is not None else None

    @property
    def _gives_bytes(self) -> bool:
        return self.operation == "run" and self._card is not None and self._card.output_type != JSON_TYPE

    @property
    def _asks_for_stream(self) -> bool:
        """Whether a stream must come: a text model's run that asks for one."""
        if self.operation not in _STREAMS or not isinstance(self.inputs, dict):
            return False
        writes = self._card is not None and self._card.writes_text
        return writes and self.inputs.get("stream") is True


def exchange_of(method: str, target: str, content: bytes) -> Exchange | None:
    """Recognize a request by its method, its path with the query, and its body; None on any other route.

    The routes are those of REST, `…/accounts/{account_id}/ai/…` below any base, with the model raw, with `%40`
    or with `%2F` (Fact: `sync.path`) or in the body (Fact: `sync.run-body`), the same behind an AI Gateway
    (Fact: `gateway.path`), and those of the `/batch` Worker.
    """
    path, _, query = target.partition("?")
    asked = dict(parse_qsl(query))
    if method == "GET":
        return _got(path, asked)
    return _posted(path, asked, _parsed(content)) if method == "POST" else None


def _got(path: str, asked: dict[str, str]) -> Exchange | None:
    if _WORKER_POLL.fullmatch(path):
        return Exchange("worker-poll", None)
    operation = _LISTINGS.get(_behind(path))
    return None if operation is None else Exchange(operation, asked)


def _posted(path: str, asked: dict[str, str], body: Any) -> Exchange | None:
    if path == "/batch":
        return Exchange("worker-submit", body)
    behind, queued = _behind(path), asked.get("queueRequest") == "true"
    if behind in _OPENAI:
        return Exchange(_OPENAI[behind], body, _named(body))
    if behind == "run":
        return _named_in_body(body, queued=queued)
    if behind == "finetunes":
        return Exchange("nothing", body)
    if not behind.startswith("run/"):
        return None
    return Exchange(_operation(body, queued=queued), body, unquote(behind.removeprefix("run/")))


def _behind(path: str) -> str:
    """What a path says behind `/ai/`; a gateway's path has a model without `run/` in front."""
    if rest := _REST.search(path):
        return rest[1]
    if gateway := _GATEWAY.search(path):
        behind = gateway[1]
        return behind if behind.startswith("v1/") else f"run/{behind}"
    return ""


def _named_in_body(body: Any, *, queued: bool) -> Exchange:
    """A run whose path names no model. Fact: `sync.run-body`."""
    named = _named(body)
    if not named:
        return Exchange("run-body", body)
    inputs = body.get("input", {})
    return Exchange(_operation(inputs, queued=queued), inputs, named, body)


def _named(body: Any) -> str:
    name = body.get("model") if isinstance(body, dict) else None
    return name if isinstance(name, str) else ""


def _operation(inputs: Any, *, queued: bool) -> Operation:
    """A request_id is looked for before anything else. Facts: `poll.request`, `batch.query`."""
    if isinstance(inputs, dict) and "request_id" in inputs:
        return "poll"
    if queued:
        return "submit"
    return "run-all" if isinstance(inputs, dict) and "requests" in inputs else "run"


def _output_schema(card: ModelCard | None, output: Any) -> str:
    """What a model answers with; bge-m3, which also ranks, has no shape then, and gpt-oss chats in choices.

    Facts: `models.items`, `sync.gpt-oss`.
    """
    if card is None:
        return "envelope/success"
    if card.answers == "output" and isinstance(output, dict) and "choices" in output:
        return "run/choices.reply"
    ranks = card.name == _M3 and isinstance(output, dict) and not {"shape", "data"} & output.keys()
    return f"run/{'reranking' if ranks else card.answers}.reply"


def _parsed(content: bytes) -> Any:
    if not content:
        return _NO_BODY
    try:
        return json.loads(content, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _breach(name: str, found: list[Mismatch]) -> ContractMismatch | None:
    return ContractMismatch(name, found) if found else None
