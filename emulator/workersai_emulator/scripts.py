"""Scripts: how a batch's life goes, as one writes it.

queued:1, running:1, done            two polls see it waiting, the third its result
queued:20s, running:40s, done        by the account's clock
running:hold, failed:3040            until told to go on
"""

from __future__ import annotations

from typing import Literal, NamedTuple, cast, get_args

from workersai_contracts import error
from workersai_emulator.clock import format_duration, parse_duration

State = Literal["queued", "running", "done", "failed", "lost"]
STATES: tuple[State, ...] = get_args(State)
WAITING: frozenset[State] = frozenset({"queued", "running"})
MOST_STEPS = 1000
_ENDS_OF_UNITS = "smh"

NAMED = {
    "default": "queued:1, running:1, done",
    "instant": "done",
    "realistic": "queued:20s, running:40s, done",
}


class Step(NamedTuple):
    """One step of a life: a state, and what it lasts; with none of the three it lasts until told to go on.

    `polls` counts polls that see it, `seconds` is time on the account's clock. A `failed` step names its
    `error`, a row of the catalogue by id or code.
    """

    state: State
    polls: int | None = None
    seconds: float | None = None
    error: str | None = None

    def __str__(self) -> str:
        if self.state not in WAITING:
            return self.state if self.error is None else f"{self.state}:{self.error}"
        if self.polls is not None:
            return f"{self.state}:{self.polls}"
        return (
            f"{self.state}:hold" if self.seconds is None else f"{self.state}:{format_duration(self.seconds)}"
        )


class Script(NamedTuple):
    """The steps of a life; only the last is final."""

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.steps))

    @classmethod
    def parse(cls, text: object) -> Script:
        """Read a script, or the name of one. Raises ValueError that names the step at fault."""
        if not isinstance(text, str):
            raise ValueError(f"script: {text!r} is not a text such as 'queued:1, running:1, done'")
        parts = NAMED.get(text.strip(), text).split(",")
        if len(parts) > MOST_STEPS:
            raise ValueError(f"script: {len(parts)} steps are too many; {MOST_STEPS} are taken")
        steps = tuple(_step(part.strip()) for part in parts)
        for step in steps[:-1]:
            if step.state not in WAITING:
                raise ValueError(f"script: {step} ends a batch's life, so nothing can follow it")
        if steps[-1].state in WAITING:
            raise ValueError(
                f"script: {text!r} must end in done, failed or lost (after :hold, if it is to wait)"
            )
        return cls(steps)


def _step(text: str) -> Step:
    state, colon, amount = (part.strip() for part in text.partition(":"))
    if colon and not amount:
        raise ValueError(f"script: {text!r} has nothing after its colon")
    if state in WAITING:
        return _waiting(state, amount)
    if state == "failed":
        return Step("failed", error=_error(amount))
    if state in {"done", "lost"}:
        if amount:
            raise ValueError(f"script: {text!r}: {state} takes no amount")
        return Step(cast("State", state))
    names = ", ".join(NAMED)
    raise ValueError(
        f"script: {text!r} is no step; steps are queued, running, done, failed, lost; names {names}"
    )


def _waiting(state: State, amount: str) -> Step:
    if amount == "hold":
        return Step(state)
    try:
        if not amount or (amount.isascii() and amount.isdigit()):
            return Step(state, polls=int(amount or "1"))
        if amount[-1] in _ENDS_OF_UNITS:
            return Step(state, seconds=parse_duration(amount))
    except ValueError:
        pass
    raise ValueError(f"script: {f'{state}:{amount}'!r} is not a number of polls, a time such as 30s, or hold")


def _error(key: str) -> str | None:
    if not key:
        return None
    try:
        error(key)
    except LookupError as unknown:
        raise ValueError(f"script: {f'failed:{key}'!r}: {unknown.args[0]}") from None
    return key
