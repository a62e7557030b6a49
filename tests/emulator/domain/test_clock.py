from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workersai_emulator import clock as clock_module
from workersai_emulator.clock import Clock, format_duration, format_time, parse_duration, parse_time

START = 1_800_000_000.0
END_OF_CALENDAR = parse_time("9999-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        (0, 0.0),
        (1.5, 1.5),
        (1e-7, 1e-7),
        (1e11, 1e11),
        ("2", 2.0),
        ("500ms", 0.5),
        (" 30s ", 30.0),
        ("5m", 300.0),
        ("1.5h", 5400.0),
    ],
)
def test_duration_is_read(said: object, seconds: float) -> None:
    assert parse_duration(said) == seconds


@pytest.mark.parametrize(
    "said",
    [True, None, [], {}, "", "s", "-1s", -1, -0.5, "1d", "1 s", "1e3", "1.s", ".5s", "٣s", float("nan")],
    ids=repr,
)
def test_what_is_no_duration_is_refused_with_what_to_give(said: object) -> None:
    with pytest.raises(ValueError, match="is not a duration: give seconds, or a text such as") as refused:
        parse_duration(said)
    assert str(refused.value).startswith(repr(said))


@pytest.mark.parametrize("said", ["9" * 400 + "h", 1e300, 10**400, float("inf"), "80000000h"])
def test_duration_longer_than_the_calendar_is_refused(said: object) -> None:
    with pytest.raises(ValueError, match=r"is longer than the calendar$"):
        parse_duration(said)


@given(st.floats(0, END_OF_CALENDAR) | st.integers(0, 10**9) | st.integers(0, 10**9).map(lambda n: n * 0.001))
def test_written_duration_reads_back_as_exactly_the_same(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.5, "500ms"),
        (1, "1s"),
        (90, "90s"),
        (5400, "90m"),
        (7200, "2h"),
        (1e-7, "0.0000001s"),
        (1_000_000_000.5, "1000000000500ms"),
    ],
)
def test_duration_is_written_short(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("1970-01-02T00:00:00", 86400.0),
        ("1970-01-01T02:00:00.250+01:00", 3600.25),
    ],
    ids=["UTC", "without an offset", "with an offset"],
)
def test_time_is_read(said: str, seconds: float) -> None:
    assert parse_time(said) == seconds


@pytest.mark.parametrize(
    "said", [None, 5, "", "now", "2026-13-01T00:00:00Z", "2026-11-29T25:00:00Z", "\ud800"]
)
def test_what_is_no_time_is_refused_with_what_to_give(said: object) -> None:
    with pytest.raises(
        ValueError, match="is not a time: give RFC 3339, such as 2026-11-29T12:00:00Z"
    ) as refused:
        parse_time(said)
    assert str(refused.value).startswith(repr(said))


@given(st.integers(0, 4_000_000_000_000))
def test_written_time_reads_back_to_the_millisecond(milliseconds: int) -> None:
    assert parse_time(format_time(milliseconds / 1000)) == milliseconds / 1000


def test_time_is_written_in_utc_with_milliseconds() -> None:
    assert format_time(0.25) == "1970-01-01T00:00:00.250Z"


def test_untouched_clock_is_the_systems(system: Any) -> None:
    clock = Clock()
    assert clock.now() == system.now
    system.now += 3
    assert clock.now() == START + 3


def test_frozen_clock_stands_still_and_can_still_be_advanced(system: Any) -> None:
    clock = Clock()
    clock.freeze()
    system.now += 100
    assert clock.now() == START
    clock.advance(30)
    assert clock.now() == START + 30


def test_unfrozen_clock_goes_on_from_where_it_stands(system: Any) -> None:
    clock = Clock()
    clock.freeze()
    system.now += 100
    clock.freeze(False)
    assert clock.now() == START
    system.now += 5
    assert clock.now() == START + 5


def test_scale_counts_from_when_it_is_set(system: Any) -> None:
    clock = Clock()
    system.now += 10
    clock.rescale(60)
    assert clock.now() == START + 10
    system.now += 2
    assert clock.now() == START + 130
    clock.rescale(0.5)
    system.now += 2
    assert clock.now() == START + 131


def test_advanced_clock_runs_on(system: Any) -> None:
    clock = Clock()
    clock.advance(60)
    system.now += 1
    assert clock.now() == START + 61


def test_clock_is_set_forward(system: Any) -> None:
    clock = Clock()
    clock.set(START + 86400)
    assert clock.now() == START + 86400


def test_clock_is_never_set_back(system: Any) -> None:
    clock = Clock()
    clock.advance(60)
    with pytest.raises(ValueError, match="a clock never goes back") as refused:
        clock.set(START)
    assert format_time(START) in str(refused.value)
    assert format_time(START + 60) in str(refused.value)
    assert clock.now() == START + 60


def test_clock_can_be_set_to_the_time_that_it_shows(system: Any) -> None:
    system.now += 0.0009
    clock = Clock()
    clock.freeze()
    clock.set(parse_time(format_time(clock.now())))
    assert clock.now() == START + 0.0009


def test_reaching_a_moment_that_has_passed_changes_nothing(system: Any) -> None:
    clock = Clock()
    clock.reach(START - 5)
    assert clock.now() == START


def test_reaching_beyond_the_calendar_stops_at_its_end(system: Any) -> None:
    clock = Clock()
    clock.reach(END_OF_CALENDAR * 2)
    assert clock.now() == END_OF_CALENDAR


@pytest.mark.parametrize("move", ["advance", "set"])
def test_clock_cannot_be_moved_beyond_the_calendar(system: Any, move: str) -> None:
    clock = Clock()
    with pytest.raises(ValueError, match="the clock cannot go beyond the calendar"):
        getattr(clock, move)(END_OF_CALENDAR + 1)
    assert clock.now() == START


def test_clock_that_runs_to_the_end_of_the_calendar_stays_there(system: Any) -> None:
    clock = Clock()
    clock.rescale(1e6)
    system.now += 1e6
    assert clock.now() == END_OF_CALENDAR
    assert format_time(clock.now()) == "9999-01-01T00:00:00.000Z"


def test_copy_shows_the_same_and_goes_its_own_way(system: Any) -> None:
    clock = Clock(jump=True)
    clock.advance(10)
    clock.rescale(2)
    twin = clock.copy()
    system.now += 5
    assert twin.now() == clock.now() == START + 20
    assert (twin.scale, twin.frozen, twin.jump) == (2, False, True)
    twin.freeze()
    system.now += 5
    assert (twin.now(), clock.now()) == (START + 20, START + 30)


def test_advancing_by_nothing_while_time_passes_is_not_going_back(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(START + 0.25 * tick for tick in range(100))
    monkeypatch.setattr(clock_module, "system_now", lambda: next(ticks))
    clock = Clock()
    before = clock.now()
    clock.advance(0)
    assert clock.now() > before


STEPS = st.one_of(
    st.tuples(st.just("tick"), st.floats(0, 1e5)),
    st.tuples(st.just("freeze"), st.booleans()),
    st.tuples(st.just("advance"), st.floats(0, 1e6)),
    st.tuples(st.just("reach"), st.floats(START - 1e6, START + 1e8)),
    st.tuples(st.just("set"), st.floats(START - 1e6, START + 1e8)),
    st.tuples(st.just("rescale"), st.floats(1e-3, 1e6)),
)


@given(st.lists(STEPS, max_size=20))
def test_clock_never_goes_back_whatever_is_done_to_it(steps: list[tuple[str, Any]]) -> None:
    system, before = START, 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock_module, "system_now", lambda: system)
        clock = Clock()
        for name, argument in steps:
            if name == "tick":
                system += argument
            elif name == "set" and argument <= clock.now() - 0.001:
                with pytest.raises(ValueError, match="never goes back"):
                    clock.set(argument)
            else:
                getattr(clock, name)(argument)
            assert clock.now() >= before
            before = clock.now()
