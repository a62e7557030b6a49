"""Whether an input is what a model takes, with the verdict and the words of the service's own validator.

An input schema is compiled once, to the nodes of `schema_walk`; validating is a walk through them, which can run in
any thread. Facts: `input.validator`, `input.semantics`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from workersai_emulator.javascript import (
    UNDEFINED,
    NotPrintable,
    double,
    identity,
    inherits,
    length,
    own_keys,
    printed,
)
from workersai_emulator.schema_walk import (
    LONG_TEXT,
    Alternatives,
    Bound,
    Choice,
    Conditions,
    InputRefused,
    Items,
    Look,
    Node,
    Nothing,
    OtherProperties,
    Place,
    Properties,
    PropertyCount,
    Unless,
    Value,
    Walk,
    looks,
)

if TYPE_CHECKING:
    from workersai_contracts import ModelCard

__all__ = ["InputRefused", "Validator", "compile_validator", "validate_input", "validator_for"]

Schema = Mapping[str, Any]
_LOOKS_KEPT: Final = 1_000


@dataclass(slots=True, eq=False)
class Validator:
    """A compiled input schema.

    `by_looks` says that inputs which look alike are judged alike (see `looks`); some looks that
    were found good are kept.
    """

    root: Node
    by_looks: bool
    good_looks: set[Look] = field(default_factory=set, init=False, repr=False)

    def validate(self, inputs: Any) -> None:
        """Return if the inputs, as parsed JSON, are accepted; raise InputRefused otherwise."""
        look = looks(inputs) if self.by_looks else None
        if look in self.good_looks:
            return
        self._walk(inputs)
        if look is not None:
            if len(self.good_looks) >= _LOOKS_KEPT:
                self.good_looks.clear()
            self.good_looks.add(look)

    def _walk(self, inputs: Any) -> None:
        try:
            self.root.check(inputs, "", Walk(inputs, hasty=True))
        except InputRefused:
            self.root.check(inputs, "", Walk(inputs))  # again, for all complaints


def validate_input(card: ModelCard, inputs: Any) -> None:
    """Check a parsed JSON body, or one item of a batch, against what the model takes.

    Raises InputRefused with the validator's message. Facts: `input.validator`, `input.text`.
    """
    validator_for(card).validate(inputs)


#: By the identity of the schema, which cards of one form share, and which has no hash. It is kept, so that nothing else
#: gets its id.
_compiled: Final[dict[int, tuple[Schema, Validator]]] = {}


def validator_for(card: ModelCard) -> Validator:
    """Return the card's validator, compiled on first use."""
    schema = card.input_schema
    if (entry := _compiled.get(id(schema))) is None:
        entry = _compiled.setdefault(id(schema), (schema, compile_validator(schema)))
    return entry[1]


def compile_validator(schema: Schema) -> Validator:
    """Compile a schema as the service's validator reads it: keywords that it ignores are ignored.

    Raises ValueError for a `pattern` that means something else to Python than to JavaScript.
    """
    return Validator(_compile(schema, Place(root=True)), _spares_long_texts(schema))


def _compile(schema: Any, place: Place) -> Node:
    if schema is None:
        return Nothing(place)
    if not isinstance(schema, Mapping):
        return _compile({}, place)  # true and false alike
    node = _alternatives(schema, place) or _conditions(schema, place) or _judged(schema, place)
    if "not" in schema:
        banned = _compile(schema["not"], place)
        return Unless(place, banned, node)
    return node


def _arm(parent: Schema, arm: Any, place: Place) -> Node:
    """Compile a schema that takes its parent's type where it has none, even if the parent has none either."""
    own = arm if isinstance(arm, Mapping) else {}
    return _compile({"type": parent.get("type", UNDEFINED), **own}, place)


def _alternatives(schema: Schema, place: Place) -> Node | None:
    """Where there are alternatives, nothing beside them is looked at, and `anyOf` not beside `oneOf`."""
    word = next((word for word in ("oneOf", "anyOf") if word in schema), None)
    if word is None:
        return None
    within = place._replace(listed=True, carrying=False)
    arms = tuple(_arm(schema, arm, within) for arm in schema[word])
    return Alternatives(
        place, word == "oneOf", arms, silent=not place.root and all(arm.silent for arm in arms)
    )


def _conditions(schema: Schema, place: Place) -> Node | None:
    if "allOf" not in schema:
        return None
    merged: dict[str, Any] = {}
    for condition in schema["allOf"]:
        merged.update(condition if isinstance(condition, Mapping) else {})
    required = _arm(schema, merged, place._replace(carrying=True))
    rest = _judged(schema, place)
    return Conditions(place, required, rest, silent=required.silent and rest.silent)


def _judged(schema: Schema, place: Place) -> Node:
    if schema.get("type") == "object" or _has_properties(schema):
        whole: Node = _properties(schema, place)
    else:
        whole = _value(schema, place)
    if schema.get("type") != "array":
        return whole
    item = _compile(schema.get("items"), place._replace(root=False))
    return Items(
        item, whole, silent=True, by_looks=not place.carrying and _spares_long_texts(schema.get("items"))
    )


def _spares_long_texts(schema: Any) -> bool:
    """Return whether a schema judges all long texts in its values alike."""
    if isinstance(schema, list):
        return all(map(_spares_long_texts, schema))
    if not isinstance(schema, Mapping):
        return True
    if any(word in schema for word in ("pattern", "maxLength", "const", "allOf", "unevaluatedProperties")):
        return False
    shortest = schema.get("minLength")
    if isinstance(shortest, (int, float)) and shortest > LONG_TEXT:
        return False
    if any(isinstance(value, str) and len(value) > LONG_TEXT for value in schema.get("enum", ())):
        return False
    return all(_spares_long_texts(part) for key, part in schema.items() if key != "enum")


def _has_properties(schema: Schema) -> bool:
    """Return whether JavaScript takes the value of `properties` for true."""
    return "properties" in schema and schema["properties"] is not None


def _properties(schema: Schema, place: Place) -> Properties:
    within = place._replace(root=False)
    entries = schema.get("properties") or {}
    nodes = {name: _compile(entries[name], within) for name in own_keys(entries)}
    count = None
    if "minProperties" in schema or "maxProperties" in schema:
        count = PropertyCount(place, schema.get("minProperties"), schema.get("maxProperties"))
    required = tuple(schema.get("required", ()))
    return Properties(
        place,
        tuple((name, node, node.silent and not inherits(name)) for name, node in nodes.items()),
        required,
        count,
        additional=_other_properties(schema, "additionalProperties", place),
        unevaluated=_other_properties(schema, "unevaluatedProperties", place),
        silent=not required and count is None and all(node.silent for node in nodes.values()),
    )


def _other_properties(schema: Schema, keyword: str, place: Place) -> OtherProperties | None:
    if keyword not in schema:
        return None
    other = schema[keyword]
    return OtherProperties(place, None if other is False else _compile(other, Place()))


def _value(schema: Schema, place: Place) -> Value:
    kind = schema.get("type")
    choices = []
    if "const" in schema:
        only = schema["const"]
        choices.append(Choice(frozenset([identity(only)]), "const", f"doesn't match {printed(only)}"))
    if "enum" in schema:
        allowed = schema["enum"]
        choices.append(Choice(frozenset(map(identity, allowed)), "enum", f"not in {printed(allowed)}"))
    return Value(
        place,
        tuple(choices),
        settled=kind is None or kind is UNDEFINED,
        typed="type" in schema,
        type=kind,
        type_printed=printed(kind),
        bounds=tuple(_bounds(schema, kind)),
    )


def _bounds(schema: Schema, kind: object) -> list[Bound]:
    keywords = _BOUNDS.get(kind, {}) if isinstance(kind, str) else {}
    bounds = []
    for keyword, (make, before, after) in keywords.items():
        if keyword in schema:
            limit = schema[keyword]
            bounds.append(Bound(make(double(limit)), before, after.format(printed(limit))))
    if "pattern" in schema:
        bounds.append(Bound(_match_of(schema["pattern"]), "'", f"' failed test {schema['pattern']} patttern"))
    return bounds


def _match_of(pattern: str) -> Callable[[Any], bool]:
    """Test for a match anywhere, as JavaScript does, of whatever the value is printed as."""
    if not _COMMON_PATTERN.fullmatch(pattern):
        raise ValueError(
            f"pattern {pattern!r} may differ between Python and JavaScript; keep to literals, sets, counts"
        )
    # To JavaScript the end is the very end; Python's sign for it also fits before a last line break.
    search = re.compile(rf"{pattern[:-1]}\Z" if pattern.endswith("$") else pattern).search

    def holds(value: Any) -> bool:
        try:
            return search(printed(value)) is not None
        except NotPrintable:
            return False

    return holds


def _no_longer_than(limit: float) -> Callable[[str], bool]:
    return lambda text: length(text) <= limit


def _no_shorter_than(limit: float) -> Callable[[str], bool]:
    # Characters are quicker to count than units, and never more.
    return lambda text: len(text) >= limit or length(text) >= limit


def _multiple_of(limit: float) -> Callable[[float], bool]:
    def holds(number: float) -> bool:
        value = double(number)
        return limit != 0 and math.isfinite(value) and math.fmod(value, limit) == 0

    return holds


#: What the two languages read alike: letters, digits and a few signs, sets of them, and counts of either,
#: between a start and an end.
_COMMON_PATTERN: Final = re.compile(
    r"\^?(?:(?:[\w ,:;/@=-]|\[[\w-]+\])(?:[*+?]|\{\d+(?:,\d*)?\})?)*\$?", re.ASCII
)

#: In the order in which they are looked at: a test of a value, and the complaint before and after the path.
_TEXT_BOUNDS: Final = {
    "maxLength": (_no_longer_than, "Length of '", "' must be <= {}"),
    "minLength": (_no_shorter_than, "Length of '", "' must be >= {} not met"),
}
_NUMBER_BOUNDS: Final = {
    "minimum": (lambda limit: lambda number: double(number) >= limit, "'", "' must be >= {}"),
    "exclusiveMinimum": (lambda limit: lambda number: double(number) > limit, "'", "' must be > {}"),
    "maximum": (lambda limit: lambda number: double(number) <= limit, "'", "' must be <= {}"),
    "exclusiveMaximum": (lambda limit: lambda number: double(number) < limit, "'", "' must be < {}"),
    "multipleOf": (_multiple_of, "'", "' must be multiple of {}"),
}
_BOUNDS: Final[Mapping[str, Mapping[str, tuple[Callable[[float], Callable[[Any], bool]], str, str]]]] = {
    "string": _TEXT_BOUNDS,
    "number": _NUMBER_BOUNDS,
    "integer": _NUMBER_BOUNDS,
}
