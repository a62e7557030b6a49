"""Replies read: the result inside an envelope, or the error that the reply is."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

import orjson

from workersai_client.errors import (
    AuthenticationError,
    Details,
    InvalidRequest,
    QuotaExceeded,
    RateLimited,
    RequestTooLarge,
    ServerError,
    UnexpectedReply,
    WorkersAIError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workersai_client.wire import Reply

# Facts: `rate.minute`, `capacity`, `quota.daily`, `quota.documented`, `request.too-large`
RATE_CODES = frozenset({3021, 3040})
QUOTA_CODES = frozenset({4006, 3036})
TOO_LARGE_CODES = frozenset({3006})
# Facts: `auth.unknown`, `auth.forbidden`, `auth.malformed`, `auth.missing`
AUTHENTICATION_CODES = frozenset({10000, 9106, 9107})

_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")
_DIGITS = re.compile(r"[0-9]{1,9}")


def result_of(reply: Reply) -> Any:
    """Take the `result` out of a successful reply. Fact: `env.success`.

    Raises the error that the reply is: HTTP 200 with `success: false` is one too, and so is a reply without a
    result.
    """
    body = _body(reply)
    if not 200 <= reply.status < 300:
        raise refusal(reply, body)
    if not isinstance(body, dict):
        _unexpected(reply, body, "", "the reply is not a JSON object")
    success = body.get("success", not body.get("errors"))
    if success is False:
        raise refusal(reply, body)
    if success is not True:
        _unexpected(reply, body, "/success", "success is neither true nor false")
    if "result" not in body:
        _unexpected(reply, body, "/result", "the reply has no result")
    return body["result"]


def refusal(reply: Reply, body: Any) -> WorkersAIError:
    """Make the error that a refusal is, by its code first and its status second.

    The service's text is kept whole. Where the status says success, the code's own status in the catalogue
    counts.
    """
    code, message = error_in(body)
    details = Details(
        status=reply.status,
        code=code,
        cf_request_id=_request_id(reply.headers),
        body=body,
        retry_after=retry_after(reply.headers),
    )
    status = reply.status if reply.status >= 300 else _catalogued_status(code)
    message = message or "the service refused without a message that can be read"
    kind = _kind(status, code)
    if kind is None:
        path = "/success" if reply.status < 300 else ""
        return UnexpectedReply(message, path=path, **details)
    details["retryable"] = issubclass(kind, RateLimited | ServerError) or status == 408
    return kind(message, **details)


def is_retryable(code: int | None) -> bool:
    """Whether a failure with this code, and no status, may pass by itself."""
    status = _catalogued_status(code)
    return code in RATE_CODES or status == 408 or status >= 500


def error_in(body: Any) -> tuple[int | None, str | None]:
    """Find the code and the text of an error object, in any of the shapes that occur.

    `errors` is a list (Facts: `env.edge`, `env.ai`); `error` is a string or an object (Fact: `item.failed`).
    The code is the first, the text is all of them.
    """
    if not isinstance(body, dict):
        return None, None
    found = body.get("errors") or body.get("error")
    entries = found if isinstance(found, list) else [found]
    codes = (_code(entry.get("code")) for entry in entries if isinstance(entry, dict))
    texts = (entry.get("message") if isinstance(entry, dict) else entry for entry in entries)
    code = next((code for code in codes if code is not None), None)
    return code, "; ".join(text for text in texts if isinstance(text, str) and text) or None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds until the service wants to be asked again, from Retry-After in either of its forms.

    A date is measured against the reply's own Date, which the same clock wrote; without one it says nothing.
    """
    value = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(value):
        seconds = float(value)
        return seconds if math.isfinite(seconds) else None
    until, now = _http_date(value), _http_date(headers.get("date", ""))
    return max(0.0, (until - now).total_seconds()) if until and now else None


def is_integer(value: object) -> TypeGuard[int]:
    """Whether a JSON value is an integer; `true` is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def _body(reply: Reply) -> Any:
    """Parse the body, or take a refusal as text: a proxy's page is no reason to lose its status."""
    try:
        return orjson.loads(reply.content)
    except orjson.JSONDecodeError:
        text = reply.content.decode("utf-8", "replace")
        if 200 <= reply.status < 300:
            _unexpected(reply, text, "", "the reply is not JSON")
        return text


def _unexpected(reply: Reply, body: Any, path: str, message: str) -> NoReturn:
    request_id = _request_id(reply.headers)
    raise UnexpectedReply(message, path=path, status=reply.status, cf_request_id=request_id, body=body)


def _kind(status: int, code: int | None) -> type[WorkersAIError] | None:
    by_code: dict[type[WorkersAIError], frozenset[int]] = {
        QuotaExceeded: QUOTA_CODES,
        RateLimited: RATE_CODES,
        RequestTooLarge: TOO_LARGE_CODES,
        AuthenticationError: AUTHENTICATION_CODES,
    }
    by_status: dict[int, type[WorkersAIError]] = {
        401: AuthenticationError,
        403: AuthenticationError,
        413: RequestTooLarge,
        429: RateLimited,
    }
    for kind, codes in by_code.items():
        if code in codes:
            return kind
    if status >= 500:
        return ServerError
    return by_status.get(status, InvalidRequest) if status >= 400 else None


def _catalogued_status(code: int | None) -> int:
    """Look up the HTTP status that goes with a code; 0 where none is known."""
    from workersai_contracts import error

    if code is None:
        return 0
    try:
        return error(code).status
    except LookupError:
        return 0


def _code(value: object) -> int | None:
    if is_integer(value):
        return value
    return int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else None


def _request_id(headers: Mapping[str, str]) -> str | None:
    """Find the id to quote: of the request to the model, or of the connection where no model was reached.

    Fact: `head.req-id`.
    """
    return headers.get("cf-ai-req-id") or headers.get("cf-ray")


def _http_date(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError, IndexError, TypeError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
