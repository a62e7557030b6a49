"""What the clients can do, each operation as a flow. Both clients drive these and add nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from workersai_client import wire
from workersai_client.batches import Done, Handle, Pending
from workersai_client.deadline import Deadline, OutOfTime
from workersai_client.embedding import Vectors, checked_texts, texts_per_call
from workersai_client.errors import ConfigurationError, WaitTimeout
from workersai_client.flow import Flow, Pause, exchange
from workersai_client.outcomes import looked_at, submitted
from workersai_client.queued import QueuedEmbedding
from workersai_client.replies import result_of
from workersai_client.retrying import Jitter, Retrying, next_interval, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from workersai_client.settings import Settings

UNBOUNDED = float("inf")


@dataclass(frozen=True, slots=True)
class Operations:
    """The operations of one client, over its settings, its clock and its chance."""

    settings: Settings
    monotonic: Callable[[], float]
    jitter: Jitter

    def run(self, model: str, inputs: Mapping[str, Any]) -> Flow[Any]:
        """Ask the model and hand back its output."""
        request = wire.run_request(self.settings.base_url, self.settings.account_id, model, inputs)
        return exchange(request, result_of, self._retrying())

    def submit(
        self, model: str, requests: Sequence[Mapping[str, Any]], *, allow_duplicates: bool = False
    ) -> Flow[Handle]:
        """Queue the requests as one batch."""
        account_id = self.settings.account_id
        request = wire.submit_request(self.settings.base_url, account_id, model, requests)
        retrying = replace(self._retrying(), repeatable=allow_duplicates)
        return exchange(request, lambda reply: submitted(reply, account_id, model, len(requests)), retrying)

    def poll(self, handle: Handle, *, bounded: bool = False) -> Flow[Pending | Done]:
        """Look at a batch once; under a deadline any Retry-After is obeyed that it has room for."""
        request = wire.poll_request(self.settings.base_url, handle)
        retrying = self._retrying()
        retrying = replace(retrying, patience=UNBOUNDED) if bounded else retrying
        return exchange(request, lambda reply: looked_at(reply, handle), retrying)

    def wait(self, handle: Handle, *, timeout: float, interval: float) -> Flow[Done]:
        """Look at a batch until it is done or the time is up."""
        if not interval > 0:
            raise ConfigurationError(f"interval must be a positive number of seconds, not {interval}")
        deadline = Deadline(timeout, self.monotonic)
        last_status = None
        try:
            while True:
                found = yield from deadline.bound(self.poll(handle, bounded=True))
                if isinstance(found, Done):
                    return found
                last_status = found.status
                yield from deadline.pause(Pause(spread(interval, self.jitter)))
                interval = next_interval(interval)
        except OutOfTime as passed:
            waited = deadline.elapsed
            state = f"is still {last_status}" if last_status else "was not reached"
            message = f"batch {handle.request_id} {state} after {waited:.1f} s; its handle is good for later"
            raise WaitTimeout(
                message, handle=handle, last_status=last_status, waited=waited
            ) from passed.__cause__

    def embed(self, texts: Iterable[str], model: str) -> Flow[NDArray[np.float32]]:
        """Embed texts by synchronous calls, one after the other."""
        wanted = checked_texts(texts)
        vectors = Vectors(model, len(wanted))
        size = texts_per_call(model)
        for start in range(0, len(wanted), size):
            part = wanted[start : start + size]
            output = yield from self.run(model, {"text": part})
            vectors.put(start, len(part), output, "/result")
        return vectors.array

    def embed_batch(
        self,
        texts: Iterable[str],
        model: str,
        *,
        timeout: float,
        resume: Sequence[Handle | None] | None,
    ) -> Flow[NDArray[np.float32]]:
        """Embed texts through the queue, several batches at a time."""
        deadline = Deadline(timeout, self.monotonic)
        return QueuedEmbedding(self, checked_texts(texts), model, deadline, resume or ()).flow()

    def _retrying(self) -> Retrying:
        return Retrying(self.settings.max_retries, self.jitter)
