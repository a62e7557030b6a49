"""Transcripts: what speech models make of a recording, which nobody listens to here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from workersai_emulator.inference.inputs import text_of
from workersai_emulator.inference.media import bytes_of, drawn_from, members_of, seconds_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workersai_contracts import ModelCard

#: How sure the placeholders are of everything.
CONFIDENCE: Final = 0.5


def transcript(card: ModelCard, item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a transcript that says how much was heard, in the form that the model's card has. Fact: `models.outputs`.

    Its words are spread evenly over the recording.
    """
    recording = bytes_of(item.get("audio"))
    seconds = seconds_of(recording)
    text = f"[placeholder by {card.name}] heard {len(recording)} bytes, about {seconds:.2f} seconds"
    words = _timed(text, seconds)
    members = members_of(card)
    if "results" in members:
        return _in_channels(text, words)
    if "transcription_info" in members:
        return _in_segments(item, text, words, seconds)
    if "turn_index" in members:
        return _as_turn(recording, text, words, seconds)
    if "word_count" in members:
        return {"text": text, "word_count": len(words), "vtt": _vtt(text, seconds), "words": words}
    return {"text": text, "duration": seconds}


def turn(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether a speaker has ended, which the recording's bytes decide. Fact: `models.outputs`."""
    probability = drawn_from(bytes_of(item.get("audio")))[0] / 256
    return {"is_complete": probability >= 0.5, "probability": probability}


def _timed(text: str, seconds: float) -> list[dict[str, Any]]:
    words = text.split(" ")
    step = seconds / len(words)
    return [
        {"word": word, "start": round(step * place, 2), "end": round(step * (place + 1), 2)}
        for place, word in enumerate(words)
    ]


def _in_channels(text: str, words: list[dict[str, Any]]) -> dict[str, Any]:
    sure = [{**word, "confidence": CONFIDENCE} for word in words]
    alternative = {"transcript": text, "confidence": CONFIDENCE, "words": sure}
    return {"results": {"channels": [{"alternatives": [alternative]}]}}


def _in_segments(
    item: Mapping[str, Any], text: str, words: list[dict[str, Any]], seconds: float
) -> dict[str, Any]:
    info = {
        "language": text_of(item.get("language")) or "en",
        "language_probability": CONFIDENCE,
        "duration": seconds,
        "duration_after_vad": seconds,
    }
    segment = {
        "start": 0.0,
        "end": seconds,
        "text": text,
        "temperature": 0.0,
        "avg_logprob": -CONFIDENCE,
        "compression_ratio": 1.0,
        "no_speech_prob": CONFIDENCE,
        "words": words,
    }
    return {
        "transcription_info": info,
        "text": text,
        "word_count": len(words),
        "segments": [segment],
        "vtt": _vtt(text, seconds),
    }


def _as_turn(recording: bytes, text: str, words: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """Return the event that ends a turn, the last of those that a model sends while it listens."""
    drawn = drawn_from(recording).hex()
    return {
        "request_id": f"{drawn[:8]}-{drawn[8:12]}-4{drawn[13:16]}-8{drawn[17:20]}-{drawn[20:32]}",
        "sequence_id": 0,
        "event": "EndOfTurn",
        "turn_index": 0,
        "audio_window_start": 0.0,
        "audio_window_end": seconds,
        "transcript": text,
        "words": [{"word": word["word"], "confidence": CONFIDENCE} for word in words],
        "end_of_turn_confidence": CONFIDENCE,
    }


def _vtt(text: str, seconds: float) -> str:
    return f"WEBVTT\n\n{_clock(0)} --> {_clock(seconds)}\n{text}\n\n"


def _clock(seconds: float) -> str:
    hours, rest = divmod(round(seconds * 1000), 3_600_000)
    minutes, milliseconds = divmod(rest, 60_000)
    return f"{hours:02}:{minutes:02}:{milliseconds // 1000:02}.{milliseconds % 1000:03}"
