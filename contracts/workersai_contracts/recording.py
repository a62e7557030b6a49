"""Recordings: a folder with a file for each exchange, in the order in which they were made, and what it is."""

from __future__ import annotations

import json
import threading
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from workersai_contracts.body_forms import Bodies
from workersai_contracts.hidden_texts import HiddenTexts
from workersai_contracts.readable import readable
from workersai_contracts.recorded import Credentials, Recorded
from workersai_contracts.redaction import ACCOUNT, EMAIL, KEY, TOKEN, Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from workersai_contracts.passing import Reply, Request

#: The file that makes a folder a recording.
INDEX: Final = "recording.json"
_FORMAT = 1
_KEPT = frozenset({"content-type", "retry-after", "cf-ray", "server", "allow", "www-authenticate"})
_KEPT_BEGINNINGS = ("cf-ai-", "cf-aig-")
_OF_THE_CONNECTION = frozenset(
    {"connection", "content-encoding", "content-length", "date", "keep-alive", "transfer-encoding"}
)
_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class NoRecording(ValueError):
    """There is no recording, or none can be made; the message is one line."""


class Recorder:
    """Takes exchanges as they were made, and keeps them redacted: in `exchanges` and, given a folder, in its files.

    `of` is what the next exchanges are made for. Several threads may hand over theirs.
    """

    def __init__(
        self,
        target: str,
        folder: Path | None = None,
        *,
        account_ids: Iterable[str] = (),
        tokens: Iterable[str] = (),
        hide_texts: bool = False,
    ) -> None:
        """Begin a recording of this target, which `tokens` open. Raises NoRecording where the folder has one."""
        self.of = ""
        self.exchanges: list[Recorded] = []
        self._tokens = frozenset(tokens)
        self._redactor = Redactor(account_ids, self._tokens)
        self._bodies = Bodies(self._redactor, HiddenTexts() if hide_texts else None)
        self._polls: dict[str, int] = {}
        self._lock = threading.Lock()
        self._folder = folder
        if folder is not None:
            _begin(
                folder,
                {"recording": _FORMAT, "target": self._redactor.text(target), "texts_hidden": hide_texts},
            )

    def keep(self, request: Request, reply: Reply) -> Recorded:
        """Keep one exchange."""
        with self._lock:
            recorded = self._redacted(request, reply)
            self.exchanges.append(recorded)
            if self._folder is not None:
                _write(self._folder / recorded.name, recorded.as_json())
            return recorded

    def _redacted(self, request: Request, reply: Reply) -> Recorded:
        headers = request.named_headers()
        credentials = self._credentials(headers)
        self._redactor.hide(account_in(request.path), ACCOUNT)
        others = dict.fromkeys(self._redactor.text(name) for name, _ in reply.headers if _is_other(name))
        recorded = Recorded(
            number=len(self.exchanges) + 1,
            of=self.of,
            method=request.method,
            path=self._redactor.text(request.path),
            query=self._redactor.text(request.query),
            credentials=credentials,
            content_type=self._redactor.text(headers.get("content-type", "")),
            sent=self._bodies.sent(_unpacked(request.content, headers.get("content-encoding", ""))),
            status=reply.status,
            headers={n: self._redactor.header(n, value) for n, value in reply.headers if _is_kept(n)},
            other_headers=tuple(others),
            got=self._bodies.got(reply.content, reply.content_type, hide=request.method == "POST"),
        )
        return self._numbered(recorded.named(_sent_again(recorded)))

    def _numbered(self, recorded: Recorded) -> Recorded:
        if recorded.operation not in {"poll", "worker-poll"}:
            return recorded
        count = self._polls[recorded.request_id] = self._polls.get(recorded.request_id, 0) + 1
        return replace(recorded, poll=count)

    def _credentials(self, headers: Mapping[str, str]) -> Credentials:
        """What kind of credentials these are; they themselves are hidden from now on."""
        for name, shown in (("x-auth-key", KEY), ("x-auth-email", EMAIL)):
            self._redactor.hide(headers.get(name, ""), shown)
        for word in headers.get("authorization", "").split():
            self._redactor.hide(word, TOKEN)
        return credentials_of(headers, self._tokens)


class Recording:
    """A recording as it was made: its exchanges in their order, and of what target it is."""

    def __init__(self, folder: Path, target: str, exchanges: list[Recorded], *, texts_hidden: bool) -> None:
        self.folder = folder
        self.target = target
        self.exchanges = exchanges
        self.texts_hidden = texts_hidden

    @property
    def has_worker(self) -> bool:
        """Whether a `/batch` Worker is in it."""
        return any(one.operation in {"worker-submit", "worker-poll"} for one in self.exchanges)

    @classmethod
    def read(cls, folder: Path) -> Recording:
        """Read a folder. Raises NoRecording in one line for one that is none, or has a file that is none."""
        index = folder / INDEX
        if not index.is_file():
            raise NoRecording(f"{folder} has no {INDEX}: workersai-verify --record makes recordings")
        about = _read(index)
        if not isinstance(about, dict) or about.get("recording") != _FORMAT:
            raise NoRecording(f"{index}: it is not a recording of this version's form")
        files = sorted(path for path in folder.glob("*.json") if path.name != INDEX)
        exchanges = [_recorded_in(path) for path in files]
        exchanges.sort(key=lambda one: one.number)
        return cls(
            folder, str(about.get("target")), exchanges, texts_hidden=about.get("texts_hidden") is True
        )


def account_in(path: str) -> str:
    """The account that a path names: 32 hex digits, else empty."""
    _, found, behind = path.partition("/accounts/")
    account_id = behind.partition("/")[0]
    digits = found and len(account_id) == 32 and all(one in "0123456789abcdefABCDEF" for one in account_id)
    return account_id if digits else ""


def credentials_of(headers: Mapping[str, str], tokens: Iterable[str]) -> Credentials:
    """What kind of credentials a request has, by its headers with names in lower case.

    Facts: `auth.missing`, `auth.malformed`.
    """
    given = headers.get("authorization")
    if given is None:
        key = headers.get("x-auth-key", "")
        return "missing" if not key else "good" if key in tokens or not tokens else "unknown"
    words = given.split()
    if len(words) != 2 or words[0].lower() != "bearer":
        return "malformed"
    return "good" if words[1] in tokens or not tokens else "unknown"


def _sent_again(recorded: Recorded) -> bytes:
    """The redacted request as bytes, by which its operation is known."""
    return json.dumps(recorded.sent["json"]).encode() if recorded.sent and "json" in recorded.sent else b"{}"


def _is_kept(name: str) -> bool:
    return name.lower() in _KEPT or name.lower().startswith(_KEPT_BEGINNINGS)


def _is_other(name: str) -> bool:
    return not _is_kept(name) and name.lower() not in _OF_THE_CONNECTION


def _unpacked(content: bytes, coding: str) -> bytes:
    window = _WINDOWS.get(coding.strip().lower())
    if window is None:
        return content
    try:
        return zlib.decompress(content, window)
    except zlib.error:
        return b"{what was sent could not be unpacked}"


def _begin(folder: Path, about: dict[str, Any]) -> None:
    if folder.exists() and any(folder.iterdir()):
        raise NoRecording(f"--record {folder}: it is not empty; give a folder that is new")
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / INDEX, about)


def _write(path: Path, told: Any) -> None:
    path.write_bytes((readable(told) + "\n").encode("utf-8", "surrogatepass"))


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
    except ValueError as fault:
        raise NoRecording(f"{path}: {fault}") from None


def _recorded_in(path: Path) -> Recorded:
    try:
        return Recorded.from_json(_read(path))
    except (KeyError, TypeError, AttributeError) as fault:
        raise NoRecording(f"{path}: it is no recorded exchange: {fault!r}") from None
