"""The nodes that an input schema is compiled to, and how a value walks through them.

A node looks at one value and answers how often it matched: 0 is not a refusal, several come from an array. It
raises InputRefused to refuse; the nearest list of alternatives around it takes that down as a complaint and
goes on. The complaints of a whole walk end up, in order and once each, behind the message that nobody took
down. All of it is how the service's own validator behaves. Facts: `input.validator`, `input.semantics`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from workersai_emulator.javascript import (
    UNDEFINED,
    NotPrintable,
    identity,
    is_binary,
    kinds,
    length,
    member,
    own_keys,
    printed,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class InputRefused(ValueError):
    """The input is not what the model takes; `complaint` is the validator's message.

    It is the part behind `AiError: Bad input: Error: ` on the wire. Fact: `input.text`.
    """

    @property
    def complaint(self) -> str:
        """The validator's message, without title and prefix."""
        return str(self.args[0])


@dataclass(slots=True, eq=False)
class Walk:
    """What the nodes of one validation share: the body, the complaints so far, the paths that are evaluated.

    A `hasty` walk only asks for the verdict: its complaints are incomplete, since items that look alike are
    judged once.
    """

    body: Any
    hasty: bool = False
    complaints: dict[str, None] = field(default_factory=dict)  # an ordered set
    evaluated: set[str] = field(default_factory=set)


class Place(NamedTuple):
    """Where in the schema a node stands, as far as its behaviour depends on that.

    At the root, also within its alternatives, a list of alternatives without a match refuses; within any list,
    complaints are not appended to a refusal; within `allOf`, what matches counts as evaluated.
    """

    root: bool = False
    listed: bool = False
    carrying: bool = False

    def refuse(self, complaint: str, walk: Walk) -> InputRefused:
        """Return the refusal to raise here."""
        if self.listed or not walk.complaints:
            return InputRefused(complaint)
        return InputRefused(f"{complaint}: {', '.join(walk.complaints)}")


class Node(Protocol):
    """One compiled subschema."""

    @property
    def silent(self) -> bool:
        """Whether a value that is not there always gives 0 here and leaves no trace."""

    def check(self, value: Any, path: str, walk: Walk) -> int:
        """Return how often the value at `path` ("" for the body) matched, or raise InputRefused."""


class Nothing(NamedTuple):
    """A subschema that is missing, such as an array's `items`: whatever gets here is refused."""

    place: Place

    @property
    def silent(self) -> bool:
        """See `Node`."""
        return False

    def check(self, value: Any, path: str, walk: Walk) -> int:
        """Refuse."""
        raise self.place.refuse(f"No schema for path '{path or '/'}'", walk)


class Alternatives(NamedTuple):
    """`oneOf`, which is exclusive, and `anyOf`. Matches are added up over the arms; an array may give many.

    `oneOf` stops at the first arm after which there are several or none, so that an arm which gives 0 without a
    refusal hides those behind it; `anyOf` stops at the first match.
    """

    place: Place
    exclusive: bool
    arms: tuple[Node, ...]
    silent: bool

    def check(self, value: Any, path: str, walk: Walk) -> int:
        """Return 1 or 0; at the root, no match (for oneOf: other than one) is refused."""
        exclusive = self.exclusive
        matches = 0
        for arm in self.arms:
            try:
                matches += arm.check(value, path, walk)
            except InputRefused as refusal:
                walk.complaints[refusal.args[0]] = None
            else:
                if matches != 1 if exclusive else matches:
                    break
        if matches == 1 or (matches and not exclusive):
            return 1
        if self.place.root:
            complaint = f"oneOf at '/' not met, {matches} matches" if exclusive else "anyOf at '/' not met"
            raise self.place.refuse(complaint, walk)
        return 0


class Conditions(NamedTuple):
    """`allOf`: all its members merged into one schema, which must pass before the rest is looked at."""

    place: Place
    merged: Node
    rest: Node
    silent: bool

    def check(self, value: Any, path: str, walk: Walk) -> int:
        """Return what the rest of the schema gives; 0 when the merged schema refuses, except at the root."""
        try:
            self.merged.check(value, path, walk)
        except InputRefused as refusal:
            if self.place.root:
                raise
            walk.complaints[refusal.args[0]] = None
            return 0
        return self.rest.check(value, path, walk)


class Unless(NamedTuple):
    """`not`: its schema must refuse; that it merely does not match is not enough."""

    place: Place
    banned: Node
    rest: Node

    @property
    def silent(self) -> bool:
        """See `Node`."""
        return False

    def check(self, value: Any, path: str, walk: Walk) -> int:
        """Return what the rest of the schema gives."""
        try:
            self.banned.check(value, path, walk)
        except InputRefused:
            return self.rest.check(value, path, walk)
        raise self.place.refuse(f"not at '{path or '/'}' not met", walk)


class Items(NamedTuple):
    """`type: array`. Strings and binary arrays are not gone through: `rest` judges them as one value.

    Whatever else is there is gone through, objects by their keys; what has no items gives 0. `by_looks` says
    that items which look alike are judged alike (see `looks`).
    """

    item: Node
    rest: Node
    silent: bool
    by_looks: bool

    def check(self, value: Any, path: str, walk: Walk) -> int:
        """Return the sum over the items, or what the rest of the schema gives."""
        check = self.item.check
        matches = 0
        if type(value) is list:
            if is_binary(value):
                return self.rest.check(value, path, walk)
            if walk.hasty and self.by_looks:
                return self._check_each_look(value, path, walk)
            for index, item in enumerate(value):
                matches += check(item, f"{path}/{index}", walk)
        elif type(value) is dict:
            for key in own_keys(value):
                matches += check(value[key], f"{path}/{key}", walk)
        elif type(value) is str:
            return self.rest.check(value, path, walk)
        return matches

    def _check_each_look(self, items: list[Any], path: str, walk: Walk) -> int:
        judged: dict[Look, int] = {}
        matches = 0
        for item in items:
            look = looks(item)
            if look is None:
                matches += self.item.check(item, f"{path}/-", walk)
                continue
            known = judged.get(look)
            if known is None:
                known = judged[look] = self.item.check(item, f"{path}/-", walk)
            matches += known
        return matches


LONG_TEXT = 16
#: A longer name has no look: looks are kept.
LONGEST_NAME = 64

#: The name of the one text; or that of the one list, the name of the one text of each of its items, and their number.
Look = str | tuple[str, str, int]


def looks(value: Any) -> Look | None:
    """How an object looks that is one long text, or one list of such objects with the same name. None for any other.

    Batches are mostly made so. What a schema says of long texts it says of all of them alike, unless it has a
    pattern, an upper bound, or a choice that is as long.
    """
    if type(value) is not dict or len(value) != 1:
        return None
    ((name, inner),) = value.items()
    if len(name) > LONGEST_NAME:
        return None
    if type(inner) is str:
        return name if len(inner) > LONG_TEXT else None
    text_name = _name_of_all(inner) if type(inner) is list and inner else None
    return None if text_name is None else (name, text_name, len(inner))


def _name_of_all(items: list[Any]) -> str | None:
    name = next(iter(items[0]), "") if type(items[0]) is dict else ""
    for item in items:
        if type(item) is not dict or len(item) != 1:
            return None
        text = item.get(name)
        if type(text) is not str or len(text) <= LONG_TEXT:
            return None
    return name if len(name) <= LONGEST_NAME else None


class OtherProperties(NamedTuple):
    """`additionalProperties` and `unevaluatedProperties`: what becomes of the properties not known by then.

    `node` is None where the schema is `false`, which refuses them. Otherwise each is validated as if its
    object were the body, with complaints of its own, under what follows the last slash of its name.
    """

    place: Place
    node: Node | None

    def check(self, value: Any, path: str, walk: Walk, known: set[str], evaluated: set[str]) -> int:
        """Return how many matched, and add those to `evaluated`, with a slash too many."""
        if type(value) is not dict:
            return 0
        others = [other for key in own_keys(value) if (other := f"{path}/{key}") not in known]
        if self.node is None:
            if others:
                listed = ", ".join(others)
                complaint = f"Additional or unevaluated properties '{listed}' at '{path or '/'}' not allowed"
                raise self.place.refuse(complaint, walk)
            return 0
        matches = 0
        for other in others:
            name = other.rpartition("/")[2]
            if self.node.check(member(value, name), f"/{name}", Walk(value)):
                matches += 1
                evaluated.add(f"/{other}")
        return matches


class PropertyCount(NamedTuple):
    """`minProperties` and `maxProperties`, which count those of the whole body, wherever they stand."""

    place: Place
    fewest: float | None
    most: float | None

    def check(self, path: str, walk: Walk) -> None:
        """Raise InputRefused if the body has too few or too many; a refusal always prints the lower bound."""
        count = self._count(walk.body)
        fewest = "undefined" if self.fewest is None else printed(self.fewest)
        if self.fewest is not None and count < self.fewest:
            raise self.place.refuse(f"minProperties at '{path or '/'}' is {fewest}, got {count}", walk)
        if self.most is not None and count > self.most:
            raise self.place.refuse(f"maxProperties at '{path or '/'}' is {fewest}, got {count}", walk)

    @staticmethod
    def _count(body: Any) -> int:
        if body is None:
            raise InputRefused("Cannot convert undefined or null to object")
        if isinstance(body, dict):
            return len(body)
        return length(body) if isinstance(body, (list, str)) else 0


class Properties(NamedTuple):
    """`type: object`, or anything with `properties`. A value that is no object just has none of them.

    `required` asks for properties that matched, not for those that are there.
    """

    place: Place
    properties: tuple[tuple[str, Node, bool], ...]  # name, node, whether to skip it where an object lacks it
    required: tuple[str, ...]
    property_count: PropertyCount | None
    additional: OtherProperties | None
    unevaluated: OtherProperties | None
    silent: bool

    def check(self, value: Any, path: str, walk: Walk) -> int:
        """Return 1 if any property matched, else 0."""
        if self.property_count is not None:
            self.property_count.check(path, walk)
        matched = self._matched(value, path, walk)
        matches, evaluated = len(matched), walk.evaluated
        if self.additional is not None:
            matches += self.additional.check(value, path, walk, _places(path, matched), evaluated)
        if self.unevaluated is not None:
            evaluated = evaluated | _places(path, matched)
            matches += self.unevaluated.check(value, path, walk, evaluated, evaluated)
        for name in self.required:
            if name not in matched and f"{path}/{name}" not in evaluated:
                listed = ",".join(self.required)
                raise self.place.refuse(f"required properties at '{path or '/'}' are '{listed}'", walk)
        return 1 if matches else 0

    def _matched(self, value: Any, path: str, walk: Walk) -> list[str]:
        matched = []
        is_object = type(value) is dict
        for name, node, skippable in self.properties:
            if is_object and name in value:
                found = value[name]
            elif is_object and skippable:
                continue
            else:
                found = member(value, name)
            if node.check(found, f"{path}/{name}", walk):
                matched.append(name)
        return matched


def _places(path: str, names: list[str]) -> set[str]:
    return {f"{path}/{name}" for name in names}


class Choice(NamedTuple):
    """`const` or `enum`: the values let through, and the words of the complaint around value and path."""

    allowed: frozenset[object]
    word: str
    reason: str


class Bound(NamedTuple):
    """One limit on values of the right type, and the words of the complaint around the path."""

    holds: Callable[[Any], bool]
    before: str
    after: str


class Value(NamedTuple):
    """A value judged by itself: `const`, `enum`, `type`, then the bounds that belong to the type.

    `type` is whatever the schema says, which no value has unless it is one type's name. `settled` says that a
    `const` or `enum` that holds decides, since there is no type.
    """

    place: Place
    choices: tuple[Choice, ...]
    settled: bool
    typed: bool
    type: object
    type_printed: str
    bounds: tuple[Bound, ...]

    @property
    def silent(self) -> bool:
        """See `Node`."""
        return True

    def check(self, value: Any, path: str, walk: Walk) -> int:
        """Return 1, or 0 for what is not there."""
        if value is UNDEFINED:
            return 0
        for choice in self.choices:
            if identity(value) not in choice.allowed:
                raise self._not_chosen(choice, value, path, walk)
            if self.settled:
                return 1
        if self.typed and self.type not in (given := kinds(value)):
            names = ",".join([f"'{name}'" for name in given])
            complaint = f"Type mismatch of '{path or '/'}', '{self.type_printed}' not in {names}"
            raise self.place.refuse(complaint, walk)
        for bound in self.bounds:
            if not bound.holds(value):
                raise self.place.refuse(f"{bound.before}{path or '/'}{bound.after}", walk)
        if self.place.carrying:
            walk.evaluated.add(path or "/")
        return 1

    def _not_chosen(self, choice: Choice, value: Any, path: str, walk: Walk) -> InputRefused:
        try:
            shown = printed(value)
        except NotPrintable as failure:
            return InputRefused(str(failure))
        return self.place.refuse(f"{choice.word} {shown} {choice.reason} at '{path or '/'}'", walk)
