from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_steps import a_step

from workersai_contracts import errors
from workersai_emulator.scripts import MOST_STEPS, Script, Step

WAITING_STEPS = st.one_of(
    st.builds(a_step, st.sampled_from(["queued", "running"]), polls=st.integers(0, 10**20)),
    st.builds(a_step, st.sampled_from(["queued", "running"]), seconds=st.floats(0, 1e11)),
    st.builds(a_step, st.sampled_from(["queued", "running"])),
)
KEYS = st.sampled_from([*errors(), *(str(row.code) for row in errors().values())])
FINAL_STEPS = st.sampled_from([Step("done"), Step("lost")]) | st.builds(
    a_step, st.just("failed"), error=st.none() | KEYS
)
SCRIPTS = st.builds(
    lambda waiting, final: Script((*waiting, final)), st.lists(WAITING_STEPS, max_size=6), FINAL_STEPS
)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("done", [Step("done")]),
        ("queued, done", [Step("queued", polls=1), Step("done")]),
        ("queued:2, running:0, lost", [Step("queued", polls=2), Step("running", polls=0), Step("lost")]),
        ("queued:00000000012, done", [Step("queued", polls=12), Step("done")]),
        (
            "queued:500ms,running:5m,failed",
            [Step("queued", seconds=0.5), Step("running", seconds=300), Step("failed")],
        ),
        ("running:hold, failed:3040", [Step("running"), Step("failed", error="3040")]),
        ("failed:rate.minute", [Step("failed", error="rate.minute")]),
        (" queued : 1.5h ,\n done ", [Step("queued", seconds=5400), Step("done")]),
        ("default", [Step("queued", polls=1), Step("running", polls=1), Step("done")]),
        (" instant ", [Step("done")]),
        ("realistic", [Step("queued", seconds=20), Step("running", seconds=40), Step("done")]),
    ],
    ids=str,
)
def test_script_is_read(text: str, steps: list[Step]) -> None:
    assert Script.parse(text).steps == tuple(steps)


@given(SCRIPTS)
def test_written_script_reads_back_as_the_same(script: Script) -> None:
    assert Script.parse(str(script)) == script


def test_script_is_written_as_people_write_it() -> None:
    text = "queued:2, running:30s, queued:500ms, running:hold, failed:3040"
    assert str(Script.parse(text)) == text


ENDS = "ends a batch's life, so nothing can follow it"
MUST_END = "must end in done, failed or lost (after :hold, if it is to wait)"
NO_AMOUNT = "is not a number of polls, a time such as 30s, or hold"
NO_STEP = "is no step; steps are queued, running, done, failed, lost; names default, instant, realistic"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "script: None is not a text such as 'queued:1, running:1, done'"),
        (5, "script: 5 is not a text such as 'queued:1, running:1, done'"),
        ("", f"script: '' {NO_STEP}"),
        ("queued:1,,done", f"script: '' {NO_STEP}"),
        ("finished", f"script: 'finished' {NO_STEP}"),
        ("Default", f"script: 'Default' {NO_STEP}"),
        ("default, done", f"script: 'default' {NO_STEP}"),
        ("queued:, done", "script: 'queued:' has nothing after its colon"),
        ("done:", "script: 'done:' has nothing after its colon"),
        ("done:1", "script: 'done:1': done takes no amount"),
        ("lost:5s", "script: 'lost:5s': lost takes no amount"),
        ("queued:-1, done", f"script: 'queued:-1' {NO_AMOUNT}"),
        ("queued:soon, done", f"script: 'queued:soon' {NO_AMOUNT}"),
        ("queued:1.5, done", f"script: 'queued:1.5' {NO_AMOUNT}"),
        ("queued:²,done", f"script: 'queued:²' {NO_AMOUNT}"),
        ("queued:1:2, done", f"script: 'queued:1:2' {NO_AMOUNT}"),
        ("queued:a\nb, done", f"script: 'queued:a\\nb' {NO_AMOUNT}"),
        ("done, queued:1", f"script: done {ENDS}"),
        ("failed:3040, done", f"script: failed:3040 {ENDS}"),
        ("queued:1", f"script: 'queued:1' {MUST_END}"),
        ("queued:1, running:hold", f"script: 'queued:1, running:hold' {MUST_END}"),
    ],
    ids=repr,
)
def test_what_is_no_script_is_refused_and_the_step_named(text: object, message: str) -> None:
    with pytest.raises(ValueError, match=r"^script: ") as refused:
        Script.parse(text)
    assert str(refused.value) == message


def test_unknown_error_of_a_failure_is_refused_with_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"^script: 'failed:42': no error '42'") as refused:
        Script.parse("queued:1, failed:42")
    assert "capacity" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("queued:1," * 100_000 + "done", f"100001 steps are too many; {MOST_STEPS} are taken"),
        ("queued:" + "9" * 1_000_000 + ", done", NO_AMOUNT),
        ("queued:" + "9" * 1_000_000 + "s, done", NO_AMOUNT),
        ("," * 1_000_000, "steps are too many"),
        ("x" * 1_000_000, "is no step"),
    ],
    ids=["steps", "polls", "seconds", "commas", "word"],
)
def test_huge_script_is_refused_at_once(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"^script: ") as refused:
        Script.parse(text)
    assert message in str(refused.value)


def test_longest_script_is_taken() -> None:
    assert len(Script.parse("queued:0," * (MOST_STEPS - 1) + "done").steps) == MOST_STEPS


@given(
    st.text(max_size=30)
    | st.lists(st.sampled_from(["queued", ":", "1", "s", ",", "done", " ", "hold"])).map("".join)
)
def test_any_text_is_a_script_or_refused_in_one_line(text: str) -> None:
    try:
        state = Script.parse(text).steps[-1].state
    except ValueError as refused:
        state, message = None, str(refused)
    if state is None:
        assert message.startswith("script: ")
        assert "\n" not in message
    else:
        assert state in {"done", "failed", "lost"}
