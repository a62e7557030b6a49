"""An exchange: one request and its reply, as the log tells it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Exchange:
    """What is known of one exchange; the dialect fills it in while it answers.

    `why` says, in one line for a person, what a refusal was about. `hint` says what a newcomer may have missed.
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
