"""The model cards: every one hangs together, and the named ones hold what is published."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import date
from typing import Any

import pytest

from workersai_contracts import ModelCard, model, models, schema_names

TASKS = {
    "Text Generation": ("c329a1f9-323d-4e91-b2aa-582dd4188d34", 300, {"response", "choices", "output"}),
    "Text Embeddings": ("0137cdcf-162a-4108-94f2-1ca59e8c65ee", 3000, {"embedding"}),
    "Text Classification": ("19606750-23ed-4371-aab2-c20349b53a60", 2000, {"labels", "reranking"}),
    "Translation": ("f57d07cb-9087-487a-bbbf-bc3e17fecc4b", 720, {"translation"}),
    "Summarization": ("6f4e65d8-da0f-40d2-9aa4-db582a5a04fd", 1500, {"summary"}),
    "Text-to-Image": ("3d6e1f35-341b-4915-a6c8-9a7142a9033a", 720, {"image"}),
    "Image Classification": ("00cd182b-bf30-4fc4-8481-84a3ab349657", 3000, {"labels"}),
    "Object Detection": ("9c178979-90d9-49d8-9e2c-0f1cf01815d4", 3000, {"boxes"}),
    "Image-to-Text": ("882a91d1-c331-4eec-bdad-834c919942a8", 720, {"description"}),
    "Automatic Speech Recognition": ("dfce1c48-2a81-462e-a7fd-de97ce985207", 720, {"transcript"}),
    "Text-to-Speech": ("b52660a1-9a95-4ab2-8b1d-f232be34604a", None, {"speech"}),
    "Voice Activity Detection": ("ccb1ca5a-043d-41a7-8a3b-61017b2796fd", None, {"turn"}),
}
RATES_OF_THEIR_OWN = {
    "@cf/baai/bge-large-en-v1.5": 1500,
    "@hf/thebloke/mistral-7b-instruct-v0.1-awq": 400,
    "@cf/microsoft/phi-2": 720,
    "@cf/qwen/qwen1.5-0.5b-chat": 1500,
    "@cf/qwen/qwen1.5-1.8b-chat": 720,
    "@cf/qwen/qwen1.5-14b-chat-awq": 150,
    "@cf/tinyllama/tinyllama-1.1b-chat-v1.0": 720,
    "@cf/runwayml/stable-diffusion-v1-5-img2img": 1500,
}
QUEUEING_BY_FORM = {
    "@cf/aisingapore/gemma-sea-lion-v4-27b-it",
    "@cf/baai/bge-base-en-v1.5",
    "@cf/baai/bge-large-en-v1.5",
    "@cf/baai/bge-m3",
    "@cf/baai/bge-small-en-v1.5",
    "@cf/deepseek-ai/deepseek-v4-flash-0731",
    "@cf/google/gemma-4-26b-a4b-it",
    "@cf/meta/llama-3.3-70b-instruct-fp8-fast",
    "@cf/meta/llama-4-scout-17b-16e-instruct",
    "@cf/meta/m2m100-1.2b",
    "@cf/moonshotai/kimi-k2.6",
    "@cf/openai/gpt-oss-120b",
    "@cf/qwen/qwen3-30b-a3b-fp8",
    "@cf/qwen/qwen3.8-27b",
    "@cf/zai-org/glm-5.3-flash",
}
QUEUEING_BY_ITEM = {
    "@cf/deepgram/aura-1",
    "@cf/deepgram/aura-2-en",
    "@cf/deepgram/aura-2-es",
    "@cf/deepgram/nova-3",
    "@cf/pipecat-ai/smart-turn-v2",
}
QUEUE_UNKNOWN = {
    "@cf/baai/bge-reranker-base",
    "@cf/google/embeddinggemma-300m",
    "@cf/pfnet/plamo-embedding-1b",
    "@cf/qwen/qwen3-embedding-0.6b",
}
NOT_JSON = {"image/png", "image/jpeg", "audio/mpeg"}
DOLLARS_A_NEURON = 0.011 / 1000

each_card = pytest.mark.parametrize("card", models().values(), ids=models())


def named(name: str) -> ModelCard:
    found = model(name)
    assert found is not None
    return found


def test_there_is_a_card_for_every_model_of_the_documentation() -> None:
    assert len(models()) == 108
    assert list(models()) == sorted(models())


@each_card
def test_a_model_is_found_by_its_full_name_only(card: ModelCard) -> None:
    assert model(card.name) is card
    author, _, last = card.name.rpartition("/")
    assert model(f"{author}x/{last}") is None
    assert model(last) is None


@pytest.mark.parametrize(
    "name", ["@cf/baai/bge-m4", "", "/", "..", "@cf/../facts", "@cf/baai/bge-m3/", "@cf/baai/BGE-M3", "\0"]
)
def test_an_unknown_model_is_none(name: str) -> None:
    assert model(name) is None


def test_asking_for_a_model_reads_no_other_card() -> None:
    program = """if True:
        import sys
        from workersai_contracts import model
        opened = []
        sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
        model("@cf/zai-org/glm-5.3")
        model("@cf/zai-org/glm-5.3")
        print(*(path.rpartition("/")[2] for path in opened if path.endswith(".json")))
    """
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["glm-5.3.json", "chat-completions.json"]


@each_card
def test_a_card_says_what_its_task_needs(card: ModelCard) -> None:
    task_id, rate, kinds = TASKS[card.task]
    assert card.name.startswith(("@cf/", "@hf/"))
    assert card.task_id == task_id
    assert card.requests_per_minute == RATES_OF_THEIR_OWN.get(card.name, rate)
    assert card.answers in kinds
    assert f"run/{card.answers}.reply" in schema_names()
    assert card.writes_text == (card.task == "Text Generation")
    assert (card.dimensions is not None) == (card.answers == "embedding")
    assert (card.validated == "run") == (card.answers in {"response", "choices"})
    assert not card.description.endswith(".")


def test_every_card_has_an_id_of_its_own_where_one_is_known() -> None:
    ids = [card.id for card in models().values() if card.id is not None]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", one) for one in ids)
    assert {card.name for card in models().values() if card.id is None} == {
        "@cf/meta/llama-3.1-70b-instruct",
        "@cf/meta/llama-3.1-70b-instruct-fp8-fast",
        "@cf/meta/llama-3.1-8b-instruct-fp8-fast",
        "@cf/nvidia/nemotron-speech-streaming-en-0.6b",
        "@hf/meta-llama/meta-llama-3-8b-instruct",
    }


def test_the_models_that_queue_are_the_known_ones() -> None:
    cards = models().values()
    assert {card.name for card in cards if card.queue and card.takes_requests} == QUEUEING_BY_FORM
    assert {card.name for card in cards if card.queue and not card.takes_requests} == QUEUEING_BY_ITEM
    assert {card.name for card in cards if card.queue is None} == QUEUE_UNKNOWN


@each_card
def test_limits_and_prices_are_positive_and_agree(card: ModelCard) -> None:
    numbers = (card.dimensions, card.max_input_tokens, card.context_tokens, card.texts_per_call)
    assert all(number is None or number > 0 for number in numbers)
    for neurons, price in (
        (card.neurons_per_million_input, card.price_per_million_input),
        (card.neurons_per_million_output, card.price_per_million_output),
    ):
        assert (neurons is None) == (price is None)
        if neurons is not None:
            assert price == pytest.approx(neurons * DOLLARS_A_NEURON, rel=0.03)
    assert card.price_per_million_input is not None or card.price_per_million_output is None


@each_card
def test_the_type_of_the_output_is_one_that_its_schema_names(card: ModelCard) -> None:
    assert (card.output_type == "application/json") == (card.output_type not in NOT_JSON)
    if "contentType" in str(card.output_schema):
        assert f"'contentType': '{card.output_type}'" in str(card.output_schema)
    if card.output_type in NOT_JSON:
        assert card.answers in {"image", "speech"}


@each_card
def test_a_raw_input_is_a_file_that_the_task_is_about(card: ModelCard) -> None:
    about = {"labels": "image", "boxes": "image", "description": "image", "transcript": "audio"}
    assert card.raw_input in {None, about.get(card.answers)}
    takes_bytes = {"type": "string", "format": "binary"} in card.input_schema.get("oneOf", ())
    assert (card.raw_input is not None) == (takes_bytes or card.name == "@cf/deepgram/nova-3")


@each_card
def test_a_schema_is_whole(card: ModelCard) -> None:
    for schema in (card.input_schema, card.output_schema):
        assert not _keys(schema) & {"$ref", "$defs"}
        assert all(part is not None for part in _properties(schema))


def test_deprecation_is_a_day() -> None:
    days = {card.name: card.deprecated_on for card in models().values() if card.deprecated_on is not None}
    assert all(date.fromisoformat(day) == date(2026, 5, 30) for day in days.values())
    assert len(days) == 18
    assert "@cf/meta/llama-3.1-8b-instruct" in days
    assert "@cf/meta/llama-3.1-8b-instruct-fp8" not in days


def test_the_models_of_the_paid_plan_are_the_named_ones() -> None:
    assert {card.name for card in models().values() if card.paid_only} == {
        "@cf/deepseek-ai/deepseek-v4-flash-0731",
        "@cf/deepseek-ai/deepseek-v4-pro-0813",
        "@cf/moonshotai/kimi-k2.6",
        "@cf/moonshotai/kimi-k2.7-code",
        "@cf/zai-org/glm-5.2",
        "@cf/zai-org/glm-5.3",
        "@cf/zai-org/glm-5.3-flash",
    }


@pytest.mark.parametrize(
    ("name", "dimensions", "tokens", "texts", "neurons", "rate"),
    [
        ("@cf/baai/bge-small-en-v1.5", 384, 512, 100, 1841, 3000),
        ("@cf/baai/bge-base-en-v1.5", 768, 512, 100, 6058, 3000),
        ("@cf/baai/bge-large-en-v1.5", 1024, 512, 100, 18582, 1500),
        ("@cf/baai/bge-m3", 1024, 8192, 100, 1075, 3000),
        ("@cf/google/embeddinggemma-300m", 768, 2048, 100, None, 3000),
        ("@cf/qwen/qwen3-embedding-0.6b", 1024, 8192, 32, 1075, 3000),
        ("@cf/pfnet/plamo-embedding-1b", 2048, 4096, 100, 1689, 3000),
    ],
)
def test_embedding_cards_hold_the_published_figures(
    name: str, dimensions: int, tokens: int, texts: int, neurons: float | None, rate: int
) -> None:
    card = named(name)
    assert card.dimensions == dimensions
    assert card.max_input_tokens == tokens
    assert card.texts_per_call == texts
    assert card.neurons_per_million_input == neurons
    assert card.requests_per_minute == rate


@pytest.mark.parametrize(
    ("name", "answers", "context", "neurons", "function_calling", "lora", "beta"),
    [
        ("@cf/meta/llama-3.1-8b-instruct", "response", None, (25608, 75147), False, False, False),
        ("@cf/meta/llama-3.1-8b-instruct-fp8", "response", 32000, (13778, 26128), False, False, False),
        ("@cf/meta/llama-3.1-8b-instruct-fp8-fast", "response", None, (4119, 34868), False, False, False),
        ("@cf/meta/llama-3.3-70b-instruct-fp8-fast", "response", 24000, (26668, 204805), True, False, False),
        ("@cf/mistral/mistral-7b-instruct-v0.1", "response", None, (10000, 17300), False, True, False),
        (
            "@cf/mistralai/mistral-small-3.1-24b-instruct",
            "response",
            128000,
            (31876, 50488),
            True,
            False,
            False,
        ),
        ("@cf/google/gemma-3-12b-it", "response", 80000, (31371, 50560), False, True, False),
        ("@hf/nousresearch/hermes-2-pro-mistral-7b", "response", None, (None, None), True, False, True),
        ("@cf/openai/gpt-oss-20b", "output", 128000, (18182, 27273), True, False, False),
        ("@cf/qwen/qwen3.8-27b", "choices", 262144, (40909, 290909), True, False, False),
        ("@cf/moonshotai/kimi-k2.5", "choices", 256000, (54545, 272727), True, False, False),
        ("@cf/zai-org/glm-4.7-flash", "choices", 131072, (5500, 36400), True, False, False),
        ("@cf/zai-org/glm-5.3", "choices", 1310720, (127273, 400000), True, False, False),
    ],
)
def test_text_cards_hold_the_published_figures(
    name: str,
    answers: str,
    context: int | None,
    neurons: tuple[float | None, float | None],
    function_calling: bool,
    lora: bool,
    beta: bool,
) -> None:
    card = named(name)
    assert card.answers == answers
    assert card.context_tokens == context
    assert (card.neurons_per_million_input, card.neurons_per_million_output) == neurons
    assert (card.function_calling, card.lora, card.beta) == (function_calling, lora, beta)


@pytest.mark.parametrize(
    ("name", "answers", "output_type", "raw_input"),
    [
        ("@cf/black-forest-labs/flux-1-schnell", "image", "application/json", None),
        ("@cf/leonardo/lucid-origin", "image", "application/json", None),
        ("@cf/leonardo/phoenix-1.0", "image", "image/jpeg", None),
        ("@cf/stabilityai/stable-diffusion-xl-base-1.0", "image", "image/png", None),
        ("@cf/lykon/dreamshaper-8-lcm", "image", "image/png", None),
        ("@cf/myshell-ai/melotts", "speech", "application/json", None),
        ("@cf/deepgram/aura-2-es", "speech", "audio/mpeg", None),
        ("@cf/openai/whisper", "transcript", "application/json", "audio"),
        ("@cf/openai/whisper-large-v3-turbo", "transcript", "application/json", None),
        ("@cf/deepgram/nova-3", "transcript", "application/json", "audio"),
        ("@cf/pipecat-ai/smart-turn-v2", "turn", "application/json", None),
        ("@cf/microsoft/resnet-50", "labels", "application/json", "image"),
        ("@cf/huggingface/distilbert-sst-2-int8", "labels", "application/json", None),
        ("@cf/facebook/detr-resnet-50", "boxes", "application/json", "image"),
        ("@cf/facebook/bart-large-cnn", "summary", "application/json", None),
        ("@cf/llava-hf/llava-1.5-7b-hf", "description", "application/json", "image"),
    ],
)
def test_other_cards_say_how_the_model_is_spoken_to(
    name: str, answers: str, output_type: str, raw_input: str | None
) -> None:
    card = named(name)
    assert (card.answers, card.output_type, card.raw_input) == (answers, output_type, raw_input)


def test_cards_of_one_form_share_its_schemas() -> None:
    one, other = named("@cf/meta/llama-3-8b-instruct"), named("@hf/thebloke/zephyr-7b-beta-awq")
    assert one.input_schema is other.input_schema
    assert one.output_schema is other.output_schema
    assert one.input_schema is not named("@cf/meta/llama-3.2-11b-vision-instruct").input_schema


def test_a_card_may_replace_a_part_of_its_form() -> None:
    def options(name: str) -> dict[str, Any]:
        schema = named(name).input_schema
        one = schema["anyOf"][0] if "anyOf" in schema else schema
        prompt, messages = (arm["properties"] for arm in one["oneOf"])
        assert list(prompt)[1:] == list(messages)[1:]
        return dict(prompt)

    efforts = {
        name: options(name).get("reasoning_effort", {"anyOf": [{}]})["anyOf"][0].get("enum")
        for name in (
            "@cf/moonshotai/kimi-k2.5",
            "@cf/moonshotai/kimi-k2.6",
            "@cf/moonshotai/kimi-k2.7-code",
            "@cf/qwen/qwen3.8-27b",
        )
    }
    assert list(efforts.values()) == [
        ["low", "medium", "high"],
        ["high", "none", "low", "medium", "max"],
        None,
        ["low", "medium", "xhigh"],
    ]
    assert list(options("@cf/google/gemma-4-26b-a4b-it"))[:3] == ["prompt", "skip_special_tokens", "model"]
    assert list(options("@cf/zai-org/glm-5.3"))[:2] == ["prompt", "model"]
    assert "service_tier" in options("@cf/moonshotai/kimi-k2.5")
    assert "service_tier" not in options("@cf/moonshotai/kimi-k2.6")


def _keys(node: Any) -> set[str]:
    if isinstance(node, list):
        return set().union(*map(_keys, node))
    if not isinstance(node, dict):
        return set()
    return set(node).union(*map(_keys, node.values()))


def _properties(node: Any) -> list[Any]:
    if isinstance(node, list):
        return [part for item in node for part in _properties(item)]
    if not isinstance(node, dict):
        return []
    own = list(node["properties"].values()) if isinstance(node.get("properties"), dict) else []
    return own + [part for value in node.values() for part in _properties(value)]
