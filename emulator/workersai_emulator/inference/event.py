"""Events: what a streamed text is made of on the wire."""

from __future__ import annotations

from typing import NamedTuple


class Event(NamedTuple):
    """One event of a stream: the JSON text of its `data:` line, and its name where it has one."""

    data: bytes
    name: str | None = None
