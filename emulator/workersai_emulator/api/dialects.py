"""Dialects: which one a request is in. All but REST's are loaded with the first request in them."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

from workersai_contracts import model
from workersai_emulator.api.arrival import Arrival
from workersai_emulator.api.rest import PREFIXES, Rest
from workersai_emulator.ids import DEVELOPMENT_ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Collection, Coroutine, Mapping

    from aiohttp.web import BaseRequest

    from workersai_emulator.api.binding import Binding
    from workersai_emulator.api.exchange import Exchange
    from workersai_emulator.api.remote_proxy import RemoteProxy
    from workersai_emulator.api.reply import Reply
    from workersai_emulator.api.worker import Worker
    from workersai_emulator.api_tokens import Token
    from workersai_emulator.service import Service

#: Before the paths of the control plane, which is no dialect of the service.
CONTROL_PREFIX: Final = "/__emulator__/"

Dialect = Literal["rest", "binding", "remote-proxy", "worker"]

#: What the remote proxy carries a request in. Facts: `remote.proxy`, `remote.old-proxy`.
URL_HEADER: Final = "MF-URL"
FORWARDED_HEADER: Final = "X-Forwarded"
OLD_PROXY_PATH: Final = re.compile("/client/v4/accounts/([^/]+)/ai/run/proxy")
_BINDING_PATHS: Final = frozenset({"/run", "/ai-api/models/search"})
_BINDING_PREFIXES: Final = ("/ai-gateway/", "/to-everything/markdown/")


class Dialects:
    """Answers every request but those to the control plane, each in its own dialect."""

    def __init__(self, service: Service, tokens: Collection[Token], worker_model: str | None) -> None:
        self._service = service
        self._tokens = tokens
        self._worker_model = _worker_model(worker_model)
        self._rest = Rest(service, tokens)

    def answer(
        self, request: BaseRequest, path: str, query: str, exchange: Exchange
    ) -> Coroutine[Any, Any, Reply]:
        """Answer one request, and write down its dialect; what the remote proxy carries is the binding's."""
        match dialect_of(request.method, path, query, request.headers):
            case "rest":
                exchange.dialect = "rest"
                return self._rest.answer(request, path, query, exchange)
            case "worker":
                exchange.dialect = "worker"
                return self._worker.answer(request, path, exchange)
            case "remote-proxy":
                exchange.dialect = "binding"
                return self._remote_proxy.answer(request, path, exchange)
            case "binding":
                exchange.dialect = "binding"
                arrival = Arrival(request, request.method, path, query, request.headers, DEVELOPMENT_ACCOUNT)
                return self._binding.answer(arrival, exchange)

    @cached_property
    def _binding(self) -> Binding:
        from workersai_emulator.api.binding import Binding

        return Binding(self._service, self._rest)

    @cached_property
    def _remote_proxy(self) -> RemoteProxy:
        from workersai_emulator.api.remote_proxy import RemoteProxy

        return RemoteProxy(self._binding, self._tokens)

    @cached_property
    def _worker(self) -> Worker:
        from workersai_emulator.api.worker import Worker

        return Worker(self._service, self._worker_model)


def dialect_of(method: str, path: str, query: str, headers: Mapping[str, str]) -> Dialect:
    """The dialect of a request. What nobody knows is the REST API's to refuse.

    The remote proxy carries a binding's request in this one, or is asked for a socket for such calls.
    """
    if URL_HEADER in headers or (FORWARDED_HEADER in headers and OLD_PROXY_PATH.fullmatch(path)):
        return "remote-proxy"
    if "Upgrade" in headers and "MF-Binding=" in query:
        return "remote-proxy"
    if path.startswith(PREFIXES):
        return "rest"
    if is_bindings(path):
        return "binding"
    return "worker" if _is_workers(method, path) else "rest"


def is_bindings(path: str) -> bool:
    """Whether this is one of the paths that the binding asks for."""
    return path in _BINDING_PATHS or path.startswith(_BINDING_PREFIXES)


def _is_workers(method: str, path: str) -> bool:
    if path in {"/", "/batch"}:
        return method == ("GET" if path == "/" else "POST")
    return method == "GET" and path.startswith("/batch/") and "/" not in path[len("/batch/") :]


def _worker_model(named: str | None) -> str:
    """The model that the Worker runs; blank counts as unset. Raises ValueError for one that nobody knows."""
    name = (named or "").strip() or "@cf/baai/bge-m3"
    if model(name) is None:
        raise ValueError(f"--worker-model: {name!r} is no model of this emulator")
    return name
