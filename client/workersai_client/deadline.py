"""A deadline over a flow: pauses, requests and retries together end in time."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from workersai_client.errors import ConfigurationError, TransportError
from workersai_client.flow import Answer, Flow, Pause, Send

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

#: What is kept of the time for a last look after the last pause: this many seconds, or this share if that is
#: less.
LAST_LOOK = 1.0
LAST_LOOK_SHARE = 0.1
#: A pause shorter than this, in seconds, brings no news.
SHORTEST_PAUSE = 0.01


class OutOfTime(Exception):
    """The deadline has passed, or what must be waited for lies beyond it; the cause is the error, if any."""


class Deadline:
    """A bound on a flow's time, counted from its making.

    Time is what the clock shows or what was slept, whichever is more: a sleep that only moves a test's own
    clock uses up the time like a real one.
    """

    def __init__(self, timeout: float, monotonic: Callable[[], float]) -> None:
        if not math.isfinite(timeout):
            raise ConfigurationError(f"timeout must be a number of seconds, not {timeout}")
        self._timeout = timeout
        self._reserve = min(LAST_LOOK, timeout * LAST_LOOK_SHARE)
        self._monotonic = monotonic
        self._started = monotonic()
        self._slept = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds that passed so far."""
        return max(self._monotonic() - self._started, self._slept)

    @property
    def remaining(self) -> float:
        """Seconds that are left; negative when the deadline has passed."""
        return self._timeout - self.elapsed

    def pause(self, wanted: Pause) -> Flow[None]:
        """Pause, cut to the time that leaves room for a last look.

        Raises OutOfTime at once when there is none, or when a demanded pause would have to be cut.
        """
        room = self.remaining - self._reserve
        if room < SHORTEST_PAUSE or (wanted.demanded and wanted.seconds > room):
            raise OutOfTime from wanted.because
        seconds = min(wanted.seconds, room)
        yield replace(wanted, seconds=seconds)
        self._slept += seconds

    def bound(self, flow: Flow[T]) -> Flow[T]:
        """Run a flow with its pauses and requests cut to what is left. Raises OutOfTime when nothing is."""
        answer: Answer = None
        while True:
            try:
                effect = flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(effect, Pause):
                yield from self.pause(effect)
                answer = None
            else:
                answer = yield from self._send(effect)

    def _send(self, effect: Send) -> Flow[Answer]:
        if self.remaining <= 0:
            raise OutOfTime
        answer = yield replace(effect, within=self.remaining)
        if isinstance(answer, TransportError) and self.remaining <= 0:
            raise OutOfTime from answer
        return answer
