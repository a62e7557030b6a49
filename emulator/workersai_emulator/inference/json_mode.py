"""JSON mode: a placeholder that has the form which the caller asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from workersai_emulator.inference.inputs import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Schemas nested deeper than this end in null.
_DEEPEST: Final = 32


def schema_wanted(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the schema that a reply is to follow, an empty one for any object, None without JSON mode.

    The schema stands bare in `response_format.json_schema`, or inside its `schema` as OpenAI has it.
    """
    wanted = item.get("response_format")
    if not isinstance(wanted, dict) or wanted.get("type") not in ("json_object", "json_schema"):
        return None
    schema = wanted.get("json_schema")
    if isinstance(schema, dict) and isinstance(schema.get("schema"), dict) and "type" not in schema:
        schema = schema["schema"]
    return schema if isinstance(schema, dict) and wanted["type"] == "json_schema" else {}


def object_for(schema: Mapping[str, Any], text: str) -> Any:
    """Return a value of the schema's types whose strings are `text`; for an empty schema an object with it.

    Types, properties, items, const, enum and the first of anyOf, oneOf and allOf are followed, a whole `minimum` is
    kept; lengths, patterns and references are not. Fact: `poll.json-mode`.
    """
    return _value(schema, text, 0) if schema else {"placeholder": text}


def _value(schema: Any, text: str, depth: int) -> Any:
    if depth > _DEEPEST:
        return None
    if not isinstance(schema, dict):
        return text
    if "const" in schema:
        return schema["const"]
    for key in ("enum", "anyOf", "oneOf", "allOf"):
        choices = schema.get(key)
        if isinstance(choices, list) and choices:
            return choices[0] if key == "enum" else _value(choices[0], text, depth + 1)
    return _value_of_type(_type(schema), schema, text, depth)


def _type(schema: Mapping[str, Any]) -> Any:
    declared = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(declared, list):
        return next((one for one in declared if one != "null"), "null")
    return declared


def _value_of_type(kind: Any, schema: Mapping[str, Any], text: str, depth: int) -> Any:
    if kind == "object":
        properties = schema.get("properties")
        members = properties if isinstance(properties, dict) else {}
        return {name: _value(member, text, depth + 1) for name, member in members.items()}
    if kind == "array":
        return [_value(schema.get("items"), text, depth + 1)]
    if kind in ("integer", "number"):
        return whole_number(schema.get("minimum")) or 0
    if kind == "boolean":
        return False
    return None if kind == "null" else text
