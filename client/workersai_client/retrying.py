"""When a failed request is sent again, and after which pause."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workersai_client.errors import RateLimited, TransportError

if TYPE_CHECKING:
    from workersai_client.errors import WorkersAIError

#: A number from 0 to 1, as `random.random` gives it.
Jitter = Callable[[], float]

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 15.0
LAST_DOUBLING = 5
#: Who asks for more patience than this, in seconds, where no deadline was given, gets the error instead.
PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Retrying:
    """How often, how soon, and what may be repeated.

    `repeatable` is True where a second request does no harm. Where it is False, as a submit is queued twice
    when it is sent twice (Fact: `batch.duplicate`), only what surely had no effect is sent again.
    """

    max_retries: int
    jitter: Jitter
    repeatable: bool = True
    patience: float = PATIENCE

    def pause_after(self, error: WorkersAIError, attempt: int) -> float | None:
        """Seconds until the next attempt after this one (counted from 0), or None when the error is final.

        Retry-After is obeyed to the letter; without it the pause is drawn from 0 to a bound that doubles
        (full jitter), so that many clients don't come back together. Facts: `capacity`, `head.retry-after`.
        """
        if attempt >= self.max_retries or not error.retryable or self.in_doubt(error):
            return None
        if error.retry_after:
            return error.retry_after if error.retry_after <= self.patience else None
        return self.jitter() * min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(attempt, LAST_DOUBLING))

    def in_doubt(self, error: WorkersAIError) -> bool:
        """Whether a repetition might do twice what must be done once."""
        if self.repeatable or isinstance(error, RateLimited):
            return False
        return not isinstance(error, TransportError) or error.may_have_arrived


def next_interval(interval: float) -> float:
    """Double the interval between polls, up to its longest."""
    return min(LONGEST_PAUSE, interval * 2)


def spread(interval: float, jitter: Jitter) -> float:
    """Leave half of an interval to chance: polls spread out, and none comes at once."""
    return interval * (0.5 + 0.5 * jitter())
