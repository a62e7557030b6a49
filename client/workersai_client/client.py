"""The blocking client."""

from __future__ import annotations

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
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    import numpy as np
    from numpy.typing import NDArray

    from workersai_client.batches import Done, Handle, Pending
    from workersai_client.errors import TransportError
    from workersai_client.wire import Reply

T = TypeVar("T")


class Client:
    """Workers AI, synchronous calls and the batch queue, for programs that block.

    `account_id`, `api_token` and `base_url` default to CLOUDFLARE_ACCOUNT_ID, CLOUDFLARE_API_TOKEN and
    CLOUDFLARE_BASE_URL; `base_url` is a server's root or its `/client/v4`, the live service when nothing says
    otherwise. `timeout` bounds each step of an exchange, in seconds. A failure that may pass is tried
    `max_retries` times more. `sleep`, `monotonic` and `jitter` (0 to 1) are time and chance, for tests;
    `transport` replaces httpx's own.

    Close it, or use it in a `with`. Whatever goes wrong between the call and its answer is a WorkersAIError.
    """

    def __init__(
        self,
        account_id: str | None = None,
        api_token: str | None = None,
        base_url: str | None = None,
        *,
        timeout: float = 60.0,
        max_retries: int = 4,
        sleep: Callable[[float], object] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        jitter: Jitter = random.random,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._settings = Settings.resolve(
            account_id, api_token, base_url, timeout=timeout, max_retries=max_retries, environ=os.environ
        )
        self._operations = Operations(self._settings, monotonic, jitter)
        self._sleep = sleep
        self._monotonic = monotonic
        self._http = httpx.Client(
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

    def run(self, model: str, inputs: Mapping[str, Any]) -> Any:
        """Ask a model and wait for its answer: the `result` of the reply, as JSON."""
        return self._drive(self._operations.run(model, inputs))

    def submit(
        self, model: str, requests: Sequence[Mapping[str, Any]], *, allow_duplicates: bool = False
    ) -> Handle:
        """Queue requests as one batch. Facts: `batch.submit`, `batch.duplicate`.

        The service knows no idempotency key, so a submit is sent again only when it surely was not taken: no
        connection, or a refusal by rate or capacity. Any other failure is raised, and the batch may be queued
        all the same. `allow_duplicates` retries those too.
        """
        return self._drive(self._operations.submit(model, requests, allow_duplicates=allow_duplicates))

    def poll(self, handle: Handle) -> Pending | Done:
        """Look at a batch once. Raises BatchFailed when nothing will come of it."""
        return self._drive(self._operations.poll(handle))

    def wait(self, handle: Handle, *, timeout: float, interval: float = FIRST_PAUSE) -> Done:
        """Look at a batch until it is done, for `timeout` seconds at most, retries and all.

        The interval, in seconds, doubles up to 15 s, and half of it is chance. Raises WaitTimeout, which
        carries the handle, when the time is up, and BatchFailed when nothing will come.
        """
        return self._drive(self._operations.wait(handle, timeout=timeout, interval=interval))

    def embed(self, texts: Iterable[str], *, model: str = DEFAULT_MODEL) -> NDArray[np.float32]:
        """Embed texts by synchronous calls of as many as the model takes, 100 for most.

        The array is float32 of shape (texts, dimensions), in the order of the texts. Raises UnexpectedReply
        when a vector is missing or has another dimension than the rest, or than the model is known to give.
        """
        return self._drive(self._operations.embed(texts, model))

    def embed_batch(
        self,
        texts: Iterable[str],
        *,
        model: str = DEFAULT_MODEL,
        timeout: float,
        resume: Sequence[Handle | None] | None = None,
    ) -> NDArray[np.float32]:
        """Embed texts through the queue: the same array as `embed`, without its limits of rate and capacity.

        At most 2,000 texts and 10 MB make a batch, four batches are in flight. `timeout` bounds it all, in
        seconds. Errors carry `handles`, one for each batch submitted so far: hand them back as `resume`, with
        the same texts, in this process or another, and those batches are only collected. None in place of a
        handle submits that batch anew. A failed item raises ItemFailed, which has the batch's `handle`.
        """
        return self._drive(self._operations.embed_batch(texts, model, timeout=timeout, resume=resume))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client(account_id={self.account_id!r}, base_url={self.base_url!r})"

    def _drive(self, flow: Flow[T]) -> T:
        answer: Answer = None
        while True:
            try:
                effect = flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(effect, Pause):
                self._sleep(effect.seconds)
                answer = None
            else:
                answer = self._exchange(effect)

    def _exchange(self, send: Send) -> Reply | TransportError:
        request, started = send.request, self._monotonic()
        content = bytearray()
        try:
            with self._http.stream(
                request.method,
                request.url,
                content=request.content,
                headers=request.headers,
                timeout=carrier.timeouts(self._settings, send.within),
            ) as response:
                for chunk in response.iter_bytes():
                    content += chunk
                    if send.within is not None and self._monotonic() - started > send.within:
                        return carrier.too_slow(request, send.within)
                return carrier.reply(response, bytes(content))
        except httpx.RequestError as error:
            return carrier.failure(error, request)
