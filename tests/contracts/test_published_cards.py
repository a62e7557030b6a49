"""Our cards have the structure of the published ones, where those are at hand beside the repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from workersai_contracts import models

PUBLISHED = Path(__file__).parents[3] / "shared" / "wire" / "models"
WORDS = {"title", "description", "default"}  # what the validator does not look at
HELD = [name for name in models() if (PUBLISHED / f"{name.rpartition('/')[2]}.json").exists()]
SIDES = [(name, side) for name in HELD for side in ("input", "output")]


@pytest.mark.parametrize(("name", "side"), SIDES, ids=[f"{name}-{side}" for name, side in SIDES])
def test_the_schemas_are_the_published_ones_in_order(name: str, side: str) -> None:
    published = _published(name, f".{side}.json")
    ours = getattr(models()[name], f"{side}_schema")
    assert _keyword_order(_bare(ours)) == _keyword_order(_bare(published))
    assert _bare(ours) == _bare(published)


@pytest.mark.parametrize("name", HELD)
def test_id_task_and_figures_are_the_published_ones(name: str) -> None:
    published, ours = _published(name, ".json"), models()[name]
    properties = {entry["property_id"]: entry["value"] for entry in published["properties"]}
    prices = {price["unit"]: price["price"] for price in properties.get("price", ())}
    assert (ours.id, ours.task, ours.task_id) == (
        published["id"],
        published["task"]["name"],
        published["task"]["id"],
    )
    assert ours.price_per_million_input == prices.get("per M input tokens")
    assert ours.price_per_million_output == prices.get("per M output tokens")
    if "output_dimensions" in properties:
        assert ours.dimensions == int(properties["output_dimensions"])
    if "max_input_tokens" in properties:
        assert ours.max_input_tokens == int(properties["max_input_tokens"])


@pytest.mark.parametrize("name", HELD)
def test_no_description_is_the_published_one(name: str) -> None:
    published = _descriptions(_published(name, ".json"))
    card = models()[name]
    ours = _descriptions([{"description": card.description}, card.input_schema, card.output_schema])
    assert ours.isdisjoint(published)


def _published(name: str, ending: str) -> Any:
    return json.loads((PUBLISHED / f"{name.rpartition('/')[2]}{ending}").read_bytes())


def _bare(schema: Any) -> Any:
    """Drop words from a schema, but keep properties that happen to have such names."""
    if isinstance(schema, list):
        return [_bare(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _bare(part) for name, part in value.items()} if key == "properties" else _bare(value)
        for key, value in schema.items()
        if key not in WORDS
    }


def _keyword_order(schema: Any) -> Any:
    """List what the order of messages depends on: properties by name, arms by position."""
    if isinstance(schema, list):
        return [_keyword_order(part) for part in schema]
    if not isinstance(schema, dict):
        return None
    own = list(schema["properties"]) if isinstance(schema.get("properties"), dict) else []
    return own, {key: _keyword_order(value) for key, value in schema.items()}


def _descriptions(node: Any) -> set[str]:
    if isinstance(node, list):
        return set().union(*(_descriptions(part) for part in node))
    if not isinstance(node, dict):
        return set()
    said = {node["description"]} if isinstance(node.get("description"), str) else set()
    return said.union(*(_descriptions(part) for part in node.values()))
