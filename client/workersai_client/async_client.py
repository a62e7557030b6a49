"""The asynchronous client."""

from __future__ import annotations

import asyncio
import os
import random  # noqa: TID251 - only the default of an injected source of chance
import time
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx

from workersai_client import transport as carrier
from workersai_client.embedding import DEFAULT_MODEL
from workersai_client.flow import Answer, Flow, Pause, Send
from workersai_client.operations import Operations
from workersai_client.retrying import FIRST_PAUSE, Jitter
from workersai_client.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    import numpy as np
    from numpy.typing import NDArray

    from workersai_client.batches import Done, Handle, Pending
    from workersai_client.errors import TransportError
    from workersai_client.wire import Reply

T = TypeVar("T")


class AsyncClient:
    """`Client` for programs that run in an event loop: the same arguments, calls and errors, with `await`.

    `sleep` is awaited. Close it with `aclose`, or use it in an `async with`.
    """

    def __init__(
        self,
        account_id: str | None = None,
        api_token: str | None = None,
        base_url: str | None = None,
        *,
        timeout: float = 60.0,
        max_retries: int = 4,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,  # noqa: TID251 - a default, to be injected
        monotonic: Callable[[], float] = time.monotonic,
        jitter: Jitter = random.random,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._settings = Settings.resolve(
            account_id, api_token, base_url, timeout=timeout, max_retries=max_retries, environ=os.environ
        )
        self._operations = Operations(self._settings, monotonic, jitter)
        self._sleep = sleep
        self._http = httpx.AsyncClient(
            headers=carrier.headers(self._settings), transport=transport, verify=carrier.tls()
        )

    @property
    def account_id(self) -> str:
        """The account that this client works for."""
        return self._settings.account_id

    @property
    def base_url(self) -> str:
        """The API that this client calls, ending in /client/v4."""
        return self._settings.base_url

    async def run(self, model: str, inputs: Mapping[str, Any]) -> Any:
        """Ask a model and wait for its answer, as `Client.run` does."""
        return await self._drive(self._operations.run(model, inputs))

    async def submit(
        self, model: str, requests: Sequence[Mapping[str, Any]], *, allow_duplicates: bool = False
    ) -> Handle:
        """Queue requests as one batch, as `Client.submit` does."""
        return await self._drive(self._operations.submit(model, requests, allow_duplicates=allow_duplicates))

    async def poll(self, handle: Handle) -> Pending | Done:
        """Look at a batch once, as `Client.poll` does."""
        return await self._drive(self._operations.poll(handle))

    async def wait(self, handle: Handle, *, timeout: float, interval: float = FIRST_PAUSE) -> Done:  # noqa: ASYNC109 - it carries more than a cancel scope: retries, the last status, the handle
        """Look at a batch until it is done or the time is up, as `Client.wait` does."""
        return await self._drive(self._operations.wait(handle, timeout=timeout, interval=interval))

    async def embed(self, texts: Iterable[str], *, model: str = DEFAULT_MODEL) -> NDArray[np.float32]:
        """Embed texts by synchronous calls, as `Client.embed` does."""
        return await self._drive(self._operations.embed(texts, model))

    async def embed_batch(
        self,
        texts: Iterable[str],
        *,
        model: str = DEFAULT_MODEL,
        timeout: float,  # noqa: ASYNC109 - as in wait
        resume: Sequence[Handle | None] | None = None,
    ) -> NDArray[np.float32]:
        """Embed texts through the queue, as `Client.embed_batch` does."""
        return await self._drive(self._operations.embed_batch(texts, model, timeout=timeout, resume=resume))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"AsyncClient(account_id={self.account_id!r}, base_url={self.base_url!r})"

    async def _drive(self, flow: Flow[T]) -> T:
        answer: Answer = None
        while True:
            try:
                effect = flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(effect, Pause):
                await self._sleep(effect.seconds)
                answer = None
            else:
                answer = await self._exchange(effect)

    async def _exchange(self, send: Send) -> Reply | TransportError:
        request = send.request
        try:
            async with (
                asyncio.timeout(send.within),
                self._http.stream(
                    request.method,
                    request.url,
                    content=request.content,
                    headers=request.headers,
                    timeout=carrier.timeouts(self._settings, send.within),
                ) as response,
            ):
                return carrier.reply(response, await response.aread())
        except httpx.RequestError as error:
            return carrier.failure(error, request)
        except TimeoutError:
            return carrier.too_slow(request, send.within)
