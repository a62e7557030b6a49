"""Each kind of model takes the body that the documentation shows, and refuses another in the service's words."""

from __future__ import annotations

from typing import Any

import pytest

from workersai_contracts import ModelCard, model, models
from workersai_emulator.admission import Admitted, admit, check_input
from workersai_emulator.refusals import Refused
from workersai_emulator.settings import Settings

NONE_FITS = "oneOf at '/' not met, 0 matches: "

# model, a body that it takes, one that it does not take, the public validator's words about that
DOCUMENTED: list[tuple[str, Any, Any, str]] = [
    (
        "@cf/meta/llama-3.1-8b-instruct",
        {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]},
        {"prompt": "", "stream": True},
        NONE_FITS + "Length of '/prompt' must be >= 1 not met, required properties at '/' are 'messages'",
    ),
    (
        "@cf/meta/llama-3.1-8b-instruct-fp8",
        {"prompt": "Hello", "max_tokens": 9, "response_format": {"type": "json_object"}},
        {"prompt": "Hello", "temperature": 6},
        NONE_FITS + "'/temperature' must be <= 5",
    ),
    (
        "@cf/mistralai/mistral-small-3.1-24b-instruct",
        {"messages": [{"role": "tool", "tool_call_id": "abc123def", "content": "{}"}]},
        {"messages": "Hello"},
        NONE_FITS
        + "required properties at '/' are 'prompt', Type mismatch of '/messages', 'array' not in 'string'",
    ),
    (
        "@cf/meta/llama-guard-3-8b",
        {"messages": [{"role": "user", "content": "Hello"}]},
        {"messages": [{"role": "system", "content": "Hello"}]},
        "enum system not in user,assistant at '/messages/0/role'",
    ),
    (
        "@cf/openai/gpt-oss-20b",
        {"input": "Hello", "reasoning": {"effort": "low"}},
        {"text": "Hello"},
        NONE_FITS + "required properties at '/' are 'prompt', required properties at '/' are 'messages', "
        "oneOf at '/' not met, 0 matches, "
        "required properties at '/' are 'input', required properties at '/' are 'requests'",
    ),
    (
        "@cf/black-forest-labs/flux-1-schnell",
        {"prompt": "an orange cloud", "steps": 8},
        {"prompt": "an orange cloud", "steps": 9},
        "'/steps' must be <= 8",
    ),
    (
        "@cf/black-forest-labs/flux-1-schnell",
        {"prompt": "a"},
        {"prompt": "a" * 2049},
        "Length of '/prompt' must be <= 2048",
    ),
    (
        "@cf/stabilityai/stable-diffusion-xl-base-1.0",
        {"prompt": "an orange cloud", "width": 512, "height": 512},
        {"prompt": "an orange cloud", "width": 128},
        "'/width' must be >= 256",
    ),
    (
        "@cf/leonardo/phoenix-1.0",
        {"prompt": "an orange cloud", "guidance": 2},
        {"prompt": "an orange cloud", "guidance": 1},
        "'/guidance' must be >= 2",
    ),
    (
        "@cf/black-forest-labs/flux-2-dev",
        {"multipart": {"body": {}, "contentType": "multipart/form-data; boundary=a"}},
        {"prompt": "an orange cloud"},
        "required properties at '/' are 'multipart'",
    ),
    (
        "@cf/openai/whisper",
        {"audio": [82, 73, 70, 70]},
        {"file": "a"},
        NONE_FITS + "Type mismatch of '/', 'string' not in 'object', required properties at '/' are 'audio'",
    ),
    (
        "@cf/openai/whisper-large-v3-turbo",
        {"audio": "UklGRg==", "task": "transcribe", "language": "en"},
        {"audio": [82, 73, 70, 70]},
        "Type mismatch of '/audio', 'string' not in 'array','binary'",
    ),
    (
        "@cf/deepgram/flux",
        {"encoding": "linear16", "sample_rate": "16000"},
        {"encoding": "linear16", "sample_rate": "16 kHz"},
        "'/sample_rate' failed test ^[0-9]+$ patttern",
    ),
    (
        "@cf/pipecat-ai/smart-turn-v2",
        {"audio": "UklGRg==", "dtype": "uint8"},
        {"audio": "UklGRg==", "dtype": "int16"},
        NONE_FITS
        + "required properties at '/audio' are 'body,contentType', enum int16 not in uint8,float32,float64 at '/dtype'",
    ),
    (
        "@cf/myshell-ai/melotts",
        {"prompt": "Hello", "lang": "fr"},
        {"text": "Hello"},
        "required properties at '/' are 'prompt'",
    ),
    (
        "@cf/deepgram/aura-1",
        {"text": "Hello", "speaker": "luna"},
        {"text": "Hello", "container": "zip"},
        "enum zip not in none,wav,ogg at '/container'",
    ),
    ("@cf/deepgram/aura-2-es", {"text": "Hola"}, {}, "required properties at '/' are 'text'"),
    (
        "@cf/facebook/bart-large-cnn",
        {"input_text": "A long text", "max_length": 64},
        {"text": "A long text"},
        "required properties at '/' are 'input_text'",
    ),
    (
        "@cf/huggingface/distilbert-sst-2-int8",
        {"text": "This pizza is great!"},
        {"text": ""},
        "Length of '/text' must be >= 1 not met",
    ),
    (
        "@cf/microsoft/resnet-50",
        {"image": [137, 80, 78, 71]},
        {"image": "iVBORw0KGgo="},
        NONE_FITS
        + "Type mismatch of '/', 'string' not in 'object', Type mismatch of '/image', 'array' not in 'string'",
    ),
    (
        "@cf/facebook/detr-resnet-50",
        {"image": [137, 80, 78, 71]},
        {"image": "iVBORw0KGgo="},
        NONE_FITS
        + "Type mismatch of '/', 'string' not in 'object', Type mismatch of '/image', 'array' not in 'string'",
    ),
    (
        "@cf/llava-hf/llava-1.5-7b-hf",
        {"image": [137, 80, 78, 71], "prompt": "What is it?", "max_tokens": 64},
        {"prompt": "What is it?"},
        NONE_FITS + "Type mismatch of '/', 'string' not in 'object', required properties at '/' are 'image'",
    ),
    (
        "@cf/moondream/moondream3.1-9B-A2B",
        {"task": "caption", "image": "data:image/png;base64,AA"},
        {"task": "draw"},
        "enum draw not in query,caption,point,detect at '/task'",
    ),
    (
        "@cf/ai4bharat/indictrans2-en-indic-1B",
        {"text": ["Hello"], "target_language": "hin_Deva"},
        {"target_language": "hin_Deva"},
        "required properties at '/' are 'text,target_language'",
    ),
]
CHAT = {
    "messages": [{"role": "user", "content": "Hello"}],
    "stream": True,
    "max_completion_tokens": 64,
    "reasoning_effort": "high",
}
BATCH_ITEMS: dict[str, dict[str, Any]] = {
    "embedding": {"text": "a"},
    "translation": {"text": "a", "target_lang": "fr"},
    "response": {"prompt": "a", "max_tokens": 9},
    "choices": {"messages": [{"role": "user", "content": "a"}]},
    "output": {"input": "a"},
    "speech": {"text": "a", "encoding": "mp3"},
    "turn": {"audio": "UklGRg=="},
}
# nova-3 takes the recording itself, which no item of a batch can hold: the validator finds no body in one.
QUEUEING = {name: card for name, card in models().items() if card.queue and name != "@cf/deepgram/nova-3"}


def named(name: str) -> ModelCard:
    found = model(name)
    assert found is not None
    return found


def refusal(card: ModelCard, inputs: Any) -> tuple[int, str]:
    with pytest.raises(Refused) as refused:
        check_input(card, inputs, Settings())
    return refused.value.row.code, refused.value.description


@pytest.mark.parametrize(("name", "good", "bad", "words"), DOCUMENTED)
def test_a_documented_body_passes_and_another_is_refused(name: str, good: Any, bad: Any, words: str) -> None:
    check_input(named(name), good, Settings())
    assert refusal(named(name), bad) == (5006, f"Error: {words}")


def test_every_kind_of_output_but_the_embeddings_has_a_documented_body() -> None:
    kinds = {named(name).answers for name, *_ in DOCUMENTED} | {"choices", "embedding", "reranking"}
    assert kinds == {card.answers for card in models().values()}


@pytest.mark.parametrize(
    "card", [card for card in models().values() if card.answers == "choices"], ids=lambda card: card.name
)
def test_a_chat_passes_with_the_options_that_clients_send(card: ModelCard) -> None:
    check_input(card, CHAT, Settings())
    code, words = refusal(card, {})
    assert code == 5006
    assert "required properties at '/' are 'prompt'" in words
    assert "required properties at '/' are 'messages'" in words


@pytest.mark.parametrize("card", QUEUEING.values(), ids=QUEUEING)
def test_every_queueing_model_takes_its_items(card: ModelCard) -> None:
    item = BATCH_ITEMS[card.answers]
    inputs = {"requests": [item, {**item, "external_reference": "r"}]}
    assert admit(card, inputs, Settings()) == Admitted("requests", 2)


@pytest.mark.parametrize("card", QUEUEING.values(), ids=QUEUEING)
def test_every_queueing_model_finds_a_bad_item(card: ModelCard) -> None:
    inputs = {"requests": [{"prompt": 5}]}
    if card.validated == "run":
        assert admit(card, inputs, Settings()) == Admitted("requests", 1, runs=False)
        return
    with pytest.raises(Refused) as refused:
        admit(card, inputs, Settings())
    assert refused.value.row.code == 5006


def test_a_bad_item_of_a_model_without_a_form_for_batches_is_told_as_an_input() -> None:
    with pytest.raises(Refused) as refused:
        admit(named("@cf/deepgram/aura-1"), {"requests": [{"text": "a"}, {}]}, Settings())
    assert refused.value.description == "Error: required properties at '/' are 'text'"


def test_nova_3_takes_no_recording_in_json() -> None:
    item = {"audio": {"body": {}, "contentType": "audio/mpeg"}}
    words = "Error: required properties at '/audio' are 'body,contentType'"
    assert refusal(named("@cf/deepgram/nova-3"), item) == (5006, words)
