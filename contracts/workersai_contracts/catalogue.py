"""The knowledge of the wire, read from the data files beside this module.

Everything here is immutable and read once. The files are written for people: a model card may say
`{"$ref": "#/$defs/…"}` for a part it repeats, and what is handed out has the references resolved.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable

Level = Literal["documented", "observed", "inferred", "assumed"]
Envelope = Literal["edge", "ai"]
Answers = Literal["embedding", "reranking", "translation", "response", "choices", "output"]
Validated = Literal["submit", "run"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One entry of the ledger: what the wire does, how sure we are, where it is from."""

    id: str
    level: Level
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Assumption:
    """An open fact: nobody knows what the service does, so it has a default and a switch.

    `alternatives` holds every choice by name, the default among them, with what it does.
    """

    id: str
    about: str
    default: str
    alternatives: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One way in which the service refuses, as data that every dialect of the wire renders.

    `envelope` says who refuses: the API's router (`edge`) or Workers AI (`ai`). `names_request` says
    whether the request's uuid ends the message. `example` has a value for each `{name}` place of the
    description. `also` are further (code, message) pairs of the same reply.
    Facts: `env.edge`, `env.ai`.
    """

    id: str
    level: Level
    status: int
    code: int
    title: str | None
    description: str
    example: Mapping[str, object]
    envelope: Envelope
    names_request: bool
    also: tuple[tuple[int, str], ...]
    when: str
    source: str

    def describe(self, **params: object) -> str:
        """Fill the `{name}` places of the description; what is not given is as in a capture."""
        return self.description.format_map({**self.example, **params})


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What is known of one model: its task, its limits, its price, and what it takes and gives.

    `queue` is None where it is open. Token limits are the model's own tokens, prices are USD per million
    tokens; None means unpublished. `texts_per_call` bounds one list of texts. `validated` says when a batch's
    items meet the input schema. The schemas are plain JSON in the order of the published ones, which the
    service's messages depend on. Facts: `model.queue`, `submit.validation`, `input.semantics`.
    """

    name: str
    id: str | None
    task: str
    task_id: str
    description: str
    queue: bool | None
    answers: Answers
    dimensions: int | None
    max_input_tokens: int | None
    context_tokens: int | None
    texts_per_call: int | None
    validated: Validated
    neurons_per_million_input: float | None
    neurons_per_million_output: float | None
    price_per_million_input: float | None
    price_per_million_output: float | None
    requests_per_minute: int | None
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]


@cache
def errors() -> Mapping[str, ErrorRow]:
    """Every error the service is known to answer with, by id; the first row of a code is its usual one."""
    return MappingProxyType({row["id"]: _error_row(row) for row in _read("errors.json")})


def error(key: int | str) -> ErrorRow:
    """Find an error by its row's id or by its code, as a number or in digits.

    A code means the first row that has it. Raises LookupError with one line that says what there is.
    """
    rows = errors()
    if isinstance(key, str) and key in rows:
        return rows[key]
    for row in rows.values():
        if str(row.code) == str(key):
            return row
    raise LookupError(f"no error {key!r}: use a code such as 3040 or a row's id, one of {', '.join(rows)}")


@cache
def assumptions() -> Mapping[str, Assumption]:
    """Every open fact by id, with what the emulator does and what else it can be told to do."""
    return MappingProxyType(
        {
            row["id"]: Assumption(
                row["id"], row["about"], row["default"], MappingProxyType(row["alternatives"])
            )
            for row in _read("assumptions.json")
        }
    )


@cache
def facts() -> Mapping[str, Fact]:
    """Return the whole ledger by id: facts, then error rows, then the assumptions not known any better."""
    ledger: dict[str, Fact] = {}
    for row in _read("facts.json"):
        ledger[row["id"]] = Fact(row["id"], row["level"], row["text"], row["source"])
    for refusal in errors().values():
        said = f"HTTP {refusal.status}, code {refusal.code}: {refusal.when}."
        ledger.setdefault(refusal.id, Fact(refusal.id, refusal.level, said, refusal.source))
    for open_fact in assumptions().values():
        chosen = f"Open: {open_fact.about}. Chosen: {open_fact.alternatives[open_fact.default]}."
        ledger.setdefault(open_fact.id, Fact(open_fact.id, "assumed", chosen, "our choice"))
    return MappingProxyType(ledger)


@cache
def models() -> Mapping[str, ModelCard]:
    """Every model card by the model's full name, in the order of the names."""
    cards = [_model_card(json.loads(path.read_bytes())) for path in _json_files(_data() / "models")]
    return MappingProxyType({card.name: card for card in sorted(cards, key=lambda card: card.name)})


def model(name: str) -> ModelCard | None:
    """Find a model by its full name, such as `@cf/baai/bge-m3`."""
    return models().get(name)


@cache
def schema_names() -> tuple[str, ...]:
    """Short names of all message schemas, such as `batch/submit.request`."""
    folder = _data() / "schemas"
    return tuple(
        sorted(f"{part.name}/{path.name[:-5]}" for part in folder.iterdir() for path in _json_files(part))
    )


def load_schema(name: str) -> dict[str, Any]:
    """Load one message schema, a JSON Schema 2020-12 document, by its short name.

    Each call gives a new document, which the caller may change. Raises LookupError with one line.
    """
    if name not in schema_names():
        raise LookupError(f"no schema {name!r}: there are {', '.join(schema_names())}")
    schema: dict[str, Any] = json.loads((_data() / "schemas" / f"{name}.json").read_bytes())
    return schema


def _data() -> Traversable:
    return files("workersai_contracts") / "data"


def _read(name: str) -> Any:
    return json.loads((_data() / name).read_bytes())


def _json_files(folder: Traversable) -> Iterator[Traversable]:
    return (path for path in folder.iterdir() if path.name.endswith(".json"))


def _error_row(row: dict[str, Any]) -> ErrorRow:
    also = tuple((code, message) for code, message in row.pop("also", ()))
    example = row.pop("example", {})
    return ErrorRow(**row, also=also, example=MappingProxyType(example))


def _model_card(card: dict[str, Any]) -> ModelCard:
    shared = card.pop("$defs", {})
    for side in ("input_schema", "output_schema"):
        card[side] = _resolve(card[side], shared)
    return ModelCard(**card)


def _resolve(node: Any, shared: dict[str, Any]) -> Any:
    """Put the card's shared parts in place of the references to them, keeping the order of keys."""
    if isinstance(node, list):
        return [_resolve(part, shared) for part in node]
    if not isinstance(node, dict):
        return node
    if isinstance(reference := node.get("$ref"), str):
        return _resolve(shared[reference.removeprefix("#/$defs/")], shared)
    return {key: _resolve(part, shared) for key, part in node.items()}
