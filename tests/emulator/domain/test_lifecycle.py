from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_steps import a_step

from workersai_emulator.lifecycle import Life, advance, begin, decide, go_on, hold, next_change
from workersai_emulator.scripts import MOST_STEPS, WAITING, Script, Step

START = 1_000_000.0
POLL = None


def lived(script: str, *events: float | None) -> tuple[Life, list[str]]:
    """The life after some seconds or polls, and what each poll saw."""
    life, now = begin(Script.parse(script), START), START
    seen: list[str] = []
    for event in events:
        if event is not POLL:
            now += event
            continue
        life = advance(life, now, polled=True)
        seen.append(life.state)
    return life, seen


@pytest.mark.parametrize(
    ("script", "events", "seen"),
    [
        ("done", [POLL, POLL], "done done"),
        ("default", [POLL, POLL, POLL, POLL], "queued running done done"),
        ("default", [1e6, POLL], "queued"),
        ("queued:3, done", [POLL, POLL, POLL, POLL], "queued queued queued done"),
        ("queued:1, queued:1, done", [POLL, POLL, POLL], "queued queued done"),
        ("queued:0, running:0, done", [POLL], "done"),
        (
            "realistic",
            [POLL, 19.5, POLL, 0.5, POLL, 39.5, POLL, 0.5, POLL],
            "queued queued running running done",
        ),
        ("realistic", [60, POLL], "done"),
        ("queued:0s, running:0s, lost", [POLL], "lost"),
        ("running:hold, failed", [POLL, 1e9, POLL], "running running"),
        (
            "queued:1, running:10s, done",
            [POLL, 100, POLL, 9.5, POLL, 0.5, POLL],
            "queued running running done",
        ),
        ("queued:10s, running:1, done", [100, POLL, POLL], "running done"),
        ("queued:1, running:0s, failed:3040", [POLL, POLL], "queued failed"),
        ("queued:1, running:0, queued:5s, done", [POLL, POLL, 5, POLL], "queued queued done"),
    ],
)
def test_polls_and_time_show_the_states_of_the_script(
    script: str, events: list[float | None], seen: str
) -> None:
    assert lived(script, *events)[1] == seen.split()


def test_time_enters_each_state_when_it_was_due_not_when_somebody_looked() -> None:
    life = advance(begin(Script.parse("realistic"), START), START + 1000, polled=False)
    assert [(entry.state, entry.since) for entry in life.entries] == [
        ("queued", START),
        ("running", START + 20),
        ("done", START + 60),
    ]


def test_looking_is_not_a_poll() -> None:
    life, _ = lived("queued:1, done", POLL)
    for _ in range(5):
        life = advance(life, START, polled=False)
    assert (life.state, life.polls) == ("queued", 1)


def test_longest_script_is_lived_through_in_one_look() -> None:
    text = "queued:1ms," * (MOST_STEPS - 1) + "done"
    assert advance(begin(Script.parse(text), START), START + 1, polled=True).state == "done"


MOMENTS = st.floats(0, 50)
WAITING_STEPS = st.one_of(
    st.builds(a_step, st.sampled_from(["queued", "running"]), polls=st.integers(0, 3)),
    st.builds(a_step, st.sampled_from(["queued", "running"]), seconds=st.floats(0, 20)),
    st.builds(a_step, st.sampled_from(["queued", "running"])),
)
SCRIPTS = st.builds(
    lambda waiting, final: Script((*waiting, Step(final))),
    st.lists(WAITING_STEPS, max_size=5),
    st.sampled_from(["done", "failed", "lost"]),
)


@st.composite
def lives(draw: st.DrawFn) -> tuple[Life, float]:
    """A life at some moment, after some polls, and that moment."""
    life, now = begin(draw(SCRIPTS), START), START
    for wait in draw(st.lists(MOMENTS, max_size=6)):
        now += wait
        life = advance(life, now, polled=draw(st.booleans()))
    return life, now


@given(lives(), MOMENTS)
def test_looking_twice_shows_the_same(lived: tuple[Life, float], wait: float) -> None:
    life, now = lived
    once = advance(life, now + wait, polled=False)
    assert advance(once, now + wait, polled=False) == once


@given(lives(), MOMENTS, MOMENTS, st.booleans())
def test_looking_on_the_way_changes_nothing(
    lived: tuple[Life, float], first: float, then: float, polled: bool
) -> None:
    life, now = lived
    on_the_way = advance(life, now + first, polled=False)
    end = now + first + then
    assert advance(on_the_way, end, polled=polled) == advance(life, end, polled=polled)


@given(lives())
def test_states_follow_the_script_and_time(lived: tuple[Life, float]) -> None:
    life, now = lived
    assert [entry.state for entry in life.entries] == [step.state for step in life.script.steps][
        : len(life.entries)
    ]
    since = [entry.since for entry in life.entries]
    assert since == sorted(since)
    assert START <= since[0] <= since[-1] <= now
    assert life.waiting == (life.state in WAITING)


@given(lives(), MOMENTS)
def test_poll_is_counted_once_and_passes_only_what_is_over(lived: tuple[Life, float], wait: float) -> None:
    life, now = lived
    now += wait
    before, after = advance(life, now, polled=False), advance(life, now, polled=True)
    assert after.polls == before.polls + 1
    left = zip(
        life.script.steps[len(before.entries) - 1 :],
        after.entries[len(before.entries) - 1 : -1],
        strict=False,
    )
    for step, entry in left:
        assert step.polls is not None or step.seconds is not None
        assert step.polls is None or entry.polls == step.polls
        assert step.seconds is None or entry.since + step.seconds <= now


@given(st.lists(st.tuples(st.sampled_from(["queued", "running"]), st.integers(1, 4)), max_size=6))
def test_polls_skip_no_state(steps: list[tuple[str, int]]) -> None:
    script = Script.parse(", ".join([*(f"{state}:{polls}" for state, polls in steps), "done"]))
    expected = [state for state, polls in steps for _ in range(polls)]
    life = begin(script, START)
    for state in [*expected, "done", "done"]:
        life = advance(life, START, polled=True)
        assert life.state == state


@given(lives())
def test_next_change_is_the_moment_at_which_time_changes_the_state(lived: tuple[Life, float]) -> None:
    life, now = lived
    change = next_change(life)
    if change is None:
        assert advance(life, now + 1e9, polled=False) == life
        return
    assert change > now or advance(life, now, polled=False) != life
    assert len(advance(life, change, polled=False).entries) > len(life.entries)


@pytest.mark.parametrize(
    "script", ["queued:hold, running:1, done", "queued:5, running:1, done", "queued:1h, running:1, done"]
)
def test_go_on_leaves_the_present_state_now(script: str) -> None:
    life = go_on(lived(script, POLL)[0], START + 7)
    assert (life.state, life.entry.since, life.decided) == ("running", START + 7, False)
    assert [
        advance(life, START + 7, polled=True).state,
        advance(advance(life, START + 7, polled=True), START + 7, polled=True).state,
    ] == [
        "running",
        "done",
    ]


@pytest.mark.parametrize("script", ["queued:1, running:1, done", "queued:5s, running:1, done"])
def test_held_batch_waits_until_it_is_told_to_go_on(script: str) -> None:
    life = hold(begin(Script.parse(script), START))
    for _ in range(5):
        life = advance(life, START + 1e6, polled=True)
        assert life.state == "queued"
    assert str(life.script) == "queued:hold, running:1, done"
    assert go_on(life, START + 1e6).state == "running"


@pytest.mark.parametrize("final", ["done", "failed:3040", "lost"])
def test_finished_life_is_not_held_and_does_not_go_on(final: str) -> None:
    life = begin(Script.parse(final), START)
    assert hold(life) == life
    assert go_on(life, START + 1) == life


@pytest.mark.parametrize("end", [Step("lost"), Step("failed", error="3040")], ids=str)
@pytest.mark.parametrize("polls", range(6))
def test_decided_life_ends_there_and_keeps_its_count(end: Step, polls: int) -> None:
    before = lived("queued:1, running:2, done", *[POLL] * polls)[0]
    life = decide(before, end, START + 9)
    assert (life.state, life.step, life.decided, life.polls) == (end.state, end, True, polls)
    assert life.entry.since == (START + 9 if before.waiting else before.entry.since)
    later = advance(life, START + 1e6, polled=True)
    assert (later.state, later.polls) == (end.state, polls + 1)
    assert Script.parse(str(life.script)) == life.script


def test_last_decision_holds() -> None:
    life = decide(
        decide(begin(Script.parse("queued:hold, done"), START), Step("failed"), START + 1),
        Step("lost"),
        START + 2,
    )
    assert (life.state, life.entry.since, str(life.script)) == ("lost", START + 1, "queued:hold, lost")


@given(lives(), st.sampled_from(["go_on", "hold", "decide"]))
def test_actions_leave_a_life_that_goes_on_sanely(lived: tuple[Life, float], action: str) -> None:
    life, now = lived
    acted = {
        "go_on": lambda: go_on(life, now),
        "hold": lambda: hold(life),
        "decide": lambda: decide(life, Step("lost"), now),
    }[action]()
    assert acted.polls == life.polls
    assert len(acted.entries) <= len(acted.script.steps)
    assert acted.step.state == acted.state
    assert acted.script.steps[-1].state not in WAITING
    assert advance(acted, now + 1, polled=True).polls == life.polls + 1
