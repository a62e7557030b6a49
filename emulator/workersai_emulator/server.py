"""The HTTP server: takes requests in, hands each to its dialect, and writes the reply."""

from __future__ import annotations

import logging
from contextlib import aclosing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

from workersai_emulator import __version__
from workersai_emulator.api.dialects import CONTROL_PREFIX, Dialects
from workersai_emulator.api.exchange import Exchange
from workersai_emulator.api.guard import Guard
from workersai_emulator.api.reply import Reply, json_reply
from workersai_emulator.clock import pause, stopwatch
from workersai_emulator.connection import SERVER, Connections
from workersai_emulator.ids import new_seed, ray
from workersai_emulator.metrics import CONTENT_TYPE as METRICS_TYPE
from workersai_emulator.metrics import Metrics
from workersai_emulator.service import Service
from workersai_emulator.spoiling import spoil
from workersai_emulator.state import store_of
from workersai_emulator.store import NotKept
from workersai_emulator.whole import Whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from workersai_emulator.api.control import Control
    from workersai_emulator.api.replay import Replay
    from workersai_emulator.options import Options

#: Beside the control plane, where monitoring looks for it.
METRICS_PATHS = frozenset({"/metrics", f"{CONTROL_PREFIX}metrics"})
#: How often is looked whether replies under way are out, and what a handler gets that is ended before its end.
_LOOK_SECONDS, _LAST_SECONDS = 0.01, 0.05
#: How many turns everybody else has between two pieces of a reply: as many as a poll takes from arriving to leaving.
_TURNS = 4
_log = logging.getLogger(__name__)


class Server:
    """One emulator on one socket. `on_exchange` is told of each exchange once its reply is written."""

    def __init__(self, options: Options, on_exchange: Callable[[Exchange], None] | None = None) -> None:
        self.options = options
        self._store = store_of(options)
        seed = new_seed() if options.seed is None else options.seed
        self._service = Service(self._store, options.settings, seed, options.scenarios)
        self._dialects = Dialects(self._service, options.tokens, options.worker_model)
        self._replay = _replay_of(options)
        self._guard = Guard(options)
        self._metrics = Metrics(self._service)
        self._on_exchange = on_exchange
        self._taken = 0
        self._runner: web.ServerRunner | None = None
        self.port = options.port

    @property
    def seed(self) -> int:
        """What ids and orders are drawn from; where a state was kept, its own once the server has started."""
        return self._service.seed

    @cached_property
    def _control(self) -> Control:
        from workersai_emulator.api.control import Control

        resets = () if self._replay is None else (self._replay.rewind,)
        return Control(self._service, __version__, resets)

    async def start(self) -> None:
        """Listen. Raises OSError when the address cannot be had, and ValueError for a state that can't be opened."""
        await self._service.open(self.options.seed)
        self._connections = Connections(self._handle)
        self._runner = web.ServerRunner(self._connections, shutdown_timeout=_LAST_SECONDS)
        await self._runner.setup()
        site = web.TCPSite(
            self._runner,
            self.options.host,
            self.options.port,
            backlog=1024,
            reuse_port=self.options.workers > 1 or None,
        )
        try:
            await site.start()
        except BaseException:
            await self.stop()
            raise
        self.port = self._runner.addresses[0][1]

    async def stop(self, hurry: Callable[[], bool] = lambda: False) -> None:
        """Stop accepting at once, let the replies under way finish within the grace, and end what is left.

        Once `hurry` says so, what is left is ended at once.
        """
        if self._runner is not None:
            for site in list(self._runner.sites):
                await site.stop()
            await pause(0)  # what has arrived is under way
            self._connections.pre_shutdown()
            until = stopwatch() + self.options.grace_seconds
            while self._connections.busy and stopwatch() < until and not hurry():
                await pause(_LOOK_SECONDS)
            await self._runner.cleanup()
        await self._service.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self._taken += 1
        target, _, query = request.raw_path.partition("?")
        path = _path_of(target)
        exchange = Exchange(request.method, path, stopwatch())
        try:
            reply = await self._answer(request, path, query, exchange)
            await self._store.kept()
        except NotKept as fault:
            _log.error("%s %s: %s", request.method, path, fault)
            exchange.why = str(fault)
            reply = _faulty(503, exchange.why)
        except ConnectionError:
            raise  # the client went away: see handle_error
        except Exception as fault:  # noqa: BLE001 - told in the log and in the reply
            _log.exception("%s %s failed; this is a fault of the emulator", request.method, path)
            exchange.why = f"a fault of the emulator: {type(fault).__name__}: {fault}"
            reply = _faulty(500, exchange.why)
        try:
            return await self._write(request, reply)
        except NotKept as fault:
            _log.error("%s %s: %s", request.method, path, fault)
            raise ConnectionResetError from None  # the reply was begun, and must not seem whole
        finally:
            exchange.status, exchange.spoiled = reply.status, reply.spoiling is not None
            exchange.seconds = stopwatch() - exchange.started
            if exchange.dialect:
                await self._note(exchange)
            if self._on_exchange is not None and exchange.dialect:
                self._on_exchange(exchange)

    async def _note(self, exchange: Exchange) -> None:
        try:
            await self._service.accounts.journal.add(exchange)
        except NotKept as fault:
            _log.error("the exchange is not in the journal: %s", fault)

    async def _answer(self, request: web.BaseRequest, path: str, query: str, exchange: Exchange) -> Reply:
        measures = path in METRICS_PATHS and request.method == "GET"
        refusal, door = self._guard.refuse_origin(request.headers), "origin"
        if refusal is None and (measures or path.startswith(CONTROL_PREFIX)):
            refusal, door = self._guard.refuse_control(request.headers, request.raw_path), "control"
        if refusal is not None:
            self._metrics.count_refusal(door)
            return refusal
        if measures:
            return Reply(200, await self._metrics.text(), content_type=METRICS_TYPE)
        if self._replay is not None and self._replay.takes(path):
            replayed = await self._replay.answer(request, path, query, exchange)
            if isinstance(replayed, Reply):
                return replayed
            request = replayed
        if path.startswith(CONTROL_PREFIX):
            return await self._control.answer(request, path, query)
        return await self._dialects.answer(request, path, query, exchange)

    async def _write(self, request: web.BaseRequest, reply: Reply) -> web.StreamResponse:
        headers = {"Server": SERVER}
        if reply.headers_of != "recording":
            headers["cf-ray"] = ray(self.seed, self._taken)
        headers |= reply.headers
        if reply.spoiling is not None:
            await spoil(request, reply, {**headers, "Content-Type": reply.content_type})
        if isinstance(reply.body, bytes):
            if reply.body:
                headers["Content-Type"] = reply.content_type
            if reply.headers_of == "dialect" and Whole.takes(request, reply.status):
                whole: web.StreamResponse = Whole(reply.status, headers, reply.body)
            else:
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
                for _ in range(_TURNS):
                    await pause(0)
        await self._store.kept()
        await response.write_eof()
        return response


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


def _replay_of(options: Options) -> Replay | None:
    """The recording that answers; it is read, and what reads it loaded, only where there is one."""
    if options.replay is None:
        return None
    from workersai_contracts.recording import Recording
    from workersai_emulator.api.replay import Replay
    from workersai_emulator.replaying import Replaying

    replaying = Replaying(Recording.read(Path(options.replay)))
    return Replay(replaying, options.tokens, or_emulate=options.replay_or_emulate)


def _faulty(status: int, why: str) -> Reply:
    body: dict[str, Any] = {
        "errors": [{"message": f"workersai-emulator: {why}", "code": 0}],
        "success": False,
        "result": {},
        "messages": [],
    }
    return json_reply(status, body)
