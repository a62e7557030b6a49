from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workersai_emulator.effects import ErrorEffect, ScriptEffect
from workersai_emulator.ids import chance
from workersai_emulator.rules import Rules

MODEL = "@cf/baai/bge-m3"
ERROR = {"error": 3040}
KINDS = "error, script, output, items, reply, delay, busy, stream, assume, transport"


def never(rule_id: str, occasion: int) -> float:
    raise AssertionError("a rule without a probability draws nothing")


def fired(
    rules: Rules, operation: Any = "poll", inputs: object = None, model: str = MODEL
) -> int | str | None:
    """The code or the script that a request gets from the rules."""
    rule = rules.fire(operation, model, inputs, never)
    if rule is None:
        return None
    if isinstance(rule.effect, ErrorEffect):
        return rule.effect.row.code
    assert isinstance(rule.effect, ScriptEffect)
    return str(rule.effect.script)


def with_rule(**said: Any) -> Rules:
    rules = Rules()
    rules.add({"effect": ERROR, **said})
    return rules


@pytest.mark.parametrize("operation", ["submit", "poll", "run"])
def test_rule_without_a_match_is_for_every_request(operation: str) -> None:
    assert fired(with_rule(), operation) == 3040


@pytest.mark.parametrize("wanted", ["submit", "poll", "run"])
@pytest.mark.parametrize("operation", ["submit", "poll", "run"])
def test_rule_is_for_its_operation(wanted: str, operation: str) -> None:
    assert (fired(with_rule(match={"operation": wanted}), operation) == 3040) == (wanted == operation)


def test_rule_is_for_its_model() -> None:
    rules = with_rule(match={"model": MODEL})
    assert fired(rules) == 3040
    assert fired(rules, model="@cf/baai/bge-base-en-v1.5") is None


@pytest.mark.parametrize(
    ("inputs", "hit"),
    [
        ("an invoice", True),
        ({"requests": [{"text": "b"}, {"contexts": [{"text": "the invoices"}]}]}, True),
        ({"text": ["a", "invoice"]}, True),
        ({"invoice": "a key is not a text"}, False),
        ({"text": "Invoice"}, False),
        ({"text": ["in", "voice", 5, None, True]}, False),
        (None, False),
    ],
    ids=repr,
)
def test_text_is_looked_for_in_every_string(inputs: object, hit: bool) -> None:
    assert (fired(with_rule(match={"text": "invoice"}), "run", inputs) == 3040) == hit


def test_text_is_looked_for_however_deep_it_is() -> None:
    inputs: Any = "needle"
    for _ in range(100_000):
        inputs = [inputs]
    assert fired(with_rule(match={"text": "needle"}), "run", inputs) == 3040


def test_nth_is_the_one_request_of_that_number() -> None:
    rules = with_rule(match={"nth": 3, "operation": "poll"})
    assert [
        fired(rules, operation) for operation in ("poll", "run", "poll", "run", "poll", "poll", "poll")
    ] == [
        None,
        None,
        None,
        None,
        3040,
        None,
        None,
    ]


def test_every_is_each_so_manyeth() -> None:
    rules = with_rule(match={"every": 3})
    assert [fired(rules) for _ in range(7)] == [None, None, 3040, None, None, 3040, None]


def test_every_and_times_end_together() -> None:
    rules = with_rule(match={"every": 2}, times=2)
    assert [fired(rules) for _ in range(8)] == [None, 3040, None, 3040, None, None, None, None]


def test_times_are_counted_by_what_fired() -> None:
    rules = with_rule(times=2, match={"operation": "poll"})
    seen = [fired(rules, operation) for operation in ("poll", "run", "submit", "poll", "poll")]
    assert seen == [3040, None, None, 3040, None]
    assert [rule.as_json()["fired"] for rule in rules] == [2]


def draws(seed: int, probability: float, requests: int = 1000) -> list[bool]:
    rules = with_rule(probability=probability)
    drawn = partial(chance, seed, "account")
    return [rules.fire("poll", MODEL, None, drawn) is not None for _ in range(requests)]


def test_probability_is_drawn_from_the_seed_and_the_same_again() -> None:
    first = draws(1, 0.3)
    assert first == draws(1, 0.3)
    assert first != draws(2, 0.3)
    assert sum(first) / len(first) == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize(("probability", "count"), [(0, 0), (1, 100)])
def test_probability_can_be_never_and_always(probability: int, count: int) -> None:
    assert sum(draws(1, probability, 100)) == count


def test_newest_matching_rule_fires_and_only_that() -> None:
    rules = Rules()
    for code, said in ((3040, {}), (3021, {"times": 1}), (4006, {"match": {"operation": "run"}})):
        rules.add({"effect": {"error": code}, **said})
    assert [fired(rules), fired(rules), fired(rules, "run")] == [3021, 3040, 4006]
    assert [rule.fired for rule in rules] == [1, 1, 1]


def test_script_rule_is_only_for_submits() -> None:
    rules = Rules()
    rules.add({"effect": {"script": "queued:2m, failed:5001"}, "times": 1})
    assert [fired(rules, operation) for operation in ("poll", "run", "submit", "submit")] == [
        None,
        None,
        "queued:2m, failed:5001",
        None,
    ]


@pytest.mark.parametrize("key", [3040, "3040", "capacity"])
def test_error_is_named_by_code_or_row(key: int | str) -> None:
    effect = Rules().add({"effect": {"error": key, "retry_after": "2s"}}).effect
    assert isinstance(effect, ErrorEffect)
    assert (effect.row.id, effect.row.status, effect.retry_after) == ("capacity", 429, 2.0)


def test_code_means_its_first_row_and_an_id_its_own() -> None:
    assert Rules().add({"effect": {"error": 8007}}).as_json()["effect"] == {"error": "model.no-queue"}
    assert Rules().add({"effect": {"error": "model.refused"}}).as_json()["effect"] == {
        "error": "model.refused"
    }


def test_deleted_rules_no_longer_fire_and_ids_are_not_used_again() -> None:
    rules = Rules()
    first, second = rules.add({"effect": ERROR}), rules.add({"effect": {"error": 3021}})
    assert [first.id, second.id] == ["rule-1", "rule-2"]
    assert rules.delete("rule-2")
    assert not rules.delete("rule-2")
    assert fired(rules) == 3040
    rules.clear()
    assert (fired(rules), len(rules)) == (None, 0)
    assert rules.add({"effect": ERROR}).id == "rule-3"


def test_rule_is_shown_as_it_is_said() -> None:
    said = {
        "match": {"operation": "poll", "model": MODEL, "text": "a", "nth": 2, "every": 2},
        "effect": {"error": "capacity", "retry_after": 1.5},
        "times": 3,
        "probability": 0.5,
    }
    rules = Rules()
    shown = rules.add(said).as_json()
    assert shown == {"id": "rule-1", **said, "fired": 0}
    del shown["id"], shown["fired"]
    assert Rules().add(shown).as_json() == {"id": "rule-1", **said, "fired": 0}


def test_what_is_null_is_left_out() -> None:
    said = {"match": {"model": None, "nth": None}, "effect": {"script": "instant"}, "times": None}
    rule = Rules().add(said)
    assert rule.as_json() == {"id": "rule-1", "match": {}, "effect": {"script": "done"}, "fired": 0}
    assert isinstance(rule.effect, ScriptEffect)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (None, 'rule: give a JSON object such as {"match":{"operation":"poll"},"effect":{"error":3040}}'),
        ([], 'rule: give a JSON object such as {"match":{"operation":"poll"},"effect":{"error":3040}}'),
        ({"effects": ERROR}, "rule: there is no 'effects'; there are match, effect, times, probability"),
        ({"match": []}, "match: give a JSON object"),
        ({"match": {"op": "poll"}}, "match: there is no 'op'; there are operation, model, text, nth, every"),
        ({"match": {"operation": "get"}}, "match: operation is one of submit, poll, run, models, not 'get'"),
        (
            {"match": {"operation": ["run"]}},
            "match: operation is one of submit, poll, run, models, not ['run']",
        ),
        ({"match": {"model": 5}}, "match: model is a text, not 5"),
        ({"match": {"text": ["a"]}}, "match: text is a text, not ['a']"),
        ({"match": {"nth": 0}}, "nth: 0 is not a number from 1 on"),
        ({"match": {"every": True}}, "every: True is not a number from 1 on"),
        ({"match": {"every": "2"}}, "every: '2' is not a number from 1 on"),
        ({"times": 0}, "times: 0 is not a number from 1 on"),
        ({"times": 1.5}, "times: 1.5 is not a number from 1 on"),
        ({"probability": 1.01}, "probability: 1.01 is not a number from 0 to 1"),
        ({"probability": -0.1}, "probability: -0.1 is not a number from 0 to 1"),
        ({"probability": True}, "probability: True is not a number from 0 to 1"),
        ({"probability": "0.5"}, "probability: '0.5' is not a number from 0 to 1"),
        ({"match": {"model": "@cf/no/such"}}, "match: '@cf/no/such' is no model of this emulator"),
        ({"effect": None}, f"effect: give a JSON object with one of {KINDS}"),
        ({"effect": {}}, f"effect: give one of {KINDS}"),
        ({"effect": {"error": 3040, "script": "done"}}, f"effect: give one of {KINDS}"),
        ({"effect": {"wait": 5}}, f"effect: there is no 'wait'; there are {KINDS}, retry_after"),
        ({"effect": {"script": "done", "retry_after": 1}}, "effect: retry_after goes with error"),
        ({"effect": {"script": "wat"}}, "script: 'wat' is no step; "),
        (
            {"effect": {"error": 42}},
            "effect: error: no error 42: use a code such as 3040 or a row's id, one of ",
        ),
        ({"effect": {"error": None}}, "effect: error: None is not a code or a row's id"),
        ({"effect": {"error": [3040]}}, "effect: error: [3040] is not a code or a row's id"),
        (
            {"effect": {"error": 3040, "retry_after": "soon"}},
            "effect: retry_after: 'soon' is not a duration: ",
        ),
        ({"effect": {"error": 3040, "retry_after": -1}}, "effect: retry_after: -1 is not a duration: "),
    ],
    ids=repr,
)
def test_what_is_no_rule_is_refused_and_the_part_named(said: Any, message: str) -> None:
    rules = Rules()
    if isinstance(said, dict) and "effects" not in said:
        said = {"effect": ERROR, **said}
    with pytest.raises(ValueError, match=r"^\w+: ") as refused:
        rules.add(said)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)
    assert len(rules) == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
SAID = st.fixed_dictionaries(
    {},
    optional={
        "match": st.fixed_dictionaries(
            {}, optional=dict.fromkeys(("operation", "model", "text", "nth", "every"), JSON)
        )
        | JSON,
        "effect": st.fixed_dictionaries({}, optional=dict.fromkeys((*KINDS.split(", "), "retry_after"), JSON))
        | JSON,
        "times": JSON,
        "probability": JSON,
    },
)


@given(SAID | JSON)
def test_any_json_is_a_rule_or_refused_with_a_value_error(said: Any) -> None:
    rules = Rules()
    try:
        rules.add(said)
    except ValueError:
        assert len(rules) == 0
    else:
        assert len(rules) == 1
