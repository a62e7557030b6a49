"""The OpenAPI document: of what, complete, and itself in order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from workersai_contracts import errors, load_schema, models, schema_names
from workersai_contracts.openapi import openapi
from workersai_emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

REST = "/client/v4/accounts/{account_id}/ai"
DOCUMENT = openapi("1.2.3")


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for part in node.values():
            yield from references(part)
    elif isinstance(node, list):
        for part in node:
            yield from references(part)


def validator(component: str) -> Draft202012Validator:
    resource: Resource[Any] = Resource.from_contents(DOCUMENT, default_specification=DRAFT202012)
    registry: Registry[Any] = Registry().with_resource("urn:document", resource)
    return Draft202012Validator({"$ref": f"urn:document#/components/schemas/{component}"}, registry=registry)


def test_each_model_has_a_path_of_its_own_with_what_it_takes_and_gives() -> None:
    for name, card in models().items():
        operation = DOCUMENT["paths"][f"{REST}/run/{name}"]["post"]
        first = operation["requestBody"]["content"]["application/json"]["schema"]["anyOf"][0]["$ref"]
        assert DOCUMENT["components"]["schemas"][first.rpartition("/")[2]] == card.input_schema
        assert operation["tags"] == [card.task]


def test_every_reference_leads_to_something() -> None:
    for reference in set(references(DOCUMENT)):
        place: Any = DOCUMENT
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]
        assert isinstance(place, dict)


@pytest.mark.parametrize("name", sorted(DOCUMENT["components"]["schemas"]))
def test_every_component_is_a_json_schema(name: str) -> None:
    Draft202012Validator.check_schema(DOCUMENT["components"]["schemas"][name])


@pytest.mark.parametrize("name", schema_names())
def test_a_component_says_what_the_contract_says(name: str) -> None:
    schema = load_schema(name)
    component = validator(name.replace("/", "."))
    assert all(component.is_valid(example) for example in schema["examples"])
    assert not all(component.is_valid(other) for other in (None, [], 1, {"success": "maybe"}))


def test_operations_are_told_apart_and_parameters_are_in_their_paths() -> None:
    ids = [operation["operationId"] for _, _, operation in operations()]
    assert len(ids) == len(set(ids)) == len(models()) + 18
    for path, _, operation in operations():
        named = {one["name"] for one in operation["parameters"] if one["in"] == "path"}
        assert named == {part[1:].partition("}")[0] for part in path.split("/") if part.startswith("{")}


def test_every_status_of_the_catalogue_is_a_response_of_every_route_of_the_api() -> None:
    statuses = {str(row.status) for row in errors().values()} | {"200"}
    for path, _, operation in operations():
        expected = (
            {"200", "400", "403", "502"} if path in {"/", "/batch", "/batch/{request_id}"} else statuses
        )
        assert set(operation["responses"]) == expected


def test_the_control_plane_serves_it_with_the_servers_version() -> None:
    from workersai_emulator import __version__

    with Emulator() as emulator:
        served = emulator.plane.ask("GET", "openapi.json", {})

    assert served == openapi(__version__)
    assert served["openapi"] == "3.1.0"


def test_it_is_the_same_each_time_and_the_callers_own() -> None:
    openapi("1")["paths"].clear()
    assert json.dumps(openapi("1.2.3")) == json.dumps(DOCUMENT)
