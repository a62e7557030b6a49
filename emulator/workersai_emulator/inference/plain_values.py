"""Numbers and strings that a flat JSON Schema lets through, the plainest first."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, count, islice
from math import ceil, floor
from typing import TYPE_CHECKING, Any, Final

from workersai_emulator.inference.flat_schemas import of_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from workersai_emulator.inference.bounded import Bounds

#: No string is made longer than this, and no more characters are drawn for a pattern.
LONGEST: Final = 100_000
#: So many values are tried in a row of numbers, and so many lengths for a pattern.
_STEPS: Final = 64
#: So many numbers on either side of 0 come before those further away.
_NEAR: Final = 8
_EXTRA_REPEATS: Final = (0, 1, 2, 4, 8, 16, 32, 64, 100)

#: Strings of JSON Schema's formats; the number makes them differ.
_FORMATS = {
    "date-time": "2025-01-01T00:00:{:02}Z",
    "date": "2025-01-{:02}",
    "time": "00:00:{:02}Z",
    "duration": "P{}D",
    "email": "placeholder{}@example.com",
    "idn-email": "placeholder{}@example.com",
    "hostname": "placeholder{}.example.com",
    "idn-hostname": "placeholder{}.example.com",
    "ipv4": "192.0.2.{}",
    "ipv6": "2001:db8::{}",
    "uri": "https://example.com/placeholder{}",
    "uri-reference": "https://example.com/placeholder{}",
    "iri": "https://example.com/placeholder{}",
    "iri-reference": "https://example.com/placeholder{}",
    "uri-template": "https://example.com/placeholder{}",
    "uuid": "00000000-0000-4000-8000-{:012}",
    "json-pointer": "/placeholder{}",
    "relative-json-pointer": "{}/placeholder",
    "regex": "placeholder{}",
}


def numbers(schema: dict[str, Any], *, whole: bool) -> Iterator[int | float]:
    """Yield numbers within a schema's bounds: multiples of its step (1 if it has none), nearest 0 first."""
    low, high = _bounds(schema, "minimum", "exclusiveMinimum"), _bounds(schema, "maximum", "exclusiveMaximum")
    step = _fraction(schema.get("multipleOf"))
    stride = step if step is not None and step > 0 else Fraction(1)
    if whole:
        stride = Fraction(stride.numerator)
    multiples: Iterable[int] = chain(range(_NEAR), range(-1, -_NEAR, -1), range(_NEAR, _STEPS))
    if low and max(low) > 0:
        multiples = count(ceil(max(low) / stride))
    elif high and min(high) < 0:
        multiples = count(floor(min(high) / stride), -1)
    series = (multiple * stride for multiple in islice(multiples, _STEPS))
    between = () if whole or step is not None else _between(low, high)
    excluded = {_fraction(schema.get("exclusiveMinimum")), _fraction(schema.get("exclusiveMaximum"))}
    for value in chain(series, between):
        if (
            value not in excluded
            and all(value >= bound for bound in low)
            and all(value <= bound for bound in high)
        ):
            yield value.numerator if value.denominator == 1 else float(value)


def _bounds(schema: dict[str, Any], *keys: str) -> list[Fraction]:
    return [bound for bound in map(_fraction, map(schema.get, keys)) if bound is not None]


def _between(low: Sequence[Fraction], high: Sequence[Fraction]) -> Iterator[Fraction]:
    """Yield numbers between two bounds, or beside the only one."""
    if low or high:
        first = max(low) if low else min(high) - 1
        last = min(high) if high else max(low) + 1
        yield from (first + (last - first) * share / 16 for share in (0, 8, 4, 2, 1, 12, 16))


def strings(schema: dict[str, Any], text: str, bounds: Bounds) -> Iterator[str]:
    """Yield strings within a schema's lengths: of its format or pattern, or else the text."""
    fewest = of_kind(schema, "minLength", int) or 0
    most = of_kind(schema, "maxLength", int)
    if fewest > LONGEST:
        return
    pattern, form = of_kind(schema, "pattern", str), _FORMATS.get(str(schema.get("format")))
    if pattern is not None:
        yield from (
            made
            for made in _of_pattern(pattern, bounds)
            if fewest <= len(made) and (most is None or len(made) <= most)
        )
        return
    for number in range(1, 25):
        made = "" if form is None else form.format(number)
        if form is None or len(made) < fewest or (most is not None and len(made) > most):
            made = _fitted(text, number, fewest, most)
        yield made


def _fitted(text: str, number: int, fewest: int, most: int | None) -> str:
    """Return a text as long as it must be; those with a number from 2 on end in it."""
    ending = "" if number == 1 else f" {number}"
    if len(text) + len(ending) < fewest:
        text += " placeholder" * ceil((fewest - len(text) - len(ending)) / len(" placeholder"))
        most = fewest if most is None else most
    if most is not None and len(text) + len(ending) > most:
        return (
            (text[: max(0, most - len(ending))] + ending)[:most]
            if len(ending) <= most
            else ending.strip()[:most]
        )
    return text + ending


def _of_pattern(pattern: str, bounds: Bounds) -> Iterator[str]:
    """Yield strings of a regular expression, longer and longer; and first the plain word, if it is one."""
    from rstr import Rstr

    for word in ("placeholder", "Placeholder", "PLACEHOLDER"):
        if bounds.search(pattern, word):
            yield word
    left = _Left(LONGEST)
    for extra in _EXTRA_REPEATS:
        for taken in range(4):
            drawing = Rstr(_Chooser(extra, taken, left))  # type: ignore[arg-type] # these are all that it asks for
            try:
                made: str = drawing.xeger(pattern)
            except (KeyError, IndexError, TypeError):
                continue
            except _TooLong:
                return
            if bounds.search(pattern, made):
                yield made


class _TooLong(Exception):
    """A pattern asks for more characters than anybody wants."""


class _Left:
    """How many characters may still be drawn for one pattern, all its strings together."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def spend(self, steps: int) -> None:
        self._steps -= steps
        if self._steps < 0:
            raise _TooLong


class _Chooser:
    """Stands in for a random generator: repeats as often as it must and `extra` times more; takes the plainest.

    The characters of a class come in any order, so they are sorted here. From alternatives, `taken` counts on.
    """

    def __init__(self, extra: int, taken: int, left: _Left) -> None:
        self._extra = extra
        self._taken = taken
        self._left = left

    def choice(self, options: Sequence[Any]) -> Any:
        self._left.spend(1)
        if isinstance(options[0], str):
            plain = sorted(set(options), key=lambda one: (not one.isalnum(), not one.islower(), one))
            return plain[self._taken % len(plain)]
        return options[self._taken % len(options)]

    def randint(self, fewest: int, most: int) -> int:
        times = fewest if most <= fewest else min(fewest + self._extra, most)
        self._left.spend(times)
        return times

    def shuffle(self, made: list[str]) -> None:
        """Leave everything as it is."""


def _fraction(value: Any) -> Fraction | None:
    """Return the number as it was written: 0.1 is a tenth."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
