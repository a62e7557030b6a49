"""Outcomes as replies: what the dialects have in common when they render one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workersai_emulator.api.reply import Reply
from workersai_emulator.finished import Finished
from workersai_emulator.json_text import dumps
from workersai_emulator.outcome import FailedStatus, Pending, Queued, Replayed, Result, Spoiled
from workersai_emulator.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from workersai_emulator.api.exchange import Exchange
    from workersai_emulator.outcome import Answered, Outcome


async def rendered(
    outcome: Outcome,
    exchange: Exchange,
    answered: Callable[[Answered], Awaitable[Reply]],
    refused: Callable[[Refused], Reply],
) -> Reply:
    """The reply that an outcome is: a dialect's own, unless a rule replaced it, or spoils its connection."""
    match outcome:
        case Replayed(effect):
            return Reply(
                effect.status, effect.content, effect.other_headers, effect.content_type, headers_of="rule"
            )
        case Spoiled():
            if outcome.outcome is None:
                reply = Reply(0, b"")
            elif isinstance(outcome.outcome, Refused):
                reply = refused(outcome.outcome)
            else:
                reply = await rendered(outcome.outcome, exchange, answered, refused)
            reply.spoiling = outcome.spoiling
            return reply
        case _:
            _note(exchange, outcome)
            return await answered(outcome)


def bare(outcome: Queued | Pending | FailedStatus | Result) -> bytes:
    """The outcome without an envelope, as a `result` and, but for a submit, as the binding has it.

    Facts: `batch.submit`, `poll.pending`, `batch.failed`.
    """
    match outcome:
        case Queued():
            return dumps({"status": "queued", "request_id": outcome.request_id, "model": outcome.model})
        case Pending():
            return dumps({"status": outcome.status, "request_id": outcome.request_id})
        case FailedStatus():
            return dumps({"status": "failed", "error": outcome.error})
        case Result():
            return outcome.content


def neurons_header(neurons: float | None) -> dict[str, str]:
    """What the answer cost, where that is known. Fact: `head.neurons`."""
    return {} if neurons is None else {"cf-ai-neurons": f"{neurons:.2f}"}


def _note(exchange: Exchange, outcome: Answered) -> None:
    """Write into the exchange what came out of it."""
    match outcome:
        case Queued():
            exchange.state, exchange.request_id = "queued", outcome.request_id
        case Pending():
            exchange.state, exchange.request_id = outcome.status, outcome.request_id
        case Finished():
            exchange.state = "done"
        case Result() if exchange.operation == "poll":
            exchange.state = "done"
        case FailedStatus():
            exchange.state = "failed"
