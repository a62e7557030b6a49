from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from workersai_emulator.inference.json_mode import object_for, schema_wanted

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
        ({"type": "json_schema", "json_schema": COMPANIES}, COMPANIES),
        ({"type": "json_schema", "json_schema": {"name": "companies", "schema": COMPANIES}}, COMPANIES),
        ({"type": "json_schema", "json_schema": 5}, {}),
        ({"type": "json_schema"}, {}),
        ({"type": "text"}, None),
        ("json_object", None),
        (None, None),
    ],
    ids=["any object", "bare", "named", "no schema", "missing", "text", "a string", "none"],
)
def test_json_mode_is_what_response_format_says(response_format: Any, schema: Any) -> None:
    assert schema_wanted({"response_format": response_format}) == schema


def test_without_a_schema_the_placeholder_is_in_an_object() -> None:
    assert object_for({}, "text") == {"placeholder": "text"}


def test_a_bottomless_schema_ends_in_null() -> None:
    endless: dict[str, Any] = {"type": "array"}
    endless["items"] = endless
    value = object_for(endless, "text")
    for _ in range(33):
        [value] = value
    assert value is None
