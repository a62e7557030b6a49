"""The control plane as a program reaches it: requests under `/__emulator__/`, over HTTP.

httpx comes in with the first request, so that importing this costs nothing.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

TIMEOUT_SECONDS = 30.0


class Plane(Protocol):
    """A way to a control plane; `url` is the server's root."""

    url: str

    def ask(self, method: str, path: str, said: Mapping[str, Any]) -> Any:
        """Send one request and return the JSON of the reply, None where it has none.

        `path` is what follows `/__emulator__/`. Raises ValueError (what was said cannot be), LookupError (what
        it names is not there), PermissionError (no access) with the server's own line, and ConnectionError.
        """


class HttpPlane:
    """The control plane of the server at `url`; `token` is its `--control-token`, where it has one."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url
        self._token = token
        self._http: httpx.Client | None = None

    def ask(self, method: str, path: str, said: Mapping[str, Any]) -> Any:
        """See `Plane`."""
        import httpx

        where = f"{self.url}/__emulator__/{path}"
        if self._http is None:
            self._http = _client(self.url, self._token)
        try:
            if method == "GET":
                reply = self._http.get(where, params=dict(said))
            else:
                reply = self._http.request(method, where, json=dict(said))
        except (httpx.TransportError, httpx.InvalidURL) as fault:
            raise ConnectionError(f"no answer from {where}: {fault}") from None
        if not reply.is_success:
            _refuse(reply)
        return _json(reply) if reply.content else None

    def close(self) -> None:
        """Give the connection back; a later request opens another."""
        if self._http is not None:
            self._http.close()
            self._http = None


def _client(url: str, token: str | None) -> httpx.Client:
    import httpx

    # Reading the machine's certificates takes 40 ms, for which plain HTTP has no use.
    trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if url.startswith("http://") else True
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx.Client(verify=trusted, trust_env=False, headers=headers, timeout=TIMEOUT_SECONDS)


def _json(reply: httpx.Response) -> Any:
    try:
        return reply.json()
    except ValueError:
        raise LookupError(f"{reply.url} answers {reply.status_code} without JSON: no control plane") from None


def _refuse(reply: httpx.Response) -> NoReturn:
    told = _json(reply)
    line = told.get("error") if isinstance(told, dict) else None
    if not isinstance(line, str):
        raise LookupError(f"{reply.url} answers {reply.status_code}: no control plane")
    match reply.status_code:
        case 403:
            raise PermissionError(line)
        case 404:
            raise LookupError(line)
        case _:
            raise ValueError(line)
