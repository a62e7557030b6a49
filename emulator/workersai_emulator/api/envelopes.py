"""The two envelopes of the REST API: its router's, and Workers AI's own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from workersai_emulator.api.outcomes import bare
from workersai_emulator.api.reply import Reply
from workersai_emulator.finished import Finished
from workersai_emulator.json_text import dumps
from workersai_emulator.outcome import Listed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from workersai_emulator.outcome import FailedStatus, Pending, Queued, Result
    from workersai_emulator.refusals import Refused

_ENDING = b',"success":true,"errors":[],"messages":[]}'


async def enveloped(
    outcome: Queued | Pending | FailedStatus | Finished | Result | Listed,
) -> bytes | AsyncGenerator[bytes]:
    """A success in its envelope, in pieces where it is large. Fact: `env.success`."""
    if isinstance(outcome, Finished):
        pieces = _wrapped(outcome)
        return b"".join([piece async for piece in pieces]) if outcome.small else pieces
    if isinstance(outcome, Listed):
        info = b"" if outcome.info is None else b',"result_info":' + dumps(outcome.info)
        return b'{"result":' + dumps(outcome.result) + info + _ENDING
    return b'{"result":' + bare(outcome) + _ENDING


async def _wrapped(finished: Finished) -> AsyncGenerator[bytes]:
    yield b'{"result":{'
    async for piece in finished.pieces():
        yield piece
    yield b"}" + _ENDING


def refusal(refused: Refused, reached: str) -> Reply:
    """A refusal in the envelope of whoever refuses; what Workers AI never saw has no `cf-ai-req-id`."""
    return edge_refusal(refused) if refused.row.envelope == "edge" else ai_refusal(refused, reached)


def edge_refusal(refused: Refused) -> Reply:
    """The router's own envelope. Fact: `env.edge`."""
    errors = [{"code": refused.row.code, "message": refused.description}]
    errors += [{"code": code, "message": message} for code, message in refused.row.also]
    body = {"result": None, "success": False, "errors": errors, "messages": []}
    return Reply(refused.row.status, dumps(body), retry_after(refused))


def ai_refusal(refused: Refused, reached: str) -> Reply:
    """Workers AI's envelope. Facts: `env.ai`, `head.req-id`."""
    headers = {**retry_after(refused), "cf-ai-req-id": reached}
    return Reply(refused.row.status, ai_error(refused, reached), headers)


def ai_error(refused: Refused, reached: str) -> bytes:
    """The body of Workers AI's envelope. Fact: `env.ai`."""
    errors = [{"message": refused.message(reached), "code": refused.row.code}]
    return dumps({"errors": errors, "success": False, "result": {}, "messages": []})


def retry_after(refused: Refused) -> dict[str, str]:
    """Only where a rule asks for it: none was seen live. Fact: `head.retry-after`."""
    return {} if refused.retry_after is None else {"retry-after": str(math.ceil(refused.retry_after))}
