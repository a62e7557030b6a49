"""Replies: what a dialect hands to the server to be written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from workersai_emulator.json_text import dumps

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from workersai_emulator.effects import Spoiling


@dataclass(slots=True, eq=False)
class Reply:
    """A status, headers, and a body that is whole or comes in pieces.

    The content type of JSON is exactly `application/json`. `spoiling` says what is to happen to the connection.
    The headers are a dialect's, what a rule says that they are, or a recording's, which has its own cf-ray.
    Facts: `head.content-type`, `head.req-id`.
    """

    status: int
    body: bytes | AsyncGenerator[bytes]
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    spoiling: Spoiling | None = None
    headers_of: Literal["dialect", "rule", "recording"] = "dialect"


def json_reply(status: int, message: Any) -> Reply:
    """A reply of one JSON message."""
    return Reply(status, dumps(message))


def tool_refusal(status: int, reason: str) -> Reply:
    """A refusal by the emulator as a tool, not by the service it stands in for."""
    return json_reply(status, {"error": reason})
