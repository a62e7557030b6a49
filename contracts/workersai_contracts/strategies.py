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

from hypothesis import assume
from hypothesis import strategies as st

from workersai_contracts.branches import NEVER, branches, merged
from workersai_contracts.catalogue import load_schema
from workersai_contracts.mismatch import mismatches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hypothesis.strategies import DrawFn, SearchStrategy

    from workersai_contracts.branches import Schema

MOST_ITEMS = 4  # of a list that the schema does not bound, or bounds far away
ATTEMPTS = 20

_TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
_NUMBERS = st.integers(-1000, 1000) | st.floats(-1e6, 1e6, width=16, allow_nan=False, allow_infinity=False)
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
    return _of_any(load_schema(schema_name)).map(_numbered)


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
    assume(False)
    return None


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


def _of(schema: Schema) -> SearchStrategy[Any]:
    """Values of a schema without references and conditions."""
    if "const" in schema:
        return st.just(copy.deepcopy(schema["const"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    values = st.one_of(*(_of_type(name, schema) for name in types)) if types else _untyped(schema)
    excluded = schema.get("not", {}).get("const", NEVER)
    return values if excluded is NEVER else values.filter(lambda value: value != excluded)


def _untyped(schema: Schema) -> SearchStrategy[Any]:
    if schema.keys() & {"properties", "required"}:
        return _objects(schema)
    return _ANY_JSON


def _of_type(name: str, schema: Schema) -> SearchStrategy[Any]:
    makers: dict[str, Callable[[Schema], SearchStrategy[Any]]] = {
        "object": _objects,
        "array": _arrays,
        "string": _strings,
        "integer": lambda schema: st.integers(*_bounds(schema)),
        "number": lambda schema: _NUMBERS,
        "boolean": lambda schema: st.booleans(),
        "null": lambda schema: st.none(),
    }
    return makers[name](schema)


def _bounds(schema: Schema) -> tuple[int, int]:
    low = schema.get("minimum", -1000)
    return low, schema.get("maximum", low + 10_000)


def _strings(schema: Schema) -> SearchStrategy[Any]:
    least, most = schema.get("minLength", 0), schema.get("maxLength", 60)
    if (pattern := schema.get("pattern")) is None:
        return st.text(st.characters(codec="utf-8"), min_size=least, max_size=max(least, min(most, 60)))
    whole = pattern.startswith("^") and pattern.endswith("$")
    # `$` would let Python end in a line end, which JSON Schema's own dialect does not.
    expression = re.compile(pattern[1:-1] if whole else pattern)
    texts = st.from_regex(expression, fullmatch=whole, alphabet=st.characters(codec="utf-8"))
    return texts.filter(lambda text: least <= len(text) <= schema.get("maxLength", len(text)))


@st.composite
def _arrays(draw: DrawFn, schema: Schema) -> Any:
    least = schema.get("minItems", 0)
    first = schema.get("prefixItems", [])
    values = [draw(_of_any(one)) for one in first]
    rest = schema.get("items", True)
    if rest is not False:
        most = min(schema.get("maxItems", MOST_ITEMS), least + MOST_ITEMS) - len(values)
        values += draw(st.lists(_of_any(rest), min_size=max(0, least - len(values)), max_size=max(0, most)))
    if "contains" in schema:
        place = draw(st.integers(0, len(values)))
        values.insert(place, draw(_of_any(merged(rest, schema["contains"]))))
    return values


@st.composite
def _objects(draw: DrawFn, schema: Schema) -> Any:
    if schema.get("maxProperties") == 0:
        return {}
    known = schema.get("properties", {})
    required = schema.get("required", [])
    made = {}
    for key, demand in known.items():
        if key in required or (demand is not NEVER and draw(st.booleans())):
            made[key] = draw(_of_any(demand))
    made |= {key: draw(_ANY_JSON) for key in required if key not in known}
    if schema.get("additionalProperties") is not False and draw(st.booleans()):
        key = draw(_TEXTS.filter(lambda key: key not in known))
        made[key] = draw(_SCALARS)
    return made


def _numbered(message: Any) -> Any:
    """Give the items of a finished batch their places as ids, in the order that the drawn ids have."""
    found = message.get("result", message) if isinstance(message, dict) else None
    items = found.get("responses") if isinstance(found, dict) else None
    if isinstance(items, list) and all(isinstance(item, dict) and "id" in item for item in items):
        in_order = sorted(range(len(items)), key=lambda place: items[place]["id"])
        for number, place in enumerate(in_order):
            items[place]["id"] = number
    return message
