"""Connections: how long the server has patience with one, and what it says to what is not HTTP.

A client that keeps a connection without using it is left: one that does not get its request's head said, that sends
a body a byte a second, that does not read its reply. What counts is progress, so a large upload on a slow line goes
through. A connection is looked at now and then by a timer of its own, which costs an exchange nothing.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.web_protocol import _ErrInfo

from workersai_emulator import __version__
from workersai_emulator.api.body import BadBody
from workersai_emulator.clock import stopwatch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp.web_request import BaseRequest

SERVER = f"workersai-emulator/{__version__}"
#: How long a connection may take until the head of its first request, or of a next one that it began, is whole.
HEAD_SECONDS = 20.0
#: How long one may wait between two exchanges.
IDLE_SECONDS = 300.0
#: How often a connection is looked at, and how much of a body must have come since; two looks without are too many.
LOOK_SECONDS = 5.0
SLOWEST_BYTES_A_SECOND = 1_000
#: How long a reply may lie there of which nothing at all is read. The kernel takes some megabytes of it at once.
UNREAD_SECONDS = 60.0
#: How long the rest of a refused body is read and thrown away, so that its sender gets to the reply.
LINGER_SECONDS = 10.0

_PATIENT_LOOKS = 2


def reset(transport: asyncio.WriteTransport) -> None:
    """End a connection at once: the other side reads a reset instead of an end, and the kernel keeps nothing of it."""
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def _unsent(transport: asyncio.WriteTransport) -> int:
    """How many bytes the kernel has that the other side has not taken, where the system tells that."""
    connection = transport.get_extra_info("socket")
    try:
        from fcntl import ioctl
        from termios import TIOCOUTQ

        return int.from_bytes(ioctl(connection.fileno(), TIOCOUTQ, bytes(4)), sys.byteorder)
    except (ImportError, OSError, AttributeError):
        return 0


class Connections(web.Server):
    """aiohttp's server with our patience."""

    def __init__(self, handler: Callable[[BaseRequest], Awaitable[web.StreamResponse]]) -> None:
        super().__init__(
            handler,
            auto_decompress=False,
            access_log=None,
            keepalive_timeout=IDLE_SECONDS,
            lingering_time=LINGER_SECONDS,
        )

    def __call__(self) -> web.RequestHandler:
        """Make what handles one connection."""
        return Connection(self, loop=asyncio.get_running_loop(), **self._kwargs)

    @property
    def busy(self) -> bool:
        """Whether a reply is under way; asked once the connections are told to end, since one that waits is not."""
        return any(isinstance(one, Connection) and one.busy for one in self.connections)


class Connection(web.RequestHandler):
    """One connection, with a word of ours for what is not HTTP: a bare 400 and a close."""

    __slots__ = ("_awaited", "_drained", "_head_since", "_looked_at", "_received", "_slow_looks", "_timer")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to look after it."""
        self._received = self._drained = self._slow_looks = 0
        self._head_since: float | None = stopwatch()
        self._looked_at: tuple[object, ...] = ()
        self._timer = self._loop.call_later(LOOK_SECONDS, self._look)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End looking after it."""
        self._timer.cancel()
        super().connection_lost(exc)

    @property
    def busy(self) -> bool:
        """Whether it is still handled, or bytes of a reply are still here."""
        if self.transport is None:
            return False
        handled = self._task_handler is not None and not self._task_handler.done()
        return handled or self.transport.get_write_buffer_size() > 0

    @property
    def ending(self) -> bool:
        """Whether the server wants no more of this connection than the reply under way."""
        return self._close or self._force_close

    def data_received(self, data: bytes) -> None:
        """Take bytes in, and note what they are for."""
        heads = self._request_count
        self._received += len(data)
        super().data_received(data)
        if self._request_count != heads:
            self._head_since = None
        elif self._head_since is None and self._waits_for_head():
            self._head_since = stopwatch()
        broken = bool(self._messages) and isinstance(self._messages[-1][0], _ErrInfo)
        request = self._current_request
        if broken and request is not None and not request.content.is_eof():
            # Whoever reads this body would wait for its rest for ever.
            request.content.set_exception(BadBody("the body is not framed as HTTP"))
            request.content.feed_eof()

    def resume_reading(self, *how: bool, **named: bool) -> None:
        """Go on reading; the library asks for that with every piece of a body, most times of who never stopped.

        Its older releases have neither a second reason to pause nor anything to say about how.
        """
        if self._reading_paused or getattr(self, "_buffer_paused", False):
            super().resume_reading(*how, **named)

    def resume_writing(self) -> None:
        """Note that the client reads."""
        self._drained += 1
        super().resume_writing()

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is not HTTP; a fault of ours is the library's to tell."""
        if isinstance(exc, ConnectionError):
            raise exc  # the client went away, which is nothing to log
        if status < 500:
            response = web.Response(status=400, headers={"Server": SERVER})
            response.force_close()
            return response
        return super().handle_error(request, status, exc, message)

    def _waits_for_head(self) -> bool:
        return self._waiter is not None and not self._waiter.done()

    def _look(self) -> None:
        transport = self.transport
        if transport is None:
            return
        if self._is_out_of_patience(transport):
            reset(transport)
            return
        self._timer = self._loop.call_later(LOOK_SECONDS, self._look)

    def _is_out_of_patience(self, transport: asyncio.Transport) -> bool:
        unread = transport.get_write_buffer_size()
        if unread:
            stands_still = ("unread", self._drained, unread, _unsent(transport))
            return self._is_slow(stands_still == self._looked_at, stands_still, UNREAD_SECONDS / LOOK_SECONDS)
        if self._waits_for_head():
            late = self._head_since is not None and stopwatch() - self._head_since > HEAD_SECONDS
            self._looked_at, self._slow_looks = (), 0
            return late
        request = self._current_request
        if request is None or request.content.is_eof() or self._reading_paused:
            self._looked_at, self._slow_looks = (), 0
            return False
        before, had = self._looked_at[1:] if self._looked_at[:1] == ("body",) else (None, 0)
        came = self._received - had if isinstance(had, int) else 0
        slow = before is request and came < SLOWEST_BYTES_A_SECOND * LOOK_SECONDS
        return self._is_slow(slow, ("body", request, self._received), _PATIENT_LOOKS)

    def _is_slow(self, slow: bool, looked_at: tuple[object, ...], patient_looks: float) -> bool:
        self._slow_looks = self._slow_looks + 1 if slow else 0
        self._looked_at = looked_at
        return self._slow_looks >= patient_looks
