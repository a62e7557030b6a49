"""The AI Gateway's log of one run: what a Worker reads back with `env.AI.gateway(id).getLog(…)`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from workersai_emulator.clock import format_time

if TYPE_CHECKING:
    from workersai_emulator.api.exchange import Exchange
    from workersai_emulator.api.reply import Reply

#: So many of a request's own marks a gateway keeps. Fact: `binding.log`.
MOST_METADATA: Final = 5
#: The most that is kept of one of them.
LONGEST_MARK: Final = 200


@dataclass(slots=True)
class GatewayLog:
    """What is kept of a run beside its exchange; `score` and `feedback` are what a Worker said of it."""

    id: str
    gateway_id: str
    request_size: int = 0
    response_size: int = 0
    response_content_type: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    opinion: dict[str, Any] = field(default_factory=dict)

    def answered(self, reply: Reply) -> None:
        """Write down how it was answered; the size of what comes in pieces is not counted."""
        self.response_content_type = reply.content_type
        self.response_size = len(reply.body) if isinstance(reply.body, bytes) else 0

    def patch(self, said: Any) -> None:
        """Take over what a Worker says of it. Raises ValueError that names the member. Fact: `binding.log-patch`."""
        if not isinstance(said, dict):
            raise ValueError("a patch is an object")
        opinion = {name: said[name] for name in ("feedback", "score") if name in said}
        if not _is_number(opinion.get("feedback", 0), -1, 1, whole=True):
            raise ValueError("feedback is -1, 0, 1 or null")
        if not _is_number(opinion.get("score", 0), 0, 100):
            raise ValueError("score is a number from 0 to 100, or null")
        metadata = marks(said["metadata"]) if "metadata" in said else self.metadata
        self.opinion.update(opinion)
        self.metadata = metadata

    def as_json(self, exchange: Exchange) -> dict[str, Any]:
        """As the gateway shows it: neither bodies nor tokens are kept. Facts: `binding.log`, `settled.log`."""
        return {
            "id": self.id,
            "provider": "workers-ai",
            "model": exchange.model,
            "path": f"run/{exchange.model}",
            "duration": round(exchange.duration_ms),
            "request_content_type": "application/json",
            "status_code": exchange.status,
            "response_content_type": self.response_content_type,
            "success": exchange.status < 400,
            "cached": False,
            "metadata": self.metadata,
            "request_size": self.request_size,
            "request_head_complete": False,
            "response_size": self.response_size,
            "response_head_complete": False,
            "created_at": format_time(exchange.clock),
            **self.opinion,
        }


def marks(said: Any) -> dict[str, Any]:
    """The marks that a request or a patch gives a log. Raises ValueError for what are none. Fact: `binding.log`."""
    if said is None:
        return {}
    if not isinstance(said, dict) or any(isinstance(value, dict | list) for value in said.values()):
        raise ValueError("metadata is no object of texts, numbers and truths")
    kept = list(said.items())[:MOST_METADATA]
    return {
        name[:LONGEST_MARK]: value[:LONGEST_MARK] if isinstance(value, str) else value for name, value in kept
    }


def _is_number(value: Any, least: int, most: int, *, whole: bool = False) -> bool:
    if value is None:
        return True
    return (
        not isinstance(value, bool)
        and isinstance(value, int if whole else int | float)
        and least <= value <= most
    )
