"""Request bodies: read while they arrive, unpacked, and never beyond their limit."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from workersai_emulator.refusals import Refused

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest

_ZLIB_WINDOW = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class BadBody(ValueError):
    """The body is not what its headers say it is."""


async def read_body(request: BaseRequest, limit: int | None) -> bytes:
    """The body, unpacked. A body of `limit` bytes or more is refused before it is in memory.

    Raises Refused `request.too-large`, or BadBody. Facts: `batch.limit`, `submit.too-large`, `body.limit`.
    """
    length = request.content_length
    if limit is not None and length is not None and length >= limit:
        raise Refused("request.too-large")
    if "Expect" in request.headers:
        await _continue(request)
    coding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if coding in _ZLIB_WINDOW:
        return await _unpacked(request, limit, zlib.decompressobj(_ZLIB_WINDOW[coding]))
    if request.content.is_eof():
        return _within(request.content.read_nowait(), limit)
    pieces: list[bytes] = []
    size = 0
    while piece := await request.content.readany():
        size += len(piece)
        if limit is not None and size >= limit:
            raise Refused("request.too-large")
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _within(body: bytes, limit: int | None) -> bytes:
    if limit is not None and len(body) >= limit:
        raise Refused("request.too-large")
    return body


async def _continue(request: BaseRequest) -> None:
    if request.headers["Expect"].lower() == "100-continue" and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


async def _unpacked(request: BaseRequest, limit: int | None, packed: zlib._Decompress) -> bytes:
    """Unpack no more than a piece beyond the limit, whatever the body would unpack to."""
    unpacked = bytearray()
    size = 0
    while piece := await request.content.readany():
        size += len(piece)
        if limit is not None and size >= limit:
            raise Refused("request.too-large")
        if packed.eof:
            raise BadBody("the compressed body goes on after its end")
        while piece:
            room = 2**20 if limit is None else min(2**20, limit - len(unpacked))
            try:
                unpacked += packed.decompress(piece, room)
            except zlib.error as error:
                raise BadBody(str(error)) from None
            if limit is not None and len(unpacked) >= limit:
                raise Refused("request.too-large")
            piece = packed.unconsumed_tail
    if packed.unused_data:
        raise BadBody("the compressed body goes on after its end")
    if not packed.eof:
        raise BadBody("the compressed body ends before its end")
    return bytes(unpacked)
