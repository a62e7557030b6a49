"""Hypothesis strategies for messages of the contract: those that hold, and those that just don't.

    @given(valid("batch/poll.done"))
    def test_my_code_reads_every_finished_batch(reply): ...

They are built from the schemas themselves, so that a schema that changes changes them. It is the one module of
the contracts that needs Hypothesis.
"""

from __future__ import annotations

import copy
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from hypothesis import reject
from hypothesis import strategies as st

from workersai_contracts.branches import NEVER, Schema, branches, excluded, merged, plain_schemas
from workersai_contracts.mismatch import mismatches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hypothesis.strategies import DrawFn, SearchStrategy

MOST_ITEMS = 3  # more of a list than the schema asks for
LONGEST_TEXT = 60
ATTEMPTS = 20

_TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
_NUMBERS = st.integers(-1000, 1000) | st.floats(-6e4, 6e4, width=16, allow_nan=False, allow_infinity=False)
_SCALARS = st.none() | st.booleans() | _NUMBERS | _TEXTS
_ANY_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXTS, inner, max_size=2),
    max_leaves=4,
)
_OTHERS: tuple[Any, ...] = (None, True, False, -1, 0.5, "", "other", [], ["other"], {}, {"other": 1})
_EXTRA_KEYS = st.sampled_from(["extra", "status", "index", "result_info", "note"])


@cache
def valid(schema_name: str) -> SearchStrategy[Any]:
    """Messages that hold to the schema of that short name, such as `batch/poll.done`.

    Lists are kept short. Items of a finished batch have the ids 0, 1, … once each, in any order, which is the
    one thing that every real message has and no schema can say (Facts: `poll.item`, `poll.order`). Raises
    LookupError when there is no such schema.
    """
    return st.one_of(*map(_of, plain_schemas(schema_name))).map(_numbered)


def nearly_valid(schema_name: str) -> SearchStrategy[Any]:
    """Messages that depart from the schema in one place: a key missing or too many, a wrong type or value.

    `mismatches` of each has at least one entry. Raises LookupError when there is no such schema.
    """
    return _spoiled(valid(schema_name), schema_name)


@st.composite
def _spoiled(draw: DrawFn, messages: SearchStrategy[Any], schema_name: str) -> Any:
    message = draw(messages)
    for _ in range(ATTEMPTS):
        spoiled = copy.deepcopy(message)
        draw(st.sampled_from(list(_spoilers(spoiled))))(draw)
        if mismatches(spoiled, schema_name):
            return spoiled
    return reject()


def _spoilers(message: Any) -> Iterator[Callable[[DrawFn], None]]:
    """Every way to change one place of a message, to be called with what draws."""
    places: list[Any] = [message]
    while places:
        place = places.pop()
        keys = list(place) if isinstance(place, dict) else range(len(place))
        for key in keys:
            yield _remover(place, key)
            yield _replacer(place, key)
            if isinstance(place[key], dict | list):
                places.append(place[key])
        yield _adder(place)


def _remover(place: Any, key: Any) -> Callable[[DrawFn], None]:
    return lambda _: place.__delitem__(key)


def _replacer(place: Any, key: Any) -> Callable[[DrawFn], None]:
    def replace(draw: DrawFn) -> None:
        old = place[key]
        place[key] = draw(st.sampled_from([*_OTHERS, *_near(old)]))

    return replace


def _adder(place: Any) -> Callable[[DrawFn], None]:
    def add(draw: DrawFn) -> None:
        if isinstance(place, dict):
            place.setdefault(draw(_EXTRA_KEYS), draw(_SCALARS))
        else:
            place.append(draw(st.sampled_from(_OTHERS)))

    return add


def _near(value: Any) -> list[Any]:
    """What a careless server might say instead."""
    if isinstance(value, bool):
        return [not value, int(value), str(value).lower()]
    if isinstance(value, int | float):
        return [str(value), value + 0.5, -value - 1]
    if isinstance(value, str):
        return [value.upper(), value[:-1], f"{value}x", [value]]
    if isinstance(value, list):
        return [value * 2, value[:1], {"0": value}]
    return [[value], str(value)]


def _of_any(schema: Schema) -> SearchStrategy[Any]:
    """Values of a schema, by one of its branches."""
    return st.one_of(*(_of(branch) for branch in branches(schema)))


def _of(schema: dict[str, Any]) -> SearchStrategy[Any]:
    """Values of a schema without references and conditions."""
    if "const" in schema:
        return st.builds(copy.deepcopy, st.just(schema["const"]))
    if "enum" in schema:
        values: SearchStrategy[Any] = st.sampled_from(schema["enum"])
    else:
        types = schema.get("type", [])
        names = [types] if isinstance(types, str) else types
        values = st.one_of(*(_MAKERS[name](schema) for name in names)) if names else _untyped(schema)
    others = excluded(schema)
    return values.filter(lambda value: value not in others) if others else values


def _untyped(schema: dict[str, Any]) -> SearchStrategy[Any]:
    return _objects(schema) if schema.keys() & {"properties", "required"} else _ANY_JSON


def _integers(schema: dict[str, Any]) -> SearchStrategy[int]:
    low = schema.get("minimum", -1000)
    return st.integers(low, schema.get("maximum", low + 10_000))


def _numbers(schema: dict[str, Any]) -> SearchStrategy[float]:
    if not schema.keys() & {"minimum", "maximum"}:
        return _NUMBERS
    low, high = schema.get("minimum", -6e4), schema.get("maximum", 6e4)
    return st.floats(low, high, width=16, allow_nan=False)


def _strings(schema: dict[str, Any]) -> SearchStrategy[str]:
    least, most = schema.get("minLength", 0), schema.get("maxLength", LONGEST_TEXT)
    alphabet = st.characters(codec="utf-8")
    if (pattern := schema.get("pattern")) is None:
        return st.text(alphabet, min_size=least, max_size=max(least, min(most, LONGEST_TEXT)))
    whole = pattern.startswith("^") and pattern.endswith("$")
    # Python's `$` would let a line end follow, which JSON Schema's own dialect does not.
    expression = re.compile(pattern[1:-1] if whole else pattern)
    texts = st.from_regex(expression, fullmatch=whole, alphabet=alphabet)
    return texts.filter(lambda text: least <= len(text) <= most)


def _arrays(schema: dict[str, Any]) -> SearchStrategy[list[Any]]:
    first, rest = schema.get("prefixItems", []), schema.get("items", True)
    least = max(0, schema.get("minItems", 0) - len(first))
    most = min(schema.get("maxItems", least + MOST_ITEMS) - len(first), least + MOST_ITEMS)
    more = st.just([]) if rest is NEVER else st.lists(_of_any(rest), min_size=least, max_size=max(0, most))
    values = st.tuples(st.tuples(*map(_of_any, first)), more).map(lambda parts: [*parts[0], *parts[1]])
    if "contains" not in schema:
        return values
    wanted = _of_any(merged(rest, schema["contains"]))
    return st.tuples(values, wanted, st.integers(0, MOST_ITEMS)).map(_with_one)


def _with_one(parts: tuple[list[Any], Any, int]) -> list[Any]:
    values, wanted, place = parts
    return [*values[:place], wanted, *values[place:]]


def _objects(schema: dict[str, Any]) -> SearchStrategy[dict[str, Any]]:
    if schema.get("maxProperties") == 0:
        return st.builds(dict)
    known, required = schema.get("properties", {}), schema.get("required", [])
    needed = {key: _of_any(known.get(key, True)) for key in required}
    possible = {
        key: _of_any(demand) for key, demand in known.items() if key not in required and demand is not NEVER
    }
    made = st.fixed_dictionaries(needed, optional=possible)
    if schema.get("additionalProperties") is NEVER:
        return made
    others = st.dictionaries(_TEXTS.filter(lambda key: key not in known), _SCALARS, max_size=1)
    return st.tuples(others, made).map(lambda parts: parts[0] | parts[1])


_MAKERS: dict[str, Callable[[dict[str, Any]], SearchStrategy[Any]]] = {
    "object": _objects,
    "array": _arrays,
    "string": _strings,
    "integer": _integers,
    "number": _numbers,
    "boolean": lambda _: st.booleans(),
    "null": lambda _: st.none(),
}


def _numbered(message: Any) -> Any:
    """Give the items of a finished batch their places as ids, in the order that the drawn ids have."""
    found = message.get("result", message) if isinstance(message, dict) else None
    items = found.get("responses") if isinstance(found, dict) else None
    if isinstance(items, list) and all(isinstance(item, dict) and "id" in item for item in items):
        in_order = sorted(range(len(items)), key=lambda place: items[place]["id"])
        for number, place in enumerate(in_order):
            items[place]["id"] = number
    return message
