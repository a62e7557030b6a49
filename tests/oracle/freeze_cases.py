"""Write tests/emulator/data/validation_cases.json from the oracle's answers: `python tests/oracle/freeze_cases.py`.

To be run after a card's input schema has changed. Of many generated bodies, those are kept that the validator
answers in different ways; the same bodies come out each time.
"""

from __future__ import annotations

import json
import re
from typing import Any

from body_strategies import bodies
from hypothesis import HealthCheck, given, settings
from validator_oracle import HERE, Oracle

from workersai_contracts import models

CASES = HERE.parent / "emulator" / "data" / "validation_cases.json"
GENERATED = 400
KEPT = 14
LONGEST = 700

ROOTS: list[Any] = [
    None,
    True,
    0,
    5,
    "",
    "abc",
    [],
    [1],
    [None],
    [[]],
    {},
    {"0": 1, "text": 5, "requests": 5},
]

FOR_EMBEDDINGS: list[Any] = [
    {"text": "a"},
    {"text": ""},
    {"text": None},
    {"text": 1},
    {"text": 1.5},
    {"text": []},
    {"text": [1]},
    {"text": [""]},
    {"text": ["a", None, {}]},
    {"text": ["a", {}]},
    {"text": [["a"]]},
    {"text": {"2": "b", "1": ""}},
    {"text": "a", "pooling": "max"},
    {"text": "a", "pooling": {"toString": 1}},
    {"text": "a", "pooling": [1, [], [None, 1e21], {}]},
    {"text": "a", "requests": [{"text": "a"}]},
    {"requests": []},
    {"requests": {}},
    {"requests": [{"text": "a"}, {}]},
    {"requests": [{"text": "a"}, {"text": ""}, None]},
    {"requests": [{"query": "a", "contexts": [{"text": "a"}]}, {"text": "a"}]},
    {"requests": [{"text": "a", "contexts": []}]},
    {"query": "a", "contexts": [{}]},
    {"query": "a", "contexts": ["a"]},
]

#: Keywords and combinations that no card has.
SCHEMAS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "closed": (
        {"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": False},
        [{"text": "a"}, {"text": "a", "seed": 1}, {"seed": 1, "2": 1, "10": 1}, {}],
    ),
    "closed by its conditions": (
        {
            "allOf": [{"properties": {"a": {"type": "string"}}}],
            "properties": {"b": {"type": "integer"}},
            "unevaluatedProperties": False,
            "required": ["a", "b"],
        },
        [{"a": "x", "b": 1}, {"a": "x", "b": 1, "c": 1}, {"b": 1}, {"a": 1}, {"a": "x", "b": 1.0}],
    ),
    "open of one kind": (
        {
            "type": "object",
            "additionalProperties": {"properties": {"t": {"type": "string"}}, "required": ["t"]},
        },
        [
            {"x": {"t": "a"}},
            {"x": {}},
            {"a/x": {}, "x": {"t": "a"}},
            {"a/constructor": {}},
            {"a/__proto__": 1},
        ],
    ),
    "alternatives without a type": (
        {"properties": {"v": {"oneOf": [{"minLength": 1}, {"type": "integer"}]}}, "required": ["v"]},
        [{"v": "a"}, {"v": 1}, {"v": []}, {}],
    ),
    "any of, none of": (
        {
            "anyOf": [{"type": "string", "maxLength": 2}, {"type": "number", "multipleOf": 0.5}],
            "not": {"const": 1},
        },
        ["a", "😀", "😀😀", 1, 1.5, 0.7, None, 1e21],
    ),
    "numbers": (
        {
            "type": "object",
            "properties": {
                "n": {"type": "number", "exclusiveMinimum": 1e-7, "maximum": 1e21},
                "e": {"enum": [1, "b", None, [], True]},
                "c": {"const": 0},
            },
        },
        [
            {"n": 1e-7},
            {"n": 10**25},
            {"n": 10**400},
            {"e": 1.0},
            {"e": 1e21},
            {"e": 1.5e-9},
            {"e": []},
            {"e": [[], [None, 1.0]]},
            {"e": {"a": 1}},
            {"e": {"toString": 1}},
            {"c": False},
            {"c": -0.0},
        ],
    ),
    "inherited properties": (
        {
            "properties": {
                "length": {"type": "integer", "minimum": 2},
                "search": {"type": "string"},
                "0": {"type": "string"},
            }
        },
        ["abc", "😀", "a", ["a", "b"], [1], {"length": 5}, {}, 5],
    ),
    "counted": (
        {"minProperties": 2, "maxProperties": 3, "type": "object", "properties": {"a": True}},
        [{"a": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 1, "c": 1, "d": 1}, None, "abc", 5, [1, 2]],
    ),
    "items of nothing": ({"type": "array"}, [[], [1], ["a"], [{}], [None], {"a": 1}, "a", 5]),
    "union": ({"properties": {"a": {"type": ["string", "null"]}}}, [{"a": "x"}, {"a": None}, {}]),
    "an arm that gives nothing hides the next": (
        {"type": "object", "oneOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {}}}]},
        [{"a": "x"}, {"b": 1}, {"a": "x", "b": 1}, {}],
    ),
    "an object for an array": (
        {"type": "array", "items": {"type": "string"}},
        [{"b": 1, "2": 5, "10": "a"}, {"b": 1, "2": "a", "10": 5}],
    ),
    "const before enum": ({"const": "b", "enum": ["a"], "pattern": "a"}, ["a", "b"]),
    "alternatives within conditions": (
        {"type": "object", "allOf": [{"oneOf": [{"properties": {"a": {}}}]}], "required": ["a"]},
        [{"a": 1}, {}],
    ),
    "alternatives within other properties": (
        {
            "type": "object",
            "oneOf": [
                {
                    "additionalProperties": {
                        "properties": {"t": {"oneOf": [{"type": "string"}, {"type": "number"}]}},
                        "required": ["t"],
                    }
                }
            ],
        },
        [{"x": {"t": None}}, {"x": {"t": 1}}, {"x": {"t": "a"}, "y": {}}],
    ),
    "a name that every object has": (
        {"properties": {"constructor": {}, "toString": {"type": "string"}}, "required": ["constructor"]},
        [{"toString": "a"}, {"constructor": 1, "toString": "a"}, {}],
    ),
    "other properties count one level deeper": (
        {
            "allOf": [{"type": "object", "additionalProperties": True}],
            "properties": {"": {"type": "object", "required": ["x"]}},
        },
        [{"x": 1}, {}],
    ),
    "pattern": (
        {"properties": {"id": {"type": "string", "pattern": "[a-z0-9]{4}"}}},
        [{"id": "ab12"}, {"id": "ab1"}, {"id": "__ab12__"}],
    ),
}


def generated(schema: dict[str, Any]) -> list[Any]:
    """Return bodies for a schema, the same every time."""
    found: list[Any] = []

    @settings(
        max_examples=GENERATED,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(body=bodies(schema))
    def collect(body: Any) -> None:
        found.append(body)

    collect()
    return found


def distinct(oracle: Oracle, schema: dict[str, Any], candidates: list[Any]) -> list[tuple[Any, str | None]]:
    """Return bodies with their complaints, one for each shape of complaint, and some that are accepted."""
    kept: dict[tuple[Any, ...], tuple[Any, str | None]] = {}
    for body in candidates:
        complaint = oracle.complaint(schema, body)
        shape = (
            re.sub(r"\d+", "0", complaint) if complaint else sorted(body) if isinstance(body, dict) else ""
        )
        if len(json.dumps([body, complaint])) <= LONGEST:
            kept.setdefault((complaint is None, str(shape)), (body, complaint))
    accepted = [case for case in kept.values() if case[1] is None]
    refused = [case for case in kept.values() if case[1] is not None]
    return refused[: KEPT - 4] + accepted[:4]


def main() -> None:
    """Ask the oracle, and write the file."""
    cases: list[tuple[str, Any, str | None]] = []
    with Oracle() as oracle:
        schemas = {id(card.input_schema): (name, card.input_schema) for name, card in models().items()}
        for name, schema in schemas.values():
            chosen = ROOTS + (
                FOR_EMBEDDINGS if name in ("@cf/baai/bge-m3", "@cf/baai/bge-small-en-v1.5") else []
            )
            cases += [(name, body, oracle.complaint(schema, body)) for body in chosen]
            cases += [(name, *case) for case in distinct(oracle, schema, generated(schema))]
        for name, (schema, chosen) in SCHEMAS.items():
            cases += [(name, body, oracle.complaint(schema, body)) for body in chosen]
    write(cases)


def write(cases: list[tuple[str, Any, str | None]]) -> None:
    """Write the schemas that are no card's, and the cases: card or schema, body, complaint; one a line."""
    schemas = ",\n".join(f"{json.dumps(name)}: {json.dumps(schema)}" for name, (schema, _) in SCHEMAS.items())
    lines = ",\n".join(json.dumps(case) for case in cases)
    CASES.write_text(f'{{"schemas": {{\n{schemas}\n}},\n"cases": [\n{lines}\n]}}\n')
    print(f"{len(cases)} cases, {CASES.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
