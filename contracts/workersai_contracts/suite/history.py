"""A batch's history: its submit and its polls, as they were answered, and what they say of the facts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workersai_contracts.exchange import QUEUE, Lifecycle, Vectors
from workersai_contracts.suite.checks import UUID4, Checks, card_of

if TYPE_CHECKING:
    from workersai_contracts.suite.wire import Answer, Wire

PENDING = ("queued", "running")
LONGEST_PAUSE = 15.0
PATIENCE, PATIENCE_LIVE = 60.0, 900.0


@dataclass
class History:
    """What became of one submit: the polls until it was no longer pending, and one more after that."""

    model: str
    submit: Answer
    polls: list[Answer] = field(default_factory=list)
    again: Answer | None = None

    @property
    def request_id(self) -> str:
        """The id that the submit was given; empty where it was given none."""
        found = self.submit.result.get("request_id") if isinstance(self.submit.result, dict) else None
        return found if isinstance(found, str) else ""

    @property
    def end(self) -> Answer:
        """The poll that was not pending, or the last one."""
        return self.polls[-1]


def status_of(answer: Answer) -> str | None:
    """The status of a poll that says the batch waits; None for anything else."""
    status = answer.result.get("status") if isinstance(answer.result, dict) else None
    return status if status in PENDING else None


def follow(wire: Wire, model: str, body: Any) -> History:
    """Submit, and poll until the batch no longer waits or the target's time is up; then poll once more.

    The live service is given a quarter of an hour and polled at growing intervals; others are hardly waited for, and
    a recording, whose polls are what they are, not at all.
    """
    history = History(model, wire.run(model, body, QUEUE))
    if not history.request_id:
        return history
    pause, patience = (2.0, PATIENCE_LIVE) if wire.target.costs else (0.0, PATIENCE)
    deadline = time.monotonic() + patience
    while True:
        history.polls.append(wire.poll(model, history.request_id, query=len(history.polls) % 2 == 0))
        if status_of(history.end) is None:
            history.again = wire.poll(model, history.request_id)
            return history
        if time.monotonic() > deadline:
            return history
        if wire.target.kind != "replay" and (pause or len(history.polls) > 5):
            pause = min(LONGEST_PAUSE, max(pause * 1.5, 0.05))
            time.sleep(pause)


def finished(answer: Answer) -> dict[str, Any] | None:
    """The result of a finished poll in its documented form; None for any other reply."""
    return documented(answer.result)


def documented(result: Any) -> dict[str, Any] | None:
    """A finished result in its documented form, whichever alternative it came in; None for anything else.

    Facts: `done.shape`, `done.status`.
    """
    if not isinstance(result, dict) or not isinstance(result.get("responses", result.get("results")), list):
        return None
    told = {
        "responses" if key == "results" else key: value for key, value in result.items() if key != "status"
    }
    if "results" in result:
        told["responses"] = [_with_id(item) for item in told["responses"]]
    return told


def _with_id(item: Any) -> Any:
    if not isinstance(item, Mapping):
        return item
    return {"id" if key == "index" else key: value for key, value in item.items()}


def check_submit(checks: Checks, history: History) -> bool:
    """Facts: `batch.submit`, `submit.status`."""
    answer = history.submit
    checks.headers(answer, reached=True)
    if not checks.that(
        "batch.submit", answer.status in {200, 202}, f"a submit is answered HTTP {answer.status}"
    ):
        return False
    checks.shows("submit.status", str(answer.status))
    if not checks.schema("batch.submit", answer.json, "batch/submit.reply"):
        return False
    keys = list(answer.json), list(answer.result)
    expected = ["result", "success", "errors", "messages"], ["status", "request_id", "model"]
    checks.that("batch.submit", keys == expected, f"keys are {keys}, not {expected}")
    right_model = answer.result["model"] == history.model
    checks.that("batch.submit", right_model, f"model is {answer.result['model']!r}, not {history.model!r}")
    return checks.that("batch.submit", bool(UUID4.fullmatch(history.request_id)), "request_id is no uuid4")


def check_pending(checks: Checks, history: History) -> None:
    """Facts: `poll.pending`, `poll.request`, `batch.guarantee`, `poll.done`."""
    statuses = [status_of(poll) for poll in history.polls]
    for number, (poll, status) in enumerate(zip(history.polls, statuses, strict=True)):
        checks.headers(poll, reached=True)
        form = "with" if number % 2 == 0 else "without"
        checks.that(
            "poll.request", poll.status == 200, f"a poll {form} the query is answered HTTP {poll.status}"
        )
        if status is None:
            continue
        checks.schema("poll.pending", poll.json, "batch/poll.pending")
        keys = list(poll.result)
        checks.that(
            "poll.pending", keys == ["status", "request_id"], f"keys are {keys}, not status, request_id"
        )
        about = poll.result.get("request_id")
        checks.that("poll.pending", about == history.request_id, f"the reply is about {about!r}")
    order = [status for status in statuses if status is not None]
    checks.that("poll.pending", order == sorted(order), f"the states went back: {order}")
    checks.that("batch.guarantee", statuses[-1] is None, f"still {statuses[-1]} after {len(statuses)} polls")
    if history.again is not None and finished(history.end) is not None:
        went_back = status_of(history.again)
        checks.that("poll.done", went_back is None, f"a finished batch went back to {went_back}")


def check_done(checks: Checks, history: History, lifecycle: Lifecycle) -> dict[str, Any] | None:
    """The finished reply and its items.

    Facts: `poll.done`, `poll.item`, `poll.usage`, `done.shape`, `done.status`, `done.order`.
    """
    answer, told = history.end, finished(history.end)
    if not checks.that(
        "poll.done", told is not None, f"HTTP {answer.status} without responses: {answer.result}"
    ):
        return None
    assert told is not None
    checks.shows("done.shape", "results" if "results" in answer.result else "responses")
    status = answer.result.get("status", "none")
    checks.shows("done.status", status if status in {"none", "completed"} else None, f"status is {status!r}")
    checks.success("poll.done", answer)
    keys = list(told)
    checks.that("poll.done", keys == ["responses", "usage"], f"keys are {keys}, not responses, usage")
    for item in told["responses"]:
        of_item = list(item) if isinstance(item, dict) else None
        expected = ["id", "result", "success", "external_reference"]
        checks.that("poll.item", of_item == expected, f"an item's keys are {of_item}, not {expected}")
    if not checks.schema("poll.item", {**answer.json, "result": told}, "batch/poll.done"):
        return None
    ids = [item["id"] for item in told["responses"]]
    wanted = list(range(len(lifecycle.requests)))
    if not checks.that("poll.item", sorted(ids) == wanted, f"ids are {sorted(ids)}, not {wanted}"):
        return None
    if len(ids) > 5:
        checks.shows("done.order", "request" if ids == wanted else "shuffled")
    _check_usage(checks, told["usage"], embeds=card_of(lifecycle.model).answers in {"embedding", "reranking"})
    return told


def check_items(checks: Checks, told: Mapping[str, Any], lifecycle: Lifecycle) -> None:
    """Each item answers its own request. Facts: `poll.item`, `poll.reference`, `settled.reference`, `batch.items`."""
    card = card_of(lifecycle.model)
    items = {item["id"]: item for item in told["responses"]}
    for number, (request, reply) in enumerate(zip(lifecycle.requests, lifecycle.results, strict=True)):
        item = items[number]
        given, there = request.get("external_reference"), item["external_reference"]
        told_back = f"item {number} has the reference {there!r}, not {given!r}"
        checks.that("poll.reference", there == given, told_back)
        if not isinstance(given, str | None):
            checks.that("settled.reference", there == given, told_back)
        if checks.that("poll.item", item["success"] is True, f"item {number} failed: {item.get('errors')}"):
            checks.output("batch.items", item["result"], reply, card)


def check_vectors_are_their_texts(
    checks: Checks, wire: Wire, told: Mapping[str, Any], lifecycle: Lifecycle
) -> None:
    """The vector of an item is that of its text run synchronously, nearer than any other. Fact: `poll.item`."""
    singles = {
        number: reply.texts[0]
        for number, reply in enumerate(lifecycle.results)
        if isinstance(reply, Vectors) and reply.key == "data" and len(reply.texts) == 1
    }
    answer = wire.run(lifecycle.model, {"text": list(singles.values())})
    expected = answer.result.get("data") if isinstance(answer.result, dict) else None
    if not isinstance(expected, list) or len(expected) != len(singles):
        return
    vectors = {item["id"]: _first_vector(item["result"]) for item in told["responses"]}
    for place, number in enumerate(singles):
        nearness = [_cosine(vectors[number], vector) for vector in expected]
        own = nearness.index(max(nearness)) == place and nearness[place] > 0.99
        checks.that("poll.item", own, f"item {number} has not the vector of its own text")


def check_the_same_again(checks: Checks, history: History) -> None:
    """A later poll of a finished batch tells the same, or nothing. Facts: `poll.done`, `poll.retention`."""
    if history.again is None or finished(history.end) is None:
        return
    told = finished(history.again)
    if told is None:
        gone = history.again.status in {400, 404} or status_of(history.again) == "queued"
        checks.shows("poll.retention", "once" if gone else None, f"then HTTP {history.again.status}")
        return
    checks.shows("poll.retention", "day")
    same = told == finished(history.end)
    checks.that("poll.done", same, "a second poll of the finished batch tells something else")


def _first_vector(result: Mapping[str, Any]) -> Sequence[float]:
    rows = result.get("data")
    return rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], list) else ()


def _check_usage(checks: Checks, usage: Mapping[str, int], *, embeds: bool) -> None:
    total = usage["prompt_tokens"] + usage["completion_tokens"]
    checks.that("poll.usage", usage["total_tokens"] == total, f"usage does not add up: {usage}")
    checks.that("poll.usage", usage["prompt_tokens"] > 0, f"no tokens were read: {usage}")
    if embeds:
        checks.that("poll.usage", usage["completion_tokens"] == 0, f"vectors cost completion tokens: {usage}")


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) != len(other):
        return 0.0
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    norms = sum(a * a for a in one) ** 0.5 * sum(b * b for b in other) ** 0.5
    return dot / norms if norms else 0.0
