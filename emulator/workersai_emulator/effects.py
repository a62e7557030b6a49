"""Effects: what a rule makes happen, each spelled as in the control plane."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from workersai_contracts import ErrorRow, error
from workersai_emulator.clock import format_duration, parse_duration
from workersai_emulator.json_text import dumps
from workersai_emulator.scripts import Script
from workersai_emulator.settings import alternative

if TYPE_CHECKING:
    from collections.abc import Mapping

Operation = Literal["submit", "poll", "run", "models"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
Spoiling = Literal["reset-before", "reset-after", "truncate", "garbage", "slow", "hang", "wrong-length"]
SPOILINGS: tuple[Spoiling, ...] = get_args(Spoiling)

#: What these are about happens while the body is read.
_BEFORE_RULES = frozenset({"submit.too-large", "body.limit", "body.not-json"})
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


class ErrorEffect(NamedTuple):
    """The request is refused with a row of the catalogue; `retry_after` seconds go into a header."""

    row: ErrorRow
    retry_after: float | None = None

    @classmethod
    def read(cls, said: Any, others: Mapping[str, Any]) -> ErrorEffect:
        """Read `{"error": 3040, "retry_after": 2}`."""
        wait = others.get("retry_after")
        row = _row(said, "effect: error")
        try:
            return cls(row, None if wait is None else parse_duration(wait))
        except ValueError as fault:
            raise ValueError(f"effect: retry_after: {fault}") from None

    def as_json(self) -> dict[str, Any]:
        """As the control plane spells it."""
        shown: dict[str, Any] = {"error": self.row.id}
        return shown if self.retry_after is None else {**shown, "retry_after": self.retry_after}


class ScriptEffect(NamedTuple):
    """The batch that is submitted lives by this script."""

    script: Script

    @classmethod
    def read(cls, said: Any, others: Mapping[str, Any]) -> ScriptEffect:
        """Read `{"script": "queued:2m, failed:5001"}`."""
        return cls(Script.parse(said))

    def as_json(self) -> dict[str, Any]:
        """As the control plane spells it."""
        return {"script": str(self.script)}


class OutputEffect(NamedTuple):
    """The model answers this: the result of a run, and of each item of a batch that the rule is for."""

    output: Any

    @classmethod
    def read(cls, said: Any, others: Mapping[str, Any]) -> OutputEffect:
        """Read `{"output": {…}}`."""
        return cls(said)

    def as_json(self) -> dict[str, Any]:
        """As the control plane spells it."""
        return {"output": self.output}


class ItemsEffect(NamedTuple):
    """Some items of the batch that is submitted fail: by index, by a share that the seed draws, or by text."""

    row: ErrorRow
    indexes: frozenset[int] = frozenset()
    share: float | None = None
    text: str | None = None

    @classmethod
    def read(cls, said: Any, others: Mapping[str, Any]) -> ItemsEffect:
        """Read `{"items": {"indexes": [0, 3], "code": 3030}}`."""
        if not isinstance(said, dict):
            raise ValueError('items: give a JSON object such as {"indexes":[0,3],"code":3030}')
        no_others(said, "items", ("indexes", "share", "text", "code"))
        if sum(key in said for key in ("indexes", "share", "text")) != 1:
            raise ValueError("items: give one of indexes, share and text")
        indexes, share, text = said.get("indexes", []), said.get("share"), said.get("text")
        if not isinstance(indexes, list) or not all(type(index) is int and index >= 0 for index in indexes):
            raise ValueError(f"items: indexes is a list of numbers from 0 on, not {indexes!r}")
        if "share" in said and not is_share(share):
            raise ValueError(f"items: share is a number from 0 to 1, not {share!r}")
        if "text" in said and not isinstance(text, str):
            raise ValueError(f"items: text is a text, not {text!r}")
        return cls(_row(said.get("code", "batch.failed"), "items: code"), frozenset(indexes), share, text)

    def as_json(self) -> dict[str, Any]:
        """As the control plane spells it."""
        shown: dict[str, Any] = {"indexes": sorted(self.indexes)}
        if self.share is not None:
            shown = {"share": self.share}
        elif self.text is not None:
            shown = {"text": self.text}
        return {"items": {**shown, "code": self.row.id}}


class ReplyEffect(NamedTuple):
    """The reply is this, whatever was asked; nothing is done."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @classmethod
    def read(cls, said: Any, others: Mapping[str, Any]) -> ReplyEffect:
        """Read `{"reply": {"status": 502, "headers": {…}, "body": "…"}}`; a body that is no text is sent as JSON."""
        if not isinstance(said, dict):
            raise ValueError('reply: give a JSON object such as {"status":502,"body":"…"}')
        no_others(said, "reply", ("status", "headers", "body"))
        status, headers = said.get("status", 200), said.get("headers", {})
        if type(status) is not int or not 200 <= status <= 599:
            raise ValueError(f"reply: status is a number from 200 to 599, not {status!r}")
        texts = isinstance(headers, dict) and all(isinstance(value, str) for value in headers.values())
        if not texts or any("\n" in text or "\r" in text for pair in headers.items() for text in pair):
            raise ValueError("reply: headers is a JSON object of texts, each of one line")
        for name in headers:
            if _HEADER_NAME.fullmatch(name) is None:
                raise ValueError(f"reply: {name!r} is no name of a header")
            if name.lower() in {"content-length", "transfer-encoding", "connection"}:
                raise ValueError(f"reply: {name} is the server's own; to spoil a connection, use transport")
        return cls(status, headers, said.get("body", ""))

    @property
    def content(self) -> bytes:
        """The body as it is sent."""
        return self.body.encode("utf-8", "surrogatepass") if isinstance(self.body, str) else dumps(self.body)

    @property
    def other_headers(self) -> dict[str, str]:
        """The headers without the content type."""
        return {name: value for name, value in self.headers.items() if name.lower() != "content-type"}

    @property
    def content_type(self) -> str:
        """What the headers say that the body is; where they don't, HTML or JSON by its looks."""
        for name, value in self.headers.items():
            if name.lower() == "content-type":
                return value
        is_page = isinstance(self.body, str) and self.body.lstrip().startswith("<")
        return "text/html" if is_page else "application/json"

    def as_json(self) -> dict[str, Any]:
        """As the control plane spells it."""
        return {"reply": {"status": self.status, "headers": dict(self.headers), "body": self.body}}


class DelayEffect(NamedTuple):
    """The request is taken up so much later, by the machine's own clock, since that is what clients wait by."""

    seconds: float

    @classmethod
    def read(cls, said: Any, others: Mapping[str, Any]) -> DelayEffect:
        """Read `{"delay": "2s"}`."""
        try:
            return cls(parse_duration(said))
        except ValueError as fault:
            raise ValueError(f"delay: {fault}") from None

    def as_json(self) -> dict[str, Any]:
        """As the control plane spells it."""
        return {"delay": format_duration(self.seconds)}


class BusyEffect(NamedTuple):
    """There is no capacity for so long: a run waits for it, or is refused at once where it asks for that.

    Fact: `sync.busy`.
    """

    seconds: float

    @classmethod
    def read(cls, said: Any, others: Mapping[str, Any]) -> BusyEffect:
        """Read `{"busy": "2s"}`."""
        try:
            return cls(parse_duration(said))
        except ValueError as fault:
            raise ValueError(f"busy: {fault}") from None

    def as_json(self) -> dict[str, Any]:
        """As the control plane spells it."""
        return {"busy": format_duration(self.seconds)}


class StreamEffect(NamedTuple):
    """A text that is streamed breaks off after so many events, or turns into an error there.

    Fact: `head.sse`.
    """

    after: int
    row: ErrorRow | None = None

    @classmethod
    def read(cls, said: Any, others: Mapping[str, Any]) -> StreamEffect:
        """Read `{"stream": {"after": 2, "error": 3040}}`; without an error the connection breaks."""
        if not isinstance(said, dict):
            raise ValueError('stream: give a JSON object such as {"after":2,"error":3040}')
        no_others(said, "stream", ("after", "error"))
        after = said.get("after")
        if type(after) is not int or after < 0:
            raise ValueError(f"stream: after is a number of events from 0 on, not {after!r}")
        return cls(after, _row(said["error"], "stream: error") if "error" in said else None)

    def as_json(self) -> dict[str, Any]:
        """As the control plane spells it."""
        shown: dict[str, Any] = {"after": self.after}
        return {"stream": shown if self.row is None else {**shown, "error": self.row.id}}


class AssumeEffect(NamedTuple):
    """For this request, open facts are answered so."""

    assumptions: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def read(cls, said: Any, others: Mapping[str, Any]) -> AssumeEffect:
        """Read `{"assume": {"<id>": "<alternative>"}}`."""
        if not isinstance(said, dict) or not said:
            raise ValueError("assume: give a JSON object of open facts and their alternatives")
        for fact_id in said:
            if fact_id in _BEFORE_RULES:
                raise ValueError(
                    f"assume: {fact_id} is decided before a rule can match; say it in the settings"
                )
        return cls({fact_id: alternative(fact_id, chosen, "assume") for fact_id, chosen in said.items()})

    def as_json(self) -> dict[str, Any]:
        """As the control plane spells it."""
        return {"assume": dict(self.assumptions)}


class TransportEffect(NamedTuple):
    """The connection is spoiled: before the request is taken (`reset-before`), or while it is answered."""

    spoiling: Spoiling

    @classmethod
    def read(cls, said: Any, others: Mapping[str, Any]) -> TransportEffect:
        """Read `{"transport": "reset-after"}`."""
        if said not in SPOILINGS:
            raise ValueError(f"transport: one of {', '.join(SPOILINGS)}, not {said!r}")
        return cls(said)

    def as_json(self) -> dict[str, Any]:
        """As the control plane spells it."""
        return {"transport": self.spoiling}


Effect = (
    ErrorEffect
    | ScriptEffect
    | OutputEffect
    | ItemsEffect
    | ReplyEffect
    | DelayEffect
    | BusyEffect
    | StreamEffect
    | AssumeEffect
    | TransportEffect
)

_ANY = frozenset(OPERATIONS)
_HAPPENS_TO: Mapping[type, frozenset[Operation]] = {
    ErrorEffect: _ANY,
    ScriptEffect: frozenset({"submit"}),
    OutputEffect: frozenset({"run", "submit"}),
    ItemsEffect: frozenset({"submit"}),
    ReplyEffect: _ANY,
    DelayEffect: _ANY,
    BusyEffect: frozenset({"run"}),
    StreamEffect: frozenset({"run"}),
    AssumeEffect: _ANY,
    TransportEffect: _ANY,
}


def happens_to(effect: Effect) -> frozenset[Operation]:
    """The operations that an effect can happen to."""
    return _HAPPENS_TO[type(effect)]


_KINDS: dict[str, type[Effect]] = {
    "error": ErrorEffect,
    "script": ScriptEffect,
    "output": OutputEffect,
    "items": ItemsEffect,
    "reply": ReplyEffect,
    "delay": DelayEffect,
    "busy": BusyEffect,
    "stream": StreamEffect,
    "assume": AssumeEffect,
    "transport": TransportEffect,
}


def read_effect(said: object) -> Effect:
    """Read an effect. ValueError names the part at fault."""
    if not isinstance(said, dict):
        raise ValueError(f"effect: give a JSON object with one of {', '.join(_KINDS)}")
    no_others(said, "effect", (*_KINDS, "retry_after"))
    kinds = [kind for kind in _KINDS if kind in said]
    if len(kinds) != 1:
        raise ValueError(f"effect: give one of {', '.join(_KINDS)}")
    if "retry_after" in said and kinds != ["error"]:
        raise ValueError("effect: retry_after goes with error")
    return _KINDS[kinds[0]].read(said[kinds[0]], said)


def no_others(said: Mapping[str, Any], place: str, keys: tuple[str, ...]) -> None:
    """Refuse a member that nobody reads. Raises ValueError that names it."""
    for key in said:
        if key not in keys:
            raise ValueError(f"{place}: there is no {key!r}; there are {', '.join(keys)}")


def is_share(value: object) -> bool:
    """Whether a JSON value is a number from 0 to 1."""
    return not isinstance(value, bool) and isinstance(value, (int, float)) and 0 <= value <= 1


def _row(key: Any, place: str) -> ErrorRow:
    if isinstance(key, bool) or not isinstance(key, (int, str)):
        raise ValueError(f"{place}: {key!r} is not a code or a row's id")
    try:
        return error(key)
    except LookupError as unknown:
        raise ValueError(f"{place}: {unknown.args[0]}") from None
