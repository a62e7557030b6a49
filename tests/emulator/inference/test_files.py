"""Images, recordings and speech: what comes in is measured, what goes out opens in other programs."""

from __future__ import annotations

import base64
import io
import json
import struct
import wave
from typing import Any

import miniaudio
import pytest
from PIL import Image

from workersai_contracts import ModelCard, models
from workersai_emulator.inference import Answer, Usage, answers, cost

CARDS = models()
FLUX = CARDS["@cf/black-forest-labs/flux-1-schnell"]
FLUX_2 = CARDS["@cf/black-forest-labs/flux-2-dev"]
SDXL = CARDS["@cf/stabilityai/stable-diffusion-xl-base-1.0"]
PHOENIX = CARDS["@cf/leonardo/phoenix-1.0"]
MELOTTS = CARDS["@cf/myshell-ai/melotts"]
AURA = CARDS["@cf/deepgram/aura-1"]
WHISPER = CARDS["@cf/openai/whisper"]
TURBO = CARDS["@cf/openai/whisper-large-v3-turbo"]
NOVA = CARDS["@cf/deepgram/nova-3"]
NEMOTRON = CARDS["@cf/nvidia/nemotron-speech-streaming-en-0.6b"]
DEEPGRAM_FLUX = CARDS["@cf/deepgram/flux"]
SMART_TURN = CARDS["@cf/pipecat-ai/smart-turn-v2"]
RESNET = CARDS["@cf/microsoft/resnet-50"]
DETR = CARDS["@cf/facebook/detr-resnet-50"]
LLAVA = CARDS["@cf/llava-hf/llava-1.5-7b-hf"]
MOONDREAM = CARDS["@cf/moondream/moondream3.1-9B-A2B"]


def answer(card: ModelCard, item: dict[str, Any]) -> Answer:
    [only] = answers(card, [item])
    assert [only] == answers(card, [item])
    return only


def told(card: ModelCard, item: dict[str, Any]) -> Any:
    only = answer(card, item)
    assert only.content_type == "application/json"
    return json.loads(only.result)


def picture(data: bytes, form: str) -> Image.Image:
    opened = Image.open(io.BytesIO(data))
    assert opened.format == form
    opened.load()
    return opened


@pytest.mark.parametrize(
    ("card", "form", "kind"),
    [(SDXL, "PNG", "image/png"), (PHOENIX, "JPEG", "image/jpeg")],
    ids=["PNG", "JPEG"],
)
def test_an_image_is_a_file_of_the_cards_type(card: ModelCard, form: str, kind: str) -> None:
    made = answer(card, {"prompt": "a llama", "width": 512, "height": 256})
    assert (made.content_type, made.usage) == (kind, Usage(2, 0))
    assert picture(made.result, form).size == (512, 256)


def test_an_image_in_json_is_base64_of_a_jpeg() -> None:
    data = base64.b64decode(told(FLUX, {"prompt": "a llama", "steps": 4})["image"], validate=True)
    assert picture(data, "JPEG").size == (1024, 1024)


def pixels(item: dict[str, Any]) -> bytes:
    return picture(answer(SDXL, item).result, "PNG").tobytes()


def test_an_image_differs_by_prompt_and_by_seed_and_shows_its_text_in_black() -> None:
    size = {"width": 512, "height": 512}
    llama = pixels({"prompt": "a llama", **size})
    assert llama == pixels({"prompt": "a llama", **size, "num_steps": 3})
    assert llama != pixels({"prompt": "a cloud", **size})
    assert llama != pixels({"prompt": "a llama", **size, "seed": 7})
    shown = picture(answer(SDXL, {"prompt": "a llama", **size}).result, "PNG")
    colours = {colour: count for count, colour in shown.getcolors() or []}
    assert len(colours) == 9  # eight stripes and the text
    assert 2000 < colours[0, 0, 0] < 40_000
    lines = [at for at in range(512) if (0, 0, 0) in [shown.getpixel((x, at)) for x in range(512)]]
    assert 16 <= min(lines) < max(lines) < 256  # at the top, inside the margin


def test_a_longer_prompt_draws_more_text() -> None:
    def black(prompt: str) -> int:
        return pixels({"prompt": prompt, "width": 512, "height": 512}).count(b"\0\0\0")

    assert black("a llama") < black("a llama on a suspension bridge beside a lighthouse, in the rain")


def test_a_prompt_in_another_script_is_drawn() -> None:
    assert pixels({"prompt": "学习", "width": 64, "height": 64}) != pixels(
        {"prompt": "橙色", "width": 64, "height": 64}
    )


@pytest.mark.parametrize(
    ("asked", "size"),
    [
        ({"width": 1_000_000, "height": 1_000_000}, (2048, 2048)),
        ({"width": 1, "height": 2048}, (64, 2048)),
        ({"width": -5, "height": "300"}, (1024, 1024)),
        ({"width": 256.0, "height": None}, (256, 1024)),
    ],
    ids=["huge", "narrow", "odd", "float"],
)
def test_the_size_of_an_image_is_bounded(asked: dict[str, Any], size: tuple[int, int]) -> None:
    assert picture(answer(SDXL, {"prompt": "x", **asked}).result, "PNG").size == size


def test_a_form_is_read_for_the_prompt_and_the_size() -> None:
    parts = [("prompt", "a llama"), ("width", "512"), ("height", "256")]
    body = "".join(
        f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n' for name, text in parts
    )
    form = {"body": body + "--b--\r\n", "contentType": "multipart/form-data; boundary=b"}
    made = told(FLUX_2, {"multipart": form})
    assert made == told(FLUX_2, {"prompt": "a llama", "width": 512, "height": 256})
    assert made == told(FLUX_2, {"multipart": {**form, "body": form["body"].encode()}})


@pytest.mark.parametrize(
    "form", [None, 5, {}, {"body": 5}, {"body": "x", "contentType": 7}, {"body": "x"}], ids=repr
)
def test_an_odd_form_is_no_prompt(form: Any) -> None:
    assert told(FLUX_2, {"multipart": form}) == told(FLUX_2, {})


TEXT = "The quick orange cloud drifts over the hills, and nobody minds it at all."  # 73 characters


def test_aura_speaks_mp3_as_long_as_the_text() -> None:
    spoken = answer(AURA, {"text": TEXT})
    assert (spoken.content_type, spoken.usage) == ("audio/mpeg", Usage(16, 0))
    assert f"[placeholder by @cf/deepgram/aura-1] {TEXT}".encode() in spoken.result
    heard = miniaudio.mp3_read_s16(spoken.result)
    assert (heard.sample_rate, heard.nchannels) == (48_000, 1)
    assert heard.duration == pytest.approx(73 / 15, abs=0.05)


def test_melotts_has_its_mp3_in_json() -> None:
    spoken = told(MELOTTS, {"prompt": TEXT, "lang": "en"})
    assert list(spoken) == ["audio"]
    data = base64.b64decode(spoken["audio"], validate=True)
    assert miniaudio.mp3_read_s16(data).duration == pytest.approx(73 / 15, abs=0.05)


@pytest.mark.parametrize(("length", "seconds"), [(0, 0.5), (1, 0.5), (150, 10), (1_000_000, 60)])
def test_the_length_of_speech_is_bounded(length: int, seconds: float) -> None:
    spoken = answer(AURA, {"text": "x" * length})
    assert miniaudio.mp3_get_info(spoken.result).duration == pytest.approx(seconds, abs=0.05)


@pytest.mark.parametrize(("asked", "rate"), [(None, 24_000), (8_000, 8_000), (48_000, 48_000), (1, 24_000)])
def test_linear16_comes_in_a_wav_file(asked: int | None, rate: int) -> None:
    spoken = answer(AURA, {"text": TEXT, "encoding": "linear16", "container": "wav", "sample_rate": asked})
    assert spoken.content_type == "audio/wav"
    with wave.open(io.BytesIO(spoken.result)) as heard:
        assert (heard.getnchannels(), heard.getsampwidth(), heard.getframerate()) == (1, 2, rate)
        assert heard.getnframes() == round(rate * 73 / 15)
        samples = struct.unpack(f"<{heard.getnframes()}h", heard.readframes(heard.getnframes()))
    assert (max(samples), min(samples)) == (pytest.approx(2000, abs=100), pytest.approx(-2000, abs=100))
    assert miniaudio.wav_read_s16(spoken.result).duration == pytest.approx(73 / 15, abs=0.001)


def test_without_a_container_the_samples_are_bare() -> None:
    asked = {"text": TEXT, "encoding": "linear16", "sample_rate": 16_000}
    bare = answer(AURA, {**asked, "container": "none"})
    assert bare.content_type == "audio/l16;rate=16000"
    assert answer(AURA, asked).result.endswith(bare.result)
    assert len(bare.result) == 2 * round(16_000 * 73 / 15)


@pytest.mark.parametrize("encoding", ["mulaw", "alaw"])
def test_eight_bit_encodings_are_silence(encoding: str) -> None:
    spoken = answer(AURA, {"text": TEXT, "encoding": encoding, "sample_rate": 8_000})
    heard = miniaudio.wav_read_s16(spoken.result)
    assert (heard.sample_rate, heard.num_frames) == (8_000, round(8_000 * 73 / 15))
    assert max(map(abs, heard.samples)) <= 8
    bare = answer(AURA, {"text": TEXT, "encoding": encoding, "sample_rate": 8_000, "container": "none"})
    assert (bare.content_type, len(bare.result)) == (f"audio/{encoding}", heard.num_frames)


@pytest.mark.parametrize("encoding", ["mp3", "flac", "opus", "aac", 7, ["linear16"]], ids=repr)
def test_what_nobody_makes_here_is_mp3(encoding: Any) -> None:
    assert answer(AURA, {"text": TEXT, "encoding": encoding}) == answer(AURA, {"text": TEXT})


def recording(seconds: float) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(16_000)
        written.writeframes(bytes(round(seconds * 32_000)))
    return file.getvalue()


WAV = recording(2.25)
HEARD = f"heard {len(WAV)} bytes, about 2.25 seconds"


def test_whisper_says_how_much_it_heard() -> None:
    heard = told(WHISPER, {"audio": WAV})
    text = f"[placeholder by @cf/openai/whisper] {HEARD}"
    assert list(heard) == ["text", "word_count", "vtt", "words"]
    assert (heard["text"], heard["word_count"]) == (text, 9)
    assert heard["vtt"] == f"WEBVTT\n\n00:00:00.000 --> 00:00:02.250\n{text}\n\n"
    assert heard["words"][0] == {"word": "[placeholder", "start": 0.0, "end": 0.25}
    assert heard["words"][-1] == {"word": "seconds", "start": 2.0, "end": 2.25}


def test_the_turbo_model_has_segments() -> None:
    heard = told(TURBO, {"audio": base64.b64encode(WAV).decode(), "language": "de"})
    assert list(heard) == ["transcription_info", "text", "word_count", "segments", "vtt"]
    assert heard["transcription_info"] == {
        "language": "de",
        "language_probability": 0.5,
        "duration": 2.25,
        "duration_after_vad": 2.25,
    }
    [segment] = heard["segments"]
    assert (segment["start"], segment["end"], segment["text"]) == (0.0, 2.25, heard["text"])
    assert heard["text"].endswith(HEARD)
    assert len(segment["words"]) == heard["word_count"] == 9


def test_nova_has_channels_of_alternatives() -> None:
    heard = told(NOVA, {"audio": {"body": base64.b64encode(WAV).decode(), "contentType": "audio/wav"}})
    [channel] = heard["results"]["channels"]
    [alternative] = channel["alternatives"]
    assert list(alternative) == ["transcript", "confidence", "words"]
    assert alternative["transcript"] == f"[placeholder by @cf/deepgram/nova-3] {HEARD}"
    assert alternative["words"][1] == {"word": "by", "start": 0.25, "end": 0.5, "confidence": 0.5}


def test_the_smallest_transcript_is_text_and_duration() -> None:
    heard = told(NEMOTRON, {"audio": WAV})
    assert (list(heard), heard["duration"]) == (["text", "duration"], 2.25)


def test_the_listener_tells_that_a_turn_has_ended() -> None:
    heard = told(DEEPGRAM_FLUX, {"audio": WAV})
    assert (heard["event"], heard["audio_window_end"]) == ("EndOfTurn", 2.25)
    assert heard["transcript"].endswith(HEARD)


@pytest.mark.parametrize(
    "audio",
    [
        WAV,
        [*WAV],
        base64.b64encode(WAV).decode(),
        "data:audio/wav;base64," + base64.b64encode(WAV).decode(),
        {"body": [*WAV]},
        [float(byte) for byte in WAV],
    ],
    ids=["bytes", "numbers", "base64", "data URI", "body", "floats"],
)
def test_a_recording_may_come_in_many_ways(audio: Any) -> None:
    assert told(WHISPER, {"audio": audio}) == told(WHISPER, {"audio": WAV})


@pytest.mark.parametrize(
    ("audio", "heard"),
    [
        (bytes(32_000), "heard 32000 bytes, about 2.00 seconds"),
        (b"RIFF", "heard 4 bytes, about 0.00 seconds"),
        (None, "heard 0 bytes, about 0.00 seconds"),
        ("no base64!", "heard 10 bytes, about 0.00 seconds"),
        ([300, -1, "x"], "heard 3 bytes, about 0.00 seconds"),
        ({"a": 1}, "heard 7 bytes, about 0.00 seconds"),
    ],
    ids=["no WAV", "broken WAV", "none", "text", "odd numbers", "object"],
)
def test_what_is_no_recording_is_measured_too(audio: Any, heard: str) -> None:
    assert told(WHISPER, {"audio": audio})["text"].endswith(heard)


def test_a_long_transcript_counts_hours() -> None:
    assert "--> 01:01:01.250" in told(WHISPER, {"audio": bytes(round(3661.25 * 16_000))})["vtt"]


def test_turns_are_decided_by_the_recording() -> None:
    turns = [told(SMART_TURN, {"audio": bytes([number])}) for number in range(40)]
    assert all(list(turn) == ["is_complete", "probability"] for turn in turns)
    assert all(turn["is_complete"] == (turn["probability"] >= 0.5) for turn in turns)
    assert {turn["is_complete"] for turn in turns} == {True, False}


def image_file(form: str, size: tuple[int, int]) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size).save(file, form)
    return file.getvalue()


def test_labels_of_an_image_are_five_best_first() -> None:
    found = [told(RESNET, {"image": bytes([number])}) for number in range(20)]
    for labels in found:
        assert [label["score"] for label in labels] == [0.5, 0.25, 0.125, 0.0625, 0.03125]
        assert len({label["label"] for label in labels}) == 5
    assert len({labels[0]["label"] for labels in found}) > 5


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_boxes_are_inside_the_image(form: str) -> None:
    counts = set()
    for side in range(30, 60):
        found = told(DETR, {"image": image_file(form, (side * 10, side))})
        counts.add(len(found))
        assert [one["score"] for one in found] == [0.9375, 0.8125, 0.6875][: len(found)]
        for one in found:
            box = one["box"]
            assert 0 <= box["xmin"] < box["xmax"] < side * 10
            assert 0 <= box["ymin"] < box["ymax"] < side
    assert counts == {1, 2, 3}


def test_boxes_of_no_image_are_in_640_by_480() -> None:
    for image in (b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8", b"\xff\xd8\xff\xe0\x00\x00" * 9, "x", None):
        for one in told(DETR, {"image": image}):
            assert one["box"]["xmax"] >= 320
            assert one["box"]["ymax"] >= 240


def test_a_description_says_how_large_the_image_is_and_what_was_asked() -> None:
    described = answer(LLAVA, {"image": [1, 2, 3], "prompt": "What is it?"})
    text = "[placeholder by @cf/llava-hf/llava-1.5-7b-hf] an image of 3 bytes. What is it?"
    assert json.loads(described.result) == {"description": text}
    assert described.usage == Usage(3, 17)
    assert told(LLAVA, {"image": [1], "max_tokens": 4})["description"] == "[placeholder by"


@pytest.mark.parametrize(
    ("task", "member"),
    [
        ("query", "answer"),
        ("caption", "caption"),
        ("point", "points"),
        ("detect", "objects"),
        (None, "answer"),
    ],
)
def test_each_skill_has_its_own_member(task: Any, member: str) -> None:
    seen = told(MOONDREAM, {"task": task, "image": "AAAA", "question": "What?"})
    assert list(seen)[:2] == ["finish_reason", "metrics"]
    filled = [
        name for name in ("answer", "caption", "points", "objects", "reasoning") if seen[name] is not None
    ]
    assert filled == [member]
    if member == "objects":
        [box] = seen["objects"]
        assert 0 <= box["x_min"] < box["x_max"] < 1
        assert 0 <= box["y_min"] < box["y_max"] < 1


def test_files_count_as_several_texts() -> None:
    assert [cost(card, {"prompt": "x", "text": "x"}) for card in (FLUX, AURA, WHISPER, RESNET)] == [
        8,
        8,
        1,
        1,
    ]
