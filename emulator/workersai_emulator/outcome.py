"""Outcomes: what comes of a call, for a dialect to render; large ones are made while they are rendered."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from workersai_emulator.finished import Finished

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping

    from workersai_emulator.effects import ReplyEffect, Spoiling
    from workersai_emulator.inference import Event
    from workersai_emulator.refusals import Refused
    from workersai_emulator.workbench import Workbench

SINGLE_EVENTS = 256
EVENTS_OF_A_SLICE = 64


@dataclass(frozen=True, slots=True)
class Queued:
    """A submit was taken. Fact: `batch.submit`."""

    request_id: str
    model: str


@dataclass(frozen=True, slots=True)
class Pending:
    """A batch waits. Fact: `poll.pending`."""

    status: str
    request_id: str


@dataclass(frozen=True, slots=True)
class FailedStatus:
    """A batch failed, told as a status. Fact: `batch.failed`, its alternative `status`."""

    error: str


@dataclass(frozen=True, slots=True)
class Result:
    """What the model answers: JSON, unless it says another content type. `neurons` is what it cost."""

    content: bytes
    content_type: str = "application/json"
    neurons: float | None = None


@dataclass(frozen=True, slots=True)
class Streamed:
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


@dataclass(frozen=True, slots=True)
class Listed:
    """A part of the catalogue, and which page of it. Facts: `models.search`, `models.schema`."""

    result: Any
    info: Mapping[str, int] | None = None


Answered = Queued | Pending | FailedStatus | Finished | Result | Streamed | Listed


@dataclass(frozen=True, slots=True)
class Replayed:
    """A rule answers with this reply, whatever was asked."""

    effect: ReplyEffect


@dataclass(frozen=True, slots=True)
class Spoiled:
    """The outcome, if the request was taken, on a connection that is to be spoiled."""

    spoiling: Spoiling
    outcome: Answered | Refused | None


Outcome = Answered | Replayed | Spoiled
