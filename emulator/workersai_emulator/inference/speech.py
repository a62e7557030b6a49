"""Placeholder speech: files that play, as long as the text would take, and say in their title what they are.

MP3 is silence, written by hand: the encoders differ in their bytes from machine to machine.
"""

from __future__ import annotations

import base64
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from workersai_emulator.inference.answer import Answer
from workersai_emulator.inference.inputs import text_of, whole_number
from workersai_emulator.inference.text import placeholder
from workersai_emulator.inference.tokens import Usage, estimate
from workersai_emulator.json_text import dumps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workersai_contracts import ModelCard

#: So many characters are spoken in a second; nothing is shorter or longer than this.
CHARACTERS_A_SECOND: Final = 15
SHORTEST_SECONDS: Final = 0.5
LONGEST_SECONDS: Final = 60.0

#: One frame of MPEG-1 layer III, 32 kbit/s, 48 kHz, one channel, nothing in it: 24 ms of silence in 96 bytes.
_SILENT_FRAME: Final = b"\xff\xfb\x14\xc0" + bytes(92)
_FRAME_MILLISECONDS: Final = 24

_SAMPLE_RATES: Final = range(8_000, 48_001)
_USUAL_SAMPLE_RATE: Final = 24_000

#: For encodings with 8 bits a sample: their number in a WAV file, and what silence is in them.
_LAWS = {"alaw": (6, b"\xd5"), "mulaw": (7, b"\xff")}


def speech(card: ModelCard, item: Mapping[str, Any]) -> Answer:
    """Return speech for a text: MP3, or what `encoding` and `container` ask for. Fact: `models.outputs`.

    linear16, mulaw and alaw come in a WAV file, or bare for the container `none`; flac, opus and aac nobody
    makes here, so MP3 comes for them. A model whose output is JSON has the MP3 in it as base64.
    """
    text = text_of(item.get("text", item.get("prompt")))
    usage = Usage(estimate(text))
    title = placeholder(card, text)
    seconds = seconds_for(text)
    if card.output_type == "application/json":
        audio = base64.b64encode(mp3(title, seconds)).decode()
        return Answer(dumps({"audio": audio}), usage)
    encoding = text_of(item.get("encoding"))
    if encoding != "linear16" and encoding not in _LAWS:
        return Answer(mp3(title, seconds), usage, "audio/mpeg")
    asked = whole_number(item.get("sample_rate"))
    rate = asked if asked in _SAMPLE_RATES else _USUAL_SAMPLE_RATE
    assert rate is not None  # None is in no range
    form, width, samples = _samples(encoding, rate, seconds)
    if item.get("container") == "none":
        kind = {"linear16": f"audio/l16;rate={rate}", "mulaw": "audio/mulaw", "alaw": "audio/alaw"}[encoding]
        return Answer(samples, usage, kind)
    return Answer(wav(samples, form, width, rate), usage, "audio/wav")


def seconds_for(text: str) -> float:
    """Return how long a text takes to be spoken, within bounds."""
    return min(max(len(text) / CHARACTERS_A_SECOND, SHORTEST_SECONDS), LONGEST_SECONDS)


def mp3(title: str, seconds: float) -> bytes:
    """Return so many seconds of silence as an MP3 file with a title."""
    frames = -(-round(seconds * 1000) // _FRAME_MILLISECONDS)
    return _title_tag(title) + _SILENT_FRAME * frames


def wav(samples: bytes, form: int, width: int, rate: int) -> bytes:
    """Return a WAV file of one channel; `form` is the number of the encoding, `width` the bytes of a sample."""
    head = [(form, 2), (1, 2), (rate, 4), (rate * width, 4), (width, 2), (width * 8, 2)]
    told = b"".join(number.to_bytes(size, "little") for number, size in head)
    size = (36 + len(samples)).to_bytes(4, "little")
    return b"RIFF%bWAVEfmt \x10\0\0\0%bdata%b" % (size, told, len(samples).to_bytes(4, "little")) + samples


def _samples(encoding: str, rate: int, seconds: float) -> tuple[int, int, bytes]:
    """Return the number of an encoding in a WAV file, the bytes of a sample, and the samples."""
    count = round(rate * seconds)
    if encoding in _LAWS:
        form, silence = _LAWS[encoding]
        return form, 1, silence * count
    beep = _beep(rate)
    return 1, 2, (beep * (count * 2 // len(beep) + 1))[: count * 2]


@cache
def _beep(rate: int) -> bytes:
    """Return a soft tone and as long a pause, half a second, in 16-bit samples: whole numbers, no sine."""
    period = rate // 400
    wave = [abs(step % period * 2 - period) * 4000 // period - 2000 for step in range(rate // 4)]
    return b"".join(sample.to_bytes(2, "little", signed=True) for sample in wave) + bytes(rate // 4 * 2)


def _title_tag(title: str) -> bytes:
    """Return an ID3v2.4 tag that holds a title."""
    text = b"\x03" + title.encode("utf-8", "replace")
    frame = b"TIT2" + _synchsafe(len(text)) + bytes(2) + text
    return b"ID3\x04\0\0" + _synchsafe(len(frame)) + frame


def _synchsafe(number: int) -> bytes:
    """Return a number in four bytes of seven bits, as ID3 has it."""
    return bytes(number >> shift & 0x7F for shift in (21, 14, 7, 0))
