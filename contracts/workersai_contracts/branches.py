"""A schema taken apart into plain ones: references followed, conditions decided, one branch for each way.

It knows the part of JSON Schema that the messages are written in, and refuses the rest, so that a keyword that is
new there is noticed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workersai_contracts.catalogue import load_schema

if TYPE_CHECKING:
    from collections.abc import Callable

Schema = Any  # an object of keywords, or true or false
NEVER = False

_URN, _VERSION = "urn:workersai:", ":1"
_SAYS_NOTHING = frozenset({"$schema", "$id", "$comment", "title", "description", "examples", "$defs"})
_CONDITION = ("if", "then", "else")
_HOLDS_ONE = frozenset({"items", "contains", "additionalProperties", "not", *_CONDITION})
_HOLDS_LIST = frozenset({"prefixItems", "allOf"})
_ALONE = frozenset({"type", "const", "pattern"})


def plain_schemas(schema_name: str) -> list[dict[str, Any]]:
    """Plain schemas that together hold for the messages of that name; parts of them may branch again.

    Raises LookupError when there is no such schema, ValueError for what no message has used so far.
    """
    document = load_schema(schema_name)
    return branches(_resolved(document, document))


def branches(schema: Schema) -> list[dict[str, Any]]:
    """The ways to hold to a schema without references, each of them without conditions."""
    if not isinstance(schema, dict):
        return [] if schema is NEVER else [{}]
    if not schema.get("allOf"):
        return [schema]
    first, *rest = schema["allOf"]
    base = {**schema, "allOf": rest}
    return [plain for way in _ways(first) for plain in branches(merged(base, way))]


def merged(one: Schema, other: Schema) -> Schema:
    """The schema of what holds to both; NEVER where it is plain that nothing does."""
    if not isinstance(one, dict):
        return NEVER if one is NEVER else other
    if not isinstance(other, dict):
        return NEVER if other is NEVER else one
    both = dict(one)
    for keyword, demand in other.items():
        if keyword not in both or both[keyword] == demand:
            both[keyword] = demand
        elif keyword in _MERGED:
            both[keyword] = _MERGED[keyword](both[keyword], demand)
        elif keyword == "const":
            return NEVER
        else:
            raise ValueError(f"two demands {keyword!r} meet: {both[keyword]!r} and {demand!r}")
    return NEVER if _is_impossible(both) else both


_MERGED: dict[str, Callable[[Any, Any], Any]] = {
    "properties": lambda one, other: {
        **one,
        **{key: merged(one.get(key, True), other[key]) for key in other},
    },
    "required": lambda one, other: [*one, *(key for key in other if key not in one)],
    "items": merged,
    "additionalProperties": merged,
    "allOf": lambda one, other: [*one, *other],
    "not": lambda one, other: {"enum": [*one["enum"], *other["enum"]]},
    "enum": lambda one, other: [value for value in one if value in other],
    "minItems": max,
    "minLength": max,
    "minimum": max,
    "maxItems": min,
    "maxLength": min,
    "maximum": min,
    "maxProperties": min,
}


def excluded(schema: dict[str, Any]) -> list[Any]:
    """The values that a plain schema says are none of its own."""
    values: list[Any] = schema.get("not", {}).get("enum", [])
    return values


def _is_impossible(schema: dict[str, Any]) -> bool:
    known = schema.get("properties", {})
    if any(known.get(key) is NEVER for key in schema.get("required", [])):
        return True
    if "const" not in schema:
        return False
    value = schema["const"]
    return value not in schema.get("enum", [value]) or value in excluded(schema)


def _ways(part: Schema) -> list[Schema]:
    """The ways to hold to one part of an `allOf`: its condition and what follows, or neither."""
    if not isinstance(part, dict) or "if" not in part:
        return [part]
    condition = part["if"]
    met = merged(condition, part.get("then", True))
    return [met, merged(_negated(condition), part.get("else", True))]


def _negated(condition: Schema) -> Schema:
    """What holds where the condition doesn't; for the two kinds of condition that the messages have."""
    match condition:
        case {"properties": dict(known), **rest} if not rest and len(known) == 1:
            ((key, demand),) = known.items()
            if isinstance(demand, dict) and demand.keys() == {"const"}:
                return {"properties": {key: {"not": {"enum": [demand["const"]]}}}}
        case {"required": [key], **rest} if not rest:
            return {"properties": {key: NEVER}}
    raise ValueError(f"a condition of a new kind: {condition!r}")


def _resolved(schema: Schema, document: Schema) -> Schema:
    """The schema with what it refers to in place, and each condition as a part of its `allOf`."""
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {
        keyword: _inner(keyword, demand, document)
        for keyword, demand in schema.items()
        if keyword not in _SAYS_NOTHING and keyword != "$ref"
    }
    if found.get("not") == {}:
        return NEVER
    if condition := {keyword: found.pop(keyword) for keyword in _CONDITION if keyword in found}:
        found["allOf"] = [*found.get("allOf", []), condition]
    reference = schema.get("$ref")
    return found if reference is None else merged(_target(reference, document), found)


def _inner(keyword: str, demand: Any, document: Schema) -> Any:
    if keyword == "properties":
        return {key: _resolved(part, document) for key, part in demand.items()}
    if keyword in _HOLDS_ONE:
        return _resolved(demand, document)
    if keyword in _HOLDS_LIST:
        return [_resolved(part, document) for part in demand]
    if keyword in _MERGED or keyword in _ALONE:
        return demand
    raise ValueError(f"no message has used the keyword {keyword!r} so far")


def _target(reference: str, document: Schema) -> Schema:
    if reference.startswith("#/$defs/"):
        return _resolved(document["$defs"][reference.removeprefix("#/$defs/")], document)
    other = load_schema(reference.removeprefix(_URN).removesuffix(_VERSION))
    return _resolved(other, other)
