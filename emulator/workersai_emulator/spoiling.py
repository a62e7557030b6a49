"""Spoiled connections: what a network does to a reply on its way."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, cast

from workersai_emulator.clock import pause
from workersai_emulator.connection import Connection, reset
from workersai_emulator.whole import head

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from aiohttp.web import BaseRequest

    from workersai_emulator.api.reply import Reply

GARBAGE = b"\x15\x03\x01\x00\x02\x02\x46 this is not HTTP\r\n"
MISSING_BYTES = 16
DRIPS, DRIP_SECONDS = 20, 0.05
LOOK_SECONDS = 0.05


class ConnectionSpoiled(ConnectionError):
    """The connection was left in the state that a rule asked for; there is nothing more to write to it."""


async def spoil(request: BaseRequest, reply: Reply, headers: Mapping[str, str]) -> None:
    """Answer in the way that the reply's `spoiling` says, and end the connection. Raises ConnectionSpoiled."""
    if request.transport is None:
        raise ConnectionSpoiled
    # uvloop's has all the methods, and is no instance of asyncio's class.
    transport = cast("asyncio.WriteTransport", request.transport)
    match reply.spoiling:
        case "reset-before" | "reset-after":
            reset(transport)
        case "hang":
            while not (transport.is_closing() or _is_ending(request)):
                await pause(LOOK_SECONDS)
        case "garbage":
            transport.write(GARBAGE)
        case "truncate":
            body = await _whole(reply)
            transport.write(head(reply.status, headers, len(body), closes=True) + body[: len(body) // 2])
        case "wrong-length":
            body = await _whole(reply)
            transport.write(head(reply.status, headers, len(body) + MISSING_BYTES, closes=True) + body)
        case "slow":
            body = await _whole(reply)
            transport.write(head(reply.status, headers, len(body), closes=True))
            await _drip(transport, body)
    transport.close()
    raise ConnectionSpoiled


def _is_ending(request: BaseRequest) -> bool:
    """Whether the server ends, for which a reply that never comes is nothing to wait for."""
    return isinstance(request.protocol, Connection) and request.protocol.ending


async def _whole(reply: Reply) -> bytes:
    if isinstance(reply.body, bytes):
        return reply.body
    async with aclosing(reply.body) as pieces:
        return b"".join([piece async for piece in pieces])


async def _drip(transport: asyncio.WriteTransport, body: bytes) -> None:
    size = max(1, -(-len(body) // DRIPS))
    for start in range(0, len(body), size):
        await pause(DRIP_SECONDS)  # before a drop, so that all of the time has passed when the last is there
        if transport.is_closing():
            return
        transport.write(body[start : start + size])
