"""A batch's life as a pure function: what it is next follows from its record, the time, and whether it is polled.

Nothing here runs in the background; a life that nobody looks at is brought up to date when somebody does.
"""

from __future__ import annotations

from typing import NamedTuple

from workersai_emulator.scripts import WAITING, Script, State, Step


class Entry(NamedTuple):
    """One state that a batch entered: when, and how many polls saw it there."""

    state: State
    since: float
    polls: int = 0


class Life(NamedTuple):
    """A script and the entries made so far: the last entry is the present, at the same place in the script.

    `decided` says that somebody failed or lost the batch by hand, which no rule overrides.
    """

    script: Script
    entries: tuple[Entry, ...]
    decided: bool = False

    @property
    def entry(self) -> Entry:
        """The present."""
        return self.entries[-1]

    @property
    def step(self) -> Step:
        """The step of the script that the batch is in."""
        return self.script.steps[len(self.entries) - 1]

    @property
    def state(self) -> State:
        """The state that the batch is in."""
        return self.entries[-1].state

    @property
    def waiting(self) -> bool:
        """Whether the batch still has to finish."""
        return self.entries[-1].state in WAITING

    @property
    def polls(self) -> int:
        """How many polls this life has seen."""
        return sum(entry.polls for entry in self.entries)


def begin(script: Script, now: float) -> Life:
    """A life that starts now, in its script's first state."""
    return Life(script, (Entry(script.steps[0].state, now),))


def advance(life: Life, now: float, *, polled: bool) -> Life:
    """The life as it is now, and after this poll if it is one.

    Time passes first; then a poll moves a step on that has had its number of polls, and is counted where it
    arrives. So `queued:1, running:1, done` shows a poll each of its states.
    """
    life = _let_pass(life, now)
    if not polled:
        return life
    while life.step.polls is not None and life.entry.polls >= life.step.polls:
        life = _let_pass(_enter_next(life, now), now)
    *before, here = life.entries
    return Life(life.script, (*before, Entry(here.state, here.since, here.polls + 1)), life.decided)


def next_change(life: Life) -> float | None:
    """The moment at which time alone will change the state; None where it won't."""
    return None if life.step.seconds is None else life.entry.since + life.step.seconds


def go_on(life: Life, now: float) -> Life:
    """The life moved to its next step; a finished one stays as it is."""
    return _enter_next(life, now) if life.waiting else life


def hold(life: Life) -> Life:
    """The life kept in its present state until told to go on; a finished one stays as it is."""
    return _with_step(life, Step(life.state)) if life.waiting else life


def decide(life: Life, end: Step, now: float) -> Life:
    """The life ended by hand, now, in this final step.

    One that was finished is as if it had ended so: its time and its polls stay.
    """
    if life.waiting:
        lived, last = life.entries, Entry(end.state, now)
    else:
        lived, last = life.entries[:-1], life.entry._replace(state=end.state)
    steps = (*life.script.steps[: len(lived)], end)
    return Life(Script(steps), (*lived, last), decided=True)


def _let_pass(life: Life, now: float) -> Life:
    while (change := next_change(life)) is not None and change <= now:
        life = _enter_next(life, change)
    return life


def _enter_next(life: Life, now: float) -> Life:
    following = life.script.steps[len(life.entries)]
    return life._replace(entries=(*life.entries, Entry(following.state, now)))


def _with_step(life: Life, step: Step) -> Life:
    here = len(life.entries) - 1
    steps = (*life.script.steps[:here], step, *life.script.steps[here + 1 :])
    return life._replace(script=Script(steps))
