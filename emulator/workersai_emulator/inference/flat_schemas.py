"""Flat schemas: JSON Schemas without references and alternatives, put together and read without surprises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from workersai_emulator.json_text import dumps

if TYPE_CHECKING:
    from collections.abc import Callable

Schema = dict[str, Any]
Kind = TypeVar("Kind")

#: What a schema without a type is about, by the members it has.
_TELLING = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties"),
    "array": ("items", "prefixItems", "minItems", "contains", "uniqueItems"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "string": ("pattern", "minLength", "maxLength", "format"),
}
_ALL_TYPES: Final = ("string", "object", "array", "number", "boolean", "null")


def listed(schema: Schema, key: str) -> list[Any]:
    """Return a member that is a list, an empty one for anything else."""
    value = schema.get(key)
    return value if isinstance(value, list) else []


def of_kind(schema: Schema, key: str, kind: type[Kind]) -> Kind | None:
    """Return a member of the given type (2.0 is an int, as JSON Schema has it), None for anything else."""
    value = schema.get(key)
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, kind) and not isinstance(value, bool) else None


def types_of(schema: Schema) -> list[str]:
    """Return the types that a value may have, null last; what the members are about where none is said."""
    declared = schema.get("type")
    if isinstance(declared, str):
        return [declared]
    if isinstance(declared, list):
        return sorted((str(one) for one in declared), key=lambda one: one == "null")
    about = [kind for kind, members in _TELLING.items() if any(key in schema for key in members)]
    return [*about, *(kind for kind in _ALL_TYPES if kind not in about)]


def merged(one: Schema, other: Schema) -> Schema | None:
    """Return a schema that asks for what both do; None where they exclude each other plainly."""
    both = dict(one)
    for key, value in other.items():
        if key not in both:
            both[key] = value
            continue
        joined = _JOINED.get(key, _second)(both[key], value)
        if joined is _EXCLUDED:
            return None
        both[key] = joined
    return both


class _Excluded:
    """The mark for members that no value satisfies together."""


_EXCLUDED: Final = _Excluded()


def _second(_: Any, other: Any) -> Any:
    return other


def _all_of(one: Any, other: Any) -> Any:
    if False in (one, other):
        return False
    return one if one == other else {"allOf": [one, other]}


def _any_of(one: Any, other: Any) -> Any:
    return {"anyOf": [one, other]}


def _members(one: Any, other: Any) -> Any:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return other
    shared = {name: _all_of(one[name], other[name]) for name in one if name in other}
    return {**one, **other, **shared}


def _union(one: Any, other: Any) -> Any:
    return list(dict.fromkeys([*one, *other])) if isinstance(one, list) and isinstance(other, list) else other


def _shared(one: Any, other: Any) -> Any:
    if not isinstance(one, list) or not isinstance(other, list):
        return other
    texts = {dumps(value) for value in other}
    return [value for value in one if dumps(value) in texts] or _EXCLUDED


def _same(one: Any, other: Any) -> Any:
    return one if dumps(one) == dumps(other) else _EXCLUDED


def _types(one: Any, other: Any) -> Any:
    first, second = (part if isinstance(part, list) else [part] for part in (one, other))
    kept = [kind for kind in first if kind in second or (kind == "integer" and "number" in second)]
    kept += [kind for kind in second if kind == "integer" and "number" in first and kind not in kept]
    return kept or _EXCLUDED


def _either(choose: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def chosen(one: Any, other: Any) -> Any:
        numbers = all(isinstance(value, int | float) for value in (one, other))
        return choose(one, other) if numbers else other

    return chosen


_GREATER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
_LESS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")

_JOINED: dict[str, Callable[[Any, Any], Any]] = {
    "properties": _members,
    "patternProperties": _members,
    "required": _union,
    "enum": _shared,
    "const": _same,
    "type": _types,
    "items": _all_of,
    "additionalProperties": _all_of,
    "contains": _all_of,
    "not": _any_of,
    **dict.fromkeys(_GREATER, _either(max)),
    **dict.fromkeys(_LESS, _either(min)),
}
