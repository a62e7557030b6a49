from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workersai_contracts import assumptions, models
from workersai_emulator.scripts import Script
from workersai_emulator.settings import LIMITS, Settings

M3, BASE = "@cf/baai/bge-m3", "@cf/baai/bge-base-en-v1.5"

SCRIPTS = st.sampled_from(
    ["default", "instant", "realistic", "queued:2, running:1500ms, failed:3040", "running:hold, lost"]
)
SAID = st.fixed_dictionaries(
    {},
    optional={
        "script": SCRIPTS,
        "scripts": st.dictionaries(st.sampled_from(sorted(models())), SCRIPTS, max_size=3),
        "assumptions": st.lists(
            st.sampled_from(
                [(fact.id, name) for fact in assumptions().values() for name in fact.alternatives]
            )
        ).map(dict),
        "limits": st.dictionaries(
            st.sampled_from(list(LIMITS)), st.none() | st.integers(1, 10**12) | st.just("documented")
        ),
        "worker_binding": st.booleans(),
    },
)


def test_nothing_said_means_the_documented_defaults() -> None:
    shown = Settings().as_json()
    assert shown == {
        "script": "queued:1, running:1, done",
        "scripts": {},
        "assumptions": {fact.id: fact.default for fact in assumptions().values()},
        "limits": {
            "payload_bytes": 10_000_000,
            "body_bytes": 25_000_000,
            "requests_per_minute": None,
            "daily_neurons": None,
            "text_tokens": "documented",
            "call_tokens": "documented",
            "context_tokens": "documented",
        },
        "plan": "free",
        "worker_binding": True,
    }


@given(SAID)
def test_shown_settings_read_back_as_what_they_show(said: dict[str, Any]) -> None:
    shown = Settings.parse(said).as_json()
    assert Settings.parse(shown).as_json() == shown


@given(SAID, SAID)
def test_what_a_layer_says_goes_before_what_is_below(above: dict[str, Any], below: dict[str, Any]) -> None:
    merged = Settings.parse(above).over(Settings.parse(below))
    assert merged.script == (
        Script.parse(text) if (text := above.get("script", below.get("script"))) else None
    )
    assert merged.worker_binding == above.get("worker_binding", below.get("worker_binding"))
    for key in ("assumptions", "limits"):
        assert getattr(merged, key) == {**below.get(key, {}), **above.get(key, {})}
    said = {**below.get("scripts", {}), **above.get("scripts", {})}
    assert merged.scripts == {name: Script.parse(text) for name, text in said.items()}


@given(SAID, SAID, SAID)
def test_layers_can_be_merged_in_any_grouping(a: Any, b: Any, c: Any) -> None:
    top, middle, low = map(Settings.parse, (a, b, c))
    assert top.over(middle).over(low) == top.over(middle.over(low))
    assert top.over(Settings()) == top == Settings().over(top)


@pytest.mark.parametrize("key", ["script", "scripts", "assumptions", "limits", "worker_binding"])
def test_null_leaves_the_setting_to_the_layer_below(key: str) -> None:
    assert Settings.parse({key: None}) == Settings()


def test_models_own_script_goes_before_the_general_one() -> None:
    settings = Settings.parse({"script": "instant", "scripts": {M3: "lost"}})
    assert str(settings.script_for(M3)) == "lost"
    assert str(settings.script_for(BASE)) == "done"
    assert str(Settings().script_for(BASE)) == "queued:1, running:1, done"


def test_models_script_from_below_goes_before_the_general_one_from_above() -> None:
    merged = Settings.parse({"script": "instant"}).over(Settings.parse({"scripts": {M3: "lost"}}))
    assert str(merged.script_for(M3)) == "lost"


@pytest.mark.parametrize(
    ("said", "payload_bytes"),
    [
        ({}, 10_000_000),
        ({"assumptions": {"submit.too-large": "binary"}}, 10 * 1024 * 1024),
        ({"limits": {"payload_bytes": 5}, "assumptions": {"submit.too-large": "binary"}}, 5),
        ({"limits": {"payload_bytes": None}}, None),
        ({"limits": {"payload_bytes": "none"}}, None),
        ({"limits": {"payload_bytes": "documented"}}, 10_000_000),
    ],
    ids=["decimal", "binary", "a limit of its own", "null", "none", "documented"],
)
def test_payload_limit(said: dict[str, Any], payload_bytes: int | None) -> None:
    assert Settings.parse(said).payload_bytes == payload_bytes


@pytest.mark.parametrize(
    ("said", "body_bytes"),
    [
        ({}, 25_000_000),
        ({"assumptions": {"body.limit": "none"}}, None),
        ({"limits": {"body_bytes": 5}, "assumptions": {"body.limit": "none"}}, 5),
        ({"limits": {"body_bytes": None}}, None),
    ],
    ids=["default", "none", "a limit of its own", "lifted"],
)
def test_body_limit(said: dict[str, Any], body_bytes: int | None) -> None:
    assert Settings.parse(said).body_bytes == body_bytes


def test_assume_answers_open_facts_otherwise() -> None:
    settings = Settings().assume({"done.status": "completed"})
    assert settings.assumed("done.status") == "completed"
    assert settings.assumed("done.shape") == "responses"
    assert Settings().assumed("done.status") == "none"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (None, "settings: give a JSON object"),
        (["script"], "settings: give a JSON object"),
        (
            {"scrpt": "done"},
            "settings: there is no 'scrpt'; there are script, scripts, assumptions, limits, plan, worker_binding",
        ),
        ({"script": 5}, "script: 5 is not a text such as 'queued:1, running:1, done'"),
        ({"script": "wat"}, "script: 'wat' is no step; "),
        ({"scripts": []}, "scripts: give a JSON object"),
        ({"scripts": {"bge": "done"}}, "scripts: 'bge' is no model of this emulator"),
        ({"scripts": {M3: None}}, "script: None is not a text"),
        ({"assumptions": "none"}, "assumptions: give a JSON object"),
        (
            {"assumptions": {"batch.submit": "x"}},
            "assumptions: 'batch.submit' is no open fact; those are poll.unknown, ",
        ),
        (
            {"assumptions": {"done.order": "random"}},
            "assumptions: done.order is one of shuffled, request, not 'random'",
        ),
        ({"assumptions": {"submit.status": 202}}, "assumptions: submit.status is one of 200, 202, not 202"),
        (
            {"assumptions": {"done.order": ["request"]}},
            "assumptions: done.order is one of shuffled, request, not ['request']",
        ),
        ({"limits": 5}, "limits: give a JSON object"),
        ({"limits": {"bytes": 5}}, "limits: there is no 'bytes'; there are payload_bytes, body_bytes"),
        (
            {"limits": {"body_bytes": 0}},
            "limits: body_bytes is a number from 1 on, none (null in JSON) or documented, not 0",
        ),
        (
            {"limits": {"body_bytes": True}},
            "limits: body_bytes is a number from 1 on, none (null in JSON) or documented, not True",
        ),
        (
            {"limits": {"payload_bytes": "5"}},
            "limits: payload_bytes is a number from 1 on, none (null in JSON) or documented, not '5'",
        ),
        (
            {"limits": {"payload_bytes": 1.5}},
            "limits: payload_bytes is a number from 1 on, none (null in JSON) or documented, not 1.5",
        ),
        ({"worker_binding": 1}, "worker_binding: give true or false"),
    ],
    ids=repr,
)
def test_bad_setting_is_refused_in_one_line_that_names_it(said: object, message: str) -> None:
    with pytest.raises(ValueError, match=r"^\w+: ") as refused:
        Settings.parse(said)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)
