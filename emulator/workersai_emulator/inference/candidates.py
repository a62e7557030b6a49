"""Values that a JSON Schema may let through, the plainest first.

No library on PyPI does this without a random generator of its own, its time and its weight. Here a schema is
first made flat (references, allOf, one arm of anyOf and oneOf), then each type has its own series of values.
Whoever asks checks the values; what this leaves out costs only tries.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from workersai_emulator.inference.flat_schemas import listed, merged, of_kind, types_of
from workersai_emulator.inference.plain_values import numbers, strings
from workersai_emulator.json_text import dumps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jsonschema.protocols import Validator

    from workersai_emulator.inference.bounded import Bounds

Seen = tuple[str, ...]
Schema = dict[str, Any]

#: One series goes no further than this, nor all of them together.
_SERIES: Final = 24
_MOST_STEPS: Final = 50_000
_DEEPEST: Final = 48
_MOST_MEMBERS: Final = 10_000
#: So much of a value counts as one more step, so that none grows beyond some megabytes.
_BYTES_A_STEP: Final = 100

#: Members of a schema that say how others come together.
_COMBINING = ("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "then", "else")
#: Where one of these is, a candidate is checked at once, so that the parts of a value are right before the whole.
_CHECKED = frozenset(
    "oneOf not if contains pattern uniqueItems multipleOf allOf dependentRequired dependentSchemas".split()
)


class Candidates:
    """The series of values for the parts of one schema.

    A reference may occur on a path through the schema so many times, `repeats`: a value needs no more than
    one unless its parts are tangled.
    """

    def __init__(self, schema: Schema, validator: Validator, text: str, repeats: int, bounds: Bounds) -> None:
        from referencing import Registry, Resource
        from referencing.jsonschema import DRAFT202012

        self._validator = validator
        self._text = text
        self._repeats = repeats
        self._bounds = bounds
        self._steps = 0
        root: Resource[Any] = Resource.from_contents(schema, default_specification=DRAFT202012)
        self._resolver = Registry().with_resource("", root).resolver()

    def values(self, schema: Any, seen: Seen = (), depth: int = 0) -> Iterator[Any]:
        """Yield values for a schema; none when it has none, or when enough has been tried."""
        checked = isinstance(schema, dict) and not _CHECKED.isdisjoint(schema)
        for flat, inner in self._flat(schema, seen):
            if depth > _DEEPEST or not self._goes_on():
                return
            for value in islice(self._of_flat(flat, inner, depth), _SERIES):
                if self._steps > _MOST_STEPS:
                    return
                if not checked or self._valid(schema, value):
                    yield value

    def _goes_on(self) -> bool:
        self._steps += 1
        return self._steps <= _MOST_STEPS

    def _valid(self, schema: Any, value: Any) -> bool:
        self._steps += 1
        return bool(self._validator.evolve(schema=schema).is_valid(value))

    def _flat(self, schema: Any, seen: Seen) -> Iterator[tuple[Schema, Seen]]:
        """Yield schemas without combining members, each one way to satisfy this one."""
        if not isinstance(schema, dict):
            if schema is not False:
                yield {}, seen
            return
        own = {key: part for key, part in schema.items() if key not in _COMBINING}
        choices: list[list[Any]] = []
        for key in ("$ref", "$dynamicRef"):
            if isinstance(schema.get(key), str):
                if seen.count(schema[key]) >= self._repeats:
                    return
                seen = (*seen, schema[key])
                choices.append([self._resolver.lookup(schema[key]).contents])
        choices += [[part] for part in listed(schema, "allOf")]
        choices += [listed(schema, key) for key in ("anyOf", "oneOf") if listed(schema, key)]
        if "if" in schema:
            choices.append([{"allOf": [schema["if"], schema.get("then", True)]}, schema.get("else", True)])
        yield from self._combined(own, choices, seen)

    def _combined(
        self, own: Schema, choices: Sequence[list[Any]], seen: Seen
    ) -> Iterator[tuple[Schema, Seen]]:
        if not choices:
            yield own, seen
            return
        for arm in choices[0]:
            if not self._goes_on():
                return
            for flat, inner in self._flat(arm, seen):
                self._bounds.spend(_size(flat) // 20)
                both = merged(own, flat)
                if both is not None:
                    yield from self._combined(both, choices[1:], inner)

    def _of_flat(self, flat: Schema, seen: Seen, depth: int) -> Iterator[Any]:
        fixed = [flat["const"]] if "const" in flat else listed(flat, "enum")
        if fixed or "enum" in flat:
            yield from (value for value in fixed if self._valid(flat, value))
            return
        for kind in types_of(flat):
            if kind == "object":
                yield from self._objects(flat, seen, depth)
            elif kind == "array":
                yield from self._arrays(flat, seen, depth)
            elif kind in ("integer", "number"):
                yield from numbers(flat, whole=kind == "integer")
            elif kind == "boolean":
                yield from (False, True)
            elif kind == "null":
                yield None
            elif kind == "string":
                for value in strings(flat, self._text, self._bounds):
                    self._steps += len(value) // _BYTES_A_STEP
                    yield value

    def _objects(self, flat: Schema, seen: Seen, depth: int) -> Iterator[dict[str, Any]]:
        """Yield an object with all properties, one with those required, then others that differ in one."""
        needed = [name for name in listed(flat, "required") if isinstance(name, str)]
        known = of_kind(flat, "properties", dict) or {}
        names = dict.fromkeys([*known, *needed])
        most = of_kind(flat, "maxProperties", int)
        series: dict[str, Iterator[Any]] = {}
        whole: dict[str, Any] = {}
        for name in names:
            values = self.values(self._member(flat, name), seen, depth + 1)
            first = next(values, _NONE)
            if first is not _NONE:
                series[name], whole[name] = values, first
            elif name in needed:
                return
        for extra in range(1, (of_kind(flat, "minProperties", int) or 0) - len(whole) + 1):
            name = f"placeholder_{extra}"
            value = next(self.values(self._member(flat, name), seen, depth + 1), _NONE)
            if value is _NONE or extra > _MOST_MEMBERS or not self._goes_on():
                break
            whole[name] = value
        bare = {name: whole[name] for name in whole if name in needed}
        if most is not None and len(whole) > most:
            spare = [name for name in whole if name not in needed][: max(0, most - len(bare))]
            whole = {name: value for name, value in whole.items() if name in needed or name in spare}
        yield whole
        if len(bare) < len(whole):
            yield bare
        for name, values in series.items():
            if name in whole:
                yield from ({**whole, name: other} for other in values)

    def _member(self, flat: Schema, name: str) -> Any:
        """Return the schema of one member: its property's, that of patterns that fit, or the one for others."""
        known = of_kind(flat, "properties", dict) or {}
        patterns = of_kind(flat, "patternProperties", dict) or {}
        found = [known[name]] if name in known else []
        found += [part for pattern, part in patterns.items() if self._bounds.search(pattern, name)]
        if not found:
            found = [flat.get("additionalProperties", True)]
        return found[0] if len(found) == 1 else {"allOf": found}

    def _arrays(self, flat: Schema, seen: Seen, depth: int) -> Iterator[list[Any]]:
        """Yield an array of one member, or as many as there must be, then an empty one, then others."""
        first = listed(flat, "prefixItems")
        rest = flat.get("items", True)
        if isinstance(rest, list):
            first, rest = rest, flat.get("additionalItems", True)
        inside = flat.get("contains", _NONE)
        if inside is not _NONE:
            rest = {"allOf": [inside, rest]}
        fewest = of_kind(flat, "minItems", int) or 0
        if inside is not _NONE:
            fewest = max(fewest, len(first) + (of_kind(flat, "minContains", int) or 1))
        most = of_kind(flat, "maxItems", int)
        if fewest > _MOST_MEMBERS:
            return
        length = min(max(fewest, len(first), 1), _MOST_MEMBERS if most is None else most)
        series = [self.values(part, seen, depth + 1) for part in first[:length]]
        others = self.values(rest, seen, depth + 1)
        made = self._members(series, others, length, distinct=flat.get("uniqueItems") is True)
        if len(made) >= fewest:
            yield made
        if made and not fewest:
            yield []
        for other in others if len(made) > len(first) else ():
            yield [*made[:-1], other]

    def _members(
        self, series: Sequence[Iterator[Any]], others: Iterator[Any], length: int, *, distinct: bool
    ) -> list[Any]:
        """Take so many values, fewer if there are no more; all different where they must be."""
        made: list[Any] = []
        taken: set[bytes] = set()
        while len(made) < length and self._goes_on():
            own = series[len(made)] if len(made) < len(series) else others
            value = next(own, _NONE)
            while distinct and value is not _NONE and _key(value) in taken:
                value = next(own, _NONE)
            if value is _NONE:
                break
            made.append(value)
            if distinct:
                taken.add(_key(value))
            elif own is others:
                again = length - len(made)
                self._steps += again * len(_key(value)) // _BYTES_A_STEP
                made += [value] * again
        return made


class _Nothing:
    """The mark for no value; every JSON value is one."""


_NONE: Final[Any] = _Nothing()


def _size(flat: Schema) -> int:
    """Return how many parts a schema has that are put together with another's."""
    return sum(len(part) for part in flat.values() if isinstance(part, dict | list))


def _key(value: Any) -> bytes:
    """Return a text that two values share if JSON Schema has them equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return dumps(value)
