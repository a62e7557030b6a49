"""Many texts through the queue: a few batches in flight, collected as they finish, resumable by handle."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from workersai_client.batches import Done, Handle, ItemError, Pending
from workersai_client.deadline import OutOfTime
from workersai_client.embedding import Vectors, batches_of
from workersai_client.errors import ConfigurationError, ItemFailed, WaitTimeout, WorkersAIError
from workersai_client.flow import Flow, Pause
from workersai_client.replies import is_retryable
from workersai_client.retrying import Jitter, next_interval, spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from workersai_client.deadline import Deadline

IN_FLIGHT = 4
FIRST_INTERVAL = 0.5


class Queue(Protocol):
    """What is needed of the operations here."""

    @property
    def jitter(self) -> Jitter:
        """The client's chance."""

    def submit(
        self, model: str, requests: Sequence[Mapping[str, Any]], *, allow_duplicates: bool = False
    ) -> Flow[Handle]:
        """Queue a batch."""

    def poll(self, handle: Handle, *, bounded: bool = False) -> Flow[Pending | Done]:
        """Look at a batch once."""


class QueuedEmbedding:
    """One run of texts through the queue.

    Every text is an item of its own, so that a failed item is one text. Batches are cut from the texts alone,
    and `resume` has a handle, or None, for each of them in order: those with a handle are only collected.
    """

    def __init__(
        self,
        queue: Queue,
        texts: list[str],
        model: str,
        deadline: Deadline,
        resume: Sequence[Handle | None],
    ) -> None:
        self._queue = queue
        self._texts = texts
        self._model = model
        self._deadline = deadline
        self._batches = batches_of(texts)
        self._handles = self._resumed(resume)
        self._collected: set[int] = set()
        self._statuses: dict[int, str] = {}
        self._vectors = Vectors(model, len(texts))

    def flow(self) -> Flow[NDArray[np.float32]]:
        """Submit and collect until all vectors are there."""
        try:
            yield from self._collect_all()
        except OutOfTime as passed:
            error = self._timeout()
            error.handles = self._known_handles()
            raise error from passed.__cause__
        except WorkersAIError as error:
            error.handles = self._known_handles()
            raise
        return self._vectors.array

    def _collect_all(self) -> Flow[None]:
        interval = FIRST_INTERVAL
        while len(self._collected) < len(self._batches):
            yield from self._submit_some()
            if (yield from self._collect_some()):
                interval = FIRST_INTERVAL
                if None in self._handles:
                    continue
            if self._in_flight():
                yield from self._deadline.pause(Pause(spread(interval, self._queue.jitter)))
                interval = next_interval(interval)

    def _submit_some(self) -> Flow[None]:
        """Submit what was not, in order, while fewer batches than allowed are in flight."""
        for number, batch in enumerate(self._batches):
            if len(self._in_flight()) >= IN_FLIGHT:
                return
            if self._handles[number] is None:
                requests = [{"text": self._texts[position]} for position in batch]
                submit = self._queue.submit(self._model, requests)
                self._handles[number] = yield from self._deadline.bound(submit)

    def _collect_some(self) -> Flow[bool]:
        """Look once at each batch in flight; whether any was done."""
        before = len(self._collected)
        for number, handle in self._in_flight():
            found = yield from self._deadline.bound(self._queue.poll(handle, bounded=True))
            if isinstance(found, Done):
                self._take(number, handle, found)
            else:
                self._statuses[number] = found.status
        return len(self._collected) > before

    def _take(self, number: int, handle: Handle, done: Done) -> None:
        start = self._batches[number].start
        for item in done.items:
            if not item.success:
                error = item.error or ItemError("no reason given")
                where = f"text {start + item.id} (item {item.id} of batch {handle.request_id})"
                raise ItemFailed(
                    f"{where}: {error.message}",
                    item=item,
                    handle=handle,
                    code=error.code,
                    retryable=is_retryable(error.code),
                )
            self._vectors.put(start + item.id, 1, item.result, f"/result/responses/{item.id}/result")
        self._collected.add(number)

    def _in_flight(self) -> list[tuple[int, Handle]]:
        known = [(number, handle) for number, handle in enumerate(self._handles) if handle is not None]
        return [(number, handle) for number, handle in known if number not in self._collected]

    def _known_handles(self) -> tuple[Handle | None, ...]:
        last = max((number for number, handle in enumerate(self._handles) if handle), default=-1)
        return tuple(self._handles[: last + 1])

    def _timeout(self) -> WaitTimeout:
        number, handle = next(iter(self._in_flight()), (-1, None))
        done = f"{len(self._collected)} of {len(self._batches)} batches are done"
        return WaitTimeout(
            f"{done} after {self._deadline.elapsed:.1f} s; resume with the handles of this error",
            handle=handle,
            last_status=self._statuses.get(number),
            waited=self._deadline.elapsed,
        )

    def _resumed(self, resume: Sequence[Handle | None]) -> list[Handle | None]:
        """Make a place for each batch's handle, filled from an earlier run over the same texts."""
        if len(resume) > len(self._batches):
            raise ConfigurationError(
                f"resume has {len(resume)} handles, but these texts make {len(self._batches)} batches"
            )
        handles: list[Handle | None] = [None] * len(self._batches)
        for number, handle in enumerate(resume):
            if handle is None:
                continue
            size = len(self._batches[number])
            if handle.model != self._model or handle.items not in (None, size):
                raise ConfigurationError(
                    f"handle {number} of resume is not from these texts and model: it has "
                    f"{handle.items} items of {handle.model}, here are {size} of {self._model}"
                )
            handles[number] = replace(handle, items=size)
        return handles
