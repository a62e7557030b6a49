"""Images and recordings as they come in: as bytes, as numbers, as base64; and what is read from them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import math
import wave
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from workersai_emulator.inference.inputs import text_of

if TYPE_CHECKING:
    from workersai_contracts import ModelCard

#: What a second of a recording is taken to be that doesn't say how long it is: 128 kbit/s.
BYTES_A_SECOND: Final = 16_000
#: The size of an image that doesn't say it.
UNKNOWN_SIZE: Final = (640, 480)
#: A file that says it is wider or higher than this is not believed.
LARGEST_SIDE: Final = 65_535

_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8"


def members_of(card: ModelCard) -> set[str]:
    """Return the names that a model's output has by its card, in any of its forms."""
    arms = card.output_schema.get("oneOf", [card.output_schema])
    return {name for arm in arms for name in arm.get("properties", ())}


def bytes_of(value: Any) -> bytes:
    """Return the bytes of an image or a recording, whichever way it was sent.

    Facts: `sync.raw-body`, `models.raw-input`. A list holds the bytes as numbers, a text is base64, maybe as
    a data URI, an object has them in `body`. An address is not asked: its text stands for it.
    """
    if isinstance(value, bytes):
        return value
    if isinstance(value, Mapping) and "body" in value:
        return bytes_of(value["body"])
    if isinstance(value, list):
        return _bytes_of_numbers(value)
    text = text_of(value)
    plain = text.partition(",")[2] if text.startswith("data:") else text
    try:
        return base64.b64decode(plain, validate=True)
    except (binascii.Error, ValueError):
        return text.encode("utf-8", "surrogatepass")


def _bytes_of_numbers(numbers: list[Any]) -> bytes:
    try:
        return bytes(numbers)
    except (TypeError, ValueError):
        return bytes(_byte_of(one) for one in numbers)


def _byte_of(number: Any) -> int:
    if isinstance(number, float) and math.isfinite(number):
        number = int(number)
    return number & 0xFF if isinstance(number, int) else 0


def drawn_from(data: bytes) -> bytes:
    """Return 32 bytes that the data decide, for what is arbitrary in an answer about them."""
    return hashlib.sha256(data).digest()


def seconds_of(recording: bytes) -> float:
    """Return how long a recording is: what a WAV file says, or else by its length; to a hundredth."""
    try:
        with wave.open(io.BytesIO(recording)) as told:
            frames, rate = told.getnframes(), told.getframerate()
            return round(float(frames / rate), 2)
    except (wave.Error, EOFError, ZeroDivisionError, RuntimeError):
        return round(len(recording) / BYTES_A_SECOND, 2)


def size_of(image: bytes) -> tuple[int, int]:
    """Return the width and height that a PNG or JPEG file says it has, 640 by 480 for anything else."""
    size = None
    if image.startswith(_PNG) and len(image) >= 24:
        size = int.from_bytes(image[16:20], "big"), int.from_bytes(image[20:24], "big")
    elif image.startswith(_JPEG):
        size = _jpeg_size(image)
    return size if size is not None and 0 < min(size) <= max(size) <= LARGEST_SIDE else UNKNOWN_SIZE


def _jpeg_size(image: bytes) -> tuple[int, int] | None:
    """Go from segment to segment up to the one that starts the frame."""
    at = 2
    while at + 9 <= len(image) and image[at] == 0xFF:
        kind = image[at + 1]
        if 0xC0 <= kind <= 0xCF and kind not in {0xC4, 0xC8, 0xCC}:
            return int.from_bytes(image[at + 7 : at + 9], "big"), int.from_bytes(
                image[at + 5 : at + 7], "big"
            )
        at += 2 + int.from_bytes(image[at + 2 : at + 4], "big")
    return None
