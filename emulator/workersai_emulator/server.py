"""The HTTP server: takes requests in, hands each to its dialect, and writes the reply."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from aiohttp import web
from aiohttp.web_protocol import _ErrInfo

from workersai_emulator import __version__
from workersai_emulator.api import rest
from workersai_emulator.api.arrival import Arrival
from workersai_emulator.api.binding import Binding
from workersai_emulator.api.body import BadBody
from workersai_emulator.api.control import PREFIX as CONTROL_PREFIX
from workersai_emulator.api.control import Control
from workersai_emulator.api.exchange import Exchange
from workersai_emulator.api.guard import Guard
from workersai_emulator.api.remote_proxy import RemoteProxy
from workersai_emulator.api.reply import Reply, json_reply
from workersai_emulator.api.rest import Rest
from workersai_emulator.api.worker import Worker, worker_model
from workersai_emulator.clock import stopwatch
from workersai_emulator.ids import DEVELOPMENT_ACCOUNT, new_seed, ray
from workersai_emulator.service import Service
from workersai_emulator.spoiling import spoil
from workersai_emulator.store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from workersai_emulator.options import Options

GRACE_SECONDS = 0.5
#: How long the rest of a refused body is read and thrown away, so that its sender gets to the reply.
LINGER_SECONDS = 10.0
_SERVER = f"workersai-emulator/{__version__}"
_log = logging.getLogger(__name__)


class Server:
    """One emulator on one socket. `on_exchange` is told of each exchange once its reply is written."""

    def __init__(self, options: Options, on_exchange: Callable[[Exchange], None] | None = None) -> None:
        self.options = options
        self.seed = new_seed() if options.seed is None else options.seed
        store = MemoryStore(max_bytes=options.store_bytes, max_batches=options.store_batches)
        self._service = Service(store, options.settings, self.seed, options.scenarios)
        self._rest = Rest(self._service, self.seed, options.tokens)
        self._worker = Worker(self._service, self.seed, worker_model(options.worker_model))
        self._binding = Binding(self._service, self.seed, self._rest)
        self._remote_proxy = RemoteProxy(self._binding, options.tokens)
        self._control = Control(self._service, __version__)
        self._guard = Guard(options)
        self._on_exchange = on_exchange
        self._taken = 0
        self._runner: web.ServerRunner | None = None
        self.port = options.port

    async def start(self) -> None:
        """Listen. Raises OSError when the address cannot be had."""
        self._runner = web.ServerRunner(
            _HttpServer(self._handle, auto_decompress=False, access_log=None, lingering_time=LINGER_SECONDS),
            shutdown_timeout=GRACE_SECONDS,
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.options.host, self.options.port, backlog=1024)
        try:
            await site.start()
        except BaseException:
            await self.stop()
            raise
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop accepting at once, and end what is under way."""
        if self._runner is not None:
            await self._runner.cleanup()
        self._service.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self._taken += 1
        target, _, query = request.raw_path.partition("?")
        path = _path_of(target)
        exchange = Exchange(request.method, path, stopwatch())
        try:
            reply = await self._answer(request, path, query, exchange)
        except ConnectionError:
            raise  # the client went away: see handle_error
        except Exception as fault:  # noqa: BLE001 - told in the log and in the reply
            _log.exception("%s %s failed; this is a fault of the emulator", request.method, path)
            exchange.why = f"a fault of the emulator: {type(fault).__name__}: {fault}"
            reply = _faulty(exchange.why)
        try:
            return await self._write(request, reply)
        finally:
            exchange.status, exchange.spoiled = reply.status, reply.spoiling is not None
            exchange.seconds = stopwatch() - exchange.started
            if exchange.dialect:
                self._service.accounts.journal.add(exchange)
            if self._on_exchange is not None and exchange.dialect:
                self._on_exchange(exchange)

    async def _answer(self, request: web.BaseRequest, path: str, query: str, exchange: Exchange) -> Reply:
        refusal = self._guard.refuse_origin(request.headers)
        if refusal is not None:
            return refusal
        if path.startswith(CONTROL_PREFIX):
            refusal = self._guard.refuse_control(request.headers)
            return refusal or await self._control.answer(request, path, query)
        if self._remote_proxy.takes(request.headers, path, query):
            exchange.dialect = "binding"
            return await self._remote_proxy.answer(request, path, exchange)
        if self._binding.takes(path):
            exchange.dialect = "binding"
            arrival = Arrival(request, request.method, path, query, request.headers, DEVELOPMENT_ACCOUNT)
            return await self._binding.answer(arrival, exchange)
        if not path.startswith(rest.PREFIXES) and self._worker.takes(request.method, path):
            exchange.dialect = "worker"
            return await self._worker.answer(request, path, exchange)
        exchange.dialect = "rest"
        return await self._rest.answer(request, path, query, exchange)

    async def _write(self, request: web.BaseRequest, reply: Reply) -> web.StreamResponse:
        headers = {"Server": _SERVER, "cf-ray": ray(self.seed, self._taken), **reply.headers}
        if reply.spoiling is not None:
            await spoil(request, reply, {**headers, "Content-Type": reply.content_type})
        if isinstance(reply.body, bytes):
            if reply.body:
                headers["Content-Type"] = reply.content_type
            whole = web.Response(status=reply.status, body=reply.body, headers=headers)
            if _cut_short(request):
                whole.force_close()
            return whole
        headers["Content-Type"] = reply.content_type
        response = web.StreamResponse(status=reply.status, headers=headers)
        await response.prepare(request)
        async with aclosing(reply.body) as pieces:
            async for piece in pieces:
                await response.write(piece)
        await response.write_eof()
        return response


class _HttpServer(web.Server):
    """aiohttp's server with a word of ours for what is not HTTP: a bare 400 and a close."""

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=asyncio.get_running_loop(), **self._kwargs)


class _Connection(web.RequestHandler):
    __slots__ = ()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        broken = bool(self._messages) and isinstance(self._messages[-1][0], _ErrInfo)
        request = self._current_request
        if broken and request is not None and not request.content.is_eof():
            # Whoever reads this body would wait for its rest for ever.
            request.content.set_exception(BadBody("the body is not framed as HTTP"))
            request.content.feed_eof()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if isinstance(exc, ConnectionError):
            raise exc  # the client went away, which is nothing to log
        if status < 500:
            response = web.Response(status=400, headers={"Server": _SERVER})
            response.force_close()
            return response
        return super().handle_error(request, status, exc, message)


def _cut_short(request: web.BaseRequest) -> bool:
    """Whether the rest of the request's body can't be told from a next request: broken, or not asked for."""
    if request.content.exception() is not None:
        return True
    return "Expect" in request.headers and not request.content.is_eof()


def _path_of(target: str) -> str:
    """The path of a request target; a proxy's client sends the whole URL."""
    if target.startswith("/"):
        return target
    _, _, rest_of_it = target.partition("://")
    return "/" + rest_of_it.partition("/")[2]


def _faulty(why: str) -> Reply:
    body: dict[str, Any] = {
        "errors": [{"message": f"workersai-emulator: {why}", "code": 0}],
        "success": False,
        "result": {},
        "messages": [],
    }
    return json_reply(500, body)
