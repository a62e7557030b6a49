"""Bodies as a recording writes them: readable, and told again byte for byte.

| form | what it is |
|---|---|
| `{"json": …}` | JSON, printed as the service prints it; a `style` beside it says of another spelling which |
| `{"events": […]}` | a stream, each event with its data, and its name where it has one |
| `{"text": "…"}` | any other text, JSON too that no style spells |
| `{"base64": "…"}` | bytes |
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from workersai_contracts.event_stream import DONE, STREAM_TYPE, Event, parse_events
from workersai_contracts.redaction import is_numbers, without_ids

if TYPE_CHECKING:
    from workersai_contracts.hidden_texts import HiddenTexts
    from workersai_contracts.redaction import Redactor

Body = dict[str, Any]

COMPACT: Final = "compact"
_STYLES: Final[dict[str, dict[str, Any]]] = {
    COMPACT: {"ensure_ascii": False, "separators": (",", ":")},
    "compact, ASCII": {"separators": (",", ":")},
    "spaced": {"ensure_ascii": False},
    "spaced, ASCII": {},
}
#: What is longer in a request is told by its length and its digest: it is compared, and never sent again.
LONGEST_TEXT, LONGEST_NUMBERS = 10_000, 64


class Bodies:
    """Writes the bodies of one recording, redacted, and where that is wanted with their texts hidden."""

    def __init__(self, redactor: Redactor, hidden: HiddenTexts | None = None) -> None:
        self._redactor = redactor
        self._hidden = hidden

    def sent(self, content: bytes) -> Body | None:
        """A request's body, None where there is none. Long parts are told by their length and digest."""
        if not content:
            return None
        try:
            parsed = json.loads(content)
        except (ValueError, RecursionError):
            return _sent_raw(self._clean_raw(content))
        return {"json": shortened(self._clean(parsed, reply=False))}

    def got(self, content: bytes, content_type: str, *, hide: bool = True) -> Body | None:
        """A reply's body, None where there is none, whole. `hide` False leaves texts that are nobody's."""
        if not content:
            return None
        if content_type.startswith(STREAM_TYPE) and (events := _events(content)) is not None:
            return {"events": [{**event, "data": self._clean(event["data"], hide=hide)} for event in events]}
        try:
            parsed = json.loads(content)
            style = next(name for name in _STYLES if _spelled(parsed, name) == content)
        except (ValueError, RecursionError, StopIteration):
            return self._clean_raw(content, hide=hide)
        body: Body = {"json": self._clean(parsed, hide=hide)}
        return body if style == COMPACT else {**body, "style": style}

    def _clean(self, parsed: Any, *, hide: bool = True, reply: bool = True) -> Any:
        shown = self._redactor.value(parsed)
        if self._hidden is None or not hide or parsed == DONE:
            return shown
        return self._hidden.value(shown, reply=reply)

    def _clean_raw(self, content: bytes, *, hide: bool = True) -> Body:
        hidden = self._hidden if hide else None
        try:
            text = self._redactor.text(content.decode("utf-8"))
        except UnicodeDecodeError:
            content = self._redactor.content(content)
            shown = content if hidden is None else hidden.content(content)
            return {"base64": base64.b64encode(shown).decode()}
        return {"text": text if hidden is None else hidden.text(text)}


def content_of(body: Body | None) -> bytes:
    """The bytes of a reply's body as they were recorded. Raises ValueError for what is no body."""
    match body:
        case None:
            return b""
        case {"json": parsed}:
            return _spelled(parsed, body.get("style", COMPACT))
        case {"events": list(events)}:
            return b"".join(_block(event) for event in events)
        case {"text": str(text)}:
            return text.encode("utf-8", "surrogatepass")
        case {"base64": str(packed)}:
            return base64.b64decode(packed)
    raise ValueError(f"a body is json, events, text or base64, not {', '.join(body) if body else 'nothing'}")


def shortened(value: Any) -> Any:
    """Parsed JSON with long texts and long lists of numbers told by their length and digest."""
    if isinstance(value, dict):
        return {key: shortened(one) for key, one in value.items()}
    if isinstance(value, list):
        if len(value) > LONGEST_NUMBERS and is_numbers(value):
            return {"numbers": len(value), "first": value[:4], "digest": _digest(json.dumps(value))}
        return [shortened(one) for one in value]
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        same = without_ids(value)
        return {"characters": len(same), "first": same[:20], "digest": _digest(same)}
    return value


def _sent_raw(body: Body) -> Body:
    kind, shown = next(iter(body.items()))
    return {kind: shortened(shown)}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _spelled(parsed: Any, style: str) -> bytes:
    return json.dumps(parsed, **_STYLES[style]).encode("utf-8", "surrogatepass")


def _events(content: bytes) -> list[dict[str, Any]] | None:
    """The events of a stream; None where they would not give the same bytes again."""
    try:
        told = [_event(event) for event in parse_events(content)]
    except ValueError:
        return None
    return told if b"".join(map(_block, told)) == content else None


def _event(event: Event) -> dict[str, Any]:
    named = {} if event.name is None else {"event": event.name}
    try:
        parsed = json.loads(event.data)
    except ValueError:
        return {**named, "data": event.data}
    return {**named, "data": parsed}


def _block(event: dict[str, Any]) -> bytes:
    """One event. The end of a stream is no JSON, and stands as it is. Fact: `head.sse`."""
    data = event["data"]
    told = data.encode() if isinstance(data, str) else _spelled(data, COMPACT)
    named = f"event: {event['event']}\n".encode() if "event" in event else b""
    return named + b"data: " + told + b"\n\n"
