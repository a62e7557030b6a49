"""A proxy in front of an emulator that changes one thing about its replies."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web


@dataclass
class Passing:
    """An exchange on its way through: the request as sent, and the reply, to be changed in place."""

    method: str
    path: str
    query: str
    sent: Any
    status: int
    headers: dict[str, str]
    content: bytes = field(repr=False)

    @property
    def json(self) -> Any:
        """The reply's body; None where it is not JSON."""
        try:
            return json.loads(self.content)
        except ValueError:
            return None

    @json.setter
    def json(self, body: Any) -> None:
        self.content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


Lie = Callable[[Passing], None]


class LyingProxy:
    """Passes requests on to `upstream`; `lie` may change each reply, `before` what is passed on."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.lie: Lie = lambda passing: None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> LyingProxy:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> None:
        self._client = aiohttp.ClientSession(auto_decompress=False)
        self._runner = web.ServerRunner(web.Server(self._pass_on, auto_decompress=False))
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _stop(self) -> None:
        await self._client.close()
        await self._runner.cleanup()

    async def _pass_on(self, request: web.BaseRequest) -> web.StreamResponse:
        content = b"".join([piece async for piece in request.content.iter_any()])
        headers = {
            name: value for name, value in request.headers.items() if name not in {"Host", "Content-Length"}
        }
        target = aiohttp.client.URL(self.upstream + request.raw_path, encoded=True)
        async with self._client.request(
            request.method, target, data=io.BytesIO(content), headers=headers
        ) as response:
            received = await response.read()
            kept = {n.lower(): v for n, v in response.headers.items() if n.lower() not in _HOP_BY_HOP}
        path, _, query = request.raw_path.partition("?")
        passing = Passing(request.method, path, query, _parsed(content), response.status, kept, received)
        if not path.startswith("/__emulator__/"):
            self.lie(passing)
        return web.Response(status=passing.status, headers=passing.headers, body=passing.content)


_HOP_BY_HOP = {"content-length", "transfer-encoding", "connection", "date"}


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None
