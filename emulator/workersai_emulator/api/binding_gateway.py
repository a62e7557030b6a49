"""The AI Gateway behind the binding: logs of runs that went through one, and a gateway's address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from workersai_emulator.api.body import BadBody, read_body
from workersai_emulator.api.gateway_log import LONGEST_MARK, GatewayLog, marks
from workersai_emulator.api.reply import Reply
from workersai_emulator.ids import gateway_log_id
from workersai_emulator.json_text import dumps, loads
from workersai_emulator.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workersai_emulator.api.binding import Asked
    from workersai_emulator.api.exchange import Exchange
    from workersai_emulator.journal import Journal

#: The most that is read of what a Worker says of a log.
PATCH_BYTES: Final = 65_536
_NO_PROVIDERS = "of a gateway's providers only workers-ai is emulated, at its own path and by env.AI.run"


def provider_path(account_id: str, path: str) -> str | None:
    """The gateway's own path to Workers AI that the binding's stands for; None for any other path.

    Facts: `binding.provider-path`, `gateway.path`.
    """
    parts = path.split("/", 5)
    if len(parts) < 6 or parts[1:3] != ["ai-gateway", "gateways"] or parts[4] != "workers-ai":
        return None
    return f"/v1/{account_id}/{parts[3]}/workers-ai/{parts[5]}"


class BindingGateway:
    """Keeps the logs of an account's gateways in the journal, and forgets them with it.

    Facts: `binding.log-id`, `binding.log`, `binding.log-patch`, `binding.gateway-url`.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    @staticmethod
    def log(asked: Asked, options: Mapping[str, Any], seed: int) -> GatewayLog | None:
        """The log of a run that goes through a gateway; None where the run asks for none. Fact: `binding.log-id`."""
        gateway = options.get("gateway")
        said = gateway if isinstance(gateway, dict) else {}
        if said.get("collectLog") is False:
            return None
        try:
            metadata = marks(said.get("metadata"))
        except ValueError:
            metadata = {}
        size = asked.arrival.carrier.content_length or 0
        log_id = gateway_log_id(seed, asked.account.id, asked.number)
        named = str(said.get("id", ""))[:LONGEST_MARK]
        return GatewayLog(log_id, named, request_size=size, metadata=metadata)

    async def answer(self, asked: Asked, path: str) -> Reply:
        """Answer what `env.AI.gateway(id)` asks, `path` being what stands behind `/ai-gateway/`. Raises Refused."""
        asked.exchange.operation = "gateway"
        match [unquote(part) for part in path.split("/")]:
            case ["gateways", gateway_id, "url", provider] if gateway_id and provider:
                return self._url(asked, gateway_id, provider)
            case ["gateways", gateway_id, "logs", log_id] if gateway_id and log_id:
                return await self._log(asked, gateway_id, log_id)
            case ["gateways", _, "logs" | "url", *_]:
                raise Refused("route.none")
            case ["universal", "run", _] | ["gateways", _, _, _, *_]:
                asked.exchange.why = _NO_PROVIDERS
                return _refusal(asked, 501, 0, f"workersai-emulator: {_NO_PROVIDERS}")
        raise Refused("route.none")

    async def _log(self, asked: Asked, gateway_id: str, log_id: str) -> Reply:
        method = asked.arrival.method
        if method not in {"GET", "PATCH"}:
            raise Refused("route.method", method=method)
        exchange = await self._found(asked.account.id, gateway_id, log_id)
        if exchange is None or exchange.gateway_log is None:
            asked.exchange.why = f"there is no log {log_id!r} of a run through the gateway {gateway_id!r}"
            return _refusal(asked, 404, 7002, "Log Not Found")
        if method == "PATCH":
            try:
                exchange.gateway_log.patch(loads(await read_body(asked.arrival.carrier, PATCH_BYTES)))
            except (BadBody, ValueError) as bad:
                asked.exchange.why = str(bad)
                return _refusal(asked, 400, 7001, f"Input Validation Error: {bad}")
            await self._journal.amend(exchange)
            return _success(asked, {})
        return _success(asked, exchange.gateway_log.as_json(exchange))

    async def _found(self, account_id: str, gateway_id: str, log_id: str) -> Exchange | None:
        for exchange in reversed(await self._journal.find(account_id)):
            log = exchange.gateway_log
            if log is not None and log.id == log_id and log.gateway_id == gateway_id:
                return exchange
        return None

    @staticmethod
    def _url(asked: Asked, gateway_id: str, provider: str) -> Reply:
        """The emulator's own address, so that nothing that is tested here reaches the service."""
        if asked.arrival.method != "GET":
            raise Refused("route.method", method=asked.arrival.method)
        carrier = asked.arrival.carrier
        assert carrier.transport is not None  # which is there until the reply is written
        host, port = carrier.transport.get_extra_info("sockname")[:2]
        name = f"[{host}]" if ":" in host else host
        end = "" if provider == "universal" else provider
        return _success(asked, {"url": f"http://{name}:{port}/v1/{asked.account.id}/{gateway_id}/{end}"})


def _success(asked: Asked, result: Any) -> Reply:
    return Reply(200, dumps({"success": True, "result": result}), asked.headers)


def _refusal(asked: Asked, status: int, code: int, message: str) -> Reply:
    """A refusal in the form that the binding reads: it takes the first error's message.

    Facts: `binding.errors`, `settled.log`, `settled.binding`.
    """
    body = {"success": False, "errors": [{"code": code, "message": message}]}
    return Reply(status, dumps(body), asked.headers)
