"""The binding's dialect: what workerd's own AI module sends for `env.AI`, at the emulator's root.

Nothing here looks at Host, which is `workers-binding.ai` whatever the address. Fact: `binding.wire`.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qsl

from workersai_contracts import model
from workersai_emulator.api import envelopes
from workersai_emulator.api.binding_gateway import BindingGateway, provider_path
from workersai_emulator.api.binding_inputs import Said, read_said
from workersai_emulator.api.binding_markdown import BindingMarkdown
from workersai_emulator.api.events import EVENT_STREAM, events
from workersai_emulator.api.observing import arrived, observe
from workersai_emulator.api.outcomes import neurons_header, rendered
from workersai_emulator.api.reply import Reply, json_reply
from workersai_emulator.api.unwrapped import error_body, unwrapped
from workersai_emulator.api.wishes import account_meant, wishes
from workersai_emulator.calls import Call
from workersai_emulator.finished import Finished
from workersai_emulator.ids import exchange_id
from workersai_emulator.inference.event import Event
from workersai_emulator.json_text import dumps
from workersai_emulator.outcome import Listed, Queued, Result, Streamed
from workersai_emulator.refusals import Refused
from workersai_emulator.runs import LARGE_BODY

if TYPE_CHECKING:
    from collections.abc import Callable

    from workersai_emulator.accounts import Account
    from workersai_emulator.api.arrival import Arrival
    from workersai_emulator.api.exchange import Exchange
    from workersai_emulator.api.rest import Rest
    from workersai_emulator.outcome import Answered
    from workersai_emulator.service import Service

MODEL_HEADER: Final = "cf-consn-model-id"
_RUN, _GATEWAY_RUN, _MODELS = "/run", "/ai-gateway/run", "/ai-api/models/search"
_GATEWAY, _MARKDOWN = "/ai-gateway/", "/to-everything/markdown/"
#: A prefix, as the binding's option of that name puts it, and the model behind it.
_PREFIXED: Final = re.compile(r".*:(@.*)", re.DOTALL)
_QUEUE_IN_INPUTS = "queueRequest is in the inputs, where the service ignores it; it belongs in the options"
_NO_WEBSOCKET = "a model's WebSocket is not emulated; run it without options.websocket"


class Asked(NamedTuple):
    """One request of the binding on its way through: whose it is, and its number and id with Workers AI."""

    arrival: Arrival
    account: Account
    exchange: Exchange
    number: int
    reached: str

    @property
    def headers(self) -> dict[str, str]:
        """What every reply has. Facts: `head.req-id`, `binding.log-id`."""
        log = self.exchange.gateway_log
        told = {"cf-ai-req-id": self.reached}
        return told if log is None else {**told, "cf-aig-log-id": log.id}

    def refusal(self, refused: Refused) -> Reply:
        """A refusal of a run, which the binding throws. Fact: `env.binding`."""
        self._note(refused)
        headers = {**envelopes.retry_after(refused), **self.headers}
        return Reply(refused.row.status, error_body(refused, self.reached), headers)

    def api_refusal(self, refused: Refused) -> Reply:
        """A refusal of anything but a run: the binding reads `errors` there. Fact: `binding.errors`."""
        self._note(refused)
        return envelopes.refusal(refused, self.reached)

    def _note(self, refused: Refused) -> None:
        self.exchange.code, self.exchange.why = refused.row.code, refused.description
        self.exchange.retry_after = refused.retry_after


class Binding:
    """Answers a Worker's `env.AI` as the service does.

    Facts: `binding.wire`, `binding.bare`, `env.binding`, `head.content-type`, `head.req-id`.
    """

    def __init__(self, service: Service, rest: Rest) -> None:
        self._service = service
        self._rest = rest
        self._gateway = BindingGateway(service.accounts.journal)
        self._markdown = BindingMarkdown(service.workbench)

    async def answer(self, arrival: Arrival, exchange: Exchange) -> Reply:
        """Answer one request to one of the paths."""
        try:
            account_id = account_meant(arrival.headers, arrival.account_id)
        except ValueError as fault:
            return _header_refused(fault)
        provider = provider_path(account_id, arrival.path)
        if provider is not None:
            return await self._rest.answer(arrival.carrier, provider, arrival.query, exchange, trusted=True)
        account, number = await self._service.accounts.arrive(account_id)
        arrived(exchange, account, "", arrival.headers.get("User-Agent"))
        reached = exchange_id(self._service.seed, account.id, number)
        asked = Asked(arrival, account, exchange, number, reached)
        if arrival.path in {_RUN, _GATEWAY_RUN}:
            return await self._answer_run(asked)
        try:
            return await self._answer_other(asked)
        except Refused as refused:
            return asked.api_refusal(refused)

    async def _answer_run(self, asked: Asked) -> Reply:
        if asked.arrival.method != "POST":
            return _without_websocket(asked)
        try:
            reply = await self._run(asked)
        except Refused as refused:
            reply = asked.refusal(refused)
        if asked.exchange.gateway_log is not None:
            asked.exchange.gateway_log.answered(reply)
        return reply

    async def _answer_other(self, asked: Asked) -> Reply:
        path = asked.arrival.path
        if path == _MODELS:
            return await self._models(asked)
        if path.startswith(_MARKDOWN):
            return await self._markdown.answer(asked, path[len(_MARKDOWN) :])
        return await self._gateway.answer(asked, path[len(_GATEWAY) :])

    async def _run(self, asked: Asked) -> Reply:
        """Facts: `binding.wire`, `binding.stream-input`, `batch.binding`, `sync.busy`."""
        account, exchange, arrival = asked.account, asked.exchange, asked.arrival
        try:
            wished = wishes(arrival.headers)
        except ValueError as fault:
            return _header_refused(fault)
        name = exchange.model = _model_named(arrival.headers.get(MODEL_HEADER))
        said = await read_said(arrival, account.settings, model(name), self._service.workbench)
        if arrival.path == _GATEWAY_RUN:
            exchange.gateway_log = self._gateway.log(asked, said.options, self._service.seed)
        queue = said.options.get("queueRequest") is True
        limit = account.settings.payload_bytes if queue else account.settings.body_bytes
        call = Call(
            account,
            name,
            said.inputs,
            said.payload,
            asked.number,
            queue=queue,
            raw=said.raw,
            busy_refused=said.options.get("rejectIfBusy") is True,
            script=wished.script,
            scenario=wished.scenario,
        )
        await self._observe(asked, call, said, limit)
        return await self._serve(asked, call, asked.refusal)

    async def _observe(self, asked: Asked, call: Call, said: Said, limit: int | None) -> None:
        job = partial(observe, asked.exchange, call, limit)
        await self._service.workbench.aside(job, large=len(said.payload) > LARGE_BODY)
        if "queue-in-body" in asked.exchange.slips:
            asked.exchange.why = asked.exchange.hint = _QUEUE_IN_INPUTS
        if limit is not None and len(said.payload) >= limit:
            raise Refused("request.too-large")

    async def _serve(self, asked: Asked, call: Call, refusal: Callable[[Refused], Reply]) -> Reply:
        try:
            outcome = await self._service.run(call)
        finally:
            asked.exchange.rule, asked.exchange.nearly = call.trace.rule, call.trace.nearly
        return await rendered(outcome, asked.exchange, partial(_answered, call, asked), refusal)

    async def _models(self, asked: Asked) -> Reply:
        """Facts: `binding.models`, `models.search`."""
        if asked.arrival.method != "GET":
            raise Refused("route.method", method=asked.arrival.method)
        asked.exchange.operation = "models"
        query = dict(parse_qsl(asked.arrival.query))
        call = Call(asked.account, "", query, b"", asked.number, listing="search")
        return await self._serve(asked, call, asked.api_refusal)


async def _answered(call: Call, asked: Asked, outcome: Answered) -> Reply:
    """A success without an envelope, or as events.

    Facts: `binding.bare`, `binding.models`, `submit.status`, `head.req-id`, `head.neurons`, `head.sse`.
    """
    headers = asked.headers
    if isinstance(outcome, Streamed):
        told = events(outcome, lambda refused, _: Event(envelopes.ai_error(refused, asked.reached)))
        return Reply(200, told, headers, EVENT_STREAM)
    if isinstance(outcome, Listed):
        return Reply(200, dumps({"success": True, "result": outcome.result}), headers)
    status = int(call.settings.assumed("submit.status")) if isinstance(outcome, Queued) else 200
    if isinstance(outcome, Finished):
        await outcome.foresee()
        body = await unwrapped(outcome)
        return Reply(status, body, headers | neurons_header(outcome.bill.neurons))
    if isinstance(outcome, Result):
        headers |= neurons_header(outcome.neurons)
        return Reply(status, outcome.content, headers, outcome.content_type)
    return Reply(status, await unwrapped(outcome), headers)


def _model_named(header: str | None) -> str:
    """The model, without the prefix that an option of the binding puts before it. Fact: `binding.wire`."""
    if not header:
        raise Refused("request.incomplete", what=MODEL_HEADER)
    prefixed = _PREFIXED.fullmatch(header)
    return header if prefixed is None else prefixed[1]


def _header_refused(fault: ValueError) -> Reply:
    """A refusal by the emulator as a tool, which the binding finds words in too. Fact: `binding.errors`."""
    reason = str(fault)
    return json_reply(400, {"error": reason, "errors": [{"code": 0, "message": reason}]})


def _without_websocket(asked: Asked) -> Reply:
    """Refuse what cannot be emulated at once, in the binding's form. Facts: `binding.websocket`, `settled.binding`."""
    asked.exchange.why = _NO_WEBSOCKET
    told: dict[str, Any] = {
        "name": "AiError",
        "internalCode": 0,
        "httpCode": 501,
        "message": f"AiError: workersai-emulator: {_NO_WEBSOCKET}",
        "description": f"workersai-emulator: {_NO_WEBSOCKET}",
        "requestId": asked.reached,
    }
    return Reply(501, dumps(told), asked.headers)
