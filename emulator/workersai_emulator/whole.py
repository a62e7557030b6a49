"""Whole replies: head and body go out in one piece, which takes a tenth off a poll.

The library's general way stays for all that is uncommon: replies in pieces, without a body or with headers that a
rule or a recording chose, and HTTP/1.0. What both write is the same, byte for byte.
"""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING

from aiohttp import HttpVersion11, web
from aiohttp.helpers import rfc822_formatted_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp.abc import AbstractStreamWriter

_BODILESS = frozenset({204, 304})


def head(status: int, headers: Mapping[str, str], length: int, *, closes: bool) -> bytes:
    """The head of a reply with a body of that length: the headers as given, and those that every reply ends with.

    Raises ValueError for a header that is not one line.
    """
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    ending = "Connection: close\r\n" if closes else ""
    told = (
        f"HTTP/1.1 {status} {reason(status)}\r\n{lines}"
        f"Content-Length: {length}\r\nDate: {rfc822_formatted_time()}\r\n{ending}\r\n"
    )
    if told.count("\n") + told.count("\r") != 2 * (len(headers) + 4 + closes):
        raise ValueError("a header of the reply has more than one line")
    return told.encode("utf-8")


@lru_cache(maxsize=64)
def reason(status: int) -> str:
    """The words for a status; none where nobody has any."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


class Whole(web.StreamResponse):
    """A reply of the dialects to a request that `takes` it."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(status=status)
        self._told = headers
        self._content = body

    @staticmethod
    def takes(request: web.BaseRequest, status: int) -> bool:
        """Whether a reply of that status to this request has its body, and the head of HTTP/1.1."""
        return (
            status not in _BODILESS
            and status >= 200
            and request.version == HttpVersion11
            and request.method not in {"HEAD", "CONNECT"}
        )

    async def _start(self, request: web.BaseRequest) -> AbstractStreamWriter:
        """Write all of it in place of the head."""
        writer = self._payload_writer = request.writer
        if self._keep_alive is None:
            self._keep_alive = request.keep_alive
        told = head(self._status, self._told, len(self._content), closes=not self._keep_alive)
        await writer.write(told + self._content)
        return writer

    async def write_eof(self, data: bytes = b"") -> None:
        """Wait until the client has read enough of it."""
        assert self._payload_writer is not None
        await self._payload_writer.drain()
        self._eof_sent = True
