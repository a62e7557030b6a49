"""Generated messages against the schemas, both ways."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from workersai_contracts import branches as branching
from workersai_contracts import mismatches, schema_names
from workersai_contracts.branches import branches, merged
from workersai_contracts.strategies import nearly_valid, valid

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import SearchStrategy

some = settings(max_examples=settings.default.max_examples // 4, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("name", schema_names())
@given(data=st.data())
@some
def test_valid_messages_hold(name: str, data: st.DataObject) -> None:
    message = data.draw(valid(name))
    assert mismatches(message, name) == []
    assert json.loads(json.dumps(message)) == message


@pytest.mark.parametrize("name", schema_names())
@given(data=st.data())
@some
def test_nearly_valid_messages_do_not(name: str, data: st.DataObject) -> None:
    message = data.draw(nearly_valid(name))
    assert mismatches(message, name) != []
    json.dumps(message, allow_nan=False)


WAYS: dict[str, list[Callable[[Any], Any]]] = {
    "batch/poll.pending": [lambda m: m["result"]["status"] == "running"],
    "batch/poll.done": [
        lambda m: m["result"]["responses"] == [],
        lambda m: {item["success"] for item in m["result"]["responses"]} == {True, False},
        lambda m: [item["id"] for item in m["result"]["responses"]] == [2, 0, 1],
    ],
    "batch/poll.item": [lambda m: m["external_reference"] not in (None, "")],
    "envelope/edge-error": [lambda m: len(m["errors"]) == 2],
    "run/embedding.reply": [lambda m: "response" in m["result"], lambda m: len(m["result"]["data"]) == 2],
    "run/output.reply": [lambda m: len({item["type"] for item in m["result"]["output"]}) == 2],
    "run/response.reply": [lambda m: isinstance(m["result"]["response"], dict)],
    "worker/submit.reply": [lambda m: m["mode"] == "demo", lambda m: m["mode"] == "live"],
    "worker/poll.reply": [
        lambda m: m["mode"] == "demo" and m["responses"],
        lambda m: m["mode"] == "live" and m["responses"],
        lambda m: m["status"] == "running",
    ],
    "worker/error.reply": [lambda m: m["code"] == "BATCH_ERROR", lambda m: m["code"] == "INVALID_BODY"],
}
DEPARTURES: dict[str, list[Callable[[Any], Any]]] = {
    "batch/submit.reply": [
        lambda m: "request_id" not in m["result"],
        lambda m: m["success"] is False,
        lambda m: m["result"] is None,
    ],
    "batch/poll.pending": [lambda m: m["result"]["status"] not in ("queued", "running")],
    "batch/poll.done": [
        lambda m: m["result"].keys() > {"responses", "usage"},
        lambda m: "id" not in m["result"]["responses"][0],
        lambda m: not isinstance(m["result"]["usage"]["total_tokens"], int),
    ],
    "run/embedding.reply": [lambda m: not isinstance(m["result"]["data"][0][0], int | float)],
}


@pytest.mark.parametrize(("name", "ways"), WAYS.items(), ids=WAYS)
def test_every_way_to_hold_is_taken(name: str, ways: list[Any]) -> None:
    assert [number for number, way in enumerate(ways) if not _seen(valid(name), way)] == []


@pytest.mark.parametrize(("name", "ways"), DEPARTURES.items(), ids=DEPARTURES)
def test_departures_are_found_at_every_depth(name: str, ways: list[Any]) -> None:
    assert [number for number, way in enumerate(ways) if not _seen(nearly_valid(name), way)] == []


def _seen(messages: SearchStrategy[Any], wanted: Callable[[Any], Any]) -> bool:
    """Whether some of the messages are what is wanted: looked for long, since what Hypothesis draws depends on
    which modules are loaded, and ended by the first.
    """
    seen: list[bool] = []

    @settings(
        max_examples=5000, phases=[Phase.generate], database=None, suppress_health_check=list(HealthCheck)
    )
    @given(messages)
    def look(message: Any) -> None:
        with suppress(AttributeError, IndexError, KeyError, TypeError):
            if wanted(message):
                seen.append(True)
        if seen:
            raise StopIteration

    with suppress(StopIteration):
        look()
    return bool(seen)


@pytest.mark.parametrize("make", [valid, nearly_valid])
def test_an_unknown_schema_is_refused(make: Any) -> None:
    with pytest.raises(LookupError, match="no schema 'batch/polled'"):
        make("batch/polled")


def test_branches_of_a_condition_are_both_ways() -> None:
    condition = {"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}}
    assert branches({"type": "object", "allOf": [condition]}) == [
        {"type": "object", "allOf": [], "required": ["a", "b"]},
        {"type": "object", "allOf": [], "properties": {"a": False}, "required": ["c"]},
    ]


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (True, {"const": 1}, {"const": 1}),
        (False, {"const": 1}, False),
        ({"const": 1}, {"const": 2}, False),
        ({"const": 1}, {"not": {"enum": [1]}}, False),
        ({"enum": [1, 2]}, {"const": 3}, False),
        ({"enum": [1, 2]}, {"enum": [2, 3]}, {"enum": [2]}),
        ({"required": ["a"]}, {"properties": {"a": False}}, False),
        ({"minItems": 1, "maxItems": 9}, {"minItems": 2, "maxItems": 3}, {"minItems": 2, "maxItems": 3}),
    ],
)
def test_two_schemas_are_merged_into_what_holds_to_both(one: Any, other: Any, both: Any) -> None:
    assert merged(one, other) == both


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ({"oneOf": []}, "no message has used the keyword 'oneOf' so far"),
        ({"if": {"minItems": 1}, "then": False}, "a condition of a new kind"),
        ({"allOf": [{"pattern": "a"}], "pattern": "b"}, "two demands 'pattern' meet"),
    ],
)
def test_what_no_message_uses_is_refused(
    schema: Any, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branching, "load_schema", lambda _: schema)
    with pytest.raises(ValueError, match=complaint):
        branching.plain_schemas("new")
