"""The ledger, the error catalogue and the model cards hang together."""

from __future__ import annotations

import re
import string
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import workersai_contracts
from workersai_contracts import assumptions, error, errors, facts, load_schema, schema_names

REPO = Path(__file__).parents[2]
CITED = re.compile(r"Facts?:[\s#]+((?:`[^`]+`(?:,[\s#]+)?)+)")


def test_public_names_are_sorted_and_are_all_there_is() -> None:
    listed = workersai_contracts.__all__
    named = {name: value for name, value in vars(workersai_contracts).items() if not name.startswith("_")}
    public = {name for name, value in named.items() if not isinstance(value, ModuleType)} - {"annotations"}
    assert listed == sorted(listed)
    assert set(listed) == public


def test_importing_the_contracts_loads_nothing_heavy() -> None:
    program = "import sys, workersai_contracts; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    heavy = {"aiohttp", "httpx", "jsonschema", "numpy", "orjson", "referencing"}
    assert heavy.isdisjoint(ran.stdout.split())


@pytest.mark.parametrize("row", errors().values(), ids=errors().keys())
def test_every_error_row_renders_with_its_parameters(row: workersai_contracts.ErrorRow) -> None:
    fields = [field for _, field, _, _ in string.Formatter().parse(row.description) if field is not None]
    said = row.describe(**{field: f"<{field}>" for field in fields})
    assert said
    assert all(f"<{field}>" in said for field in fields)
    assert set(row.example) == set(fields)
    assert row.describe() == row.description.format(**row.example)


@pytest.mark.parametrize("row", errors().values(), ids=errors().keys())
def test_error_rows_hold_what_their_envelope_allows(row: workersai_contracts.ErrorRow) -> None:
    assert 400 <= row.status < 600
    if row.envelope == "edge":
        assert row.title is None
        assert not row.names_request
    else:
        assert row.names_request == (row.code not in {3021, 5021, 5028})


@pytest.mark.parametrize(
    ("key", "row_id", "status"),
    [
        (8007, "model.no-queue", 400),
        ("8007", "model.no-queue", 400),
        (3030, "model.context", 400),
        (3040, "capacity", 429),
        (3021, "rate.minute", 429),
        (4006, "quota.daily", 429),
        (5001, "batch.failed", 500),
        (9106, "auth.malformed", 400),
        (10000, "auth.unknown", 401),
        ("auth.missing", "auth.missing", 403),
        ("poll.unknown", "poll.unknown", 400),
    ],
)
def test_an_error_is_found_by_id_or_is_the_first_of_its_code(
    key: int | str, row_id: str, status: int
) -> None:
    assert (error(key).id, error(key).status) == (row_id, status)


@pytest.mark.parametrize("key", [1, "1", "capacity ", "", -3040])
def test_an_unknown_error_says_in_one_line_what_there_is(key: int | str) -> None:
    with pytest.raises(LookupError) as refused:
        error(key)
    said = refused.value.args[0]
    assert repr(key) in said
    assert "capacity" in said
    assert "\n" not in said


def test_credentials_that_are_missing_give_two_errors() -> None:
    assert error("auth.missing").also == ((9107, "Missing X-Auth-Key header"),)


@pytest.mark.parametrize("open_fact", assumptions().values(), ids=assumptions().keys())
def test_an_assumption_has_its_default_among_at_least_two_choices(
    open_fact: workersai_contracts.Assumption,
) -> None:
    assert open_fact.default in open_fact.alternatives
    assert len(open_fact.alternatives) >= 2
    assert all(open_fact.alternatives.values())


def test_the_ledger_holds_facts_errors_and_assumptions_at_their_best_level() -> None:
    ledger = facts()
    assert errors().keys() | assumptions().keys() <= ledger.keys()
    assert all(name == fact.id and fact.text and fact.source for name, fact in ledger.items())
    assert ledger["batch.failed"].level == "documented"
    assert ledger["poll.unknown"].level == "assumed"
    assert ledger["done.order"].level == "assumed"
    assert ledger["env.ai"].level == "observed"


def test_what_is_handed_out_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        errors()["capacity"] = error(3021)  # type: ignore[index]
    with pytest.raises(TypeError):
        assumptions()["done.order"].alternatives["x"] = "y"  # type: ignore[index]
    with pytest.raises(AttributeError):
        error(3040).status = 200  # type: ignore[misc]


def test_schemas_are_handed_out_anew() -> None:
    load_schema("batch/poll.done")["title"] = "spoiled"
    assert load_schema("batch/poll.done")["title"] != "spoiled"


def test_every_fact_cited_in_the_source_is_in_the_ledger() -> None:
    cited = {
        (str(path.relative_to(REPO)), fact)
        for folder in ("contracts", "emulator", "client")
        for path in (REPO / folder).rglob("*")
        if path.suffix in {".py", ".json"}
        for citation in CITED.findall(path.read_text(encoding="utf-8"))
        for fact in re.findall(r"`([^`]+)`", citation)
    }
    assert any(path.endswith("catalogue.py") for path, _ in cited)
    assert any(path.endswith("poll.item.json") for path, _ in cited)
    assert sorted((path, fact) for path, fact in cited if fact not in facts()) == []


def test_an_unknown_schema_says_what_there_is() -> None:
    with pytest.raises(LookupError, match=r"batch/poll\.pending"):
        load_schema("batch/poll")
    assert "batch/poll" not in schema_names()
