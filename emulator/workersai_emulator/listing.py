"""Listings: the catalogue as the API shows it, part by part and page by page."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, date, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from workersai_contracts import model, models
from workersai_emulator.outcome import Listed
from workersai_emulator.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from workersai_contracts import ModelCard
    from workersai_emulator.calls import Listing

PER_PAGE: Final = 100
#: Who serves a model, by the first part of its name. Fact: `models.search`.
SOURCES: Final = {"@cf": 1, "@hf": 2}
#: So many months a deprecated model can still be asked for. Fact: `models.deprecated`.
GRACE_MONTHS: Final = 3

_COUNT = re.compile("[1-9][0-9]{0,14}")
_ABOUT_TASKS: Final = {
    "Automatic Speech Recognition": "Turns speech into text.",
    "Image Classification": "Says what an image shows, and how sure that is.",
    "Image-to-Text": "Describes an image, or answers a question about it.",
    "Object Detection": "Finds things in an image, and where they are.",
    "Summarization": "Says in fewer words what a text says.",
    "Text Classification": "Puts a text in a class, or scores texts against a query.",
    "Text Embeddings": "Turns texts into vectors that are close where meanings are.",
    "Text Generation": "Writes text: answers, code, calls of tools.",
    "Text-to-Image": "Makes an image of a description.",
    "Text-to-Speech": "Reads a text aloud.",
    "Translation": "Says a text in another language.",
    "Voice Activity Detection": "Tells speech from silence, and when a speaker is done.",
}


def listed(listing: Listing | None, query: Mapping[str, str], now: float) -> Listed:
    """The part of the catalogue that a query asks for, at `now` in seconds since 1970. Raises Refused.

    Facts: `models.search`, `models.schema`, `models.tasks`, `models.authors`, `models.finetunes`.
    """
    match listing:
        case "search":
            return _searched(query, datetime.fromtimestamp(now, UTC).date())
        case "schema":
            return Listed(_schema(query.get("model", "")))
        case "tasks":
            return Listed(_tasks())
        case "authors":
            names = {author(card) for card in models().values()}
            return Listed([{"id": _id_of(f"author {name}"), "name": name} for name in sorted(names)])
        case _:
            return Listed([])


def author(card: ModelCard) -> str:
    """Who made a model: the second part of its name."""
    return card.name.split("/")[1]


def _searched(query: Mapping[str, str], today: date) -> Listed:
    """One page of the models that fit, in the order of their names; beyond the last page there is none.

    Facts: `models.search`, `models.pages`, `settled.page`.
    """
    found = [card for card in models().values() if _fits(card, query, today)]
    page, per_page = _count(query.get("page"), 1), _count(query.get("per_page"), PER_PAGE)
    result = [_entry(card) for card in found[(page - 1) * per_page : page * per_page]]
    return Listed(
        result, {"count": len(result), "page": page, "per_page": per_page, "total_count": len(found)}
    )


def _fits(card: ModelCard, query: Mapping[str, str], today: date) -> bool:
    """Whether a model passes all filters. Facts: `models.search`, `models.deprecated`, `settled.filters`."""
    searched, task, by = (query.get(key, "").lower() for key in ("search", "task", "author"))
    return (
        (searched in card.name.lower() or searched in card.description.lower())
        and task in {"", card.task.lower(), card.task_id}
        and by in {"", author(card).lower()}
        and query.get("source", "") in {"", str(_source(card))}
        and not (card.beta and _is_true(query.get("hide_experimental")))
        and not _is_hidden(card, today, shown=_is_true(query.get("include_deprecated")))
    )


def _is_hidden(card: ModelCard, today: date, *, shown: bool) -> bool:
    """Whether a model's day has passed: at once or, where it is to be shown, months ago.

    Fact: `models.deprecated`.
    """
    if card.deprecated_on is None:
        return False
    day = date.fromisoformat(card.deprecated_on)
    if not shown:
        return day < today
    months = (today.year - day.year) * 12 + today.month - day.month
    return (months, today.day) > (GRACE_MONTHS, day.day)


def _entry(card: ModelCard) -> dict[str, Any]:
    """A model without its schema. Facts: `models.search`, `settled.model-id`."""
    return {
        "id": card.id or _id_of(card.name),
        "source": _source(card),
        "name": card.name,
        "description": card.description,
        "task": _task(card.task_id, card.task),
        "tags": [],
        "properties": [{"property_id": name, "value": value} for name, value in _properties(card)],
    }


def _properties(card: ModelCard) -> Iterator[tuple[str, Any]]:
    """What the card says, as properties: all but prices are strings. Fact: `models.properties`."""
    prices = {
        "per M input tokens": card.price_per_million_input,
        "per M output tokens": card.price_per_million_output,
    }
    priced = [
        {"unit": unit, "price": price, "currency": "USD"}
        for unit, price in prices.items()
        if price is not None
    ]
    told: dict[str, Any] = {
        "async_queue": card.queue,
        "beta": card.beta,
        "context_window": card.context_tokens,
        "price": priced,
        "function_calling": card.function_calling,
        "lora": card.lora,
        "max_input_tokens": card.max_input_tokens,
        "output_dimensions": card.dimensions,
        "planned_deprecation_date": card.deprecated_on,
        "require_workers_paid": card.paid_only,
    }
    for name, value in told.items():
        if value:
            yield name, value if isinstance(value, list) else "true" if value is True else str(value)


def _schema(name: str) -> dict[str, Any]:
    """What a model takes and gives. Facts: `models.schema`, `schema.unknown`."""
    card = model(name)
    if card is None:
        raise Refused("schema.unknown")
    return {"input": card.input_schema, "output": card.output_schema}


def _tasks() -> list[dict[str, str]]:
    ids = {card.task: card.task_id for card in models().values()}
    return [_task(ids[name], name) for name in sorted(ids)]


def _task(task_id: str, name: str) -> dict[str, str]:
    """A task as the API shows it, in words of ours. Fact: `models.tasks`."""
    return {"id": task_id, "name": name, "description": _ABOUT_TASKS.get(name, "")}


def _source(card: ModelCard) -> int:
    return SOURCES.get(card.name.partition("/")[0], 1)


@cache
def _id_of(name: str) -> str:
    """A uuid that the name alone decides, where the live one is not published. Fact: `settled.model-id`."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


def _count(text: str | None, default: int) -> int:
    """A number from 1 on, or the default for anything else. Fact: `settled.page`."""
    return int(text) if text is not None and _COUNT.fullmatch(text) else default


def _is_true(text: str | None) -> bool:
    return text is not None and text.lower() == "true"
