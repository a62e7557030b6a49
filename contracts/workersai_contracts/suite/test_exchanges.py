"""Single exchanges: each named request has the reply that it must have."""

from __future__ import annotations

import pytest

from workersai_contracts.catalogue import errors
from workersai_contracts.exchange import M3, RUN, Exchange, Ranking, Refusal, Text, Vectors
from workersai_contracts.exchanges import EXCHANGES
from workersai_contracts.suite.checks import Checks, card_of
from workersai_contracts.suite.surface_checks import surface
from workersai_contracts.suite.wire import UNKNOWN_TOKEN, Answer, Wire

CREDENTIALS = {
    "unknown": {"Authorization": f"Bearer {UNKNOWN_TOKEN}"},
    "malformed": {"Authorization": "Token of the wrong form"},
    "missing": {},
}


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda exchange: exchange.name)
def test_exchange(exchange: Exchange, wire: Wire, checks: Checks) -> None:
    """The reply has its envelope, its headers, and the output or the refusal that answers this request."""
    answer = _send(exchange, wire)
    if exchange.credentials == "unknown" and answer.status == 200 and wire.target.kind in {"url", "replay"}:
        pytest.skip("this target takes any token")
    if isinstance(exchange.reply, Refusal):
        held = checks.refusal(answer, exchange.reply)
    elif not isinstance(exchange.reply, (Vectors, Ranking, Text)):
        held = surface(checks, answer, exchange.about[0], exchange.reply, exchange.model)
    else:
        held = checks.success("sync.run", answer)
        held = held and checks.output("sync.run", answer.result, exchange.reply, card_of(exchange.model))
    for fact in exchange.about:
        checks.that(fact, held, f"the reply is not what it must be: HTTP {answer.status}")


def test_the_same_request_is_embedded_the_same_again(wire: Wire, checks: Checks) -> None:
    """A text has one vector."""
    answers = [wire.run(M3, {"text": "an orange cloud"}) for _ in range(2)]
    if all(checks.success("sync.run", answer) for answer in answers):
        same = answers[0].result == answers[1].result
        checks.that("sync.run", same, "the same text has another vector the second time")
    ids = {answer.headers.get("cf-ai-req-id") for answer in answers}
    checks.that("head.req-id", len(ids) == 2, "two requests have the same cf-ai-req-id")


@pytest.mark.parametrize("row", [row for row in errors() if row != "poll.unknown"])
def test_every_refusal_of_the_catalogue(row: str, wire: Wire, checks: Checks) -> None:
    """Where the target has a control plane, each row can be had; elsewhere only those that a request causes."""
    if wire.target.costs:
        pytest.skip("a live service refuses by its own rules")
    rule = {
        "match": {"operation": "run", "model": M3},
        "times": 1,
        "effect": {"error": row},
        "account_id": wire.target.account_id,
    }
    made = wire.send("POST", "/__emulator__/rules", "", rule)
    if made.status != 200:
        pytest.skip("this target has no control plane")
    answer = wire.run(M3, {"text": "a"})
    wire.send(
        "DELETE", f"/__emulator__/rules/{made.json['id']}", f"account_id={wire.target.account_id}", None
    )
    params = {"model": M3} if "{model}" in errors()[row].description else {}
    example = {**errors()[row].example, **params}
    checks.refusal(answer, Refusal(row, example))
    asked = "retry-after" in answer.headers
    checks.that("head.retry-after", not asked, "a refusal has a Retry-After, which none was seen to have")


def _send(exchange: Exchange, wire: Wire) -> Answer:
    path = (exchange.path or RUN + exchange.model).replace("{account_id}", wire.target.account_id)
    return wire.send(
        exchange.method, path, exchange.query, exchange.body, CREDENTIALS.get(exchange.credentials)
    )
