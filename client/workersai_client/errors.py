"""What can go wrong, split by what the caller can do about it.

WorkersAIError             anything below
├─ ConfigurationError      what the caller handed over cannot be used; nothing was sent
├─ TransportError          no reply: no connection, a reset, a timeout
├─ AuthenticationError     the token may not do this (401, 403)
├─ InvalidRequest          the request is wrong and stays wrong (other 4xx)
│  └─ RequestTooLarge      smaller requests may pass (413, 3006)
├─ RateLimited             too fast, or no capacity: later (3021, 3040, other 429)
├─ QuotaExceeded           the allocation is used up: not before 00:00 UTC (4006, 3036)
├─ ServerError             the service's fault: later (5xx)
├─ BatchFailed             a queued batch came to nothing, or its id means nothing any more
├─ ItemFailed              one item of a finished batch failed
├─ WaitTimeout             the deadline passed; the batch goes on, and so may another process
└─ UnexpectedReply         a reply that the service is not known to give
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, Unpack

if TYPE_CHECKING:
    from workersai_client.batches import Handle, Item


class Details(TypedDict, total=False):
    """What an error may know beside its message."""

    status: int | None
    code: int | None
    cf_request_id: str | None
    body: Any
    retryable: bool
    retry_after: float | None


class WorkersAIError(Exception):
    """Anything that this client raises on purpose.

    `status` is the HTTP status, `code` the service's own number, `message` its text in full, `body` the reply
    as parsed JSON or as text. `cf_request_id` is the id to quote to Cloudflare. `retryable` says that the
    same call may succeed later without harm: a submit that may have been queued already is not. `retry_after`
    is in seconds, as the service asked. `handles` holds, after `embed_batch`, every batch submitted so far,
    for `resume`: in the order of the texts, with None where a batch was not submitted.
    """

    def __init__(self, message: str, **details: Unpack[Details]) -> None:
        super().__init__(message)
        self.message = message
        self.status = details.get("status")
        self.code = details.get("code")
        self.cf_request_id = details.get("cf_request_id")
        self.body = details.get("body")
        self.retryable = details.get("retryable", False)
        self.retry_after = details.get("retry_after")
        self.handles: tuple[Handle | None, ...] = ()

    @property
    def details(self) -> Details:
        """All but the message, to make another error of."""
        return Details(
            status=self.status,
            code=self.code,
            cf_request_id=self.cf_request_id,
            body=self.body,
            retryable=self.retryable,
            retry_after=self.retry_after,
        )

    def __str__(self) -> str:
        known = [f"HTTP {self.status}"] if self.status is not None else []
        known += [f"code {self.code}"] if self.code is not None else []
        return f"{self.message} [{', '.join(known)}]" if known else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Subclasses take required keywords, which pickling an exception does not know of; errors do cross
        # processes.
        return type(self).__new__, (type(self), *self.args), self.__dict__


class ConfigurationError(WorkersAIError):
    """What the caller handed over cannot be used; nothing was sent."""


class TransportError(WorkersAIError):
    """No reply came: no connection, a reset, a timeout, a reply cut short.

    `may_have_arrived` is False where the request surely never reached the server.
    """

    def __init__(self, message: str, *, may_have_arrived: bool, retryable: bool = True) -> None:
        super().__init__(message, retryable=retryable)
        self.may_have_arrived = may_have_arrived


class AuthenticationError(WorkersAIError):
    """The token is unknown, or may not do this on this account or plan (401, 403)."""


class InvalidRequest(WorkersAIError):
    """The service refuses the request for what it is (4xx); only 408, a timeout, is worth another try."""


class RequestTooLarge(InvalidRequest):
    """The request is too large for the service or for the model's context (413)."""


class RateLimited(WorkersAIError):
    """Too many requests a minute, or no capacity just now: the request was refused, and may be sent again."""


class QuotaExceeded(WorkersAIError):
    """The day's allocation of neurons is used up; final until 00:00 UTC."""


class ServerError(WorkersAIError):
    """The service failed (5xx)."""


class BatchFailed(WorkersAIError):
    """The batch `handle` will have no results: it failed, expired, or was never there."""

    def __init__(self, message: str, *, handle: Handle, **details: Unpack[Details]) -> None:
        super().__init__(message, **details)
        self.handle = handle


class ItemFailed(WorkersAIError):
    """One item of a finished batch failed; `item` has its error, `handle` its batch where it is known."""

    def __init__(
        self, message: str, *, item: Item, handle: Handle | None = None, **details: Unpack[Details]
    ) -> None:
        super().__init__(message, **details)
        self.item = item
        self.handle = handle


class WaitTimeout(WorkersAIError):
    """The deadline passed after `waited` seconds; the batch goes on.

    `handle` is the batch waited for, to be polled later or elsewhere (None when none was submitted yet),
    `last_status` what it last said (None when it was never reached).
    """

    def __init__(
        self, message: str, *, handle: Handle | None, last_status: str | None, waited: float
    ) -> None:
        super().__init__(message)
        self.handle = handle
        self.last_status = last_status
        self.waited = waited


class UnexpectedReply(WorkersAIError):
    """A reply that the service is not known to give; `path` is a JSON Pointer to where it goes wrong."""

    def __init__(self, message: str, *, path: str, **details: Unpack[Details]) -> None:
        super().__init__(message, **details)
        self.path = path
