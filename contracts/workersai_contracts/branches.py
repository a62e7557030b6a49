"""A schema taken apart into plain ones: references followed, conditions decided, one branch for each way.

It knows the part of JSON Schema that the messages are written in, and refuses the rest, so that a keyword that is
new there is noticed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workersai_contracts.catalogue import load_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

Schema = Any  # an object of keywords, or true or false
NEVER = False

_SAYS_NOTHING = frozenset({"$schema", "$id", "$comment", "title", "description", "examples", "$defs"})
_PLAIN = frozenset(
    "type const enum properties required additionalProperties items prefixItems minItems maxItems minLength "
    "maxLength pattern minimum maximum maxProperties contains not".split()
)
_DECIDED = frozenset({"$ref", "if", "then", "else", "allOf"})
_URN, _VERSION = "urn:workersai:", ":1"


def branches(schema: Schema) -> list[dict[str, Any]]:
    """Plain schemas that together hold for what the schema holds for, and for nothing else.

    Raises ValueError for a keyword, or a condition, that the messages have not used so far.
    """
    return list(_branches(_resolved(schema)))


def merged(one: Schema, other: Schema) -> Schema:
    """The schema of what holds to both."""
    if NEVER in (one, other) and not isinstance(one, dict | type(None)) | isinstance(other, dict):
        return NEVER
    if one is True or other is True:
        return other if one is True else one
    if one is NEVER or other is NEVER:
        return NEVER
    both = dict(one)
    for keyword, demand in other.items():
        both[keyword] = _both(keyword, both[keyword], demand) if keyword in both else demand
    return both
