"""Planted differences: each changes one thing about the wire, and names the facts that say it is wrong."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workersai_contracts import error

if TYPE_CHECKING:
    from collections.abc import Callable

    from lying_proxy import Lie, Passing


@dataclass(frozen=True)
class Difference:
    """`lie` makes a fresh lie, so that one may remember; each of the `facts` must be found broken."""

    name: str
    parts: tuple[str, ...]
    facts: tuple[str, ...]
    lie: Callable[[], Lie]


DIFFERENCES: list[Difference] = []


def difference(name: str, part: str, *facts: str) -> Callable[[Callable[[], Lie]], Callable[[], Lie]]:
    """Put a lie into the list."""

    def add(lie: Callable[[], Lie]) -> Callable[[], Lie]:
        DIFFERENCES.append(Difference(name, tuple(part.split(", ")), facts, lie))
        return lie

    return add


def always(name: str, part: str, *facts: str, when: Callable[[Passing], bool]) -> Callable[[Lie], Lie]:
    """Put a lie into the list that is told whenever the reply is of this kind."""

    def add(lie: Lie) -> Lie:
        def told(passing: Passing) -> None:
            if when(passing):
                lie(passing)

        DIFFERENCES.append(Difference(name, tuple(part.split(", ")), facts, lambda: told))
        return lie

    return add


# What kind of reply it is.


def any_reply(passing: Passing) -> bool:
    return "/ai/" in passing.path


def success(passing: Passing) -> bool:
    """In an envelope."""
    return any_reply(passing) and passing.status == 200 and "success" in (passing.json or {})


def listed(passing: Passing, path: str = "models/search") -> bool:
    return success(passing) and passing.path.endswith(f"/ai/{path}")


def openai(passing: Passing, path: str = "") -> bool:
    """In OpenAI's form, without an envelope."""
    there = passing.path.endswith(f"/ai/v1/{path}") if path else "/ai/v1/" in passing.path
    return there and passing.status == 200 and passing.json is not None


def streamed(passing: Passing) -> bool:
    return passing.headers.get("content-type") == "text/event-stream"


def ai_refusal(passing: Passing) -> bool:
    return any_reply(passing) and passing.status >= 400 and next(iter(passing.json)) == "errors"


def edge_refusal(passing: Passing) -> bool:
    return any_reply(passing) and passing.status >= 400 and next(iter(passing.json)) == "result"


def result(passing: Passing) -> dict[str, Any]:
    body = passing.json
    return body["result"] if isinstance(body, dict) and isinstance(body.get("result"), dict) else {}


def polled(passing: Passing) -> bool:
    return any_reply(passing) and isinstance(passing.sent, dict) and "request_id" in passing.sent


def sync(passing: Passing) -> bool:
    return success(passing) and not polled(passing) and "queueRequest=true" not in passing.query


def submitted(passing: Passing) -> bool:
    return success(passing) and result(passing).get("status") == "queued" and "model" in result(passing)


def pending(passing: Passing) -> bool:
    return success(passing) and polled(passing) and result(passing).get("status") in {"queued", "running"}


def done(passing: Passing) -> bool:
    return success(passing) and polled(passing) and "responses" in result(passing)


def vectors_key(passing: Passing) -> str | None:
    """Under which key of the result the vectors are: `data`, or `response` for contexts alone."""
    found = result(passing)
    return next((key for key in ("data", "response") if _are_rows(found.get(key))), None)


def _are_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], list)


def embedded(passing: Passing) -> bool:
    return sync(passing) and vectors_key(passing) is not None


def model(name: str) -> Callable[[Passing], bool]:
    return lambda passing: sync(passing) and passing.path.endswith(name)


def code(number: int) -> Callable[[Passing], bool]:
    return lambda passing: (
        any_reply(passing) and passing.status >= 400 and passing.json["errors"][0]["code"] == number
    )


def worker(status: int, method: str = "") -> Callable[[Passing], bool]:
    return lambda passing: (
        passing.path.startswith("/batch") and passing.status == status and method in {"", passing.method}
    )


def change(key: str, value: Any) -> Lie:
    """Say something else under a key of the result."""

    def lie(passing: Passing) -> None:
        body = passing.json
        body["result"][key] = value
        passing.json = body

    return lie


def drop(key: str) -> Lie:
    """Say nothing under a key of the result."""

    def lie(passing: Passing) -> None:
        body = passing.json
        body["result"].pop(key, None)
        passing.json = body

    return lie


def status(number: int) -> Lie:
    """Answer with another status."""

    def lie(passing: Passing) -> None:
        passing.status = number

    return lie


def header(name: str, value: str | None) -> Lie:
    """Say something else in a header, or nothing."""

    def lie(passing: Passing) -> None:
        passing.headers.pop(name, None)
        if value is not None:
            passing.headers[name] = value

    return lie


def reorder(*keys: str, within: str | None = None) -> Lie:
    """Put these keys first."""

    def lie(passing: Passing) -> None:
        body = passing.json
        place = body if within is None else body[within]
        ordered = {key: place[key] for key in keys} | place
        passing.json = ordered if within is None else {**body, within: ordered}

    return lie


def items(edit: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Lie:
    """Change the items of a finished batch."""

    def lie(passing: Passing) -> None:
        body = passing.json
        body["result"]["responses"] = edit(body["result"]["responses"])
        passing.json = body

    return lie


def each_item(edit: Callable[[dict[str, Any]], dict[str, Any]]) -> Lie:
    """Change each item of a finished batch."""
    return items(lambda them: [edit(item) for item in them])


def first_error(edit: Callable[[dict[str, Any]], dict[str, Any]]) -> Lie:
    """Change the first error of a refusal."""

    def lie(passing: Passing) -> None:
        body = passing.json
        body["errors"][0] = edit(body["errors"][0])
        passing.json = body

    return lie


def data(edit: Callable[[list[list[float]]], list[list[float]]]) -> Lie:
    """Change the vectors of a synchronous run."""

    def lie(passing: Passing) -> None:
        body, key = passing.json, vectors_key(passing)
        body["result"][key] = edit(body["result"][key])
        passing.json = body

    return lie


def html(passing: Passing) -> None:
    passing.headers["content-type"] = "text/html"
    passing.content = b"<html><body>Bad gateway</body></html>"


# Headers.
always("a charset in the content type", "exchanges", "head.content-type", when=any_reply)(
    header("content-type", "application/json; charset=utf-8")
)
always("text/plain", "lifecycles", "head.content-type", when=any_reply)(header("content-type", "text/plain"))
always("no cf-ray", "exchanges", "head.req-id", when=any_reply)(header("cf-ray", None))
always("no cf-ai-req-id on a success", "exchanges", "head.req-id", when=success)(header("cf-ai-req-id", None))
always("a cf-ai-req-id that is no uuid", "exchanges", "head.req-id", when=success)(
    header("cf-ai-req-id", "1")
)
always("one cf-ai-req-id for all", "exchanges", "head.req-id", when=success)(
    header("cf-ai-req-id", "00000000-0000-4000-8000-000000000000")
)
always("the uuid of the message is not the cf-ai-req-id", "exchanges", "env.ai", when=ai_refusal)(
    header("cf-ai-req-id", "00000000-0000-4000-8000-000000000000")
)
always("a cf-ai-req-id on the router's refusal", "exchanges", "env.edge", when=edge_refusal)(
    header("cf-ai-req-id", "00000000-0000-4000-8000-000000000000")
)
always("Retry-After on 3040", "exchanges", "head.retry-after", when=code(3040))(header("retry-after", "1"))

# Envelopes.
always("a success in the order of a refusal", "exchanges", "env.success", when=success)(
    reorder("errors", "success", "result")
)
always("a success without messages", "exchanges", "env.success", when=success)(
    lambda passing: setattr(passing, "json", {k: v for k, v in passing.json.items() if k != "messages"})
)
always("a success with a further key", "lifecycles", "env.success", when=done)(
    lambda passing: setattr(passing, "json", {**passing.json, "result_info": {}})
)
always("success true as a text", "exchanges", "env.success", when=success)(
    lambda passing: setattr(passing, "json", {**passing.json, "success": "true"})
)
always("a page for JSON", "exchanges", "head.content-type", "env.success", when=success)(html)
always("Workers AI's refusal in the router's order", "exchanges", "env.ai", when=ai_refusal)(
    reorder("result", "success", "errors")
)
always("Workers AI's refusal with result null", "exchanges", "env.ai", when=ai_refusal)(
    lambda passing: setattr(passing, "json", {**passing.json, "result": None})
)
always("Workers AI's refusal with the code first", "exchanges", "env.ai", when=ai_refusal)(
    first_error(lambda one: {"code": one["code"], "message": one["message"]})
)
always("Workers AI's refusal without the uuid", "exchanges", "env.ai", when=ai_refusal)(
    first_error(lambda one: {**one, "message": re.sub(r" \([0-9a-f-]{36}\)$", "", one["message"])})
)
always("the router's refusal in Workers AI's order", "exchanges", "env.edge", when=edge_refusal)(
    reorder("errors", "success", "result")
)
always("the router's refusal with the message first", "exchanges", "env.edge", when=edge_refusal)(
    first_error(lambda one: {"message": one["message"], "code": one["code"]})
)

# Refusals.
always("a code as a string", "exchanges", "input.text", when=code(5006))(
    first_error(lambda one: {**one, "code": str(one["code"])})
)
always("422 for refused input", "exchanges", "input.text", when=code(5006))(status(422))
always(
    "refused input in the words of JSON Schema", "exchanges", "input.text", "input.validator", when=code(5006)
)(
    first_error(
        lambda one: {**one, "message": "AiError: Bad input: {} is not valid under any of the given schemas"}
    )
)
always("refused input without its title", "exchanges", "input.text", when=code(5006))(
    first_error(lambda one: {**one, "message": one["message"].replace("Bad input: ", "")})
)
always(
    "a bad item that is not named",
    "lifecycles",
    "batch.schema",
    "input.text",
    when=lambda p: code(5006)(p) and "queueRequest" in p.query,
)(first_error(lambda one: {**one, "message": one["message"].replace("/requests/1", "/requests")}))
always("a payload over the limit is taken", "exchanges", "batch.limit", "request.too-large", when=code(3006))(
    status(200)
)
always("400 for a payload over the limit", "exchanges", "request.too-large", when=code(3006))(status(400))
always("400 for an account that is none", "exchanges", "route.account", when=code(7003))(status(400))
always("the path of 7003 decoded", "exchanges", "route.account", when=code(7003))(
    first_error(lambda one: {**one, "message": one["message"].replace("%20", " ")})
)
always("404 for a model that nobody knows", "exchanges", "route.none", when=code(7000))(status(404))
always("404 for another method", "exchanges", "route.method", when=code(7001))(status(404))
always("403 for an unknown token", "exchanges", "auth.unknown", when=lambda p: p.status == 401)(status(403))
always("401 for credentials of the wrong form", "exchanges", "auth.malformed", when=code(9106))(status(401))
always("one error for no credentials", "exchanges", "auth.missing", when=code(9106))(
    lambda passing: setattr(passing, "json", {**passing.json, "errors": passing.json["errors"][:1]})
)
always("503 for no capacity", "exchanges", "capacity", when=code(3040))(status(503))
for _row in ("quota.daily", "rate.minute", "batch.failed", "context.window", "model.deprecated", "plan.paid"):
    always(f"another text for {_row}", "exchanges", _row, when=code(error(_row).code))(
        first_error(lambda one: {**one, "message": "AiError: Something went wrong"})
    )

# Synchronous runs.
always("201 for a run", "exchanges", "sync.run", when=sync)(status(201))
always("one vector short", "exchanges", "sync.run", when=embedded)(data(lambda rows: rows[1:]))
always("one vector too many", "exchanges", "sync.run", when=embedded)(data(lambda rows: [*rows, rows[0]]))
always("a vector of zeros", "exchanges", "sync.run", when=embedded)(
    data(lambda rows: [[0.0] * len(rows[0]), *rows[1:]])
)
always("the same vector for all", "exchanges", "sync.run", when=embedded)(
    data(lambda rows: [rows[0]] * len(rows))
)
always("vectors of another dimension", "exchanges", "models.dimensions", when=embedded)(
    data(lambda rows: [row[:256] for row in rows])
)
always("numbers that are no half-precision ones", "exchanges", "models.precision", when=embedded)(
    data(lambda rows: [[number + 1e-9 for number in row] for row in rows])
)
always("a shape that is not the data's", "exchanges", "models.items", when=embedded)(change("shape", [7, 7]))
always("the sample of the documentation for everything", "exchanges", "sync.run", when=embedded)(
    lambda passing: setattr(
        passing, "json", {**passing.json, "result": {"shape": [1, 3], "data": [[0.1, 0.2, 0.3]]}}
    )
)
always(
    "scores worst first", "exchanges", "models.reranking", when=lambda p: sync(p) and "response" in result(p)
)(
    lambda passing: (
        change("response", list(reversed(result(passing)["response"])))(passing)
        if isinstance(result(passing)["response"], list)
        else None
    )
)
always("choices from an older text model", "exchanges", "sync.text-generation", when=model("fp8-fast"))(
    lambda passing: setattr(passing, "json", {**passing.json, "result": {"choices": [{"message": {}}]}})
)
always("an empty translation", "exchanges", "sync.languages", when=model("m2m100-1.2b"))(
    change("translated_text", "")
)
always("a model path with %2F is not understood", "exchanges", "sync.path", when=lambda p: "%2F" in p.path)(
    status(400)
)
always("query keys are refused", "exchanges", "batch.query", when=lambda p: "tags=" in p.query)(status(400))
always(
    "queueRequest in the body queues",
    "exchanges",
    "batch.query.body",
    when=lambda p: sync(p) and isinstance(p.sent, dict) and "queueRequest" in p.sent,
)(lambda p: setattr(p, "json", {**p.json, "result": {"status": "queued", "request_id": "1", "model": "m"}}))


@difference("another vector the second time", "exchanges", "sync.run")
def _() -> Lie:
    count = itertools.count(1)

    def lie(passing: Passing) -> None:
        if embedded(passing):
            nudge = next(count) / 1024
            data(lambda rows: [[nudge, *row[1:]] for row in rows])(passing)

    return lie


# Other surfaces.
always(
    "a model in the body is not understood",
    "exchanges",
    "sync.run-body",
    when=lambda p: p.path.endswith("/ai/run"),
)(status(400))
always("models that nobody asked for", "exchanges", "models.search", when=listed)(
    change("result", [{"id": "1", "name": "@cf/a/b"}])
)
always("a page count that counts nothing", "exchanges", "models.pages", when=listed)(
    lambda p: setattr(p, "json", {**p.json, "result_info": {**p.json["result_info"], "count": 77}})
)
always(
    "a schema without what the model takes",
    "exchanges",
    "models.schema",
    when=lambda p: listed(p, "models/schema"),
)(drop("input"))
always("a schema for every name", "exchanges", "models.schema", "schema.unknown", when=code(6002))(
    status(200)
)
always(
    "a list of models in OpenAI's form",
    "exchanges",
    "openai.models",
    when=lambda p: p.path.endswith("/v1/models"),
)(status(200))
always("OpenAI's form in an envelope", "exchanges", "openai.run", when=openai)(
    lambda p: setattr(p, "json", {"result": p.json, "success": True, "errors": [], "messages": []})
)


@always(
    "vectors in the other encoding",
    "exchanges",
    "openai.embeddings",
    when=lambda p: openai(p, "embeddings"),
)
def _(passing: Passing) -> None:
    body = passing.json
    for one in body["data"]:
        one["embedding"] = "AAAAPw==" if isinstance(one["embedding"], list) else [0.5, 1.0]
    passing.json = body


always("a stream that just stops", "exchanges", "head.sse", when=streamed)(
    lambda p: setattr(p, "content", p.content.removesuffix(b"data: [DONE]\n\n"))
)
always("a stream as JSON", "exchanges", "head.sse", when=streamed)(header("content-type", "application/json"))
always("events under another key", "exchanges", "stream.native", "openai.stream", when=streamed)(
    lambda p: setattr(
        p, "content", p.content.replace(b'{"response":', b'{"text":').replace(b"choices", b"parts")
    )
)

# Submits.
always("a request_id in capitals", "lifecycles", "batch.submit", when=submitted)(
    lambda passing: change("request_id", result(passing)["request_id"].upper())(passing)
)
always("a submit's keys in the binding's order", "lifecycles", "batch.submit", when=submitted)(
    reorder("status", "model", within="result")
)
always("a submit without its model", "lifecycles", "batch.submit", when=submitted)(drop("model"))
always("a submit with another model", "lifecycles", "batch.submit", when=submitted)(
    change("model", "@cf/a/b")
)
always("a submit that is pending", "lifecycles", "batch.submit", when=submitted)(change("status", "pending"))
always("a submit that is refused", "lifecycles", "batch.submit", when=submitted)(status(429))
always("gpt-oss takes messages in a batch", "lifecycles", "batch.gpt-oss", when=code(5006))(status(200))


@difference("one request_id for two submits", "lifecycles", "batch.duplicate")
def _() -> Lie:
    first: list[str] = []

    def lie(passing: Passing) -> None:
        if submitted(passing):
            first.append(result(passing)["request_id"])
            change("request_id", first[0])(passing)

    return lie


always(
    "request_id beside requests submits",
    "lifecycles",
    "settled.poll-first",
    when=lambda p: polled(p) and "requests" in p.sent,
)(change("model", "m"))
always("queueRequest=false is refused", "exchanges", "settled.query", when=lambda p: "=false" in p.query)(
    status(400)
)

# Polls of a waiting batch.
always("a pending reply with its model", "lifecycles", "poll.pending", when=pending)(change("model", "m"))
always("a pending reply about another batch", "lifecycles", "poll.pending", when=pending)(
    change("request_id", "00000000-0000-4000-8000-000000000000")
)
always("a state that nobody knows", "lifecycles", "poll.done", when=pending)(change("status", "processing"))
always("a pending reply's keys the other way round", "lifecycles", "poll.pending", when=pending)(
    reorder("request_id", within="result")
)
always(
    "polls without the query are refused",
    "lifecycles",
    "poll.request",
    when=lambda p: polled(p) and not p.query,
)(status(400))
always("a batch that is never done", "lifecycles", "batch.guarantee", when=done)(
    lambda p: setattr(
        p, "json", {**p.json, "result": {"status": "running", "request_id": p.sent["request_id"]}}
    )
)
always("queued after running", "lifecycles", "poll.pending", when=pending)(
    lambda p: change("status", "running" if result(p)["status"] == "queued" else "queued")(p)
)

# Finished batches.
always("an item is missing", "lifecycles", "poll.item", when=done)(items(lambda them: them[1:]))
always("an item comes twice", "lifecycles", "poll.item", when=done)(items(lambda them: [them[0], *them]))
always("an item comes in place of another", "lifecycles", "poll.item", when=done)(
    items(lambda them: [*them[1:], them[1]])
)
always("ids as texts", "lifecycles", "poll.item", when=done)(
    each_item(lambda item: {**item, "id": str(item["id"])})
)
always("ids from 1", "lifecycles", "poll.item", when=done)(
    each_item(lambda item: {**item, "id": item["id"] + 1})
)
always("success as a text", "lifecycles", "poll.item", when=done)(
    each_item(lambda item: {**item, "success": "true"})
)
always("an item's keys in another order", "lifecycles", "poll.item", when=done)(
    each_item(lambda item: {"external_reference": item["external_reference"], **item})
)
always("no reference where there was none", "lifecycles", "poll.item", when=done)(
    each_item(lambda item: {k: v for k, v in item.items() if k != "external_reference" or v is not None})
)
always("references on the wrong items", "lifecycles", "poll.reference", when=done)(
    items(
        lambda them: [
            {**a, "external_reference": b["external_reference"]}
            for a, b in zip(them, [*them[1:], them[0]], strict=True)
        ]
    )
)
always("references as texts", "lifecycles", "poll.reference", "settled.reference", when=done)(
    each_item(lambda item: {**item, "external_reference": str(item["external_reference"])})
)
always("items' results swapped", "lifecycles", "poll.item", when=done)(
    items(
        lambda them: [{**a, "result": b["result"]} for a, b in zip(them, [*them[1:], them[0]], strict=True)]
    )
)


def _shorter(item: dict[str, Any]) -> dict[str, Any]:
    rows = item["result"].get("data")
    return (
        item if rows is None else {**item, "result": {**item["result"], "data": [row[:-1] for row in rows]}}
    )


def _zeros(item: dict[str, Any]) -> dict[str, Any]:
    rows = item["result"].get("data")
    return (
        item
        if rows is None
        else {**item, "result": {**item["result"], "data": [[0.0] * len(r) for r in rows]}}
    )


always("an item's vectors are one number short", "lifecycles", "models.dimensions", when=done)(
    each_item(_shorter)
)
always("an item's vectors are zeros", "lifecycles", "batch.items", when=done)(each_item(_zeros))
always("an item has no result", "lifecycles", "batch.items", when=done)(
    each_item(lambda item: {**item, "result": {}})
)
always("items fail", "lifecycles", "poll.item", when=done)(
    each_item(
        lambda item: {
            "id": item["id"],
            "result": {},
            "success": False,
            "errors": [{"message": "AiError: no", "code": 5001}],
            "external_reference": item["external_reference"],
        }
    )
)
always("a finished reply with its request_id", "lifecycles", "poll.done", when=done)(
    change("request_id", "1")
)
always("a finished reply without usage", "lifecycles", "poll.done", when=done)(drop("usage"))
always("usage that does not add up", "lifecycles", "poll.usage", when=done)(
    change("usage", {"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 4})
)
always("vectors that cost completion tokens", "lifecycles", "poll.usage", when=done)(
    change("usage", {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4})
)
always("nothing was read", "lifecycles", "poll.usage", when=done)(
    change("usage", {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0})
)
always("202 for a finished batch", "lifecycles", "poll.done", when=done)(status(202))


@difference("something else on the next poll", "lifecycles", "poll.done")
def _() -> Lie:
    seen: set[str] = set()

    def lie(passing: Passing) -> None:
        if done(passing):
            if passing.sent["request_id"] in seen:
                change("usage", {"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 9})(passing)
            seen.add(passing.sent["request_id"])

    return lie


@difference("a vector that differs on the next poll", "lifecycles", "poll.done")
def _() -> Lie:
    seen: set[str] = set()

    def lie(passing: Passing) -> None:
        if done(passing):
            if passing.sent["request_id"] in seen and "0." in passing.content.decode():
                passing.content = passing.content.replace(b"0.0", b"0.1")
            seen.add(passing.sent["request_id"])

    return lie


@difference("done goes back to running", "lifecycles", "poll.done")
def _() -> Lie:
    seen: set[str] = set()

    def lie(passing: Passing) -> None:
        if done(passing):
            if passing.sent["request_id"] in seen:
                passing.json = {
                    **passing.json,
                    "result": {"status": "running", "request_id": passing.sent["request_id"]},
                }
            seen.add(passing.sent["request_id"])

    return lie


always("a bare body on a text model is done", "lifecycles", "batch.bare", when=code(3030))(
    lambda p: (status(200)(p), setattr(p, "json", {"result": {"response": "yes"}, "success": True}))[0]
)
always("500 for a batch that is wrong", "lifecycles", "batch.invalid", when=code(3030))(status(500))

# The Worker.
always("BATCH_ERROR with 500", "worker", "worker.error", when=worker(502))(status(500))
always("a failure without its code", "worker", "env.binding", when=worker(502))(
    lambda p: setattr(p, "json", {**p.json, "error": "Request not found"})
)
always("an error's keys the other way round", "worker", "worker.error", when=worker(400))(reorder("code"))
always("422 for what is no texts", "worker", "worker.submit", when=worker(400, "POST"))(status(422))
always("404 for what is no request_id", "worker", "worker.poll", when=worker(400, "GET"))(status(404))
always("a submit without its mode", "worker", "worker.submit", when=worker(200, "POST"))(
    lambda p: setattr(p, "json", {k: v for k, v in p.json.items() if k != "mode"})
)
always("a submit in REST's order", "worker", "batch.binding", when=worker(200, "POST"))(
    reorder("status", "request_id")
)
always("a poll in an envelope", "worker", "worker.poll", when=worker(200, "GET"))(
    lambda p: setattr(p, "json", {"result": p.json})
)
always(
    "an item too few", "worker", "worker.poll", when=lambda p: worker(200, "GET")(p) and "responses" in p.json
)(lambda p: setattr(p, "json", {**p.json, "responses": p.json["responses"][1:]}))
always("another name", "worker", "worker.info", when=lambda p: p.path == "/")(
    lambda p: setattr(p, "json", {**p.json, "name": 1})
)
