"""The limit that the emulator is measured against: plain aiohttp that parses, stores and answers the same exchange.

It checks nothing, knows no states and keeps parsed requests. A poll that names `bytes` gets so many, in pieces.
Prints its URL when it is ready.
"""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import uvloop
from aiohttp import web

STORED: dict[str, Any] = {}
PIECE = b"0" * 65_536


async def exchange(request: web.Request) -> web.StreamResponse:
    """Store a submit, or find what is polled."""
    said = orjson.loads(await request.read())
    request_id = said.get("request_id")
    if request_id is None:
        request_id = f"{len(STORED):08x}-0000-4000-8000-000000000000"
        STORED[request_id] = said
    elif request_id not in STORED:
        raise web.HTTPNotFound
    elif "bytes" in said:
        return await _in_pieces(request, said["bytes"])
    result = {"status": "queued", "request_id": request_id}
    body = {"result": result, "success": True, "errors": [], "messages": []}
    return web.Response(body=orjson.dumps(body), content_type="application/json")


async def _in_pieces(request: web.Request, size: int) -> web.StreamResponse:
    reply = web.StreamResponse()
    reply.enable_chunked_encoding()
    await reply.prepare(request)
    for begin in range(0, size, len(PIECE)):
        await reply.write(PIECE[: size - begin])
    await reply.write_eof()
    return reply


async def started() -> tuple[web.AppRunner, str]:
    """Listen on a free port: what stops it, and its URL."""
    app = web.Application(client_max_size=20_000_000)
    app.router.add_post("/client/v4/accounts/{account_id}/ai/run/{model:.+}", exchange)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


async def serve() -> None:
    """Serve until killed."""
    _, url = await started()
    print(url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve())
