"""Schemas within bounds: what is plain is followed as before, what is too much is given up, at the same place."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema.validators import Draft4Validator, Draft7Validator, Draft202012Validator

from workersai_emulator.clock import stopwatch
from workersai_emulator.inference.bounded import Bounds, TooMuch, bounded, bounded_dialect
from workersai_emulator.inference.json_mode import CannotMeet, value_for

PATTERNS = {
    r"^[a-z0-9]+(?:-[a-z0-9]+)*$": "a slug",
    r"^[\w.+-]+@[\w-]+\.[\w.-]+$": "an address",
    r"^(?=.*[A-Z])(?=.*\d).{8,}$": "a password",
    r"^#(?:[0-9a-f]{3}){1,2}$": "a colour",
    r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$": "a time",
    r"^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$": "a uuid",
    r"^(\w)\1$": "a letter twice",
}


@pytest.mark.parametrize("pattern", [*PATTERNS], ids=[*PATTERNS.values()])
def test_patterns_as_people_write_them_are_searched_as_python_does(pattern: str) -> None:
    bounds = Bounds()
    texts = [
        "a-b",
        "a@b.c",
        "Passw0rd",
        "#abc",
        "2025-01-01T00:00:00Z",
        f"{'0' * 8}-0000-0000-0000-{'0' * 12}",
        "aa",
        "",
    ]
    for text in texts:
        assert bounds.search(pattern, text) == (re.search(pattern, text) is not None)


@given(
    text=st.text("ab01-_ \n", max_size=30),
    pattern=st.sampled_from([*PATTERNS, "^$", "a|b", "[^a]+", r"\s", "(?i)A"]),
)
def test_any_text_is_searched_as_python_does(text: str, pattern: str) -> None:
    assert Bounds().search(pattern, text) == (re.search(pattern, text) is not None)


@pytest.mark.parametrize("pattern", ["(", "[", "*", "(?P<a", r"\p{L}"])
def test_what_is_no_pattern_to_python_is_none(pattern: str) -> None:
    with pytest.raises(re.error):
        Bounds().search(pattern, "a")


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        ("a" * 1_001, "too long"),
        ("(a{1000}){1000}", "repeats too often"),
        ("(?:(?:a?){1000}){1000}", "repeats too often"),
    ],
)
def test_patterns_that_grow_are_not_even_compiled(pattern: str, complaint: str) -> None:
    with pytest.raises(TooMuch, match=complaint):
        Bounds().search(pattern, "a")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("^(a|a)+$", "a" * 40 + "!"), (r"^(.*?,){20}P", "1," * 30), (r"\s+\s+\s+\s+$", " " * 3_000 + "x")],
)
def test_a_search_that_goes_back_and_forth_ends(pattern: str, text: str) -> None:
    began = stopwatch()

    with pytest.raises(TooMuch, match="takes too long"):
        Bounds().search(pattern, text)

    assert stopwatch() - began < 5


def test_patterns_of_one_schema_share_their_time() -> None:
    bounds = Bounds()
    with pytest.raises(TooMuch, match="takes too long"):
        bounds.search("^(a|a)+$", "a" * 40 + "!")

    with pytest.raises(TooMuch, match="takes too long"):
        bounds.search("^(b|b)+$", "b" * 40 + "!")


CASES: list[tuple[dict[str, Any], list[Any]]] = [
    ({"pattern": "^a"}, ["a", "b", 1]),
    ({"patternProperties": {"^a": {"type": "integer"}}}, [{"a": 1}, {"a": "x"}, {"b": "x"}, []]),
    ({"patternProperties": {"^a": {}}, "additionalProperties": False}, [{"a": 1}, {"b": 1}, {}]),
    ({"properties": {"b": {}}, "additionalProperties": {"type": "null"}}, [{"b": 1}, {"c": 1}, {"c": None}]),
    ({"additionalProperties": True}, [{"a": 1}]),
    ({"uniqueItems": True}, [[1, 1.0], [1, True], [[1], [1]], [{}, {}], [1, 2]]),
    ({"propertyNames": {"pattern": "^a"}}, [{"a": 1}, {"b": 1}]),
    (
        {"type": "object", "properties": {"a": {"enum": [1, "x"]}}, "required": ["a"]},
        [{"a": 1}, {"a": 2}, {}],
    ),
    ({"allOf": [{"minimum": 1}], "not": {"const": 3}}, [0, 1, 3]),
]


@pytest.mark.parametrize(
    "dialect", [Draft4Validator, Draft7Validator, Draft202012Validator], ids=lambda one: one.__name__
)
@pytest.mark.parametrize(("schema", "values"), CASES, ids=[str(number) for number in range(len(CASES))])
def test_the_counting_validator_judges_as_the_library_does(
    dialect: Any, schema: dict[str, Any], values: list[Any]
) -> None:
    with bounded(Bounds()):
        judged = [bounded_dialect(dialect)(schema).is_valid(value) for value in values]

    assert judged == [dialect(schema).is_valid(value) for value in values]


def test_what_is_counted_ends_at_the_same_step_each_time() -> None:
    def steps() -> int:
        validator, bounds = bounded_dialect(Draft202012Validator)({"items": {"type": "integer"}}), Bounds()
        with bounded(bounds):
            for number in range(1_000_000):
                try:
                    validator.is_valid(list(range(100)))
                except TooMuch:
                    return number
        return -1

    assert steps() == steps() > 10


def test_schemas_that_share_their_bounds_come_to_an_end_together() -> None:
    bounds = Bounds()
    schema = {"type": "array", "items": {"type": "integer"}, "minItems": 1_000, "maxItems": 1_000}

    def met() -> bool:
        try:
            return len(value_for(schema, "a", bounds)) == 1_000
        except CannotMeet:
            return False

    assert met()
    assert not all(met() for _ in range(1_000))
    assert not met()


def test_a_schema_of_a_size_that_people_write_is_met() -> None:
    member = {
        "type": "string",
        "minLength": 1,
        "description": "some words about what it is and what it is for",
    }
    schema = {
        "type": "object",
        "properties": {f"member_{n}": member for n in range(300)},
        "required": ["member_7"],
    }

    assert len(value_for(schema, "a")) == 300
