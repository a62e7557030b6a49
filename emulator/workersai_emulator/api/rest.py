"""The REST dialect: `/client/v4/accounts/{account_id}/ai/run/{model}`."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from workersai_contracts import model
from workersai_emulator.accounts import Account, is_account_id
from workersai_emulator.api.authorization import authorize
from workersai_emulator.api.body import BadBody, read_body
from workersai_emulator.api.observing import arrived, observe
from workersai_emulator.api.outcomes import bare, rendered
from workersai_emulator.api.reply import Reply, tool_refusal
from workersai_emulator.api.wishes import wishes
from workersai_emulator.finished import Finished
from workersai_emulator.ids import DEVELOPMENT_TOKEN, exchange_id
from workersai_emulator.json_text import dumps, loads
from workersai_emulator.refusals import Refused, refused_input
from workersai_emulator.service import LARGE_BODY, Answered, Call, Queued, Service

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection

    from aiohttp.web import BaseRequest

    from workersai_emulator.api.exchange import Exchange

PREFIX = "/client/v4/"
_HINTS = {
    "auth.missing": f"send 'Authorization: Bearer {DEVELOPMENT_TOKEN}'; without --api-token any token will do",
}
_QUEUE_IN_BODY = "queueRequest is in the body, where the service ignores it; it belongs in the query"
_ENDING = b',"success":true,"errors":[],"messages":[]}'


class Rest:
    """Answers in the two envelopes: the router's, and Workers AI's own.

    Facts: `env.edge`, `env.ai`, `env.success`, `head.req-id`.
    """

    def __init__(self, service: Service, seed: int, tokens: Collection[str]) -> None:
        self._service = service
        self._seed = seed
        self._tokens = tokens

    async def answer(self, request: BaseRequest, path: str, query: str, exchange: Exchange) -> Reply:
        """Answer one request, whatever it is."""
        try:
            account, model_name = self._route(request, path)
        except Refused as refused:
            exchange.code, exchange.why = refused.row.code, refused.description
            exchange.hint = _HINTS.get(refused.row.id, "")
            return _edge_refusal(refused)
        arrived(exchange, account, model_name, request.headers.get("User-Agent"))
        account.exchanges += 1
        reached = exchange_id(self._seed, account.id, account.exchanges)
        try:
            return await self._run(request, account, model_name, query, exchange=exchange, reached=reached)
        except Refused as refused:
            return self._refusal(reached, exchange, refused)

    def _route(self, request: BaseRequest, path: str) -> tuple[Account, str]:
        """Who is meant, and which model. Facts: `route.method`, `route.none`."""
        account_id, model_name = _places(path)
        if request.method != "POST":
            raise Refused("route.method", method=request.method)
        authorize(request.headers, self._tokens)
        if model_name is None:
            raise Refused("route.none")
        return self._service.accounts.get(account_id), model_name

    async def _run(
        self,
        request: BaseRequest,
        account: Account,
        model_name: str,
        query: str,
        *,
        exchange: Exchange,
        reached: str,
    ) -> Reply:
        queue = _wants_queue(query)
        try:
            wished = wishes(request.headers)
        except ValueError as fault:
            return tool_refusal(400, str(fault))
        settings = account.settings
        limit = settings.payload_bytes if queue else settings.body_bytes
        body = await self._body(request, account, limit)
        inputs = await self._inputs(account, body)
        call = Call(account, model_name, inputs, body, queue, wished.script, wished.scenario)
        await self._observe(exchange, call, limit)
        if "queue-in-body" in exchange.slips:
            exchange.why = exchange.hint = _QUEUE_IN_BODY
        try:
            outcome = await self._service.run(call)
        finally:
            exchange.rule, exchange.nearly = call.trace.rule, call.trace.nearly
        refusal = partial(self._refusal, reached, exchange)
        return await rendered(outcome, exchange, partial(_answered, call, reached), refusal)

    def _refusal(self, reached: str, exchange: Exchange, refused: Refused) -> Reply:
        """A refusal in the envelope of whoever refuses; what Workers AI never saw has no `cf-ai-req-id`."""
        exchange.code, exchange.why = refused.row.code, refused.description
        exchange.retry_after = refused.retry_after
        return _edge_refusal(refused) if refused.row.envelope == "edge" else _ai_refusal(refused, reached)

    async def _body(self, request: BaseRequest, account: Account, limit: int | None) -> bytes:
        try:
            return await read_body(request, limit)
        except BadBody as bad:
            raise _not_json(account, str(bad)) from None

    async def _observe(self, exchange: Exchange, call: Call, limit: int | None) -> None:
        if len(call.body) > LARGE_BODY:
            await self._service.workbench.make(partial(observe, exchange, call, limit))
        else:
            observe(exchange, call, limit)

    async def _inputs(self, account: Account, body: bytes) -> Any:
        """What the body says. Fact: `body.not-json`."""
        try:
            if len(body) > LARGE_BODY:
                return await self._service.workbench.make(partial(loads, body))
            return loads(body)
        except ValueError as bad:
            raise _not_json(account, str(bad)) from None


@lru_cache(maxsize=512)
def _places(path: str) -> tuple[str, str | None]:
    """The account and the model that a path names; the model None where nobody knows it.

    A model comes raw, with `%40`, and with `%2F`. Facts: `route.none`, `route.account`, `sync.path`.
    """
    parts = path.split("/", 7)
    if len(parts) < 6 or parts[1:4] != ["client", "v4", "accounts"] or parts[5] != "ai":
        raise Refused("route.none")
    if not is_account_id(parts[4]):
        raise Refused("route.account", path=path)
    if len(parts) < 8 or parts[6] != "run":
        raise Refused("route.none")
    card = model(unquote(parts[7]))
    return parts[4], None if card is None else card.name


@lru_cache(maxsize=512)
def _wants_queue(query: str) -> bool:
    """Whether the query asks for the queue; anything but `true` does not. Facts: `batch.query`, `settled.query`."""
    return dict(parse_qsl(query)).get("queueRequest") == "true"


def _not_json(account: Account, fault: str) -> Refused:
    if account.settings.assumed("body.not-json") == "5006":
        return refused_input(f"the body is not JSON: {fault}")
    return Refused("request.incomplete", what="body")


async def _answered(call: Call, reached: str, outcome: Answered) -> Reply:
    """A success in its envelope. Facts: `env.success`, `submit.status`, `head.req-id`."""
    status = int(call.settings.assumed("submit.status")) if isinstance(outcome, Queued) else 200
    return Reply(status, await _enveloped(outcome), {"cf-ai-req-id": reached})


async def _enveloped(outcome: Answered) -> bytes | AsyncGenerator[bytes]:
    if isinstance(outcome, Finished):
        pieces = _wrapped(outcome)
        return b"".join([piece async for piece in pieces]) if outcome.small else pieces
    return b'{"result":' + bare(outcome) + _ENDING


async def _wrapped(finished: Finished) -> AsyncGenerator[bytes]:
    yield b'{"result":{'
    async for piece in finished.pieces():
        yield piece
    yield b"}" + _ENDING


def _edge_refusal(refused: Refused) -> Reply:
    """The router's own envelope. Fact: `env.edge`."""
    errors = [{"code": refused.row.code, "message": refused.description}]
    errors += [{"code": code, "message": message} for code, message in refused.row.also]
    body = {"result": None, "success": False, "errors": errors, "messages": []}
    return Reply(refused.row.status, dumps(body), _retry_after(refused))


def _ai_refusal(refused: Refused, reached: str) -> Reply:
    """Workers AI's envelope. Facts: `env.ai`, `head.req-id`."""
    errors = [{"message": refused.message(reached), "code": refused.row.code}]
    body = {"errors": errors, "success": False, "result": {}, "messages": []}
    return Reply(refused.row.status, dumps(body), {**_retry_after(refused), "cf-ai-req-id": reached})


def _retry_after(refused: Refused) -> dict[str, str]:
    """Only where a rule asks for it: none was seen live. Fact: `head.retry-after`."""
    return {} if refused.retry_after is None else {"retry-after": str(math.ceil(refused.retry_after))}
