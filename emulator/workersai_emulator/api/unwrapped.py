"""What a Worker gets of an outcome through its binding: the answer without an envelope, or what is thrown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workersai_emulator.api.outcomes import bare
from workersai_emulator.finished import Finished
from workersai_emulator.json_text import dumps
from workersai_emulator.outcome import Queued

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from workersai_emulator.outcome import FailedStatus, Pending, Result
    from workersai_emulator.refusals import Refused


async def unwrapped(
    outcome: Queued | Pending | FailedStatus | Finished | Result,
) -> bytes | AsyncGenerator[bytes]:
    """The answer that `env.AI.run` gives, in pieces where it is large; a submit's keys are not in REST's order.

    Facts: `batch.binding`, `binding.bare`.
    """
    if isinstance(outcome, Finished):
        pieces = _braced(outcome)
        return b"".join([piece async for piece in pieces]) if outcome.small else pieces
    if isinstance(outcome, Queued):
        return dumps({"status": "queued", "model": outcome.model, "request_id": outcome.request_id})
    return bare(outcome)


def error_body(refused: Refused, reached: str) -> bytes:
    """What the binding makes its exception of. Fact: `env.binding`."""
    told = {
        "name": "AiError",
        "internalCode": refused.row.code,
        "httpCode": refused.row.status,
        "message": refused.message(reached),
        "description": refused.description,
        "requestId": reached,
    }
    return dumps(told)


def thrown(refused: Refused) -> str:
    """The message of the exception that `env.AI.run` throws. Fact: `env.binding`."""
    return f"{refused.row.code}: {refused.description}"


async def _braced(finished: Finished) -> AsyncGenerator[bytes]:
    yield b"{"
    async for piece in finished.pieces():
        yield piece
    yield b"}"
