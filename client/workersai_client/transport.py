"""The HTTP library's words translated into ours."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

import httpx

from workersai_client.errors import TransportError
from workersai_client.wire import Reply, Request

if TYPE_CHECKING:
    import ssl

    from workersai_client.settings import Settings

# Failures before the first byte of a request went out. A failed write is none of them: the rest may have
# arrived.
_BEFORE_SENDING = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
_HOPELESS = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)


def headers(settings: Settings) -> dict[str, str]:
    """Make what every request of a client carries. The token lives here and nowhere else."""
    return {
        "authorization": f"Bearer {settings.api_token}",
        "user-agent": f"workersai-client/{version('workersai-emulator')}",
    }


@cache
def tls() -> ssl.SSLContext:
    """Load the trusted certificates, once a process: it takes longer than everything else in making a client."""
    return httpx.create_ssl_context()


def timeouts(settings: Settings, within: float | None) -> httpx.Timeout:
    """Bound each step of an exchange by the client's timeout, or by what is left of the deadline."""
    return httpx.Timeout(settings.timeout if within is None else min(settings.timeout, within))


def reply(response: httpx.Response, content: bytes) -> Reply:
    """Make a reply of a response and its body."""
    return Reply(response.status_code, dict(response.headers), content)


def failure(error: httpx.RequestError, request: Request) -> TransportError:
    """Translate a failure: whether the request may have arrived, and whether to try again."""
    reason = f"{type(error).__name__}: {error}".rstrip(": ")
    return TransportError(
        f"no reply from {_host(request)} ({reason})",
        may_have_arrived=not isinstance(error, _BEFORE_SENDING),
        retryable=not isinstance(error, _HOPELESS),
    )


def too_slow(request: Request, within: float | None) -> TransportError:
    """Give up a reply that was still arriving when the deadline passed."""
    return TransportError(f"no whole reply from {_host(request)} within {within} s", may_have_arrived=True)


def _host(request: Request) -> str:
    return httpx.URL(request.url).netloc.decode()
