"""Where a message departs from its schema: a list of differences, or one assertion with all of them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from workersai_contracts.catalogue import load_schema, schema_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jsonschema import ValidationError
    from jsonschema.protocols import Validator
    from referencing import Registry

SHOWN = 120  # characters of a value that a message shows

_A_NUMBER: dict[str, Any] = {"type": "number"}
_A_VECTOR: dict[str, Any] = {"type": "array", "items": _A_NUMBER, "minItems": 1}
_NUMBERS = frozenset({int, float})  # by type, since true is an int to isinstance


class Mismatch(NamedTuple):
    """One difference between a message and its schema.

    `path` leads to the place in the message (`$.result.status`), `schema_path` to the demand in the schema.
    `expected` is what the schema says there, `got` what the message has; `message` says it in one line.
    """

    path: str
    schema_path: str
    expected: Any
    got: Any
    message: str


class ContractMismatch(AssertionError):
    """A message that is not what the contract says; pytest shows every difference at once."""

    def __init__(self, schema_name: str, found: list[Mismatch]) -> None:
        """Keep the differences in `mismatches`."""
        self.schema_name = schema_name
        self.mismatches = found
        lines = [f"not a {schema_name}: {len(found)} difference{'s' if len(found) > 1 else ''}"]
        super().__init__("\n  ".join([*lines, *(difference.message for difference in found)]))


def mismatches(instance: Any, schema_name: str) -> list[Mismatch]:
    """Find every difference between parsed JSON and the message schema of that short name, none if it holds.

    Raises LookupError when there is no such schema.
    """
    errors = _validator(schema_name).iter_errors(instance)
    return sorted((_mismatch(error) for error in errors), key=lambda found: (found.path, found.schema_path))


def validate(instance: Any, schema_name: str) -> None:
    """Hold parsed JSON to the message schema of that short name.

    Raises ContractMismatch with all differences, LookupError when there is no such schema.
    """
    if found := mismatches(instance, schema_name):
        raise ContractMismatch(schema_name, found)


def differs(expected: str, message: str, path: str = "$") -> Mismatch:
    """A difference that no schema can say."""
    return Mismatch(path, "", expected, None, f"{path}: {message}")


def moved(found: Mismatch, place: str, root: str = "$") -> Mismatch:
    """A difference found in a part of a message, told by where that part, its `root` alone, is in the whole."""
    path = place + found.path.removeprefix(root)
    return found._replace(path=path, message=path + found.message.removeprefix(found.path))


@cache
def _validator(schema_name: str) -> Validator:
    return _validator_class()(load_schema(schema_name), registry=_registry())


@cache
def _validator_class() -> type[Validator]:
    """JSON Schema 2020-12 with one shortcut: lists of numbers, and lists of those, are looked at as a whole.

    A hundred vectors of a thousand numbers take milliseconds so. The differences found are the same.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    by_item = Draft202012Validator.VALIDATORS["items"]

    def items(
        validator: Validator, demand: Any, instance: Any, schema: dict[str, Any]
    ) -> Iterator[ValidationError]:
        if not (isinstance(instance, list) and _plainly_fit(instance, demand)):
            yield from by_item(validator, demand, instance, schema)

    extended: type[Validator] = extend(Draft202012Validator, {"items": items})  # type: ignore[no-untyped-call]
    return extended


def _plainly_fit(values: list[Any], demand: Any) -> bool:
    """Whether all values are the numbers or the vectors that are demanded; False leaves it open."""
    if demand == _A_NUMBER:
        return _NUMBERS.issuperset(map(type, values))
    if demand == _A_VECTOR:
        return all(type(vector) is list and vector and _plainly_fit(vector, _A_NUMBER) for vector in values)
    return False


@cache
def _registry() -> Registry[Any]:
    from referencing import Registry, Resource

    schemas = (Resource.from_contents(load_schema(name)) for name in schema_names())
    return schemas @ Registry()


def _mismatch(error: ValidationError) -> Mismatch:
    schema_path = "/".join(str(step) for step in error.absolute_schema_path)
    return Mismatch(
        path=error.json_path,
        schema_path=schema_path,
        expected=error.validator_value,
        got=error.instance,
        message=f"{error.json_path}: {_shorten(error.message)} (schema: {schema_path})",
    )


def _shorten(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]} … {text[-SHOWN // 2 :]}"
