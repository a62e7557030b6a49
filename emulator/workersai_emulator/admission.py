"""Admission: is this the model's input? The service's own verdict, and its documented limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from workersai_emulator import inference
from workersai_emulator.refusals import Refused, refused_input
from workersai_emulator.validation import InputRefused, validate_input

if TYPE_CHECKING:
    from workersai_contracts import ModelCard
    from workersai_emulator.calls import Form
    from workersai_emulator.settings import Settings


class Admitted(NamedTuple):
    """A submit that gets into the queue: its form, how many items, and whether its run can succeed."""

    form: Literal["requests", "bare"]
    items: int
    runs: bool = True


def check_input(card: ModelCard, inputs: object, settings: Settings) -> None:
    """Pass what the model takes in one call. Raises Refused with the validator's words.

    Facts: `input.validator`, `texts.over-100`.
    """
    _check_schema(card, inputs)
    if not isinstance(inputs, dict):
        return
    for key in ("text", "queries", "documents"):
        _check_count(card, key, inputs.get(key), settings)


def check_form(card: ModelCard, inputs: object, settings: Settings, *, form: Form) -> None:
    """Pass what OpenAI's routes take: a model of the right kind, and the member that the form is about.

    Facts: `openai.run`, `model.unknown`.
    """
    fits = card.writes_text if form in {"chat", "responses"} else card.answers == "embedding"
    if not fits:
        raise Refused("model.unknown", model=card.name)
    member = "messages" if form == "chat" else "input"
    given = inputs.get(member) if isinstance(inputs, dict) else None
    if given is None:
        raise refused_input(f"required properties at '/' are '{member}'")
    if form == "chat" and not isinstance(given, list):
        raise refused_input("Type mismatch of '/messages', 'array' not met")
    if form == "embeddings":
        _check_texts(card, given, inputs, settings)


def admit(card: ModelCard, inputs: object, settings: Settings) -> Admitted:
    """Let a submit into the queue, or raise Refused.

    Facts: `batch.schema`, `batch.bare`, `batch.gpt-oss`, `submit.validation`, `submit.empty`, `submit.bare`.
    """
    if not isinstance(inputs, dict):
        raise refused_input(_complaint(card, inputs) or "")
    moment = settings.assumed("submit.validation")
    at_submit = card.validated == "submit" if moment == "by-task" else moment == "submit"
    if "requests" not in inputs:
        return _admit_bare(card, inputs, settings, at_submit=at_submit)
    requests = inputs["requests"]
    if requests == [] and settings.assumed("submit.empty") == "done":
        return Admitted("requests", 0)
    if requests == []:
        raise refused_input("Length of '/requests' must be >= 1 not met")
    if at_submit:
        _check_requests(card, inputs, settings)
        # The validator goes through an object as through a list (Fact: `input.semantics`); no model runs one.
        return (
            Admitted("requests", len(requests))
            if isinstance(requests, list)
            else Admitted("requests", 0, False)
        )
    return Admitted("requests", *_at_run_time(card, requests))


def _check_texts(card: ModelCard, given: object, inputs: object, settings: Settings) -> None:
    """Pass a text, its tokens, or a list of either, and what goes with them. Fact: `settled.openai-input`."""
    texts = given if isinstance(given, list) and not inference.is_tokens(given) else [given]
    if not texts or not all(isinstance(text, str) or inference.is_tokens(text) for text in texts):
        raise refused_input("Type mismatch of '/input', 'string' or 'array' of texts or of tokens not met")
    _check_count(card, "input", texts, settings)
    assert isinstance(inputs, dict)
    if inputs.get("encoding_format") not in (None, "float", "base64"):
        raise refused_input("enum not in float,base64 at '/encoding_format'")
    if inputs.get("dimensions") is not None and inference.whole_number(inputs["dimensions"]) is None:
        raise refused_input("Type mismatch of '/dimensions', 'integer' from 1 on not met")


def _check_count(card: ModelCard, key: str, texts: object, settings: Settings) -> None:
    """Fact: `texts.over-100`."""
    if card.texts_per_call is None or settings.assumed("texts.over-100") == "accepted":
        return
    if isinstance(texts, list) and len(texts) > card.texts_per_call:
        raise refused_input(f"Length of '/{key}' must be <= {card.texts_per_call} not met")


def _check_requests(card: ModelCard, inputs: dict[str, Any], settings: Settings) -> None:
    """Pass a batch as a whole, or item by item where the model queues and its card has no form for it.

    Facts: `batch.schema`, `model.queue`, `models.queueing`.
    """
    if card.takes_requests or not settings.queues(card) or not isinstance(inputs["requests"], list):
        _check_schema(card, inputs)
        return
    for item in inputs["requests"]:
        _check_schema(card, item)


def _admit_bare(card: ModelCard, inputs: dict[str, Any], settings: Settings, *, at_submit: bool) -> Admitted:
    try:
        check_input(card, inputs, settings)
    except Refused:
        if at_submit:
            raise
        return Admitted("bare", 1, runs=False)
    return Admitted("bare", 1, runs=card.task != "Text Generation")


def _at_run_time(card: ModelCard, requests: object) -> tuple[int, bool]:
    if not isinstance(requests, list):
        return 0, False
    return len(requests), all(_complaint(card, item) is None for item in requests)


def _check_schema(card: ModelCard, inputs: object) -> None:
    complaint = _complaint(card, inputs)
    if complaint is not None:
        raise refused_input(complaint)


def _complaint(card: ModelCard, inputs: object) -> str | None:
    try:
        validate_input(card, inputs)
    except InputRefused as refused:
        return refused.complaint
    # A card that requires nothing lets any JSON pass the validator; what is no object has no inputs.
    return None if isinstance(inputs, dict) else "Type mismatch of '/', 'object' not met"
