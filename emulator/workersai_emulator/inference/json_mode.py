"""JSON mode: a placeholder that has the form which the caller asked for."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from workersai_emulator.inference.bounded import Bounds, TooMuch, bounded, bounded_dialect, check_size
from workersai_emulator.json_text import dumps

if TYPE_CHECKING:
    from collections.abc import Mapping

#: So many candidates for the whole value are tried.
_TRIES: Final = 64


class CannotMeet(ValueError):
    """No value satisfies the caller's JSON Schema, or none was found within reason. Fact: `sync.json-mode`."""


def schema_wanted(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the schema that a reply is to follow, an empty one for any object, None without JSON mode.

    The schema stands bare in `response_format.json_schema`, or inside its `schema` as OpenAI has it; the
    Responses form says the same in `text.format`.
    """
    wanted = item.get("response_format")
    text = item.get("text")
    if wanted is None and isinstance(text, dict):
        wanted = text.get("format")
    if not isinstance(wanted, dict) or wanted.get("type") not in ("json_object", "json_schema"):
        return None
    if wanted["type"] == "json_object":
        return {}
    schema = wanted.get("json_schema", wanted.get("schema"))
    if isinstance(schema, dict) and isinstance(schema.get("schema"), dict) and "type" not in schema:
        schema = schema["schema"]
    return schema if isinstance(schema, dict) else {}


def object_for(schema: Mapping[str, Any], text: str) -> Any:
    """Return a value for JSON mode's schema; for an empty one an object that holds the text.

    Raises CannotMeet. Fact: `poll.json-mode`.
    """
    return value_for(schema, text) if schema else {"placeholder": text}


def value_for(schema: Mapping[str, Any], text: str, bounds: Bounds | None = None) -> Any:
    """Return a value that satisfies a JSON Schema, whose strings are `text` where the schema lets them.

    What comes out has passed `jsonschema`; `format` is followed where lengths allow, and not insisted on, as
    JSON Schema has it. Only references inside the schema are followed. `bounds` are those of work that several
    schemas share. Raises CannotMeet, also for a schema that would take too long.
    """
    from jsonschema import SchemaError
    from jsonschema.exceptions import UnknownType
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    from workersai_emulator.inference.candidates import Candidates

    root, within = dict(schema), bounds or Bounds()
    named = isinstance(root.get("$schema"), str)
    dialect = validator_for(root if named else {}, default=Draft202012Validator)
    try:
        check_size(root, dumps(root))
        dialect.check_schema(root)
        validator = bounded_dialect(dialect)(root, registry=Registry())
        with bounded(within):
            for repeats in (1, 2):
                candidates = Candidates(root, validator, text, repeats, within).values(root)
                for candidate in islice(candidates, _TRIES):
                    if validator.is_valid(candidate):
                        return candidate
    except (SchemaError, UnknownType, Unresolvable) as fault:
        raise CannotMeet(f"the schema is not one: {fault}") from fault
    except (re.error, RecursionError, OverflowError, TooMuch) as fault:
        raise CannotMeet(f"the schema cannot be followed: {type(fault).__name__}") from fault
    raise CannotMeet("no value was found that satisfies the schema")
