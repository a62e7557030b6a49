"""JSON for people: an indented line for each member, and lists of numbers on one line."""

from __future__ import annotations

import json
from typing import Any

WIDTH = 100


def readable(value: Any, indent: int = 0) -> str:
    """The value as text; what is short, or a list of numbers however long, is one line."""
    plain = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or not value or _flat(value, plain, indent):
        return plain
    inner, outer = " " * (indent + 1), " " * indent
    if isinstance(value, dict):
        members = [
            f"{json.dumps(key, ensure_ascii=False)}: {readable(one, indent + 1)}"
            for key, one in value.items()
        ]
        return "{\n" + ",\n".join(inner + member for member in members) + f"\n{outer}}}"
    return "[\n" + ",\n".join(inner + readable(one, indent + 1) for one in value) + f"\n{outer}]"


def _flat(value: dict[str, Any] | list[Any], plain: str, indent: int) -> bool:
    if isinstance(value, list) and all(isinstance(one, (int, float)) for one in value):
        return True
    parts = value.values() if isinstance(value, dict) else value
    return len(plain) + indent <= WIDTH and not any(isinstance(one, (dict, list)) and one for one in parts)
