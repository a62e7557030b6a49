"""The remote proxy: how Miniflare and wrangler carry a binding's requests to a server elsewhere.

The real address and headers come in headers; the body and the reply are the binding's own. Fact: `remote.proxy`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from workersai_emulator.accounts import is_account_id
from workersai_emulator.api import envelopes
from workersai_emulator.api.arrival import Arrival
from workersai_emulator.api.authorization import authorize
from workersai_emulator.api.dialects import FORWARDED_HEADER, OLD_PROXY_PATH, URL_HEADER, is_bindings
from workersai_emulator.api.reply import Reply, tool_refusal
from workersai_emulator.ids import DEVELOPMENT_ACCOUNT
from workersai_emulator.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from aiohttp.web import BaseRequest

    from workersai_emulator.api.binding import Binding
    from workersai_emulator.api.exchange import Exchange
    from workersai_emulator.api_tokens import Token

_HEADER_PREFIX = "mf-header-"
_NO_RPC = "the AI binding is served over HTTP here; calls over RPC, such as aiSearch(), are not emulated"


class RemoteProxy:
    """Unwraps a binding's request and hands it to the binding's dialect. Facts: `remote.proxy`, `remote.old-proxy`."""

    def __init__(self, binding: Binding, tokens: Collection[Token]) -> None:
        self._binding = binding
        self._tokens = tokens

    async def answer(self, request: BaseRequest, path: str, exchange: Exchange) -> Reply:
        """Answer the request that is carried in this one."""
        old = OLD_PROXY_PATH.fullmatch(path) if FORWARDED_HEADER in request.headers else None
        if old is not None:
            return await self._answer_old(request, old[1], exchange)
        if URL_HEADER not in request.headers:
            exchange.why = _NO_RPC
            return tool_refusal(501, _NO_RPC)
        url = request.headers[URL_HEADER]
        return await self._hand_over(request, url, DEVELOPMENT_ACCOUNT, exchange)

    async def _answer_old(self, request: BaseRequest, account_id: str, exchange: Exchange) -> Reply:
        try:
            if not is_account_id(account_id):
                raise Refused("route.account", path=exchange.path)
            authorize(request.headers, self._tokens, account_id)
        except Refused as refused:
            exchange.code, exchange.why = refused.row.code, refused.description
            return envelopes.edge_refusal(refused)
        url = request.headers[FORWARDED_HEADER]
        return await self._hand_over(request, url, account_id, exchange)

    async def _hand_over(self, request: BaseRequest, url: str, account_id: str, exchange: Exchange) -> Reply:
        try:
            parts = urlsplit(url)
        except ValueError as fault:
            return tool_refusal(400, f"{url!r} is no address that a binding asks for: {fault}")
        exchange.path = parts.path
        if not is_bindings(parts.path):
            refused = Refused("route.none")
            exchange.code, exchange.why = refused.row.code, f"{parts.path} is no path of the AI binding"
            return envelopes.edge_refusal(refused)
        headers = _unwrapped(request)
        arrival = Arrival(request, request.method, parts.path, parts.query, headers, account_id)
        return await self._binding.answer(arrival, exchange)


def _unwrapped(carrier: BaseRequest) -> Mapping[str, str]:
    """The headers that the binding sent, over those of the request that carries them."""
    whole = carrier.headers.copy()
    for name, value in carrier.headers.items():
        if name.lower().startswith(_HEADER_PREFIX):
            whole[name[len(_HEADER_PREFIX) :]] = value
    return whole
