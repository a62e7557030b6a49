"""JSON as it travels: what a JavaScript server reads and writes, lone surrogates included.

orjson does nearly all of the work. It refuses some values that JSON.parse and JSON.stringify take: strings
with half of a surrogate pair, whole numbers beyond 64 bits, numbers beyond a double, deep nesting. Those go a
slower way here, so that nothing that was read fails to be written.
"""

from __future__ import annotations

import json
import math
from typing import Any

import orjson


def loads(data: bytes | str) -> Any:
    r"""Return the value that a JSON text stands for.

    The text is UTF-8 where it is bytes. An escaped lone surrogate (`"\ud800"`) is taken, as JSON.parse takes
    it; NaN and Infinity are not JSON. Raises ValueError for everything that is not JSON, nesting beyond what
    the parser follows (some hundreds of levels at least) included.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    text = data if isinstance(data, str) else data.decode()
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("JSON nested too deep") from None


def dumps(value: Any) -> bytes:
    r"""Return the compact JSON text of a value made of what JSON knows; total for everything `loads` returns.

    Strings that UTF-8 cannot hold are written with `\ud800` escapes, a number that is not finite as null.
    Raises TypeError for a value that JSON has no form for.
    """
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return "".join(_pieces(value)).encode("ascii")


class _Mark(str):
    """A piece of JSON text that is already written, among values that are not."""

    __slots__ = ()


def _pieces(value: Any) -> list[str]:
    """Write a value with a stack of our own: the depth of what was parsed is no limit here."""
    pieces: list[str] = []
    waiting: list[Any] = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, _Mark):
            pieces.append(part)
        elif isinstance(part, list | tuple):
            waiting.extend(_reversed_list(part))
        elif isinstance(part, dict):
            waiting.extend(_reversed_object(part))
        elif isinstance(part, float) and not math.isfinite(part):
            pieces.append("null")
        else:
            pieces.append(json.dumps(part))
    return pieces


def _reversed_list(items: list[Any] | tuple[Any, ...]) -> list[Any]:
    parts: list[Any] = [_Mark("]")]
    for position in range(len(items) - 1, -1, -1):
        parts += (items[position], _Mark("," if position else ""))
    return [*parts, _Mark("[")]


def _reversed_object(members: dict[str, Any]) -> list[Any]:
    parts: list[Any] = [_Mark("}")]
    for position, (key, value) in reversed(list(enumerate(members.items()))):
        parts += (value, _Mark(f"{',' if position else ''}{json.dumps(key)}:"))
    return [*parts, _Mark("{")]


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
