"""An OpenAPI 3.1 document of the routes that the emulator serves, made of the schemas and the model cards.

As in the service's own description, each model has a path of its own, since its name decides what is taken and given.
The calls of the binding inside a Worker are left out: nobody but a runtime sends them.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from workersai_contracts.catalogue import errors, load_schema, models, schema_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from workersai_contracts.catalogue import ModelCard

JSON_TYPE: Final = "application/json"
REST: Final = "/client/v4/accounts/{account_id}/ai"
GATEWAY: Final = "/v1/{account_id}/{gateway_id}/workers-ai"
_REFERENCE: Final = "#/components/schemas/"
_URN: Final = "urn:workersai:"
_TITLES: Final = {200: "A success", 202: "The batch is queued"}
#: A refusal by the emulator as a tool, such as of a header of its own: no words of the service.
_TOOL: Final = "emulator.refusal"

Node = dict[str, Any]

_ALLOWED: Final[dict[bool, Node]] = {True: {}, False: {"not": {}}}


def openapi(version: str) -> Node:
    """The document, new at each call; `version` is that of the emulator that serves it."""
    document: Node = json.loads(_text())
    document["info"]["version"] = version
    return document


@cache
def _text() -> str:
    components = _Components()
    paths = {**_runs(components), **_openai(), **_listings(), **_worker()}
    return json.dumps(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "Workers AI, as workersai-emulator serves it",
                "version": "",
                "description": "What is emulated, and no description by the service's maker.",
            },
            "servers": [{"url": "/"}],
            "security": [{"token": []}, {"email": [], "key": []}],
            "paths": paths,
            "components": {
                "schemas": components.schemas,
                "securitySchemes": {
                    "token": {"type": "http", "scheme": "bearer"},
                    "email": {"type": "apiKey", "in": "header", "name": "X-Auth-Email"},
                    "key": {"type": "apiKey", "in": "header", "name": "X-Auth-Key"},
                },
            },
        }
    )


class _Components:
    """The schemas that are referred to: every message's, and each model's, those that are alike only once."""

    def __init__(self) -> None:
        self.schemas: Node = {
            _TOOL: {
                "type": "object",
                "properties": {"error": {"type": "string", "minLength": 1}},
                "required": ["error"],
                "additionalProperties": False,
            }
        }
        for name in schema_names():
            self.schemas[_component(name)] = _rewritten(load_schema(name), _component(name))
        self._alike: dict[str, str] = {}

    def of_card(self, card: ModelCard) -> Node:
        """A reference to what a model takes."""
        text = json.dumps(card.input_schema)
        name = self._alike.setdefault(text, f"input.{card.name.rpartition('/')[2]}")
        self.schemas[name] = card.input_schema
        return _reference(name)


def _component(schema_name: str) -> str:
    return schema_name.replace("/", ".")


def _reference(name: str) -> Node:
    return {"$ref": f"{_REFERENCE}{name}"}


def _message(schema_name: str) -> Node:
    return _reference(_component(schema_name))


def _rewritten(node: Any, component: str) -> Any:
    """The same schema as a component: what it refers to is found in the document."""
    if isinstance(node, list):
        return [_rewritten(part, component) for part in node]
    if not isinstance(node, dict):
        return node
    told = {key: _member(key, part, component) for key, part in node.items() if key not in {"$schema", "$id"}}
    reference = told.get("$ref")
    if isinstance(reference, str):
        if reference.startswith(_URN):
            named = reference.removeprefix(_URN).partition(":")[0]
            told["$ref"] = f"{_REFERENCE}{_component(named)}"
        elif reference.startswith("#/"):
            told["$ref"] = f"{_REFERENCE}{component}{reference[1:]}"
    return told


def _member(key: str, part: Any, component: str) -> Any:
    """A schema's member. Tools for OpenAPI stumble over true and false as schemas, which have another spelling."""
    if key in {"examples", "const", "enum"}:
        return part
    if key == "items" and isinstance(part, bool):
        return _ALLOWED[part]
    if key == "properties":
        allowed = {name: _ALLOWED[of] if isinstance(of, bool) else of for name, of in part.items()}
        return _rewritten(allowed, component)
    return _rewritten(part, component)


def _runs(components: _Components) -> Node:
    """Facts: `sync.run`, `sync.path`, `sync.run-body`, `batch.query`, `gateway.path`."""
    paths: Node = {f"{REST}/run/{card.name}": _of_model(card, components) for card in models().values()}
    named = {"type": "string", "enum": list(models())}
    any_model = _any({"type": "object"}, *_queue_requests())
    for path, account in ((f"{REST}/run/{{model_name}}", ()), (f"{GATEWAY}/{{model_name}}", ("gateway_id",))):
        paths[path] = _operation(
            "runModel" if not account else "runModelBehindGateway",
            "Run any model, submit to it, or poll",
            parameters=[_in_path("model_name", named), *map(_in_path, account), _QUEUE],
            body={JSON_TYPE: any_model},
            success=_ANYTHING,
        )
    paths[f"{REST}/run"] = _operation(
        "runModelInBody",
        "Run the model that the body names",
        parameters=[_QUEUE],
        body={JSON_TYPE: _message("run/body.request")},
        success=_ANYTHING,
    )
    return paths


def _of_model(card: ModelCard, components: _Components) -> Node:
    body = {JSON_TYPE: _any(components.of_card(card), *_queue_requests())}
    if card.raw_input is not None:
        body["application/octet-stream"] = {}
    replies = [_message(f"run/{card.answers}.reply")]
    if card.answers == "embedding":
        replies.append(_message("run/reranking.reply"))
    if card.answers == "output":
        replies.append(_message("run/choices.reply"))
    success: Node = {JSON_TYPE: _any(*replies, *_queue_replies())}
    if card.writes_text:
        success["text/event-stream"] = {}
    if card.output_type != JSON_TYPE:
        success["audio/*" if card.answers == "speech" else card.output_type] = {}
    name = card.name.rpartition("/")[2]
    return _operation(
        f"run-{card.name.removeprefix('@').replace('/', '-')}",
        f"Run {name}, submit to it, or poll",
        tag=card.task,
        parameters=[_QUEUE],
        body=body,
        success=success,
    )


def _queue_requests() -> tuple[Node, ...]:
    return _message("batch/submit.request"), _message("batch/poll.request")


def _queue_replies() -> tuple[Node, ...]:
    names = ("batch/submit.reply", "batch/poll.pending", "batch/poll.done")
    return tuple(map(_message, names))


def _openai() -> Node:
    """Facts: `openai.run`, `openai.models`, `openai.responses-error`."""
    paths: Node = {}
    for prefix, behind in ((REST, ()), (GATEWAY, ("gateway_id",))):
        for path, name, streams in (
            ("/v1/chat/completions", "chat", True),
            ("/v1/embeddings", "embeddings", False),
            ("/v1/responses", "responses", True),
        ):
            success: Node = {JSON_TYPE: _message(f"openai/{name}.reply")}
            if streams:
                success["text/event-stream"] = {}
            paths[prefix + path] = _operation(
                f"openai-{name}{'-behind-gateway' if behind else ''}",
                "As OpenAI has it, without an envelope",
                tag="OpenAI",
                parameters=list(map(_in_path, behind)),
                body={JSON_TYPE: _message(f"openai/{name}.request")},
                success=success,
                also={400: _message("openai/error.reply")} if name == "responses" else {},
            )
    return paths


def _listings() -> Node:
    """Facts: `models.search`, `models.schema`, `models.tasks`, `models.authors`, `models.finetunes`."""
    text: Node = {"type": "string"}
    number: Node = {"type": "integer", "minimum": 1}
    truth: Node = {"type": "boolean"}
    search = {"search": text, "task": text, "author": text, "source": number, "page": number}
    search |= {"per_page": number, "hide_experimental": truth, "include_deprecated": truth}
    routes: tuple[tuple[str, str, Mapping[str, Node]], ...] = (
        ("models/search", "search", search),
        ("models/schema", "schema", {"model": {"type": "string", "enum": list(models())}}),
        ("tasks/search", "tasks", {}),
        ("authors/search", "authors", {}),
        ("finetunes", "finetunes", {}),
        ("finetunes/public", "finetunes", {}),
    )
    return {
        f"{REST}/{path}": _operation(
            f"list-{path.replace('/', '-')}",
            "A part of the catalogue",
            method="get",
            tag="Catalogue",
            parameters=[_in_query(key, of, required=key == "model") for key, of in query.items()],
            success={JSON_TYPE: _message(f"models/{name}.reply")},
        )
        for path, name, query in routes
    }


def _worker() -> Node:
    """Facts: `worker.info`, `worker.submit`, `worker.poll`, `worker.error`."""
    told: Node = {"tag": "The /batch Worker", "of_worker": True}
    a_request = {"type": "string", "pattern": "^[a-zA-Z0-9._-]{1,128}$"}
    return {
        "/": _operation(
            "worker-info",
            "What the Worker is",
            method="get",
            success={JSON_TYPE: _message("worker/info.reply")},
            **told,
        ),
        "/batch": _operation(
            "worker-submit",
            "Submit texts",
            body={JSON_TYPE: _message("worker/submit.request")},
            success={JSON_TYPE: _message("worker/submit.reply")},
            **told,
        ),
        "/batch/{request_id}": _operation(
            "worker-poll",
            "Poll a batch",
            method="get",
            parameters=[_in_path("request_id", a_request)],
            success={JSON_TYPE: _message("worker/poll.reply")},
            **told,
        ),
    }


def _operation(
    operation_id: str,
    summary: str,
    *,
    success: Mapping[str, Node],
    method: str = "post",
    tag: str = "Runs",
    parameters: Iterable[Node] = (),
    body: Mapping[str, Node] | None = None,
    also: Mapping[int, Node] | None = None,
    of_worker: bool = False,
) -> Node:
    """One path with its one method."""
    refusals = _worker_refusals() if of_worker else _refusals(also or {})
    told: Node = {
        "operationId": operation_id,
        "summary": summary,
        "tags": [tag],
        "parameters": [*([] if of_worker else [_ACCOUNT]), *parameters],
        "responses": {"200": _response(200, success), **refusals},
    }
    if of_worker:
        told["security"] = []
    if body is not None:
        told["requestBody"] = {"required": True, "content": _content(body)}
    return {method: told}


def _refusals(also: Mapping[int, Node]) -> Node:
    """Every status of the catalogue of errors, in the envelope of whoever refuses. Facts: `env.edge`, `env.ai`."""
    kinds: dict[int, list[Node]] = {}
    for row in errors().values():
        shape = _message(f"envelope/{row.envelope}-error")
        if shape not in kinds.setdefault(row.status, []):
            kinds[row.status].append(shape)
    for status in (400, 403):
        kinds[status].append(_reference(_TOOL))
    for status, shape in also.items():
        kinds[status].append(shape)
    return {
        str(status): _response(status, {JSON_TYPE: _any(*shapes)}) for status, shapes in sorted(kinds.items())
    }


def _worker_refusals() -> Node:
    """Fact: `worker.error`."""
    refusal, tool = _message("worker/error.reply"), _reference(_TOOL)
    return {
        "400": _response(400, {JSON_TYPE: _any(refusal, tool)}),
        "403": _response(403, {JSON_TYPE: tool}),
        "502": _response(502, {JSON_TYPE: refusal}),
    }


def _response(status: int, content: Mapping[str, Node]) -> Node:
    return {"description": _TITLES.get(status, "A refusal"), "content": _content(content)}


def _content(schemas: Mapping[str, Node]) -> Node:
    return {kind: {"schema": schema} if schema else {} for kind, schema in schemas.items()}


def _any(*shapes: Node) -> Node:
    return shapes[0] if len(shapes) == 1 else {"anyOf": list(shapes)}


def _in_path(name: str, schema: Node | None = None) -> Node:
    of = schema or {"type": "string", "pattern": "^[a-z0-9-]{1,64}$"}
    return {"name": name, "in": "path", "required": True, "schema": of}


def _in_query(name: str, schema: Node, *, required: bool = False) -> Node:
    return {"name": name, "in": "query", "required": required, "schema": schema}


_ACCOUNT: Final = _in_path("account_id", {"type": "string", "pattern": "^[0-9a-f]{32}$"})
_QUEUE: Final = {
    **_in_query("queueRequest", {"type": "boolean"}),
    "description": "true submits the body to the queue; anything else is not looked at.",
}
_ANYTHING: Final = {
    JSON_TYPE: _message("envelope/success"),
    "text/event-stream": {},
    "image/png": {},
    "image/jpeg": {},
    "audio/*": {},
}
