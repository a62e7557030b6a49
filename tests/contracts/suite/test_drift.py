"""Drift names each difference between two targets, where it is, how grave, and who is wrong."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lying_proxy import LyingProxy
from running import ALTERNATIVES, target
from test_verify_command import verify

from workersai_contracts import assumptions
from workersai_contracts.differing import body_changes, header_changes
from workersai_contracts.drift import Drift, Side, drift
from workersai_contracts.drift_command import is_grave
from workersai_contracts.drift_report import drift_as_text
from workersai_contracts.exchanges import EXCHANGES, LIFECYCLES
from workersai_contracts.recording import Recorder
from workersai_contracts.suite import test_exchanges, test_lifecycles
from workersai_contracts.suite.checks import Checks
from workersai_contracts.suite.probes import PROBES
from workersai_contracts.suite.wire import Wire
from workersai_emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from lying_proxy import Passing

    from workersai_contracts.drift import Severity
    from workersai_contracts.findings import Finding

pytestmark = pytest.mark.differences

#: Probes that send tens of megabytes are made only where it is about them.
LARGE = {"submit.too-large", "body.limit"}


def side(
    name: str,
    url: str,
    probes: Iterable[str] = (),
    exchanges: Iterable[str] = (),
    *,
    lifecycle: bool = True,
) -> Side:
    """A part of the suite run against a server: these probes, these exchanges, and the first lifecycle."""
    found: list[Finding] = []
    recorder = Recorder(name)
    with closing(Wire(target(url), recorder)) as wire:
        for exchange in EXCHANGES:
            if exchange.name in exchanges:
                recorder.of = f"test_exchange[{exchange.name}]"
                test_exchanges.test_exchange(exchange, wire, Checks(recorder.of, found.append))
        if lifecycle:
            recorder.of = "test_lifecycle[embeddings]"
            test_lifecycles.test_lifecycle(LIFECYCLES[0], wire, Checks(recorder.of, found.append))
        for fact in probes:
            recorder.of = f"test_open_fact[{fact}]"
            Checks(recorder.of, found.append).shows(fact, PROBES[fact](wire), "none")
    return Side(name, recorder.exchanges, found)


@pytest.fixture(scope="module")
def default() -> Side:
    with Emulator(seed=3, tokens=["emulator"]) as emulator:
        return side("default", emulator.url, PROBES, [exchange.name for exchange in EXCHANGES])


def told(found: Drift) -> set[tuple[str, str, str, str]]:
    return {(one.severity, one.wrong, one.path, one.what) for one in found.differences}


@pytest.mark.parametrize(
    ("fact", "alternative"), ALTERNATIVES, ids=[f"{fact}={name}" for fact, name in ALTERNATIVES]
)
def test_an_emulator_with_another_alternative_is_named_by_its_fact(
    fact: str, alternative: str, default: Side
) -> None:
    with Emulator(seed=4, assumptions={fact: alternative}, tokens=["emulator"]) as emulator:
        other = side("other", emulator.url, {fact} & PROBES.keys(), lifecycle=fact not in PROBES)
    found = drift(default, other)
    named = [one for one in found.differences if one.path == fact]
    assert [(one.a, one.b) for one in named] == [(assumptions()[fact].default, alternative)]
    assert {(one.severity, one.wrong) for one in found.differences} == {("warning", "nobody knows")}
    assert all(fact in one.why for one in found.differences)
    assert len(found.differences) > 1  # the fact, and where it shows
    assert f"A {assumptions()[fact].default}  B {alternative}" in drift_as_text(found)


def test_emulators_with_many_other_alternatives_have_each_named(default: Side) -> None:
    # What can be read once is gone before it can be read under another model.
    others = [pair for pair in ALTERNATIVES if pair[0] not in LARGE | {"poll.other-model"}]
    other = dict(reversed(others))
    with Emulator(seed=4, assumptions=other) as emulator:
        found = drift(default, side("other", emulator.url, [fact for fact in PROBES if fact in other]))
    named = {one.path: one.b for one in found.differences if not one.exchange}
    assert named == other
    assert {one.severity for one in found.differences} == {"warning"}


def test_the_same_emulator_with_another_seed_has_no_drift(default: Side) -> None:
    with Emulator(seed=99, tokens=["emulator"]) as emulator:
        names = [exchange.name for exchange in EXCHANGES if "any limit" not in exchange.name]
        found = drift(default, side("again", emulator.url, exchanges=names))
    assert found.differences == []
    assert found.compared > 35
    assert found.worst() is None


def change(edit: Callable[[Any], None], when: str = "one text") -> Callable[[Passing], None]:
    def lie(passing: Passing) -> None:
        if (
            isinstance(passing.sent, dict)
            and passing.sent.get("text") == "This is a story about an orange cloud"
        ):
            edit(passing)

    return lie


def edited(**changed: Any) -> Callable[[Any], None]:
    def edit(passing: Any) -> None:
        body = passing.json
        body["result"] = {
            key: value for key, value in {**body["result"], **changed}.items() if value is not None
        }
        passing.json = body

    return edit


def header(name: str, value: str) -> Callable[[Any], None]:
    return lambda passing: passing.headers.__setitem__(name, value)


def reordered(passing: Any) -> None:
    body = passing.json
    passing.json = {"success": body.pop("success"), **body}


LIES: dict[str, tuple[Callable[[Any], None], tuple[str, str, str, str], str]] = {
    "a missing member": (
        edited(shape=None),
        ("error", "B", "$.result.shape", "removed"),
        "'shape' is a required property",
    ),
    "a member of another type": (
        edited(shape="1,1024"),
        ("error", "B", "$.result.shape", "type"),
        "schema run/embedding.reply",
    ),
    "a member that nobody knows": (
        edited(took=12.5),
        ("warning", "nobody knows", "$.result.took", "added"),
        "no fact says it",
    ),
    "another word": (
        edited(pooling="mean"),
        ("note", "nobody knows", "$.result.pooling", "value"),
        "no fact says it",
    ),
    "a vector of another dimension": (
        edited(data=[[0.5] * 768], shape=[1, 768]),
        ("error", "B", "$.result.data[0]", "value"),
        "models.dimensions",
    ),
    "another order of keys": (reordered, ("error", "B", "$", "order"), "env.success"),
    "a charset": (
        header("content-type", "application/json; charset=utf-8"),
        ("error", "B", "headers.content-type", "value"),
        "not exactly application/json",
    ),
    "a cookie-like header of the service": (
        header("cf-ai-new", "1"),
        ("warning", "nobody knows", "headers.cf-ai-new", "added"),
        "no fact says it",
    ),
    "another status": (
        lambda passing: setattr(passing, "status", 201),
        ("error", "B", "status", "value"),
        "sync.run",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_planted_difference_is_told_with_place_severity_and_who_is_wrong(lie: str, default: Side) -> None:
    edit, expected, why = LIES[lie]
    with Emulator(seed=4) as emulator, LyingProxy(emulator.url) as proxy:
        proxy.lie = change(edit)
        other = side("other", proxy.url, exchanges=["one text"], lifecycle=False)
    for found, wrong in (
        (drift(default, other), expected[1]),
        (drift(other, default), expected[1].replace("B", "A")),
    ):
        mirrored = {"added": "removed", "removed": "added"} if wrong == "A" or found.a == "other" else {}
        what = mirrored.get(expected[3], expected[3])
        assert (expected[0], wrong, expected[2], what) in told(found)
        here = [one for one in found.differences if one.path == expected[2]]
        assert all(why in one.why for one in here)
        assert here[0].exchange == "test_exchange[one text]"
    both = drift(other, other)
    assert both.differences == []


def test_two_that_are_wrong_otherwise_are_both_named() -> None:
    sides = []
    for shape in ("1", 7):
        with Emulator(seed=4) as emulator, LyingProxy(emulator.url) as proxy:
            proxy.lie = change(edited(shape=shape))
            sides.append(side(str(shape), proxy.url, exchanges=["one text"], lifecycle=False))
    assert ("error", "both", "$.result.shape", "type") in told(drift(*sides))


def test_the_command_tells_a_person_a_program_and_its_caller(tmp_path: Path) -> None:
    file = tmp_path / "drift.json"
    chosen = ["-k", "poll.unknown or (test_exchange and several and not small)"]
    with (
        Emulator(seed=4, assumptions={"poll.unknown": "not-found"}) as emulator,
        LyingProxy(emulator.url) as proxy,
    ):
        warned = verify("drift", "emulator", proxy.url, *chosen, "--json", str(file))
        proxy.lie = header("content-type", "text/plain")
        wrong = verify("drift", emulator.url, proxy.url, "-k", "several and not small")
        nothing = verify("drift", emulator.url, proxy.url, "-k", "nothing-like-it")
    assert warned.returncode == 0, warned.stdout + warned.stderr
    counted = "0 errors, 2 warnings, 0 notes in 2 exchanges"
    assert warned.stdout.startswith(f"drift: A emulator, B {proxy.url}: {counted}\n")
    assert "nobody knows who is wrong: open fact poll.unknown: A refused, B not-found\n" in warned.stdout
    assert "          in test_open_fact[poll.unknown] (poll: end)\n" in warned.stdout
    read = json.loads(file.read_text())
    assert (read["worst"], read["compared"], len(read["differences"])) == ("warning", 2, 2)
    assert wrong.returncode == 1
    assert (
        "B is wrong: schema run/embedding.reply: content-type: the content type is 'text/plain'"
        in wrong.stdout
    )
    assert nothing.returncode == 2
    assert nothing.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("worst", "grave"),
    [("error", "error warning note"), ("warning", "warning note"), ("note", "note"), (None, "")],
)
def test_the_exit_code_is_by_severity(worst: Severity | None, grave: str) -> None:
    for fail_on in ("error", "warning", "note", "nothing"):
        assert is_grave(worst, fail_on) == (fail_on in grave.split())


# Bodies.


def test_what_differs_from_run_to_run_is_compared_as_its_kind() -> None:
    one = {
        "json": {
            "id": "chatcmpl-1",
            "created": 1,
            "data": [[0.5] * 9],
            "response": "a",
            "request_id": "x",
            "usage": {"prompt_tokens": 1},
        }
    }
    other = {
        "json": {
            "id": "chatcmpl-2",
            "created": 2,
            "data": [[0.1] * 9],
            "response": "b",
            "request_id": "y",
            "usage": {"prompt_tokens": 9},
        }
    }
    assert body_changes(one, other) == []
    other["json"]["data"] = [[0.5] * 10]
    assert [(found.path, found.a, found.b) for found in body_changes(one, other)] == [
        ("$.data[0]", "a vector of 9 numbers", "a vector of 10 numbers")
    ]


def test_items_are_compared_by_their_id_and_the_order_alone_is_told() -> None:
    items = [{"id": number, "success": True} for number in range(7)]
    one, other = {"json": {"responses": items}}, {"json": {"responses": items[::-1]}}
    assert [(found.path, found.what) for found in body_changes(one, other)] == [("$.responses", "order")]
    changed = {"json": {"responses": [{**item, "success": item["id"] != 2} for item in items]}}
    assert [(found.path, found.a, found.b) for found in body_changes(one, changed)] == [
        ("$.responses[2].success", "true", "false")
    ]
    all_changed = {"json": {"responses": [{**item, "more": 1} for item in items]}}
    assert [found.path for found in body_changes(one, all_changed)] == ["$.responses[*].more"]


def test_streams_are_compared_by_the_shapes_of_their_events() -> None:
    def stream(*events: dict[str, Any]) -> dict[str, Any]:
        return {"events": [*({"data": event} for event in events), {"data": "[DONE]"}]}

    one = stream({"response": "a"}, {"response": "b"}, {"response": "", "usage": {"prompt_tokens": 1}})
    longer = stream(*[{"response": "c"}] * 5, {"response": "", "usage": {"prompt_tokens": 4}})
    assert body_changes(one, longer) == []
    other = stream({"response": "a", "p": "x"}, {"response": "", "usage": {"prompt_tokens": 1}})
    assert [(found.path, found.what) for found in body_changes(one, other)] == [("events[*].data.p", "added")]
    assert [(found.what, found.a, found.b) for found in body_changes(one, {"json": {}})] == [
        ("type", "events", "json")
    ]


def test_headers_are_compared_in_any_case_and_without_the_name_of_the_server() -> None:
    one = {"CF-RAY": "0000000000000001-REC", "Server": "a", "cf-ai-neurons": "0.01"}
    assert (
        header_changes(one, {"cf-ray": "0000000000000009-REC", "server": "b", "cf-ai-neurons": "7.5"}) == []
    )
    assert [found.path for found in header_changes(one, {"cf-ray": "1"})] == ["headers.cf-ai-neurons"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abcd", max_size=2), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON, JSON)
def test_equal_bodies_have_no_difference_and_what_is_added_one_way_is_removed_the_other(
    one: Any, other: Any
) -> None:
    assert body_changes({"json": one}, {"json": one}) == []
    there = [(found.path, found.what) for found in body_changes({"json": one}, {"json": other})]
    mirrored = {"added": "removed", "removed": "added"}
    back = [
        (found.path, mirrored.get(found.what, found.what))
        for found in body_changes({"json": other}, {"json": one})
    ]
    assert sorted(there) == sorted(back)
    if json.dumps(one) != json.dumps(other) and not _alike(one, other):
        assert there


def _alike(one: Any, other: Any) -> bool:
    """Whether a difference may be one of ids, or of numbers in long lists, which are compared as kinds."""
    return "id" in json.dumps([one, other])
