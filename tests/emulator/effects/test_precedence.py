"""Which of several rules is the one that fires, and what `GET rules` tells of it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from workersai_emulator import Emulator

M3, BASE = "@cf/baai/bge-m3", "@cf/baai/bge-base-en-v1.5"
SUBMIT = {"requests": [{"text": "a"}]}


def code(reply: httpx.Response) -> int | None:
    """The code of a refusal, None for an answer."""
    errors = reply.json()["errors"]
    return errors[0]["code"] if errors else None


def wishing(name: str) -> dict[str, str]:
    return {"x-emulator-scenario": name}


def test_header_goes_before_a_newer_rule_of_the_account(world: Any) -> None:
    world.rule({"error": 3040})

    replies = [world.send({"text": "a"}, headers=wishing("daily-limit")), world.send({"text": "a"})]

    assert [code(reply) for reply in replies] == [4006, 3040]
    assert world.fired() == [1]


def test_header_that_is_not_for_the_request_leaves_it_to_the_rules(world: Any) -> None:
    world.rule({"error": 3040})

    assert code(world.send({"text": "a"}, headers=wishing("stuck"))) == 3040
    assert world.fired() == [1]


@pytest.mark.parametrize("action", ["fail", "lose"])
def test_action_on_a_batch_goes_before_rules_and_after_the_header(world: Any, action: str) -> None:
    wanted = world.submit("a", script="queued:hold, done")
    world.control("POST", f"batches/{wanted}", action=action)
    world.rule({"error": 3040})
    ended = {"fail": 5001, "lose": 8007}[action]

    polls = [
        world.send({"request_id": wanted}, headers=wishing("bad-gateway")).status_code,
        code(world.send({"request_id": wanted}, headers=wishing("stuck"))),
        code(world.poll(wanted)),
    ]

    assert polls == [502, ended, ended]
    assert world.fired() == [0]


def test_newest_rule_that_matches_fires_and_only_that(world: Any) -> None:
    world.rule({"error": 3040})
    world.rule({"error": 3021}, {"model": M3})
    world.rule({"error": 4006}, {"text": "b"}, times=1)

    seen = [
        code(world.send({"text": "b"})),
        code(world.send({"text": "b"})),
        code(world.send({"text": "a"}, model=BASE)),
    ]

    assert seen == [4006, 3021, 3040]
    assert world.fired() == [1, 1, 1]


def test_rule_of_the_account_goes_before_one_of_the_server() -> None:
    with Emulator(seed=1) as emulator:
        mine, other = emulator.account("a" * 32), emulator.account("b" * 32)
        mine.rules.add(effect={"error": 3040})
        emulator.rules.add(effect={"error": 3021})
        codes = []
        for account in (mine, other):
            url = f"{account.base_url}/accounts/{account.account_id}/ai/run/{M3}"
            codes.append(code(httpx.post(url, json={"text": "a"}, headers={"Authorization": "Bearer a"})))

        assert codes == [3040, 3021]
        assert [account.rules.list()[0].fired for account in (mine, emulator)] == [1, 1]


def test_script_of_the_header_goes_before_a_rules_and_the_settings(world: Any) -> None:
    world.control("PATCH", "settings", script="running:5, done")
    world.rule({"script": "queued:7, done"}, times=2)

    submits = [
        world.send(SUBMIT, queue=True, headers={"x-emulator-script": "queued:3, failed"}),
        world.send(SUBMIT, queue=True, headers={"x-emulator-script": "instant", **wishing("stuck")}),
        world.send(SUBMIT, queue=True, headers=wishing("stuck")),
        world.send(SUBMIT, queue=True),
        world.send(SUBMIT, queue=True),
    ]

    ids = [reply.json()["result"]["request_id"] for reply in submits]
    scripts = [world.control("GET", f"batches/{wanted}").json()["script"] for wanted in ids]
    assert scripts == [
        "queued:3, failed",
        "done",
        "queued:1, running:hold, done",
        "queued:7, done",
        "running:5, done",
    ]


def test_script_of_the_header_goes_with_items_that_fail(world: Any) -> None:
    world.rule({"items": {"indexes": [0]}})

    assert [item["success"] for item in world.items(world.submit("a", "b", script="done"))] == [False, True]


def test_settings_are_the_lowest_rule(world: Any) -> None:
    world.control("PATCH", "settings", assumptions={"submit.status": "202"})
    world.rule({"assume": {"submit.status": "200"}}, times=1)

    assert [world.send(SUBMIT, queue=True).status_code for _ in range(2)] == [200, 202]


def test_header_is_for_its_request_alone(world: Any) -> None:
    seen = [code(world.send({"text": "a"}, headers=wishing("rate-limited"))), code(world.send({"text": "a"}))]

    assert seen == [3021, None]
    assert world.control("GET", "rules").json() == {"rules": []}


def test_rules_tell_how_often_each_fired_and_of_which_scenario_it_is(world: Any) -> None:
    world.scenario("out-of-capacity")
    world.rule({"delay": 0}, {"operation": "poll"})
    for _ in range(2):
        world.send({"text": "a"})
    wanted = world.send(SUBMIT, queue=True).json()["result"]["request_id"]
    for _ in range(3):
        world.poll(wanted)

    shown = world.control("GET", "rules").json()["rules"]

    assert [(rule.get("scenario"), rule["fired"]) for rule in shown] == [
        ("out-of-capacity", 2),
        ("out-of-capacity", 1),
        (None, 3),
    ]


@pytest.mark.parametrize(
    ("header", "value", "told"),
    [
        (
            "x-emulator-scenario",
            "rain",
            "x-emulator-scenario: no scenario 'rain'; there are out-of-capacity, ",
        ),
        ("x-emulator-script", "sleeping", "x-emulator-script: script: 'sleeping' is no step; "),
    ],
)
def test_header_that_means_nothing_is_refused_in_one_line(
    world: Any, header: str, value: str, told: str
) -> None:
    reply = world.send({"text": "a"}, headers={header: value})

    assert reply.status_code == 400
    assert list(reply.json()) == ["error"]
    assert reply.json()["error"].startswith(told)
    assert "\n" not in reply.json()["error"]
