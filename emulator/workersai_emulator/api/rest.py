"""The REST dialect: `/client/v4/accounts/{account_id}/ai/…`, and the AI Gateway's path to the same."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

from workersai_contracts import model
from workersai_emulator.api import envelopes, openai
from workersai_emulator.api.authorization import authorize
from workersai_emulator.api.body import BadBody, read_body
from workersai_emulator.api.events import EVENT_STREAM, events
from workersai_emulator.api.observing import arrived, observe
from workersai_emulator.api.outcomes import neurons_header, rendered
from workersai_emulator.api.reply import Reply, tool_refusal
from workersai_emulator.api.routes import GATEWAY_PREFIX, REST_PREFIX, Route, route
from workersai_emulator.api.wishes import wishes
from workersai_emulator.calls import Call, Form
from workersai_emulator.finished import Finished
from workersai_emulator.ids import DEVELOPMENT_TOKEN, exchange_id
from workersai_emulator.inference.event import Event
from workersai_emulator.json_text import loads
from workersai_emulator.outcome import Queued, Result, Streamed
from workersai_emulator.refusals import Refused, refused_input
from workersai_emulator.runs import LARGE_BODY

if TYPE_CHECKING:
    from collections.abc import Collection

    from aiohttp.web import BaseRequest

    from workersai_emulator.accounts import Account
    from workersai_emulator.api.exchange import Exchange
    from workersai_emulator.api_tokens import Token
    from workersai_emulator.outcome import Answered
    from workersai_emulator.service import Service

PREFIXES = (REST_PREFIX, GATEWAY_PREFIX)
_HINTS = {
    "auth.missing": f"send 'Authorization: Bearer {DEVELOPMENT_TOKEN}'; without --api-token any token will do",
}
_QUEUE_IN_BODY = "queueRequest is in the body, where the service ignores it; it belongs in the query"
_FORMS: dict[str, Form] = {"chat": "chat", "embeddings": "embeddings", "responses": "responses"}


class _Asked(NamedTuple):
    """One request on its way through: where it leads, whose it is, and its number and id with Workers AI."""

    request: BaseRequest
    route: Route
    account: Account
    exchange: Exchange
    number: int
    reached: str
    queue: bool

    @property
    def form(self) -> Form:
        return _FORMS.get(self.route.surface, "native")

    def refusal(self, refused: Refused) -> Reply:
        """A refusal in the form that this surface has for it."""
        self.exchange.code, self.exchange.why = refused.row.code, refused.description
        self.exchange.retry_after = refused.retry_after
        if self.form == "native":
            return envelopes.refusal(refused, self.reached)
        return openai.refusal(
            refused, self.reached, self.form, self.account.settings.assumed("openai.errors")
        )

    def error_event(self, refused: Refused, before: int) -> Event:
        """The same as the last event of a stream, after so many others."""
        if self.form == "native":
            return Event(envelopes.ai_error(refused, self.reached))
        errors = self.account.settings.assumed("openai.errors")
        return openai.error_event(refused, self.reached, self.form, errors, before)


class Rest:
    """Answers every path of the API that leads to Workers AI.

    Facts: `env.edge`, `env.ai`, `env.success`, `head.req-id`.
    """

    def __init__(self, service: Service, tokens: Collection[Token]) -> None:
        self._service = service
        self._tokens = tokens

    async def answer(
        self, request: BaseRequest, path: str, query: str, exchange: Exchange, *, trusted: bool = False
    ) -> Reply:
        """Answer one request, whatever it is; one that comes through a binding needs no credentials."""
        try:
            way = route(request.method, path)
            edits = way.surface == "new-finetune"
            if not trusted:
                authorize(request.headers, self._tokens, way.account_id, edits=edits)
            if edits:
                raise Refused("route.method", method=request.method)
            if way.surface == "run" and model(way.model) is None:
                raise Refused("route.none")
        except Refused as refused:
            exchange.code, exchange.why = refused.row.code, refused.description
            exchange.hint = _HINTS.get(refused.row.id, "")
            return envelopes.edge_refusal(refused)
        account, number = await self._service.accounts.arrive(way.account_id)
        arrived(exchange, account, way.model, request.headers.get("User-Agent"))
        reached = exchange_id(self._service.seed, account.id, number)
        asked = _Asked(request, way, account, exchange, number, reached, _wants_queue(query))
        try:
            return await (self._run(asked) if request.method == "POST" else self._list(asked, query))
        except Refused as refused:
            return asked.refusal(refused)
        except BadBody as bad:
            return asked.refusal(_not_json(account, str(bad)))

    async def _run(self, asked: _Asked) -> Reply:
        account, exchange = asked.account, asked.exchange
        try:
            wished = wishes(asked.request.headers)
        except ValueError as fault:
            return tool_refusal(400, str(fault))
        queue = asked.queue and asked.form == "native"
        limit = account.settings.payload_bytes if queue else account.settings.body_bytes
        body = await read_body(asked.request, limit)
        aside = self._service.workbench.make if len(body) > LARGE_BODY else None
        try:
            parsed = loads(body) if aside is None else await aside(partial(loads, body))
        except ValueError as bad:
            model_name, said, raw = _raw_input(asked, body, bad)
        else:
            model_name, said, raw = *_inputs(asked, parsed), False
        inputs = _without_options(said)
        exchange.model = model_name
        call = Call(
            account,
            model_name,
            inputs,
            body,
            asked.number,
            queue=queue,
            form=asked.form,
            raw=raw,
            busy_refused=_refuses_to_wait(said),
            script=wished.script,
            scenario=wished.scenario,
        )
        if aside is None:
            observe(exchange, call, limit)
        else:
            await aside(partial(observe, exchange, call, limit))
        if "queue-in-body" in exchange.slips:
            exchange.why = exchange.hint = _QUEUE_IN_BODY
        return await self._serve(asked, call)

    async def _list(self, asked: _Asked, query: str) -> Reply:
        asked.exchange.operation = "models"
        listing: Any = asked.route.surface
        call = Call(asked.account, "", dict(parse_qsl(query)), b"", asked.number, listing=listing)
        return await self._serve(asked, call)

    async def _serve(self, asked: _Asked, call: Call) -> Reply:
        try:
            outcome = await self._service.run(call)
        finally:
            asked.exchange.rule, asked.exchange.nearly = call.trace.rule, call.trace.nearly
        return await rendered(outcome, asked.exchange, partial(_answered, call, asked), asked.refusal)


def _inputs(asked: _Asked, said: Any) -> tuple[str, Any]:
    """The model and its inputs. Facts: `sync.run-body`, `openai.run`."""
    if asked.route.model:
        return asked.route.model, said
    if not isinstance(said, dict) or not isinstance(said.get("model"), str):
        raise refused_input("required properties at '/' are 'model'")
    if asked.form != "native":
        return said["model"], said
    inputs = said.get("input")
    if inputs is None:
        inputs = {}
    if isinstance(inputs, dict) and "options" in said:
        inputs = {**inputs, "options": said["options"]}
    return said["model"], inputs


def _raw_input(asked: _Asked, body: bytes, bad: ValueError) -> tuple[str, Any, bool]:
    """The model and its one input, which came as it is in place of JSON. Facts: `body.not-json`, `sync.raw-body`."""
    named = asked.route.model
    card = model(named) if named and not asked.queue else None
    said_json = "json" in asked.request.headers.get("Content-Type", "").lower()
    if card is None or card.raw_input is None or not body or said_json:
        raise _not_json(asked.account, str(bad)) from None
    return named, {card.raw_input: body}, True


@lru_cache(maxsize=512)
def _wants_queue(query: str) -> bool:
    """Whether the query asks for the queue; anything but `true` does not. Facts: `batch.query`, `settled.query`."""
    return dict(parse_qsl(query)).get("queueRequest") == "true"


def _refuses_to_wait(said: Any) -> bool:
    """Whether a run asks to be refused at once when there is no capacity. Fact: `sync.busy`."""
    options = said.get("options") if isinstance(said, dict) else None
    return isinstance(options, dict) and options.get("rejectIfBusy") is True


def _without_options(said: Any) -> Any:
    """The inputs without what is said to the service about the run, which no model's schema knows.

    Fact: `sync.busy`.
    """
    if not isinstance(said, dict) or not isinstance(said.get("options"), dict):
        return said
    return {name: value for name, value in said.items() if name != "options"}


def _not_json(account: Account, fault: str) -> Refused:
    if account.settings.assumed("body.not-json") == "5006":
        return refused_input(f"the body is not JSON: {fault}")
    return Refused("request.incomplete", what="body")


async def _answered(call: Call, asked: _Asked, outcome: Answered) -> Reply:
    """A success: in its envelope, bare in OpenAI's forms and where it is no JSON, or as events.

    Facts: `env.success`, `submit.status`, `head.req-id`, `head.neurons`, `head.sse`, `openai.run`, `sync.binary`.
    """
    headers = {"cf-ai-req-id": asked.reached}
    if isinstance(outcome, Streamed):
        told = events(outcome, asked.error_event, closing=call.form != "responses")
        return Reply(200, told, headers, EVENT_STREAM)
    if isinstance(outcome, Result):
        headers |= neurons_header(outcome.neurons)
        if call.form != "native" or outcome.content_type != "application/json":
            return Reply(200, outcome.content, headers, outcome.content_type)
    status = int(call.settings.assumed("submit.status")) if isinstance(outcome, Queued) else 200
    if isinstance(outcome, Finished):
        await outcome.foresee()
    body = await envelopes.enveloped(outcome)
    if isinstance(outcome, Finished):
        headers |= neurons_header(outcome.bill.neurons)
    return Reply(status, body, headers)
