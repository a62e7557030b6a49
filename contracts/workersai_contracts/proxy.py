"""A proxy that checks what passes: all goes on as it is, and each departure from the contract is told."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx

from workersai_contracts.passing import Reply, Request, spelled
from workersai_contracts.recording import account_in
from workersai_contracts.redaction import ACCOUNT, TOKEN
from workersai_contracts.routes import exchange_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from workersai_contracts.mismatch import ContractMismatch
    from workersai_contracts.recording import Recorder

_OF_THE_CONNECTION = frozenset(
    {
        "connection",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_CONNECT_SECONDS = 10.0
GRACE_SECONDS = 5.0
_PIECE = 65_536


class Proxy:
    """Listens on a local port and passes everything on to `upstream`, a server's root.

    `tell` gets one line for each departure, with neither account nor token; `breaches` counts them. A `recorder`
    keeps what passes. Both are called from the threads of the connections, one at a time.
    """

    def __init__(
        self, upstream: str, tell: Callable[[str], object], *, port: int = 0, recorder: Recorder | None = None
    ) -> None:
        """Bind the port, 0 for a free one. Raises OSError where it cannot be had."""
        self.upstream = upstream.rstrip("/").removesuffix("/client/v4")
        self.breaches = 0
        self.passed = 0
        self._tell = tell
        self._recorder = recorder
        self._lock = threading.Lock()
        self._under_way = 0
        self._ended = threading.Condition()
        self._http = httpx.Client(timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS))
        self._server = _Listener(("127.0.0.1", port), _Passing)
        self._server.proxy = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def serve(self) -> None:
        """Pass on until `stop` is called from another thread, or the process is interrupted."""
        self._server.serve_forever(poll_interval=0.05)

    def stop(self) -> None:
        """End what waits in `serve`."""
        self._server.shutdown()

    def close(self) -> None:
        """Give the port back, once what is under way has ended, or has had its time."""
        self._server.server_close()
        with self._ended:
            self._ended.wait_for(lambda: not self._under_way, GRACE_SECONDS)
        self._http.close()

    @contextmanager
    def passing(self) -> Iterator[None]:
        """An exchange is under way, from its request to the last of its checks."""
        with self._ended:
            self._under_way += 1
        try:
            yield
        finally:
            with self._ended:
                self._under_way -= 1
                self._ended.notify_all()

    def send(self, asked: Request) -> httpx.Response:
        """Send a request on, its target, headers and body as they came. Raises httpx.HTTPError."""
        request = httpx.Request(
            asked.method,
            self.upstream,
            headers=list(asked.headers),
            content=asked.content or None,
            extensions={"target": asked.target.encode("latin-1"), "timeout": self._http.timeout.as_dict()},
        )
        return self._http.send(request, stream=True, follow_redirects=False)

    def check(self, asked: Request, response: httpx.Response, raw: bytes) -> None:
        """Hold one exchange to the contract, and keep it where exchanges are recorded."""
        reply = Reply(response.status_code, spelled(response.headers), _unpacked(response, raw))
        exchange = exchange_of(asked.method, asked.target, asked.content)
        with self._lock:
            self.passed += 1
            if self._recorder is not None:
                self._recorder.keep(asked, reply)
            if exchange is None:
                return
            self._breach(asked, "request", exchange.check_request())
            found = exchange.check_reply(reply.status, reply.content_type, reply.content)
            self._breach(asked, f"reply, HTTP {reply.status}", found)

    def failed(self, asked: Request, fault: Exception) -> str:
        """Tell that the upstream gave no reply, in the words that its client is told too."""
        with self._lock:
            self.breaches += 1
            line = redacted(asked, f"{asked.line}: no reply: {type(fault).__name__}: {fault}")
            self._tell(line)
            return line

    def broken(self, fault: BaseException | None) -> None:
        """Tell that a request could not be read."""
        with self._lock:
            self.breaches += 1
            self._tell(f"a request that is not framed as HTTP: {type(fault).__name__}: {fault}")

    def _breach(self, asked: Request, where: str, found: ContractMismatch | None) -> None:
        if found is None:
            return
        self.breaches += 1
        told = "; ".join(one.message for one in found.mismatches)
        self._tell(
            redacted(asked, f"{asked.line}: in the {where}, by {found.schema_name}: {' '.join(told.split())}")
        )


def redacted(request: Request, text: str) -> str:
    """A text without the account and the credentials of its request."""
    secrets = [(account_in(request.path), ACCOUNT)]
    for name, value in request.headers:
        if name.lower() in {"authorization", "x-auth-key", "x-auth-email"}:
            secrets += [(word, TOKEN) for word in value.split() if word.lower() not in {"bearer", "basic"}]
    for secret, shown in secrets:
        text = text.replace(secret, shown) if secret else text
    return text


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    proxy: Proxy

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Tell what a connection broke off for; a client that goes away is nothing to tell."""
        fault = sys.exception()
        if not isinstance(fault, ConnectionError):
            self.proxy.broken(fault)


class _Passing(BaseHTTPRequestHandler):
    """One connection of a client."""

    server: _Listener
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._pass_on
        raise AttributeError(name)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Nothing: what is to be told, the proxy tells."""

    def _pass_on(self) -> None:
        with self.server.proxy.passing():
            self._exchange(self.server.proxy)

    def _exchange(self, proxy: Proxy) -> None:
        kept = [
            (name, value) for name, value in self.headers.items() if name.lower() not in _OF_THE_CONNECTION
        ]
        asked = Request(self.command, self.path, kept, self._content())
        try:
            response = proxy.send(asked)
        except httpx.HTTPError as fault:
            self._refuse(proxy.failed(asked, fault))
            return
        raw = bytearray()
        try:
            for piece in self._answer(response):
                raw += piece
        except httpx.HTTPError as fault:
            proxy.failed(asked, fault)
            self.close_connection = True
            return
        finally:
            response.close()
        proxy.check(asked, response, bytes(raw))

    def _content(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        content = bytearray()
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers
        return bytes(content)

    def _answer(self, response: httpx.Response) -> Iterator[bytes]:
        """Write the reply as it comes, and hand out its pieces."""
        self.send_response_only(response.status_code, response.reason_phrase)
        for name, value in spelled(response.headers):
            if name.lower() not in _OF_THE_CONNECTION:
                self.send_header(name, value)
        bodiless = self.command == "HEAD" or response.status_code in {204, 304}
        chunked = "content-length" not in response.headers and not bodiless
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in response.iter_raw():
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            yield piece
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _refuse(self, why: str) -> None:
        content = f"workersai-verify proxy: {why}\n".encode()
        self.send_response_only(502)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def is_root(url: str) -> bool:
    """Whether a URL is an address that requests can be passed on to."""
    address = urlsplit(url)
    return address.scheme in {"http", "https"} and bool(address.hostname)


def _unpacked(response: httpx.Response, raw: bytes) -> bytes:
    """The reply's body as its reader sees it; what cannot be unpacked is left, and is no JSON then."""
    try:
        return httpx.Response(response.status_code, headers=response.headers, content=raw).content
    except httpx.DecodingError:
        return raw
