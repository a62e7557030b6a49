"""How public programs follow a batch: eleven policies as rows of data, and the one loop that all of them are.

The rows say no more than is known of the programs: what a good submit is, when they poll, what they take for
pending and for done, and what they read. What no row looks at, the loop does not look at either: a program that
waits for a key waits for it beside an error too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Literal

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EMBEDDING = "@cf/baai/bge-m3"
TEXT = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"

#: A policy that knows no deadline is stopped by us after so many polls.
BOUND = 50
#: What stands for the time between two runs of a program that a timer starts, and where none is known.
NEXT_RUN = 60.0

Outcome = Literal["done", "wrong", "partly", "fails", "crashes", "gives up", "for ever"]


class Thrown(Exception):
    """What the binding throws at its caller: `"<code>: <description>"`. Fact: `env.binding`."""


class NotJson(Exception):
    """A reply that the program cannot parse."""


@dataclass(frozen=True)
class Failed:
    """One item that the program knows has failed, with the reason it read."""

    reason: Any


class AllFailed(Exception):
    """The program counts the whole batch as failed."""


@dataclass(frozen=True)
class Said:
    """A reply as a program has it: the status, and the body parsed."""

    status: int
    body: Any

    @property
    def result(self) -> Any:
        return self.body.get("result") or {}


@dataclass
class Rest:
    """The REST API; a token may have run out, and then `fresh` is another. Fact: `auth.unknown`."""

    base_url: str
    account_id: str
    model: str
    token: str = "emulator"
    fresh: str | None = None
    sent: list[str] = field(default_factory=list)

    def submit(self, requests: list[dict[str, Any]]) -> Said:
        return self._post("?queueRequest=true", {"requests": requests})

    def poll(self, request_id: str, *, query: bool) -> Said:
        return self._post("?queueRequest=true" if query else "", {"request_id": request_id})

    def run(self, inputs: dict[str, Any]) -> Any:
        return self._post("", inputs).result

    def _post(self, query: str, body: Any) -> Said:
        url = f"{self.base_url}/accounts/{self.account_id}/ai/run/{self.model}{query}"
        reply = _http().post(url, json=body, headers={"authorization": f"Bearer {self.token}"})
        self.sent.append(query)
        if reply.status_code == 401 and self.fresh is not None:
            self.token, self.fresh = self.fresh, None
            return self._post(query, body)
        return Said(reply.status_code, _parsed(reply))


@dataclass
class Binding(Rest):
    """`env.AI.run`: the bare object, or something thrown; here by unwrapping what REST says."""

    def _post(self, query: str, body: Any) -> Said:
        try:
            said = super()._post(query, body)
        except NotJson:
            raise Thrown("the reply is not JSON") from None
        if said.status != 200:
            raise Thrown(f"{said.body['errors'][0]['code']}: {said.body['errors'][0]['message']}")
        return said


@dataclass
class Worker(Rest):
    """The same through the `/batch` Worker, whose live replies are the bare object. Fact: `worker.poll`."""

    def submit(self, requests: list[dict[str, Any]]) -> Said:
        texts = [request["text"] for request in requests]
        return self._taken(_http().post(f"{self._root}/batch", json={"texts": texts}))

    def poll(self, request_id: str, *, query: bool) -> Said:
        return self._taken(_http().get(f"{self._root}/batch/{request_id}"))

    @property
    def _root(self) -> str:
        return self.base_url.removesuffix("/client/v4")

    @staticmethod
    def _taken(reply: httpx.Response) -> Said:
        if not reply.headers["content-type"].startswith("application/json"):
            raise Thrown("the reply is not JSON")
        if reply.status_code != 200:
            raise Thrown(reply.json()["error"])
        return Said(200, {"result": reply.json(), "success": True})


def _at_the_next_run() -> Iterator[float]:
    return repeat(NEXT_RUN)


def _every(seconds: float) -> Callable[[], Iterator[float]]:
    return lambda: repeat(seconds)


@dataclass(frozen=True)
class Policy:
    """One program: a row of the table of field reports.

    `taken` finds the id in a good reply to the submit, None in any other. `pending` and `done` judge the result
    of a poll, and `read` makes of it an answer for each request, in their order. `deadline` is in seconds.
    """

    taken: Callable[[Said], str | None]
    pending: Callable[[Any], bool]
    done: Callable[[Any], bool]
    read: Callable[[Any, list[str]], list[Any]]
    query: bool = True
    pauses: Callable[[], Iterator[float]] = _at_the_next_run
    deadline: float | None = None
    wire: type[Rest] = Rest
    model: str = EMBEDDING
    requests: int = 3
    knows_html: bool = False


@dataclass(frozen=True)
class Ending:
    """How it went: what the program has in the end, after so many polls and so many seconds asleep."""

    kind: Outcome
    polls: int
    waited: float
    answers: list[Any] = field(default_factory=list)
    reason: str = ""


def follow(policy: Policy, wire: Rest, requests: list[dict[str, Any]]) -> Ending:
    """Submit and poll as the program does. Its sleep is only counted."""
    references = [request["external_reference"] for request in requests]
    polls, waited = 0, 0.0
    try:
        request_id = policy.taken(wire.submit(requests))
        if request_id is None:
            return Ending("fails", 0, 0.0, reason="the submit was not good")
        for pause in policy.pauses():
            if policy.deadline is not None and waited + pause > policy.deadline:
                return Ending("gives up", polls, waited)
            if policy.deadline is None and polls == BOUND:
                return Ending("for ever", polls, waited)
            polls, waited = polls + 1, waited + pause
            result = wire.poll(request_id, query=policy.query).result
            if policy.pending(result):
                continue
            if not policy.done(result):
                return Ending("fails", polls, waited, reason="neither pending nor done")
            return Ending("done", polls, waited, policy.read(result, references))
    except (Thrown, AllFailed) as told:
        return Ending("fails", polls, waited, reason=str(told))
    except NotJson:
        kind: Outcome = "fails" if policy.knows_html else "crashes"
        return Ending(kind, polls, waited, reason="the reply is not JSON")
    except (AttributeError, IndexError, KeyError, TypeError) as surprise:
        return Ending("crashes", polls, waited, reason=repr(surprise))
    raise AssertionError("pauses never end")


@cache
def _http() -> httpx.Client:
    return httpx.Client(trust_env=False)


def _parsed(reply: httpx.Response) -> Any:
    try:
        return reply.json()
    except ValueError:
        raise NotJson from None


def _request_id(said: Said) -> str | None:
    return said.result.get("request_id")


def _any_id(said: Said) -> str | None:
    return next((said.result[key] for key in ("request_id", "requestId", "id") if key in said.result), None)


def _only_if(condition: Callable[[Said], bool]) -> Callable[[Said], str | None]:
    return lambda said: _request_id(said) if condition(said) else None


def _status(*waiting: str | None) -> Callable[[Any], bool]:
    return lambda result: result.get("status") in waiting


def _is_list(result: Any, *keys: str) -> bool:
    return any(isinstance(result.get(key), list) for key in keys)


def _items(result: Any) -> list[Any]:
    items: list[Any] = result.get("responses") or result.get("results")
    return items


def _text(result: Any) -> Any:
    """The text of an output, whichever of the three shapes it has. Fact: `models.choices`."""
    if "choices" in result:
        return result["choices"][0]["message"]["content"]
    if "output" in result:
        return result["output"][0]["content"][0]["text"]
    return result["response"]


def _text_within(value: Any) -> str | None:
    """The first text anywhere in the result, under `response`."""
    if isinstance(value, dict) and isinstance(value.get("response"), str):
        return value["response"]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((text for one in inner if (text := _text_within(one)) is not None), None)


def _in_id_order(result: Any, name: str = "id") -> list[Any]:
    items: list[Any] = sorted(_items(result), key=lambda item: int(item[name]))
    return items


def _texts_by_id(result: Any, _: list[str]) -> list[Any]:
    items = sorted(_items(result), key=lambda item: item.get("id", item.get("index")))
    return [_text(item["result"]) if item.get("success", True) else Failed(None) for item in items]


def _by_reference(result: Any, references: list[str]) -> list[Any]:
    found = {item["external_reference"]: item["result"] for item in _items(result)}
    return [found[reference] for reference in references]


def _all_or_nothing(result: Any, references: list[str]) -> list[Any]:
    if not all(item["success"] for item in _items(result)):
        raise AllFailed("an item failed")
    return _by_reference(result, references)


def _failures_apart(result: Any, _: list[str]) -> list[Any]:
    return [
        item["result"] if item["success"] else Failed(item.get("errors")) for item in _in_id_order(result)
    ]


def _first(result: Any, _: list[str]) -> list[Any]:
    item = result["responses"][0]
    return [item["result"] if item["success"] else Failed(item.get("error"))]


POLICIES: dict[str, Policy] = {
    "A": Policy(
        taken=_only_if(lambda said: said.status < 300 and said.body["success"]),
        query=False,
        pauses=_every(5),
        deadline=20 * 60,
        pending=lambda result: not (isinstance(result, list) and result),
        done=lambda result: isinstance(result, list),
        read=lambda result, _: [result[0]["data"][0]],
        requests=1,
    ),
    "B": Policy(
        taken=_request_id,
        pauses=_every(15),
        deadline=60 * 60,
        pending=lambda result: not _is_list(result, "responses", "results"),
        done=lambda result: _is_list(result, "responses", "results"),
        read=_texts_by_id,
        model=TEXT,
    ),
    "C": Policy(
        taken=_only_if(lambda said: said.body["success"]),
        pauses=_every(10),
        pending=_status("queued", "running"),
        done=lambda result: _is_list(result, "responses", "results"),
        read=_by_reference,
    ),
    "D": Policy(
        taken=_request_id,
        pauses=_every(2),
        pending=lambda result: "responses" not in result,
        done=lambda result: "responses" in result,
        read=lambda result, _: [item["result"] for item in _in_id_order(result)],
    ),
    "E": Policy(
        taken=_only_if(lambda said: said.status in (200, 202)),
        pauses=_every(10),
        deadline=25 * 60,
        pending=lambda result: result.get("results") is None,
        done=lambda result: "results" in result,
        read=lambda result, _: [item["result"] for item in _in_id_order(result, "index")],
    ),
    "F": Policy(
        taken=_only_if(lambda said: said.result.get("status") == "queued"),
        pending=lambda result: not _is_list(result, "responses"),
        done=lambda result: _is_list(result, "responses"),
        read=_all_or_nothing,
    ),
    "G": Policy(
        taken=_request_id,
        pending=_status("queued", "running"),
        done=lambda result: "responses" in result,
        read=_failures_apart,
        knows_html=True,
    ),
    "H": Policy(
        wire=Worker,
        taken=_any_id,
        pending=_status("queued", "running", "processing", None),
        done=lambda result: True,
        read=lambda result, _: [item["result"] for item in result["responses"]],
    ),
    "I": Policy(
        wire=Binding,
        taken=_any_id,
        pauses=lambda: chain((4.0, 8.0), repeat(16.0)),
        deadline=90,
        pending=_status("queued", "running", "in_progress", "pending", "processing"),
        done=lambda result: _text_within(result) is not None,
        read=lambda result, _: [_text_within(result)],
        model=TEXT,
        requests=1,
    ),
    "J": Policy(
        wire=Binding,
        taken=_only_if(lambda said: said.result.get("status") == "queued"),
        pending=lambda result: result.get("status") != "completed",
        done=_status("completed"),
        read=lambda result, _: [
            item["result"]["response"] if item["success"] else Failed(None) for item in result["responses"]
        ],
        model=TEXT,
        requests=1,
    ),
    "K": Policy(
        wire=Binding,
        taken=_request_id,
        pending=_status("queued", "running"),
        done=lambda result: True,
        read=_first,
        requests=1,
    ),
}
