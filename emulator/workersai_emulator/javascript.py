"""JSON values the way the service's validator, a JavaScript program, sees them.

Its verdicts and messages show JavaScript's own habits: one kind of number, text counted in UTF-16 units,
objects that list integer-like keys first, properties that every value inherits, values printed as
`String(value)` does.
Fact: `input.semantics`.
"""

from __future__ import annotations

import math
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LAST_INDEX: Final = 2**32 - 2
_MAX_INTEGER_DIGITS: Final = 21  # numbers up to here are printed without an exponent
_MIN_LEADING_ZEROS: Final = -6


class Undefined(Enum):
    """JavaScript's `undefined`: what a property that is not there reads as."""

    UNDEFINED = "undefined"


UNDEFINED: Final = Undefined.UNDEFINED


class Method(NamedTuple):
    """A built-in function that a value inherits. It has a name, and no properties here."""

    name: str


class NotPrintable(TypeError):
    """An object whose `toString` is data: JavaScript cannot print it."""


_OBJECT_METHODS: Final = (
    "__defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__ constructor hasOwnProperty"
    " isPrototypeOf propertyIsEnumerable toLocaleString toString valueOf"
)
_ARRAY_METHODS: Final = (
    "at concat copyWithin entries every fill filter find findIndex findLast findLastIndex flat flatMap"
    " forEach includes indexOf join keys lastIndexOf map pop push reduce reduceRight reverse shift slice some sort"
    " splice toReversed toSorted toSpliced unshift values with"
)
_STRING_METHODS: Final = (
    "anchor at big blink bold charAt charCodeAt codePointAt concat endsWith fixed fontcolor fontsize includes"
    " indexOf isWellFormed italics lastIndexOf link localeCompare match matchAll normalize padEnd padStart"
    " repeat replace replaceAll search slice small split startsWith strike sub substr substring sup"
    " toLocaleLowerCase toLocaleUpperCase toLowerCase toUpperCase toWellFormed trim trimEnd trimLeft"
    " trimRight trimStart"
)
_ON_OBJECTS: Final = frozenset(_OBJECT_METHODS.split())
_ON_ARRAYS: Final = _ON_OBJECTS | frozenset(_ARRAY_METHODS.split())
_ON_STRINGS: Final = _ON_OBJECTS | frozenset(_STRING_METHODS.split())
_ON_NUMBERS: Final = _ON_OBJECTS | {"toExponential", "toFixed", "toPrecision"}
_INHERITED: Final[Mapping[type, tuple[str, frozenset[str]]]] = {
    dict: ("Object", _ON_OBJECTS),
    list: ("Array", _ON_ARRAYS),
    str: ("String", _ON_STRINGS),
    int: ("Number", _ON_NUMBERS),
    float: ("Number", _ON_NUMBERS),
    bool: ("Boolean", _ON_OBJECTS),
}


def inherits(name: str) -> bool:
    """Whether an object without a property of this name still has one, from its prototype."""
    return name == "__proto__" or name in _ON_OBJECTS


def member(value: Any, name: str) -> Any:
    """Return what `value[name]` reads, or UNDEFINED; a falsy value has nothing."""
    kind = type(value)
    if kind is dict:
        if name in value:
            return value[name]
    elif kind is list or kind is str:
        if value == "":
            return UNDEFINED
        if name == "length":
            return length(value)
        if (index := array_index(name)) is not None:
            return _element(value, index)
    elif not value or kind not in _INHERITED:
        return UNDEFINED
    return _inherited(kind, name)


def _inherited(kind: type, name: str) -> Any:
    if name == "__proto__":
        return [] if kind is list else {}
    constructor, names = _INHERITED[kind]
    if name not in names:
        return UNDEFINED
    return Method(constructor if name == "constructor" else name)


def _element(value: list[Any] | str, index: int) -> Any:
    if isinstance(value, list):
        return value[index] if index < len(value) else UNDEFINED
    unit = value.encode("utf-16-le", "surrogatepass")[2 * index : 2 * index + 2]
    return unit.decode("utf-16-le", "surrogatepass") if unit else UNDEFINED


def array_index(name: str) -> int | None:
    """Return the index that `name` spells, if an array would take it for one."""
    if not (name.isascii() and name.isdecimal()) or len(name) > len(str(_LAST_INDEX)):
        return None
    index = int(name)
    return index if str(index) == name and index <= _LAST_INDEX else None


def own_keys(value: Mapping[str, Any]) -> list[str]:
    """Return an object's keys as JavaScript lists them: those that are array indexes first, ascending."""
    if not any(key[:1].isdecimal() for key in value):
        return list(value)
    indexes = {key: index for key in value if (index := array_index(key)) is not None}
    return sorted(indexes, key=indexes.__getitem__) + [key for key in value if key not in indexes]


def length(value: list[Any] | str) -> int:
    """Return `value.length`: items of an array, UTF-16 units of a string."""
    if isinstance(value, list) or value.isascii():
        return len(value)
    return len(value.encode("utf-16-le", "surrogatepass")) // 2


def double(value: float) -> float:
    """Return the one kind of number there is; what is too large for it is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_binary(items: list[Any]) -> bool:
    """Whether the validator takes an array for binary data, whose items it does not look at.

    So it does when the first item that is neither a number nor a string is null, or when there is none: every
    list of texts is binary, `[1]` and `[]` too. Fact: `input.semantics`.
    """
    for item in items:
        if type(item) not in (str, int, float):
            return item is None
    return True


_PLAIN_KINDS: Final[Mapping[type, tuple[str, ...]]] = {
    str: ("string",),
    bool: ("boolean",),
    dict: ("object",),
    type(None): ("null",),
}


def kinds(value: Any) -> tuple[str, ...]:
    """Return every schema type that a value has, as a complaint lists them; a function has none."""
    plain = _PLAIN_KINDS.get(type(value))
    if plain is not None:
        return plain
    if isinstance(value, list):
        return ("array", "binary") if is_binary(value) else ("array",)
    if isinstance(value, (int, float)):
        return ("number", "integer") if double(value).is_integer() else ("number",)
    return ()


def identity(value: Any) -> object:
    """Return a key that two values share exactly when `===` holds; what is not a scalar equals nothing."""
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, (int, float)):
        return double(value)
    return value if value is None or isinstance(value, str) else object()


def printed(value: Any) -> str:
    """Return `String(value)`, as a template string shows it.

    Raises NotPrintable for objects, alone or inside arrays, that carry a property called `toString`.
    """
    if isinstance(value, list):
        return ",".join(_elements_printed(value))
    if isinstance(value, dict):
        if "toString" in value:
            raise NotPrintable("Cannot convert object to primitive value")
        return "[object Object]"
    if isinstance(value, Method):
        return f"function {value.name}() {{ [native code] }}"
    return _scalar_printed(value)


def _scalar_printed(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return number_printed(value)
        case None:
            return "null"
        case _:
            return "undefined"


def _elements_printed(items: list[Any]) -> Iterator[str]:
    """Flatten without recursion: JSON may nest deeper than Python's stack."""
    pending = [iter(items)]
    while pending:
        for item in pending[-1]:
            if item is None or item == []:
                yield ""
            elif isinstance(item, list):
                pending.append(iter(item))
                break
            else:
                yield printed(item)
        else:
            pending.pop()


def number_printed(value: float) -> str:
    """Return a number as JavaScript prints it: shortest digits, an exponent below 1e-6 and from 1e21 on."""
    number = double(value)
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "0"
    sign, digit_tuple, exponent = Decimal(repr(number)).as_tuple()
    point = len(digit_tuple) + int(exponent)  # where the decimal point stands among the digits
    digits = "".join(map(str, digit_tuple)).rstrip("0")
    return "-" * sign + _placed(digits, point)


def _placed(digits: str, point: int) -> str:
    if len(digits) <= point <= _MAX_INTEGER_DIGITS:
        return digits.ljust(point, "0")
    if 0 < point <= _MAX_INTEGER_DIGITS:
        return f"{digits[:point]}.{digits[point:]}"
    if _MIN_LEADING_ZEROS < point <= 0:
        return f"0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"
