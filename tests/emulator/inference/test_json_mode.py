from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workersai_emulator.inference.json_mode import CannotMeet, object_for, schema_wanted, value_for

COMPANIES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "companies": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "founded": {"type": "integer", "minimum": 1900},
                    "listed": {"type": "boolean"},
                    "size": {"enum": ["small", "large"]},
                    "parent": {"type": ["null", "string"]},
                    "share": {"anyOf": [{"type": "number"}, {"type": "null"}]},
                    "kind": {"const": "company"},
                    "ended": {"type": "null"},
                },
                "required": ["name", "founded", "listed", "size", "parent", "share", "kind", "ended"],
            },
        }
    },
    "required": ["companies"],
}


def test_the_placeholder_follows_the_schema() -> None:
    value = object_for(COMPANIES, "text")
    jsonschema.validate(value, COMPANIES)
    assert value["companies"][0] == {
        "name": "text",
        "founded": 1900,
        "listed": False,
        "size": "small",
        "parent": "text",
        "share": 0,
        "kind": "company",
        "ended": None,
    }


@pytest.mark.parametrize(
    ("response_format", "schema"),
    [
        ({"type": "json_object"}, {}),
        ({"type": "json_object", "json_schema": COMPANIES}, {}),
        ({"type": "json_schema", "json_schema": COMPANIES}, COMPANIES),
        ({"type": "json_schema", "json_schema": {"name": "companies", "schema": COMPANIES}}, COMPANIES),
        ({"type": "json_schema", "json_schema": 5}, {}),
        ({"type": "json_schema"}, {}),
        ({"type": "text"}, None),
        ("json_object", None),
        (None, None),
    ],
    ids=["any object", "object", "bare", "named", "no schema", "missing", "text", "a string", "none"],
)
def test_json_mode_is_what_response_format_says(response_format: Any, schema: Any) -> None:
    assert schema_wanted({"response_format": response_format}) == schema


def test_the_responses_form_says_it_in_text() -> None:
    form = {"type": "json_schema", "name": "companies", "schema": COMPANIES}
    assert schema_wanted({"text": {"format": form}}) == COMPANIES
    assert schema_wanted({"text": {"format": {"type": "text"}}}) is None


def test_without_a_schema_the_placeholder_is_in_an_object() -> None:
    assert object_for({}, "text") == {"placeholder": "text"}


NODE = {
    "$ref": "#/$defs/Node",
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            },
            "required": ["name", "next", "children"],
        }
    },
}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (NODE, {"name": "some text", "next": None, "children": []}),
        ({"type": "string", "maxLength": 4}, "some"),
        ({"type": "string", "minLength": 15}, "some text place"),
        ({"type": "string", "pattern": "^[a-z]+$"}, "placeholder"),
        ({"type": "string", "pattern": r"^\d{3}-\d{4}$"}, "000-0000"),
        ({"type": "string", "pattern": "^(red|green)$"}, "red"),
        ({"type": "string", "pattern": "^[a-c]*$", "minLength": 3, "maxLength": 6}, "aaaa"),
        ({"type": "string", "format": "email"}, "placeholder1@example.com"),
        ({"type": "string", "format": "date-time"}, "2025-01-01T00:00:01Z"),
        ({"type": "string", "format": "uuid"}, "00000000-0000-4000-8000-000000000001"),
        ({"type": "string", "format": "odd"}, "some text"),
        ({"type": "integer", "exclusiveMinimum": 3}, 4),
        ({"type": "integer", "maximum": -3}, -3),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
        ({"type": "number", "minimum": 0.25, "maximum": 0.75}, 0.25),
        ({"type": "number", "exclusiveMinimum": 0.5}, 1),
        ({"type": "integer", "minimum": 10, "multipleOf": 7}, 14),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [0, 0]),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 3, "uniqueItems": True}, [0, 1, 2]),
        ({"type": "array", "items": {"type": "string"}, "minItems": 2, "uniqueItems": True},
         ["some text", "some text 2"]),
        ({"type": "array", "maxItems": 0}, []),
        ({"type": "array", "prefixItems": [{"const": 1}, {"const": "b"}], "items": False}, [1, "b"]),
        ({"type": "array", "items": {"type": "integer"}, "contains": {"minimum": 5}}, [5]),
        ({"type": "object", "required": ["a"], "additionalProperties": {"type": "integer"}}, {"a": 0}),
        ({"type": "object", "minProperties": 2}, {"placeholder_1": "some text", "placeholder_2": "some text"}),
        ({"type": "object", "properties": {"a": False, "b": {"const": 1}}}, {"b": 1}),
        ({"allOf": [{"type": "integer"}, {"minimum": 5}, {"multipleOf": 4}]}, 8),
        ({"allOf": [{"properties": {"a": {"type": "integer"}}},
                    {"required": ["a"], "properties": {"a": {"minimum": 2}}}]},
         {"a": 2}),
        ({"oneOf": [{"type": "integer"}, {"type": "integer", "minimum": 0}]}, -1),
        ({"type": "integer", "not": {"const": 0}}, 1),
        ({"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"required": ["b"]},
          "type": "object"}, {"a": 1, "b": "some text"}),
        ({"enum": [1, 2], "minimum": 2}, 2),
        ({"type": ["null", "boolean"]}, False),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [{"const": 1}]}, [1]),
        ({"$ref": "#named", "$defs": {"x": {"$anchor": "named", "const": 3}}}, 3),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_a_value_is_the_plainest_that_the_schema_lets_through(schema: dict[str, Any], value: Any) -> None:
    jsonschema.validate(value, schema)
    assert value_for(schema, "some text") == value


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "odd"},
        {"type": "string", "minLength": "x"},
        {"type": "string", "pattern": "("},
        {"type": "string", "minLength": 2, "maxLength": 1},
        {"type": "string", "minLength": 10_000_000},
        {"type": "string", "pattern": "^a{60000}{60000}$"},
        {"type": "integer", "minimum": 2, "maximum": 1},
        {"type": "integer", "enum": []},
        {"enum": ["a"], "type": "integer"},
        {"allOf": [{"type": "integer"}, {"type": "string"}]},
        {"allOf": [{"const": 1}, {"const": 2}]},
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        {"type": "object", "properties": {}, "required": ["a"], "additionalProperties": False},
        {"type": "array", "items": {"type": "boolean"}, "minItems": 3, "uniqueItems": True},
        {"type": "array", "items": {"type": "integer"}, "minItems": 1_000_000_000, "maxItems": 1_000_000_000},
        {"type": "array", "minItems": 9999, "items": {"type": "array", "minItems": 9999, "items": {"minItems": 99}}},
        {"type": "array", "minItems": 9999, "items": {"type": "string", "minLength": 99_999}},
        {"$ref": "#/$defs/missing"},
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "#"},
        {"not": {}},
        {"$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"]}},
         "$ref": "#/$defs/a"},
    ],
    ids=lambda schema: str(schema)[:70],
)  # fmt: skip
def test_what_no_value_satisfies_is_said(schema: dict[str, Any]) -> None:
    with pytest.raises(CannotMeet):
        value_for(schema, "text")


def test_a_schema_nested_beyond_reason_is_not_met() -> None:
    deep: dict[str, Any] = {"type": "integer"}
    for _ in range(3000):
        deep = {"type": "array", "items": deep}
    with pytest.raises(CannotMeet):
        value_for(deep, "text")


NAMES = st.text("abcdef_", min_size=1, max_size=6)


def strings() -> st.SearchStrategy[dict[str, Any]]:
    lengths = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(
        lambda pair: {"minLength": min(pair), "maxLength": max(pair)}
    )
    patterns = ["^[A-Z]{2}[0-9]{3}$", "^(a|bc)+$", r"^\w+@\w+\.com$", "x", "^[^a-z]+$", r"^\d{4}-\d{2}$"]
    return st.one_of(
        st.just({"type": "string"}),
        lengths.map(lambda bounds: {"type": "string", **bounds}),
        st.sampled_from(patterns).map(lambda pattern: {"type": "string", "pattern": pattern}),
        st.sampled_from(["email", "date", "uri", "uuid"]).map(
            lambda form: {"type": "string", "format": form}
        ),
    )


def numbers() -> st.SearchStrategy[dict[str, Any]]:
    whole = st.builds(
        lambda low, span, step: {"type": "integer", "minimum": low, "maximum": low + span + step, "multipleOf": step},
        st.integers(-1000, 1000), st.integers(0, 50), st.integers(1, 9),
    )  # fmt: skip
    real = st.builds(
        lambda low, span: {"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": low + span},
        st.integers(-1000, 1000), st.sampled_from([0.5, 1, 7]),
    )  # fmt: skip
    return whole | real


def scalars() -> st.SearchStrategy[dict[str, Any]]:
    choices = st.lists(
        st.integers() | st.text(max_size=4) | st.none(), min_size=1, max_size=4, unique_by=repr
    )
    return st.one_of(
        strings(),
        numbers(),
        st.just({"type": "boolean"}),
        st.just({"$ref": "#/$defs/Tree"}),
        choices.map(lambda values: {"enum": values}),
        choices.map(lambda values: {"const": values[0]}),
    )


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    properties = draw(st.dictionaries(NAMES, inner, max_size=4))
    needed = [name for name in properties if draw(st.booleans())]
    return {
        "type": "object",
        "properties": properties,
        "required": needed,
        "additionalProperties": draw(st.booleans()),
    }


def nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    arrays = st.builds(
        lambda items, fewest, more: {"type": "array", "items": items, "minItems": fewest, "maxItems": fewest + more},
        inner, st.integers(0, 4), st.integers(0, 3),
    )  # fmt: skip
    unique = st.integers(0, 6).map(
        lambda fewest: {
            "type": "array",
            "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}},
            "minItems": fewest,
            "uniqueItems": True,
        }
    )
    optional = inner.map(lambda schema: {"anyOf": [schema, {"type": "null"}]})
    tagged = st.lists(inner, min_size=2, max_size=3).map(
        lambda arms: {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"kind": {"const": number}, "value": arm},
                    "required": ["kind", "value"],
                }
                for number, arm in enumerate(arms)
            ]
        }
    )
    described = inner.map(lambda schema: {"allOf": [schema], "description": "a part", "title": "Part"})
    return objects(inner) | arrays | unique | optional | tagged | described


SCHEMAS = objects(st.recursive(scalars(), nested, max_leaves=12))
TREE = {
    "type": "object",
    "properties": {
        "label": {"type": "string", "minLength": 1},
        "left": {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}]},
        "leaves": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
    },
    "required": ["label", "left"],
    "additionalProperties": False,
}


@given(SCHEMAS, st.text(max_size=40))
def test_the_value_satisfies_any_schema_of_the_kind_that_libraries_write(
    schema: dict[str, Any], text: str
) -> None:
    whole = {**schema, "$defs": {"Tree": TREE}}
    value = value_for(whole, text)
    jsonschema.Draft202012Validator(whole).validate(value)
    assert value == value_for(whole, text)


@pytest.mark.filterwarnings("ignore:Possible:FutureWarning")  # which re has for some of these
@given(st.text("abc[](){}|*+?^$.\\dws019,-", max_size=12))
def test_any_pattern_is_met_or_refused(pattern: str) -> None:
    try:
        value = value_for({"type": "string", "pattern": pattern}, "text")
    except CannotMeet:
        return
    assert re.search(pattern, value)


def test_a_value_is_the_same_whatever_the_order_of_sets() -> None:
    program = (
        "from workersai_emulator.inference.json_mode import value_for\n"
        "print([value_for({'type': 'string', 'pattern': it}, 't') for it in ('[^a-z]{3}', '^.[^0]x$', '^\\\\W')])"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    ]
    assert printed[0].startswith("['")
    assert printed == printed[:1] * 3
