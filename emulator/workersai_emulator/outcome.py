"""Outcomes: what comes of a call, for a dialect to render; large ones are made while they are rendered."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from workersai_emulator.finished import Finished

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping

    from workersai_emulator.effects import ReplyEffect, Spoiling
    from workersai_emulator.inference import Event
    from workersai_emulator.refusals import Refused
    from workersai_emulator.workbench import Workbench

SINGLE_EVENTS = 256
EVENTS_OF_A_SLICE = 64


class Queued(NamedTuple):
    """A submit was taken. Fact: `batch.submit`."""

    request_id: str
    model: str


class Pending(NamedTuple):
    """A batch waits. Fact: `poll.pending`."""

    status: str
    request_id: str


class FailedStatus(NamedTuple):
    """A batch failed, told as a status. Fact: `batch.failed`, its alternative `status`."""

    error: str


class Result(NamedTuple):
    """What the model answers: JSON, unless it says another content type. `neurons` is what it cost."""

    content: bytes
    content_type: str = "application/json"
    neurons: float | None = None


class Streamed(NamedTuple):
    """A text in events. It ends well, breaks after the events, or turns into a refusal there. Fact: `head.sse`."""

    events: Iterator[Event]
    workbench: Workbench
    broken: bool = False
    refused: Refused | None = None

    async def slices(self) -> AsyncGenerator[list[Event]]:
        """The events in order: the first one by one, as they come live, then many at a time from the worker thread."""
        for event in islice(self.events, SINGLE_EVENTS):
            yield [event]
        while slice_ := await self.workbench.make(lambda: list(islice(self.events, EVENTS_OF_A_SLICE))):
            yield slice_


class Listed(NamedTuple):
    """A part of the catalogue, and which page of it. Facts: `models.search`, `models.schema`."""

    result: Any
    info: Mapping[str, int] | None = None


Answered = Queued | Pending | FailedStatus | Finished | Result | Streamed | Listed


class Replayed(NamedTuple):
    """A rule answers with this reply, whatever was asked."""

    effect: ReplyEffect


class Spoiled(NamedTuple):
    """The outcome, if the request was taken, on a connection that is to be spoiled."""

    spoiling: Spoiling
    outcome: Answered | Refused | None


Outcome = Answered | Replayed | Spoiled
