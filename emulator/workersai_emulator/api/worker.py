"""The `/batch` Worker's dialect: "AI Batch Infer", with its binding or without.

Any failure of the queue comes out as 502 BATCH_ERROR with what the binding throws. Fact: `env.binding`.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from workersai_emulator.api.body import BadBody, read_body
from workersai_emulator.api.observing import arrived, observe
from workersai_emulator.api.outcomes import rendered
from workersai_emulator.api.reply import Reply, json_reply, tool_refusal
from workersai_emulator.api.unwrapped import thrown, unwrapped
from workersai_emulator.api.wishes import Wishes, account_meant, wishes
from workersai_emulator.calls import Call
from workersai_emulator.ids import DEVELOPMENT_ACCOUNT, demo_request_id
from workersai_emulator.json_text import dumps, loads
from workersai_emulator.outcome import Listed, Queued, Streamed
from workersai_emulator.refusals import Refused

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest

    from workersai_emulator.accounts import Account
    from workersai_emulator.api.exchange import Exchange
    from workersai_emulator.outcome import Answered
    from workersai_emulator.service import Service

BODY_LIMIT = 1_000_000
MAX_TEXTS = 20
MAX_UNITS = 2000
_REQUEST_ID = re.compile(r"[a-zA-Z0-9._-]{1,128}")
# What JavaScript's trim() takes away, which is not what str.strip() does.
_JS_SPACE = (
    "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)

INFO = {
    "name": "ai-batch-infer",
    "description": "Queues batches of texts for an embedding model and polls them (emulated)",
    "usage": {
        "submit": 'POST /batch with {"texts": ["…", …]}',
        "poll": "GET /batch/:requestId",
    },
    "cloudflareFeatures": ["Workers AI", "Asynchronous Batch API"],
}


class Worker:
    """Answers as the deployed Worker does, on the same service as every other dialect."""

    def __init__(self, service: Service, model_name: str) -> None:
        self._service = service
        self._model = model_name

    async def answer(self, request: BaseRequest, path: str, exchange: Exchange) -> Reply:
        """Answer one request to one of the routes."""
        if path == "/":
            return json_reply(200, INFO)
        try:
            account_id = account_meant(request.headers, DEVELOPMENT_ACCOUNT)
        except ValueError as fault:
            return tool_refusal(400, str(fault))
        account = await self._service.accounts.fresh(account_id)
        assert account is not None
        arrived(exchange, account, self._model, request.headers.get("User-Agent"))
        if path == "/batch":
            return await self._submit(request, account, exchange)
        return await self._poll(unquote(path[len("/batch/") :]), account, exchange)

    async def _submit(self, request: BaseRequest, account: Account, exchange: Exchange) -> Reply:
        exchange.operation = "submit"
        try:
            body = loads(await read_body(request, BODY_LIMIT))
        except (BadBody, ValueError, Refused):
            return _error(400, "INVALID_BODY", "Request body must be valid JSON", exchange)
        texts = _texts(body)
        if texts is None:
            complaint = (
                "Body must include texts: string[] with 1\u201320 non-empty items (max 2000 chars each)"
            )
            return _error(400, "INVALID_BODY", complaint, exchange)
        if account.settings.worker_binding is False:
            return json_reply(200, await self._demo_submit(account))
        try:
            asked = wishes(request.headers)
        except ValueError as fault:
            return tool_refusal(400, str(fault))
        inputs = {"requests": [{"text": text} for text in texts]}
        return await self._through_binding(account, inputs, exchange, queue=True, asked=asked)

    async def _poll(self, raw_id: str, account: Account, exchange: Exchange) -> Reply:
        exchange.operation = "poll"
        request_id = raw_id.strip(_JS_SPACE)
        if _REQUEST_ID.fullmatch(request_id) is None:
            complaint = "Missing or invalid requestId path parameter"
            return _error(400, "INVALID_REQUEST_ID", complaint, exchange)
        if account.settings.worker_binding is False:
            return json_reply(200, self._demo_poll(request_id))
        return await self._through_binding(account, {"request_id": request_id}, exchange, queue=False)

    async def _through_binding(
        self,
        account: Account,
        inputs: dict[str, Any],
        exchange: Exchange,
        *,
        queue: bool,
        asked: Wishes | None = None,
    ) -> Reply:
        """What `env.AI.run` would give the Worker, or throw at it. Facts: `batch.binding`, `batch.limit`."""
        body = dumps(inputs)
        limit = account.settings.payload_bytes if queue else account.settings.body_bytes
        wished = asked or Wishes()
        call = Call(
            account,
            self._model,
            inputs,
            body,
            await self._service.accounts.store.next(account.id, "exchange"),
            queue=queue,
            script=wished.script,
            scenario=wished.scenario,
        )
        refusal = partial(_thrown, exchange)
        try:
            if limit is not None and len(body) >= limit:
                raise Refused("request.too-large")
            observe(exchange, call, limit)
            outcome = await self._service.run(call)
            return await rendered(outcome, exchange, partial(_answered, exchange, queue), refusal)
        except Refused as refused:
            return refusal(refused)
        finally:
            exchange.rule, exchange.nearly = call.trace.rule, call.trace.nearly

    async def _demo_submit(self, account: Account) -> dict[str, Any]:
        number = await self._service.accounts.store.next(account.id, "demo")
        return {
            "status": "queued",
            "model": self._model,
            "request_id": demo_request_id(self._service.seed, account.id, number),
            "mode": "demo",
            "note": "AI binding unavailable; returning a demo queued response",
        }

    def _demo_poll(self, request_id: str) -> dict[str, Any]:
        return {
            "status": "completed",
            "model": self._model,
            "request_id": request_id,
            "mode": "demo",
            "note": "AI binding unavailable; returning demo poll results",
            "responses": [{"id": 0, "success": True, "result": {"data": [0.1, 0.2, 0.3]}}],
        }


async def _answered(exchange: Exchange, queue: bool, outcome: Answered) -> Reply:
    """The binding's answer with the Worker's mode. Fact: `batch.binding`."""
    if queue and not isinstance(outcome, Queued):
        return _error(502, "BATCH_ERROR", "Unexpected batch queue response shape", exchange)
    assert not isinstance(outcome, Streamed | Listed)  # neither is asked for
    answer = await unwrapped(outcome)
    if not isinstance(answer, bytes):
        answer = b"".join([piece async for piece in answer])
    return Reply(200, answer[:-1] + b',"mode":"live"}')


def _thrown(exchange: Exchange, refused: Refused) -> Reply:
    """What the binding throws, as the Worker tells it. Facts: `env.binding`, `worker.error`."""
    exchange.code = refused.row.code
    return _error(502, "BATCH_ERROR", thrown(refused), exchange)


def _texts(body: object) -> list[str] | None:
    texts = body.get("texts") if isinstance(body, dict) else None
    if not isinstance(texts, list) or not 1 <= len(texts) <= MAX_TEXTS:
        return None
    trimmed = [text.strip(_JS_SPACE) for text in texts if isinstance(text, str)]
    if len(trimmed) < len(texts) or not all(trimmed):
        return None
    if any(len(text.encode("utf-16-le", "surrogatepass")) // 2 > MAX_UNITS for text in texts):
        return None
    return trimmed


def _error(status: int, code: str, message: str, exchange: Exchange) -> Reply:
    exchange.why = message
    return json_reply(status, {"error": message, "code": code})
