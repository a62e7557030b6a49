"""Where two bodies differ: by JSON path, with what must differ from run to run compared as the kind of thing it is."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from workersai_contracts.redaction import is_numbers, without_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from workersai_contracts.body_forms import Body

What = Literal["added", "removed", "type", "value", "order"]

#: What a model says, and what is counted of it, is never the same twice; that it is there counts.
_TEXTS = frozenset(
    "response content translated_text text delta arguments summary description reasoning image audio".split()
)
_NUMBERS = frozenset(
    "prompt_tokens completion_tokens total_tokens input_tokens output_tokens cached_tokens reasoning_tokens score "
    "created created_at completed_at cf-ai-neurons".split()
)
_IDS = re.compile(r"(?:.*_)?id|system_fingerprint|cf-ray|cf-ai-req-id|cf-aig-log-id|embedding", re.IGNORECASE)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_SHOWN = 100
#: Fewer items than these come in the order of the request by chance. Fact: `poll.order`.
_TELLING = 6


@dataclass(frozen=True, slots=True)
class Change:
    """One difference at one place: what `a` and `b` have there. `added` is there in b alone, `removed` in a alone.

    `type` is another type of JSON, or another kind of body; `order` the order of keys, or of the items of a batch.
    """

    path: str
    what: What
    a: str
    b: str


def body_changes(one: Body | None, other: Body | None) -> list[Change]:
    """What differs between two recorded bodies."""
    forms = [next(iter(body)) if body else "nothing" for body in (one, other)]
    if forms[0] != forms[1] or one is None or other is None:
        return [] if forms[0] == forms[1] else [Change("$", "type", *forms)]
    if forms[0] == "events":
        return list(_event_changes(one["events"], other["events"]))
    if forms[0] == "base64":
        return []
    if forms[0] == "text":
        return list(_changes("$", "", without_ids(one["text"]), without_ids(other["text"])))
    found = list(_changes("$", "", one["json"], other["json"]))
    styles = [body.get("style", "compact") for body in (one, other)]
    return (
        found if styles[0] == styles[1] else [*found, Change("$", "value", *(f"printed {s}" for s in styles))]
    )


def header_changes(one: dict[str, str], other: dict[str, str]) -> list[Change]:
    """What differs between two replies' headers, names in any case; the server's name always does."""
    a, b = (
        {name.lower(): value for name, value in told.items() if name.lower() != "server"}
        for told in (one, other)
    )
    return [
        replace(change, path=change.path.replace("$", "headers", 1))
        for change in _changes("$", "", a, b)
        if change.what != "order"
    ]


def kind(key: str, value: Any) -> str:
    """A value as it is compared: itself, or what kind of thing it is where it differs from run to run."""
    told = _kind_of_text(key, value) if isinstance(value, str) else ""
    if isinstance(value, list) and len(value) > 8 and is_numbers(value):
        told = f"a vector of {len(value)} numbers"
    elif key in _NUMBERS and type(value) in {int, float}:
        told = "a number"
    return told or json.dumps(value, ensure_ascii=False)


def _kind_of_text(key: str, text: str) -> str:
    if key == "cf-ai-neurons" and _NUMBER.fullmatch(text):
        return "a number"
    if _IDS.fullmatch(key) and text and not text.startswith("@"):
        return "an id"
    if key in _TEXTS:
        return "a text" if text else "an empty text"
    return "a time" if _TIME.match(text) else json.dumps(without_ids(text), ensure_ascii=False)


def shown(text: str) -> str:
    """A value cut short for a message."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 20]} … ({len(text)} characters)"


def _changes(path: str, key: str, a: Any, b: Any) -> Iterator[Change]:
    if isinstance(a, dict) and isinstance(b, dict):
        yield from _of_objects(path, a, b)
    elif isinstance(a, list) and isinstance(b, list) and not (is_numbers(a) or is_numbers(b)):
        yield from _of_lists(path, key, a, b)
    elif (one := kind(key, a)) != (other := kind(key, b)):
        what: What = "value" if _type(a) == _type(b) else "type"
        yield Change(path, what, shown(one), shown(other))


def _of_objects(path: str, a: dict[str, Any], b: dict[str, Any]) -> Iterator[Change]:
    for key, value in a.items():
        if key in b:
            yield from _changes(f"{path}.{key}", key, value, b[key])
        else:
            yield Change(f"{path}.{key}", "removed", shown(_described(key, value)), "nothing")
    for key, value in b.items():
        if key not in a:
            yield Change(f"{path}.{key}", "added", "nothing", shown(_described(key, value)))
    both = [key for key in a if key in b], [key for key in b if key in a]
    if both[0] != both[1]:
        yield Change(path, "order", *(", ".join(keys) for keys in both))


def _of_lists(path: str, key: str, a: list[Any], b: list[Any]) -> Iterator[Change]:
    ids = _ids(a), _ids(b)
    if ids[0] and ids[1] and sorted(ids[0]) == sorted(ids[1]):
        orders = [_order(order) for order in ids]
        if orders[0] != orders[1] and len(a) >= _TELLING:
            yield Change(path, "order", *orders)
        a, b = _by_id(a, ids[0]), _by_id(b, ids[1])
    elif len(a) != len(b):
        yield Change(path, "value", f"{len(a)} items", f"{len(b)} items")
    each = [list(_changes("", key, one, other)) for one, other in zip(a, b, strict=False)]
    yield from _gathered(path, each)


def _gathered(path: str, each: Sequence[Sequence[Change]]) -> Iterator[Change]:
    """The differences of a list's items; what is the same in several is told once, for all of them."""
    places: dict[Change, list[int]] = {}
    for number, changes in enumerate(each):
        for change in changes:
            places.setdefault(change, []).append(number)
    for change, numbers in places.items():
        place = str(numbers[0]) if len(numbers) == 1 else "*"
        yield replace(change, path=f"{path}[{place}]{change.path}")


def _event_changes(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> Iterator[Change]:
    """Streams are compared by the shapes of their events, in the order in which each first comes."""
    shapes = _shapes(a), _shapes(b)
    only = [
        [event for shape, event in mine.items() if shape not in theirs]
        for mine, theirs in (shapes, shapes[::-1])
    ]
    for one, other in zip(*only, strict=False):
        yield from (
            replace(change, path=change.path.replace("$", "events[*]", 1))
            for change in _changes("$", "", one, other)
        )
    common = min(map(len, only))
    for event in only[0][common:]:
        yield Change("events[*]", "removed", shown(json.dumps(event, ensure_ascii=False)), "nothing")
    for event in only[1][common:]:
        yield Change("events[*]", "added", "nothing", shown(json.dumps(event, ensure_ascii=False)))
    orders = [[shape for shape in mine if shape in theirs] for mine, theirs in (shapes, shapes[::-1])]
    if orders[0] != orders[1]:
        yield Change("events", "order", *(shown(" ".join(order)) for order in orders))


def _shapes(events: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for event in events:
        found.setdefault(json.dumps(_shape("", event), sort_keys=True), event)
    return found


def _shape(key: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shape(name, one) for name, one in value.items()}
    if isinstance(value, list) and not is_numbers(value):
        return [_shape(key, one) for one in value]
    if isinstance(value, str) and key in _TEXTS:
        return "a text"
    return kind(key, value)


def _ids(items: list[Any]) -> list[int]:
    """The numbers of a batch's items; empty where they have none, or one twice."""
    found = [one.get("id", one.get("index")) if isinstance(one, dict) else None for one in items]
    numbers = [number for number in found if type(number) is int]
    return numbers if len(set(numbers)) == len(items) else []


def _order(ids: list[int]) -> str:
    return "the order of the request" if ids == sorted(ids) else "another order"


def _by_id(items: list[Any], ids: list[int]) -> list[Any]:
    return [items[place] for place in sorted(range(len(items)), key=ids.__getitem__)]


def _described(key: str, value: Any) -> str:
    if isinstance(value, dict):
        return "an object of " + (", ".join(value) or "nothing")
    if isinstance(value, list) and not is_numbers(value):
        return "a list"
    return kind(key, value)


def _type(value: Any) -> str:
    return "number" if type(value) in {int, float} else type(value).__name__
