"""Texts hidden from a recording: each is a placeholder of the same length in bytes, and shapes stay as they are."""

from __future__ import annotations

from typing import Any, Final

from workersai_contracts.redaction import is_numbers

#: What stands under these keys is no text of anybody's but a word of the wire.
WORDS: Final = frozenset(
    "model request_id id status role type object pooling source_lang target_lang encoding_format finish_reason "
    "stop_reason embedding account_id operation code mode note".split()
)
#: What stands under these keys of a reply is the service's own words, which may quote a text.
_SAID = frozenset({"message", "error", "errors"})
_SHORTEST_QUOTED = 4
_BY_BYTES = {1: "x", 2: "é", 3: "文", 4: "\U0001d431"}


class HiddenTexts:
    """Hides the texts of requests and replies; what was hidden once is hidden in what the service says of it too."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}

    def value(self, value: Any, key: str = "", *, reply: bool) -> Any:
        """Parsed JSON with each text hidden; keys, numbers and words of the wire stay."""
        if isinstance(value, dict):
            return {name: self.value(one, name, reply=reply) for name, one in value.items()}
        if isinstance(value, list):
            return value if is_numbers(value) else [self.value(one, key, reply=reply) for one in value]
        if not isinstance(value, str) or key in WORDS:
            return value
        return self.quoted(value) if reply and key in _SAID else self.text(value)

    def text(self, text: str) -> str:
        """The placeholder of a text; a blank one stays, since it is refused for being blank."""
        if not text.strip():
            return text
        shown = placeholder(text)
        if len(text) >= _SHORTEST_QUOTED:
            self._seen[text] = shown
        return shown

    def quoted(self, said: str) -> str:
        """What the service says, without the texts that it quotes."""
        for text in sorted(self._seen, key=len, reverse=True):
            said = said.replace(text, self._seen[text])
        return said

    def content(self, content: bytes) -> bytes:
        """Zeros for bytes that show or say a text: an image, a recording."""
        return bytes(len(content))


def placeholder(text: str) -> str:
    """A text of as many characters and as many bytes that says nothing."""
    if text.isascii():
        return "x" * len(text)
    return "".join(_BY_BYTES[len(one.encode("utf-8", "surrogatepass"))] for one in text)
