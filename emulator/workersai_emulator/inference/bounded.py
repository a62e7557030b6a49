"""JSON Schema for schemas that strangers wrote: a validator that gives up after so many steps.

A schema of one line can ask for years: references that double, alternatives of alternatives, patterns that go
back and forth. What is counted here is the same on every machine; only patterns have their time instead, since
nobody can tell beforehand how long one takes.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jsonschema.protocols import Validator

#: A schema is no longer than this as JSON text, and no pattern in it.
LONGEST_SCHEMA: Final = 120_000
LONGEST_PATTERN: Final = 1_000
#: A pattern has no more steps than this where what must repeat is written out.
_MOST_UNROLLED: Final = 20_000
#: So many keywords are looked at for one schema, those of all its candidates together.
_MOST_VISITS: Final = 40_000
#: So long may all patterns of one schema take.
_PATTERN_SECONDS: Final = 0.25


class TooMuch(ValueError):
    """A schema asks for more work than anybody wants to do for it."""


class Bounds:
    """What is left of the work that one schema is worth."""

    def __init__(self) -> None:
        self._visits = _MOST_VISITS
        self._seconds = _PATTERN_SECONDS

    def spend(self, visits: int) -> None:
        """Count work that was done or is about to be. Raises TooMuch."""
        self._visits -= visits
        if self._visits < 0:
            raise TooMuch("the schema asks for too many steps")

    def search(self, pattern: str, text: str) -> bool:
        """Whether a pattern occurs in a text. Raises TooMuch, or re.error for what is no pattern."""
        from workersai_emulator.clock import stopwatch

        self.spend(1)
        if len(pattern) > LONGEST_PATTERN:
            raise TooMuch("a pattern is too long")
        started = stopwatch()
        try:
            # The library lets go of the other threads while it searches, and of this one when time is up.
            found = _compiled(pattern).search(text, timeout=max(self._seconds, 1e-6), concurrent=True)
        except TimeoutError:
            self._seconds = 0.0
            raise TooMuch("a pattern takes too long") from None
        self._seconds -= stopwatch() - started
        return found is not None


@contextmanager
def bounded(bounds: Bounds) -> Iterator[None]:
    """Let validators work within these bounds; they raise TooMuch beyond."""
    token = _within.set(bounds)
    try:
        yield
    finally:
        _within.reset(token)


_within: ContextVar[Bounds] = ContextVar("bounds")


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    """Compile a pattern that Python's own engine takes too, for which it is cheap to look."""
    import regex
    from rstr.xeger import sre_parse  # type: ignore[attr-defined] # what it draws from, it parses with this

    re.compile(pattern)
    if _unrolled(sre_parse.parse(pattern)) > _MOST_UNROLLED:
        raise TooMuch("a pattern repeats too often")
    try:
        return regex.compile(pattern)
    except regex.error as fault:
        raise re.error(str(fault)) from None


def _unrolled(parsed: Any) -> int:
    """Return how many steps a parsed pattern has where what must repeat is written out, as the library does."""
    if isinstance(parsed, tuple | list) or hasattr(parsed, "getwidth"):
        parts = list(parsed)
        if len(parts) == 2 and str(parts[0]).endswith("_REPEAT"):
            fewest, _, body = parts[1]
            return max(int(fewest), 1) * _unrolled(body)
        return sum(map(_unrolled, parts))
    return 1


@lru_cache(maxsize=16)
def bounded_dialect(dialect: type[Validator]) -> type[Validator]:
    """Return the same dialect of JSON Schema with every keyword counted, and its patterns in bounds."""
    from jsonschema.validators import extend

    replaced: dict[str, Any] = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
    }
    known = {name: keyword for name, keyword in dialect.VALIDATORS.items() if name not in replaced}
    counted = {name: _counted(name, keyword) for name, keyword in {**known, **replaced}.items()}
    extended: type[Validator] = extend(dialect, counted)  # type: ignore[no-untyped-call]
    return extended


def _counted(name: str, keyword: Callable[..., Any]) -> Callable[..., Any]:
    def visit(validator: Validator, value: Any, instance: Any, schema: Mapping[str, Any]) -> Any:
        _within.get().spend(_cost(name, value, instance))
        return keyword(validator, value, instance, schema)

    return visit


def _cost(name: str, value: Any, instance: Any) -> int:
    """Return what a keyword takes: those that look at everything in turn take more than a step."""
    if name == "uniqueItems" and isinstance(instance, list):
        return 1 + len(instance) ** 2 // 100
    if name in {"unevaluatedProperties", "unevaluatedItems"}:
        return 20
    if name in {"$ref", "$dynamicRef"}:
        return 5
    return 1 + len(value) // 20 if isinstance(value, list | dict) else 1


def _pattern(_: Validator, pattern: str, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(instance, str) and not _within.get().search(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Mapping[str, Any]
) -> Iterator[Any]:
    for pattern, part in patterns.items() if isinstance(instance, dict) else ():
        for name, value in instance.items():
            if _within.get().search(pattern, name):
                yield from validator.descend(value, part, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, allowed: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not isinstance(instance, dict):
        return
    patterns: Sequence[str] = list(schema.get("patternProperties", ()))
    others = [name for name in instance if name not in schema.get("properties", {})]
    for name in others:
        if any(_within.get().search(pattern, name) for pattern in patterns):
            continue
        if isinstance(allowed, dict):
            yield from validator.descend(instance[name], allowed, path=name)
        elif not allowed:
            yield ValidationError(f"{name!r} is not allowed")


def check_size(schema: Any, text: bytes) -> None:
    """Pass a schema of a size that can be worked on. Raises TooMuch."""
    if len(text) > LONGEST_SCHEMA:
        raise TooMuch("the schema is too long")
    if b'"patternProperties"' in text and b'"unevaluatedProperties"' in text:
        # The library compares these two by itself, without bounds.
        raise TooMuch("patternProperties beside unevaluatedProperties")
