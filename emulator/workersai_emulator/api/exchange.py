"""An exchange: one request and its reply, as the log and the journal tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from workersai_emulator.clock import format_time

if TYPE_CHECKING:
    from workersai_emulator.api.gateway_log import GatewayLog

#: What a request did that the service takes without a word, and that its sender will be sorry for.
Slip = Literal["queue-in-body", "bare-body", "reference-in-contexts"]


@dataclass(slots=True, eq=False)
class Exchange:
    """What is known of one exchange; the dialect fills it in while it answers, and the journal when it is over.

    `why` says, in one line for a person, what a refusal was about. `hint` says what a newcomer may have missed.
    `rule` is the id of the rule that decided the request, `nearly` what it nearly matched.

    `time` is when it came by the machine's clock and `clock` by its account's, in seconds since 1970. `client` is
    guessed from the user agent. Of the body there is its size, how much of its limit that is (`limit_share`),
    and a `digest` by which one that comes again is known. `retry_after` is the header of the reply, in seconds;
    `spoiled` says that a rule kept the reply from arriving whole. `gateway_log` is what a gateway shows of it.
    """

    method: str
    path: str
    started: float
    dialect: str = ""
    account_id: str = ""
    operation: str = ""
    model: str = ""
    request_id: str = ""
    state: str = ""
    status: int = 0
    code: int | None = None
    seconds: float = 0.0
    why: str = ""
    hint: str = ""
    rule: str = ""
    nearly: str = ""
    seq: int = 0
    time: float = 0.0
    clock: float = 0.0
    client: str = ""
    body_bytes: int = 0
    limit_share: float = 0.0
    digest: str = ""
    retry_after: float | None = None
    slips: tuple[Slip, ...] = ()
    spoiled: bool = False
    gateway_log: GatewayLog | None = None

    @property
    def duration_ms(self) -> float:
        """How long it took, in milliseconds."""
        return round(self.seconds * 1000, 3)

    def as_json(self) -> dict[str, Any]:
        """As the control plane shows it."""
        return {
            "seq": self.seq,
            "time": format_time(self.time),
            "clock": format_time(self.clock),
            "account_id": self.account_id,
            "dialect": self.dialect,
            "operation": self.operation,
            "model": self.model,
            "method": self.method,
            "path": self.path,
            "status": self.status,
            "code": self.code,
            "duration_ms": self.duration_ms,
            "client": self.client,
            "request_id": self.request_id,
            "state": self.state,
            "why": self.why,
            "rule": self.rule,
            "nearly": self.nearly,
            "retry_after": self.retry_after,
            "body_bytes": self.body_bytes,
            "limit_share": round(self.limit_share, 4),
            "digest": self.digest,
            "slips": list(self.slips),
            "spoiled": self.spoiled,
        }
