"""Redaction: an exchange without what tells whose it was.

Tokens and account ids go; every id that the service drew is mapped to a stable one, the same for the same id, so that
what belongs together stays together. Looked at are paths, headers, keys and values of JSON, what is written in percent
or in base64, and bytes.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from workersai_contracts.catalogue import models

if TYPE_CHECKING:
    from collections.abc import Iterable

ACCOUNT, TOKEN, KEY, EMAIL = "{account_id}", "{token}", "{key}", "{email}"
#: What every id is where only its place counts.
ANY_ID = "{id}"

#: A token shorter than this is nobody's, and is only hidden where it stands as one: it may be a word.
SHORTEST_TOKEN: Final = 12
_SHORTEST_EMAIL: Final = 6
_KNOWN, _BEARER, _UUID, _HEX, _RAY = "known", "bearer", "uuid", "hex", "ray"
_ID_KEYS = re.compile(r"(?:.*_)?id|request_?id|system_fingerprint", re.IGNORECASE)
_ID_HEADERS = frozenset({"cf-ai-req-id", "cf-ray", "cf-aig-log-id", "x-request-id"})
_OPAQUE = re.compile(r"(?P<prefix>(?:[A-Za-z]+[-_])?)(?P<drawn>[A-Za-z0-9_-]+)")
_SHORTEST_OPAQUE = 12
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_UUID_FORM = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
#: Where hex digits may begin: behind none, behind a sign in percent, and never in a fraction.
_BEGINS = r"(?:(?<![0-9a-f.])|(?<=%[0-9a-f][0-9a-f]))"
#: What is all digits may be a number, and is no id of its own.
_NO_NUMBER = r"(?=[0-9]*[a-f])"
_DRAWN = (
    rf"(?P<{_BEARER}>(?<=bearer )\S+)|(?P<{_UUID}>{_UUID_FORM})"
    rf"|(?P<{_HEX}>{_BEGINS}{_NO_NUMBER}[0-9a-f]{{32}}(?![0-9a-f]))"
    rf"|(?P<{_RAY}>(?:[0-9a-f]{{16}}-[a-z]{{3}}|{_BEGINS}{_NO_NUMBER}[0-9a-f]{{16}})(?![0-9a-z]))"
)
_IDS = re.compile(_DRAWN, re.IGNORECASE)
_DEPTH = 3


class Redactor:
    """Hides what it was told of, and what looks like an id; what it has seen keeps its stable form.

    `ids` are the ids that were met, in the order of their first appearance, as they were written.
    """

    def __init__(
        self, account_ids: Iterable[str] = (), tokens: Iterable[str] = (), *, alike: bool = False
    ) -> None:
        """Hide these from the beginning. With `alike` all ids are shown as the same."""
        self.ids: list[str] = []
        self._alike = alike
        self._stable: dict[str, str] = {}
        self._written: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._known: dict[str, str] = {}
        self._pattern = _IDS
        for account_id in account_ids:
            self.hide(account_id, ACCOUNT)
        for token in tokens:
            self.hide(token, TOKEN)

    def hide(self, secret: str, shown: str) -> None:
        """From now on show this instead of a secret, in whatever way it is written."""
        if (
            len(secret) < (_SHORTEST_EMAIL if "@" in secret else SHORTEST_TOKEN)
            or secret.lower() in self._known
        ):
            return
        for written in (secret, quote(secret, safe=""), json.dumps(secret)[1:-1]):
            self._known[written.lower()] = shown
        known = "|".join(re.escape(one) for one in sorted(self._known, key=len, reverse=True))
        self._pattern = re.compile(f"(?P<{_KNOWN}>{known})|{_DRAWN}", re.IGNORECASE)

    def original(self, shown: str) -> str:
        """What was written where this stable id is shown now; the same where it shows nothing."""
        return self._written.get(shown, shown)

    def text(self, text: str) -> str:
        """A text with nothing in it that is to be hidden."""
        return self._text(text, _DEPTH)

    def content(self, content: bytes) -> bytes:
        """Bytes that are no text, likewise."""
        return self.text(content.decode("latin-1")).encode("latin-1")

    def header(self, name: str, value: str) -> str:
        """A header's value; a header that names the exchange has an id for a value, whatever that looks like."""
        return self._id(value) if name.lower() in _ID_HEADERS else self.text(value)

    def value(self, value: Any, key: str = "") -> Any:
        """Parsed JSON, keys and values; numbers stay. What stands under a key of ids is one."""
        if isinstance(value, dict):
            return {self.text(name): self.value(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return value if is_numbers(value) else [self.value(one) for one in value]
        if not isinstance(value, str):
            return value
        return self._id(value, always=key == "request_id") if _ID_KEYS.fullmatch(key) else self.text(value)

    def _id(self, value: str, *, always: bool = False) -> str:
        shown = self.text(value)
        opaque = _OPAQUE.fullmatch(value)
        if shown != value or opaque is None or value in _public_ids():
            return shown
        if not always and (len(value) < _SHORTEST_OPAQUE or value.isalpha()):
            return value
        width = len(opaque["drawn"])
        return self._as(value, opaque["prefix"], "{prefix}{number:0{width}d}", width)

    def _text(self, text: str, depth: int) -> str:
        if len(text) < 2 or is_padding(text):
            return text
        shown = self._pattern.sub(self._shown, text)
        return _BASE64.sub(lambda run: self._unpacked(run[0], depth - 1), shown) if depth else shown

    def _shown(self, found: re.Match[str]) -> str:
        kind, written = found.lastgroup, found[0]
        if kind == _KNOWN:
            return self._known[written.lower()]
        if kind == _BEARER:
            return TOKEN
        drawn = written.lower()
        if drawn in _public_ids():
            return written
        if kind == _UUID:
            return self._as(drawn, _UUID, "00000000-0000-4000-8000-{number:012x}")
        if kind == _HEX:
            return self._as(drawn, _HEX, "{number:032x}")
        place = "-REC" if "-" in drawn else ""
        shown = self._as(drawn.partition("-")[0], _RAY, "{number:016x}")
        return shown if self._alike else shown + place

    def _as(self, drawn: str, kind: str, form: str, width: int = 0) -> str:
        if drawn not in self._stable:
            number = self._counts[kind] = self._counts.get(kind, 0) + 1
            self._stable[drawn] = (
                ANY_ID if self._alike else form.format(prefix=kind, number=number, width=width)
            )
            self._written[self._stable[drawn]] = drawn
            self.ids.append(drawn)
        return self._stable[drawn]

    def _unpacked(self, run: str, depth: int) -> str:
        """What base64 hides, wherever in the run it begins; the run itself where it hides nothing."""
        for start in range(4):
            packed = run[start:].rstrip("=").replace("-", "+").replace("_", "/")
            packed = packed[: len(packed) - 1] if len(packed) % 4 == 1 else packed
            try:
                inner = base64.b64decode(packed + "=" * (-len(packed) % 4)).decode("latin-1")
            except binascii.Error:
                continue
            shown = self._text(inner, depth)
            if shown != inner:
                return run[:start] + base64.b64encode(shown.encode("latin-1")).decode()
        return run


def without_ids(text: str) -> str:
    """A text that is the same whatever the ids in it are, stable ones or others."""
    return text if is_padding(text) else _IDS.sub(ANY_ID, text)


def is_padding(text: str) -> bool:
    """Whether a long text says one character again and again, as what only fills a body does."""
    return len(text) > 64 and text[:64] == text[0] * 64 and text == text[0] * len(text)


def is_numbers(values: list[Any]) -> bool:
    """Whether a list is a vector, or a recording's samples."""
    return bool(values) and all(type(one) in {int, float} for one in values)


@cache
def _public_ids() -> frozenset[str]:
    """Ids that everybody has: those of the models and of their tasks. Fact: `models.search`."""
    cards = models().values()
    return frozenset({card.task_id for card in cards} | {card.id for card in cards if card.id is not None})
