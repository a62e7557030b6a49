"""The knowledge of the wire, read from the data files beside this module.

Everything here is immutable and read once, when it is first asked for. The files are written for people: a
model card may say `{"$ref": "#/$defs/…"}` for a part it repeats and `{"$ref": "forms/…#/…"}` for one that
other cards have too, and what is handed out has the references resolved.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Level = Literal["documented", "observed", "inferred", "assumed"]
Envelope = Literal["edge", "ai"]
Answers = Literal[
    "embedding",
    "reranking",
    "translation",
    "response",
    "choices",
    "output",
    "summary",
    "labels",
    "boxes",
    "description",
    "image",
    "transcript",
    "speech",
    "turn",
]
Validated = Literal["submit", "run"]
RawInput = Literal["image", "audio"]

#: By its path and not by importlib.resources, which takes as long to import as all the rest of this module.
_DATA: Final = Path(__file__).parent / "data"


class Fact(NamedTuple):
    """One entry of the ledger: what the wire does, how sure we are, where it is from."""

    id: str
    level: Level
    text: str
    source: str


class Assumption(NamedTuple):
    """An open fact: nobody knows what the service does, so it has a default and a switch.

    `alternatives` holds every choice by name, the default among them, with what it does.
    """

    id: str
    about: str
    default: str
    alternatives: Mapping[str, str]


class ErrorRow(NamedTuple):
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


@dataclass(frozen=True, eq=False)
class ModelCard:
    """What is known of one model: its task, its limits, its price, and what it takes and gives.

    `id` is None where no public card says it, `queue` where it is open. `output_type` is the content type of
    the synchronous output; `raw_input` says that a body may be an image's or a recording's bytes instead of
    JSON. Token limits are the model's own tokens, prices are USD per million tokens; None means unpublished, or
    priced by another unit. `texts_per_call` bounds one list of texts. `validated` says when a batch's items
    meet the input schema. `deprecated_on` is a day, `2026-05-30`, which may be to come. The schemas are plain
    JSON in the order of the published ones, which the service's messages depend on; cards of one form share
    them. Facts: `model.queue`, `submit.validation`, `input.semantics`, `models.outputs`, `models.raw-input`.
    """

    name: str
    id: str | None
    task: str
    task_id: str
    description: str
    queue: bool | None
    answers: Answers
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    output_type: str = "application/json"
    raw_input: RawInput | None = None
    dimensions: int | None = None
    max_input_tokens: int | None = None
    context_tokens: int | None = None
    texts_per_call: int | None = None
    validated: Validated = "submit"
    neurons_per_million_input: float | None = None
    neurons_per_million_output: float | None = None
    price_per_million_input: float | None = None
    price_per_million_output: float | None = None
    requests_per_minute: int | None = None
    function_calling: bool = False
    lora: bool = False
    beta: bool = False
    paid_only: bool = False
    deprecated_on: str | None = None

    @property
    def writes_text(self) -> bool:
        """Whether it is a text model, whose output is as long as it is told to be."""
        return self.answers in {"response", "choices", "output"}

    @cached_property
    def takes_requests(self) -> bool:
        """Whether the input schema has a form for batches.

        Some models queue without one; then each item of a batch is an input. Facts: `batch.schema`, `models.queueing`.
        """
        arms = self.input_schema.get("oneOf") or self.input_schema.get("anyOf") or ()
        return any("requests" in arm.get("properties", ()) for arm in arms)


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
    """Every model card by the model's full name, in the order of the names; the first call reads them all."""
    cards = sorted((_card(file) for file in _card_files()), key=lambda card: card.name)
    return MappingProxyType({card.name: card for card in cards})


_found: Final[dict[str, ModelCard]] = {}


def model(name: str) -> ModelCard | None:
    """Find a model by its full name, such as `@cf/baai/bge-m3`; only its own card is read."""
    found = _found.get(name)
    if found is None:
        file = name.rpartition("/")[2]
        if file in _card_files() and (card := _card(file)).name == name:
            found = _found[name] = card
    return found


@cache
def schema_names() -> tuple[str, ...]:
    """Short names of all message schemas, such as `batch/submit.request`."""
    folder = _DATA / "schemas"
    return tuple(
        sorted(f"{part.name}/{path.name[:-5]}" for part in folder.iterdir() for path in _json_files(part))
    )


def load_schema(name: str) -> dict[str, Any]:
    """Load one message schema, a JSON Schema 2020-12 document, by its short name.

    Each call gives a new document, which the caller may change. Raises LookupError with one line.
    """
    if name not in schema_names():
        raise LookupError(f"no schema {name!r}: there are {', '.join(schema_names())}")
    schema: dict[str, Any] = json.loads((_DATA / "schemas" / f"{name}.json").read_bytes())
    return schema


def _read(name: str) -> Any:
    return json.loads((_DATA / name).read_bytes())


def _json_files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.iterdir() if path.name.endswith(".json"))


def _error_row(row: dict[str, Any]) -> ErrorRow:
    also = tuple((code, message) for code, message in row.pop("also", ()))
    example = row.pop("example", {})
    return ErrorRow(**row, also=also, example=MappingProxyType(example))


@cache
def _card_files() -> frozenset[str]:
    """List the cards' files, which are called after the last part of a model's name."""
    return frozenset(path.name.removesuffix(".json") for path in _json_files(_DATA / "models"))


@cache
def _card(file: str) -> ModelCard:
    card = _read(f"models/{file}.json")
    parts = _Parts(card.pop("$defs", {}))
    for side in ("input_schema", "output_schema"):
        card[side] = _resolve(card[side], parts)
    return ModelCard(**card)


@cache
def _form(name: str) -> dict[str, Any]:
    form: dict[str, Any] = _read(f"forms/{name}.json")
    return form


@cache
def _form_part(reference: str) -> Any:
    """Resolve what several cards have in common, so that they share one object."""
    return _resolve({"$ref": reference, "$defs": {}}, _Parts({}))


#: What a reference to a part that is null comes to: the property that has it is left out.
_LEFT_OUT: Final = object()


class _Parts(dict[str, Any]):
    """The parts that a file repeats, by name; each is resolved when it is first used, and is then one object."""

    def __init__(self, written: Mapping[str, Any]) -> None:
        super().__init__()
        self._written = written

    def __missing__(self, name: str) -> Any:
        written = self._written[name]
        part = self[name] = _LEFT_OUT if written is None else _resolve(written, self)
        return part


def _resolve(node: Any, parts: _Parts) -> Any:
    """Put the shared parts in place of the references to them, keeping the order of keys.

    `#/$defs/top_p` is a part of the same file, `forms/text-generation#/input` one of a form. `$defs` beside
    the latter replace the form's own.
    """
    if isinstance(node, list):
        return [_resolve(part, parts) for part in node]
    if not isinstance(node, dict):
        return node
    if not isinstance(reference := node.get("$ref"), str):
        resolved = ((key, _resolve(part, parts)) for key, part in node.items())
        return {key: part for key, part in resolved if part is not _LEFT_OUT}
    file, _, name = reference.partition("#/")
    if not file:
        return parts[name.removeprefix("$defs/")]
    if "$defs" not in node:
        return _form_part(reference)
    form = _form(file.removeprefix("forms/"))
    return _resolve(form[name], _Parts({**form.get("$defs", {}), **node["$defs"]}))
