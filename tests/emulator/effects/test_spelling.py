"""Effects as the control plane spells them: told back as they were said, or refused in one line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workersai_emulator.effects import read_effect

EFFECTS = "error, script, output, items, reply, delay, busy, stream, assume, transport"
GOOD = [
    {"error": "capacity", "retry_after": 2.0},
    {"script": "queued:120s, failed:5001"},
    {"output": {"response": "billing"}},
    {"output": None},
    {"items": {"indexes": [0, 3], "code": "batch.invalid"}},
    {"items": {"share": 0.2, "code": "batch.failed"}},
    {"items": {"text": "a", "code": "capacity"}},
    {"reply": {"status": 502, "headers": {"content-type": "text/html"}, "body": "<html>"}},
    {"delay": "2s"},
    {"delay": "500ms"},
    {"busy": "2s"},
    {"stream": {"after": 2, "error": "capacity"}},
    {"stream": {"after": 0}},
    {"assume": {"done.shape": "results", "poll.retention": "once"}},
    {"transport": "reset-before"},
]


@pytest.mark.parametrize("said", GOOD, ids=repr)
def test_effect_is_told_back_as_it_was_said(world: Any, said: dict[str, Any]) -> None:
    reply = world.control("POST", "rules", effect=said)

    assert reply.status_code == 200
    assert {**said, **reply.json()["effect"]} == reply.json()["effect"]
    assert (
        world.control("POST", "rules", effect=reply.json()["effect"]).json()["effect"]
        == reply.json()["effect"]
    )


BAD: list[tuple[Any, str]] = [
    (
        [],
        f"effect: give a JSON object with one of {EFFECTS}",
    ),
    ({}, f"effect: give one of {EFFECTS}"),
    ({"delay": 1, "output": 1}, "effect: give one of error, "),
    ({"dealy": 1}, "effect: there is no 'dealy'; there are error, "),
    ({"output": 1, "retry_after": 2}, "effect: retry_after goes with error"),
    ({"error": "no"}, "effect: error: no error 'no': "),
    ({"script": 5}, "script: 5 is not a text "),
    ({"items": [0]}, 'items: give a JSON object such as {"indexes":[0,3],"code":3030}'),
    ({"items": {"indices": [0]}}, "items: there is no 'indices'; there are indexes, share, text, code"),
    ({"items": {"code": 3030}}, "items: give one of indexes, share and text"),
    ({"items": {"share": 1, "text": "a"}}, "items: give one of indexes, share and text"),
    ({"items": {"indexes": 0}}, "items: indexes is a list of numbers from 0 on, not 0"),
    ({"items": {"indexes": [-1]}}, "items: indexes is a list of numbers from 0 on, not [-1]"),
    ({"items": {"indexes": [True]}}, "items: indexes is a list of numbers from 0 on, not [True]"),
    ({"items": {"share": 1.5}}, "items: share is a number from 0 to 1, not 1.5"),
    ({"items": {"share": None}}, "items: share is a number from 0 to 1, not None"),
    ({"items": {"text": None}}, "items: text is a text, not None"),
    ({"items": {"share": 1, "code": 1}}, "items: code: no error 1: "),
    ({"items": {"share": 1, "code": None}}, "items: code: None is not a code or a row's id"),
    ({"reply": 502}, 'reply: give a JSON object such as {"status":502,"body":"…"}'),
    ({"reply": {"code": 502}}, "reply: there is no 'code'; there are status, headers, body"),
    ({"reply": {"status": 100}}, "reply: status is a number from 200 to 599, not 100"),
    ({"reply": {"status": "502"}}, "reply: status is a number from 200 to 599, not '502'"),
    ({"reply": {"headers": []}}, "reply: headers is a JSON object of texts, each of one line"),
    ({"reply": {"headers": {"a": 1}}}, "reply: headers is a JSON object of texts, each of one line"),
    (
        {"reply": {"headers": {"a": "b\r\nc: d"}}},
        "reply: headers is a JSON object of texts, each of one line",
    ),
    ({"reply": {"headers": {"a b": "c"}}}, "reply: 'a b' is no name of a header"),
    ({"reply": {"headers": {"": "c"}}}, "reply: '' is no name of a header"),
    ({"reply": {"headers": {"Content-Length": "1"}}}, "reply: Content-Length is the server's own; "),
    ({"delay": "soon"}, "delay: 'soon' is not a duration: "),
    ({"delay": -1}, "delay: -1 is not a duration: "),
    ({"assume": {}}, "assume: give a JSON object of open facts and their alternatives"),
    ({"assume": "done.shape"}, "assume: give a JSON object of open facts and their alternatives"),
    ({"assume": {"done.form": "x"}}, "assume: 'done.form' is no open fact; those are poll.unknown, "),
    ({"assume": {"done.shape": "x"}}, "assume: done.shape is one of responses, results, not 'x'"),
    ({"transport": "reset"}, "transport: one of reset-before, reset-after, truncate, garbage, slow, hang, "),
    ({"transport": ["hang"]}, "transport: one of reset-before, "),
]


@pytest.mark.parametrize(("said", "told"), BAD, ids=[repr(said) for said, _ in BAD])
def test_bad_effect_is_refused_in_one_line_that_names_the_part(world: Any, said: Any, told: str) -> None:
    reply = world.control("POST", "rules", effect=said)

    assert reply.status_code == 400
    assert list(reply.json()) == ["error"]
    assert reply.json()["error"].startswith(told)
    assert "\n" not in reply.json()["error"]
    assert world.fired() == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ITEMS = st.fixed_dictionaries({}, optional=dict.fromkeys(("indexes", "share", "text", "code"), JSON))
REPLY = st.fixed_dictionaries({}, optional=dict.fromkeys(("status", "headers", "body"), JSON))


@given(
    st.fixed_dictionaries({"items": ITEMS})
    | st.fixed_dictionaries({"reply": REPLY})
    | st.dictionaries(st.sampled_from(["delay", "assume", "transport", "output", "script"]), JSON, max_size=1)
)
def test_any_json_is_an_effect_that_can_be_said_again_or_a_value_error(said: Any) -> None:
    try:
        effect = read_effect(said)
    except ValueError:
        return
    assert repr(read_effect(effect.as_json()).as_json()) == repr(effect.as_json())
