"""Operations as flows: generators that say what is to be done, and are told what came of it.

A flow sends no request and waits for nothing itself, so the same one serves the blocking and the asynchronous
client.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from workersai_client.errors import TransportError, WorkersAIError
from workersai_client.wire import Reply, Request

if TYPE_CHECKING:
    from workersai_client.retrying import Retrying

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request, and answer with the reply or the failure; `within` bounds it all, in seconds."""

    request: Request
    within: float | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Let time pass, in seconds. `because` is the error that asks for it; `demanded` time must not be cut."""

    seconds: float
    because: WorkersAIError | None = None
    demanded: bool = False


Effect = Send | Pause
Answer = Reply | TransportError | None
Flow = Generator[Effect, Answer, T]


def exchange(request: Request, read: Callable[[Reply], T], retrying: Retrying) -> Flow[T]:
    """Send a request until its reply can be read, as often as the policy allows.

    An error that leaves in doubt whether the request took effect is handed on as not retryable: to repeat the
    call would be to do it twice.
    """
    attempt = 0
    while True:
        try:
            return read(_reply((yield Send(request))))
        except WorkersAIError as error:
            pause = retrying.pause_after(error, attempt)
            if pause is None:
                if error.retryable and retrying.in_doubt(error):
                    error.retryable = False
                    error.add_note("it may have taken effect all the same: a repetition may do it twice")
                raise
            waiting = Pause(pause, because=error, demanded=bool(error.retry_after))
        yield waiting
        attempt += 1


def _reply(answer: Answer) -> Reply:
    if isinstance(answer, TransportError):
        raise answer
    if answer is None:
        raise TypeError("a request was answered with nothing")
    return answer
