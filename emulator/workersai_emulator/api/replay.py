"""The wire of a recording: requests of every dialect, answered as they were when it was made."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs

from workersai_contracts.asked import asked_now
from workersai_contracts.passing import Request
from workersai_contracts.recording import account_in, credentials_of
from workersai_emulator.api.body import BadBody, read_body
from workersai_emulator.api.dialects import CONTROL_PREFIX
from workersai_emulator.api.observing import client_of
from workersai_emulator.api.reply import Reply, json_reply, tool_refusal
from workersai_emulator.ids import DEVELOPMENT_ACCOUNT
from workersai_emulator.json_text import loads
from workersai_emulator.refusals import Refused
from workersai_emulator.replaying import NotRecorded, Replaying

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from aiohttp.web import BaseRequest

    from workersai_contracts.recorded import Recorded
    from workersai_emulator.api.exchange import Exchange
    from workersai_emulator.api_tokens import Token

BODY_LIMIT = 100_000_000
#: A reply has this header where it is none of the recording's.
NOT_RECORDED = "x-emulator-replay"
#: What the control plane does to the domain, which a recording knows nothing of.
_DRIVES = frozenset({"rules", "scenarios", "settings", "clock", "batches"})
_JSON = "application/json"


class Replay:
    """Answers from a recording; `or_emulate` leaves to the emulator what is not in it."""

    def __init__(self, replaying: Replaying, tokens: Collection[Token], *, or_emulate: bool) -> None:
        self._replaying = replaying
        self._tokens = frozenset(token.value for token in tokens)
        self._or_emulate = or_emulate

    def rewind(self, account_id: str | None) -> None:
        """Begin again, for an account or for all."""
        self._replaying.rewind(account_id)

    def takes(self, path: str) -> bool:
        """Whether a request is the recording's: all of the service, and what would drive the emulator."""
        if not path.startswith(CONTROL_PREFIX):
            return True
        return not self._or_emulate and path[len(CONTROL_PREFIX) :].partition("/")[0] in _DRIVES

    async def answer(
        self, request: BaseRequest, path: str, query: str, exchange: Exchange
    ) -> Reply | BaseRequest:
        """The recorded reply; where there is none a refusal, or the request again for the emulator to answer."""
        try:
            content = await read_body(request, BODY_LIMIT)
        except (BadBody, Refused) as bad:
            return tool_refusal(400, f"the body cannot be looked for in the recording: {bad}")
        account_id = account_in(path).lower() or _said_account(content, query) or DEVELOPMENT_ACCOUNT
        target = path + (f"?{query}" if query else "")
        sent = Request(request.method, target, list(request.headers.items()), content)
        credentials = credentials_of(sent.named_headers(), self._tokens)
        hidden = self._replaying.recording.texts_hidden
        asked = asked_now(sent, credentials, account_id, texts_hidden=hidden)
        try:
            answer = self._replaying.answer(
                asked, account_id, partial(_parsed, content), strangers=not self._or_emulate
            )
        except NotRecorded as none:
            if self._or_emulate:
                return cast("BaseRequest", _Again(request, content))
            exchange.account_id, exchange.operation, exchange.model = account_id, asked.operation, asked.model
            return _refusal(path, str(none), exchange)
        _tell(exchange, answer.recorded, account_id, sent.named_headers())
        return Reply(
            answer.recorded.status,
            answer.content,
            _headers(answer.recorded),
            _content_type(answer.recorded),
            headers_of="recording",
        )


class _Again:
    """A request whose body was read, to be read again; everything else is the request's own."""

    def __init__(self, request: BaseRequest, content: bytes) -> None:
        self._request = request
        self._left = content
        self.content = self
        self.content_length = len(content)
        coded = {"content-encoding", "expect"}
        self.headers = request.headers.copy()
        for name in list(self.headers):
            if name.lower() in coded:
                del self.headers[name]

    def is_eof(self) -> bool:
        return True

    def read_nowait(self) -> bytes:
        content, self._left = self._left, b""
        return content

    async def readany(self) -> bytes:
        return self.read_nowait()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._request, name)


def _refusal(path: str, why: str, exchange: Exchange) -> Reply:
    if path.startswith(CONTROL_PREFIX):
        return tool_refusal(501, f"a recording is replayed, and what is not in it does nothing: {why}")
    exchange.dialect, exchange.why = "replay", why
    body = {
        "errors": [{"message": f"workersai-emulator: {why}", "code": 0}],
        "success": False,
        "result": {},
        "messages": [],
    }
    reply = json_reply(501, body)
    reply.headers = {NOT_RECORDED: "none"}
    return reply


def _tell(exchange: Exchange, recorded: Recorded, account_id: str, headers: Mapping[str, str]) -> None:
    """Write down for the log and the journal what was replayed."""
    if recorded.path.startswith(CONTROL_PREFIX):
        return
    exchange.dialect, exchange.account_id = "replay", account_id
    exchange.operation, exchange.model = recorded.operation, recorded.model
    exchange.request_id, exchange.why = recorded.request_id, recorded.name
    exchange.client = client_of(headers.get("user-agent"))
    if isinstance(recorded.result, dict) and isinstance(recorded.result.get("status"), str):
        exchange.state = recorded.result["status"]
    told = (recorded.got or {}).get("json")
    errors = told.get("errors") if isinstance(told, dict) else None
    if isinstance(errors, list) and errors and isinstance(errors[0], dict):
        code = errors[0].get("code")
        exchange.code = code if isinstance(code, int) else None


def _headers(recorded: Recorded) -> dict[str, str]:
    """The reply's headers as they were, but for the name of the server, which is another one now."""
    said_elsewhere = {"server", "content-type"}
    return {name: value for name, value in recorded.headers.items() if name.lower() not in said_elsewhere}


def _content_type(recorded: Recorded) -> str:
    return next((value for name, value in recorded.headers.items() if name.lower() == "content-type"), _JSON)


def _said_account(content: bytes, query: str) -> str:
    """The account that a request of the control plane is about."""
    named = parse_qs(query).get("account_id")
    if named:
        return named[0]
    said = _parsed(content) if len(content) < 10_000 else None
    account_id = said.get("account_id") if isinstance(said, dict) else None
    return account_id if isinstance(account_id, str) else ""


def _parsed(content: bytes) -> Any:
    try:
        return loads(content)
    except ValueError:
        return None
