"""A transport for httpx that holds every exchange of a client to the contract.

    httpx.Client(transport=CheckedTransport())
    httpx.AsyncClient(transport=AsyncCheckedTransport())

It is the one module of the contracts that needs httpx.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import httpx

from workersai_contracts.event_stream import STREAM_TYPE
from workersai_contracts.routes import Exchange, exchange_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from workersai_contracts.mismatch import ContractMismatch


class _Checks:
    """What both transports do with a breach: keep it and, unless they only collect, raise it."""

    def __init__(self, *, collect: bool) -> None:
        self.mismatches: list[ContractMismatch] = []
        self._collect = collect

    def request(self, request: httpx.Request) -> Exchange | None:
        exchange = exchange_of(request.method, request.url.raw_path.decode("ascii"), request.content)
        if exchange is not None:
            self._meet(exchange.check_request(), f"in the request {_line(request)}")
        return exchange

    def reply(self, exchange: Exchange, request: httpx.Request, response: httpx.Response, raw: bytes) -> None:
        found = exchange.check_reply(
            response.status_code, response.headers.get("content-type", ""), _decoded(response, raw)
        )
        self._meet(found, f"in the reply, HTTP {response.status_code}, to {_line(request)}")

    def _meet(self, breach: ContractMismatch | None, where: str) -> None:
        if breach is None:
            return
        breach.add_note(where)
        self.mismatches.append(breach)
        if not self._collect:
            raise breach


class CheckedTransport(httpx.BaseTransport):
    """Carries requests by another transport, and checks them and their replies by their route.

    Checked are the routes of REST and of an AI Gateway below `/ai/`, OpenAI's among them, and the `/batch`
    Worker's; anything else passes. A breach raises ContractMismatch, an AssertionError that no handler of HTTP
    errors catches, out of the call that sent the request; a request in breach is not sent. With `collect`
    nothing is raised. Either way `mismatches` has every breach so far: look at it where the code under test
    swallows exceptions.

    Replies are read whole before they are handed on, so that a deadline of the client's own is not looked at
    between their pieces. A stream of events (`text/event-stream`) is handed on as it comes, and checked when it
    has been read to its end: that is where a breach is raised.
    """

    def __init__(self, inner: httpx.BaseTransport | None = None, *, collect: bool = False) -> None:
        self._inner = inner or httpx.HTTPTransport()
        self._checks = _Checks(collect=collect)

    @property
    def mismatches(self) -> list[ContractMismatch]:
        """Every breach so far, in the order of the exchanges."""
        return self._checks.mismatches

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request and hand back its reply. Raises ContractMismatch as the class says."""
        request.read()
        exchange = self._checks.request(request)
        response = self._inner.handle_request(request)
        if exchange is None or not isinstance(response.stream, httpx.SyncByteStream):
            return response
        if _is_stream(response):
            ended = partial(self._checks.reply, exchange, request, response)
            response.stream = _Watched(response.stream, ended)
            return response
        try:
            raw = b"".join(response.stream)
        finally:
            response.close()
        self._checks.reply(exchange, request, response, raw)
        return _whole(response, raw)

    def close(self) -> None:
        """Close the transport within."""
        self._inner.close()


class AsyncCheckedTransport(httpx.AsyncBaseTransport):
    """`CheckedTransport` for programs that run in an event loop: the same checks, arguments and breaches."""

    def __init__(self, inner: httpx.AsyncBaseTransport | None = None, *, collect: bool = False) -> None:
        self._inner = inner or httpx.AsyncHTTPTransport()
        self._checks = _Checks(collect=collect)

    @property
    def mismatches(self) -> list[ContractMismatch]:
        """Every breach so far, in the order of the exchanges."""
        return self._checks.mismatches

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request and hand back its reply. Raises ContractMismatch as the class says."""
        await request.aread()
        exchange = self._checks.request(request)
        response = await self._inner.handle_async_request(request)
        if exchange is None or not isinstance(response.stream, httpx.AsyncByteStream):
            return response
        if _is_stream(response):
            ended = partial(self._checks.reply, exchange, request, response)
            response.stream = _AsyncWatched(response.stream, ended)
            return response
        try:
            raw = b"".join([part async for part in response.stream])
        finally:
            await response.aclose()
        self._checks.reply(exchange, request, response, raw)
        return _whole(response, raw)

    async def aclose(self) -> None:
        """Close the transport within."""
        await self._inner.aclose()


class _Watched(httpx.SyncByteStream):
    """A stream that is handed on piece by piece; `ended` gets all of it when it was read to its end."""

    def __init__(self, inner: httpx.SyncByteStream, ended: Callable[[bytes], None]) -> None:
        self._inner = inner
        self._ended = ended

    def __iter__(self) -> Iterator[bytes]:
        parts = []
        for part in self._inner:
            parts.append(part)
            yield part
        self._ended(b"".join(parts))

    def close(self) -> None:
        self._inner.close()


class _AsyncWatched(httpx.AsyncByteStream):
    """The same in an event loop."""

    def __init__(self, inner: httpx.AsyncByteStream, ended: Callable[[bytes], None]) -> None:
        self._inner = inner
        self._ended = ended

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts = []
        async for part in self._inner:
            parts.append(part)
            yield part
        self._ended(b"".join(parts))

    async def aclose(self) -> None:
        await self._inner.aclose()


def _is_stream(response: httpx.Response) -> bool:
    content_type: str = response.headers.get("content-type", "")
    return content_type.startswith(STREAM_TYPE)


def _whole(response: httpx.Response, raw: bytes) -> httpx.Response:
    """The same reply to be read again, compressed or not as it came."""
    return httpx.Response(
        response.status_code,
        headers=response.headers,
        stream=httpx.ByteStream(raw),
        extensions=response.extensions,
    )


def _decoded(response: httpx.Response, raw: bytes) -> bytes:
    """The reply's body decompressed; what cannot be is handed back as it is, and is no JSON then."""
    try:
        return httpx.Response(response.status_code, headers=response.headers, content=raw).content
    except httpx.DecodingError:
        return raw


def _line(request: httpx.Request) -> str:
    return f"{request.method} {request.url.raw_path.decode('ascii')}"
