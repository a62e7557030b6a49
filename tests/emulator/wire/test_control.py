"""The control plane: what it answers, what it refuses, and whom a change is for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workersai_contracts import assumptions, facts
from workersai_emulator import __version__

BGE_M3 = "@cf/baai/bge-m3"
DEFAULT_SCRIPT = "queued:1, running:1, done"
LIMITS = {
    "payload_bytes": 10_000_000,
    "body_bytes": 25_000_000,
    "requests_per_minute": None,
    "daily_neurons": None,
    "text_tokens": "documented",
    "call_tokens": "documented",
    "context_tokens": "documented",
}


def said(world: Any, method: str, name: str, body: Any = None) -> Any:
    """What the control plane answers where an account is named, which must be a success."""
    reply = world.control(method, name, body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def defaults(world: Any, method: str, name: str, body: Any = None) -> Any:
    """The same for the server's defaults."""
    return world.http.request(method, f"/__emulator__/{name}", content=json.dumps(body or {}).encode())


@pytest.fixture
def own(world_of):
    """An account of an emulator that nobody else uses, for changes to the server's defaults."""
    return world_of()


def test_health_says_ok_and_the_version(world):
    reply = world.http.get("/__emulator__/health")

    expected = f'{{"status":"ok","version":"{__version__}"}}'
    assert (reply.status_code, reply.text) == (200, expected)


def test_settings_show_everything_with_its_default(world):
    assert said(world, "GET", "settings") == {
        "script": DEFAULT_SCRIPT,
        "scripts": {},
        "assumptions": {row.id: row.default for row in assumptions().values()},
        "limits": LIMITS,
        "plan": "free",
        "worker_binding": True,
    }


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"script": "instant"}, {"script": "done"}),
        ({"script": "realistic"}, {"script": "queued:20s, running:40s, done"}),
        (
            {"script": " queued:2 ,running:500ms,failed:3040 "},
            {"script": "queued:2, running:500ms, failed:3040"},
        ),
        ({"script": "queued:hold, lost"}, {"script": "queued:hold, lost"}),
        ({"scripts": {BGE_M3: "failed"}}, {"scripts": {BGE_M3: "failed"}}),
        ({"limits": {"payload_bytes": 7}}, {"limits": {**LIMITS, "payload_bytes": 7}}),
        ({"limits": {"body_bytes": None}}, {"limits": {**LIMITS, "body_bytes": None}}),
        ({"worker_binding": False}, {"worker_binding": False}),
        ({}, {}),
    ],
    ids=str,
)
def test_change_of_settings_shows_in_the_answer_and_stays(world, change, shown):
    before = said(world, "GET", "settings")

    assert said(world, "PATCH", "settings", change) == {**before, **shown}
    assert said(world, "GET", "settings") == {**before, **shown}


def test_shown_settings_can_be_given_back(world):
    said(
        world,
        "PATCH",
        "settings",
        {
            "script": "queued:90m, running:1500ms, failed:3040",
            "limits": {"body_bytes": None, "daily_neurons": "documented", "text_tokens": "none"},
        },
    )
    shown = said(world, "GET", "settings")

    assert said(world, "PATCH", "settings", shown) == shown


def test_changes_add_up(world):
    said(world, "PATCH", "settings", {"assumptions": {"submit.status": "202"}})
    shown = said(
        world, "PATCH", "settings", {"assumptions": {"done.order": "request"}, "limits": {"body_bytes": 9}}
    )

    assert shown["assumptions"]["submit.status"] == "202"
    assert shown["assumptions"]["done.order"] == "request"
    assert shown["limits"] == {**LIMITS, "body_bytes": 9}


BAD_SETTINGS = [
    ({"scrip": "done"}, "scrip"),
    ({"script": 5}, "script"),
    ({"script": ""}, "script"),
    ({"script": "queued"}, "script"),
    ({"script": "done, done"}, "script"),
    ({"script": "queued:-1, done"}, "script"),
    ({"script": "queued:1x, done"}, "script"),
    ({"script": "failed:1"}, "script"),
    ({"script": "sleeping"}, "script"),
    ({"script": ["done"]}, "script"),
    ({"scripts": "done"}, "scripts"),
    ({"scripts": {"@cf/x/y": "done"}}, "scripts"),
    ({"scripts": {BGE_M3: 5}}, "script"),
    ({"assumptions": {"x": "y"}}, "assumptions"),
    ({"assumptions": {"submit.status": "201"}}, "submit.status"),
    ({"assumptions": {"submit.status": 202}}, "submit.status"),
    ({"assumptions": ["submit.status"]}, "assumptions"),
    ({"limits": {"x": 1}}, "limits"),
    ({"limits": {"payload_bytes": 0}}, "payload_bytes"),
    ({"limits": {"payload_bytes": 1.5}}, "payload_bytes"),
    ({"limits": {"payload_bytes": True}}, "payload_bytes"),
    ({"limits": {"payload_bytes": "1"}}, "payload_bytes"),
    ({"limits": 5}, "limits"),
    ({"worker_binding": "no"}, "worker_binding"),
    ({"worker_binding": 0}, "worker_binding"),
]


@pytest.mark.parametrize(("change", "named"), BAD_SETTINGS, ids=str)
def test_bad_setting_is_one_line_that_names_it_and_changes_nothing(world, change, named):
    before = said(world, "GET", "settings")

    reply = world.control("PATCH", "settings", {"script": "failed", "worker_binding": False, **change})

    assert (reply.status_code, list(reply.json())) == (400, ["error"])
    assert named in reply.json()["error"]
    assert len(reply.json()["error"].splitlines()) == 1
    assert said(world, "GET", "settings") == before


def test_settings_of_an_account_are_its_own(world, other_world):
    said(world, "PATCH", "settings", {"script": "failed"})

    assert said(other_world, "GET", "settings")["script"] == DEFAULT_SCRIPT
    assert world.http.get("/__emulator__/settings").json()["script"] == DEFAULT_SCRIPT


def test_defaults_of_the_server_hold_where_the_account_says_nothing(own):
    said(own, "PATCH", "settings", {"limits": {"payload_bytes": 5}})

    defaults(own, "PATCH", "settings", {"script": "failed", "limits": {"payload_bytes": 9, "body_bytes": 9}})

    shown = said(own, "GET", "settings")
    assert shown["script"] == "failed"
    assert shown["limits"] == {**LIMITS, "payload_bytes": 5, "body_bytes": 9}


def test_account_can_be_named_in_the_query(world):
    reply = world.http.patch(f"/__emulator__/settings?account_id={world.id}", content=b'{"script":"failed"}')

    assert reply.json()["script"] == "failed"
    assert world.http.get(f"/__emulator__/settings?account_id={world.id}").json()["script"] == "failed"
    assert world.http.get("/__emulator__/settings").json()["script"] == DEFAULT_SCRIPT


@pytest.mark.parametrize("name", ["settings", "clock", "batches", "rules"])
@pytest.mark.parametrize("account", ["me", "", 5, [], {}, "0" * 33, "G" * 32], ids=str)
def test_account_that_is_none_is_refused(world, name, account):
    reply = world.http.request("GET", f"/__emulator__/{name}", content=json.dumps({"account_id": account}))

    assert (reply.status_code, list(reply.json())) == (400, ["error"])
    assert "account_id" in reply.json()["error"]


def freeze(world: Any, moment: str = "2100-01-01T00:00:00.000Z") -> None:
    said(world, "POST", "clock", {"now": moment, "freeze": True})


def test_clock_shows_how_it_runs(world):
    freeze(world)

    expected = {"now": "2100-01-01T00:00:00.000Z", "frozen": True, "scale": 1, "jump": False}
    assert said(world, "GET", "clock") == expected
    assert list(said(world, "GET", "clock")) == list(expected)


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"advance": "30s"}, {"now": "2100-01-01T00:00:30.000Z"}),
        ({"advance": "500ms"}, {"now": "2100-01-01T00:00:00.500Z"}),
        ({"advance": "5m"}, {"now": "2100-01-01T00:05:00.000Z"}),
        ({"advance": "2h"}, {"now": "2100-01-01T02:00:00.000Z"}),
        ({"advance": 90}, {"now": "2100-01-01T00:01:30.000Z"}),
        ({"advance": 0.25}, {"now": "2100-01-01T00:00:00.250Z"}),
        ({"now": "2100-01-02T00:00:00+01:00"}, {"now": "2100-01-01T23:00:00.000Z"}),
        ({"now": "2100-01-02T00:00:00"}, {"now": "2100-01-02T00:00:00.000Z"}),
        ({"now": "2100-01-02T00:00:00Z", "advance": "1h"}, {"now": "2100-01-02T01:00:00.000Z"}),
        ({"scale": 10}, {"scale": 10}),
        ({"jump": True}, {"jump": True}),
        ({}, {}),
    ],
    ids=str,
)
def test_clock_moves_as_told(world, change, shown):
    freeze(world)
    before = said(world, "GET", "clock")

    assert said(world, "POST", "clock", change) == {**before, **shown}
    assert said(world, "GET", "clock") == {**before, **shown}


def test_unfrozen_clock_runs_on(world):
    freeze(world)

    shown = said(world, "POST", "clock", {"freeze": False, "scale": 1_000_000})

    assert shown["frozen"] is False
    assert said(world, "GET", "clock")["now"] > shown["now"]


BAD_MOVES = [
    {"tick": 1},
    {"freeze": "yes"},
    {"freeze": None},
    {"jump": 1},
    {"scale": 0},
    {"scale": -1},
    {"scale": "10"},
    {"scale": True},
    {"scale": 1e7},
    {"advance": "soon"},
    {"advance": -5},
    {"advance": "-5s"},
    {"advance": None},
    {"advance": [1]},
    {"advance": 1e300},
    {"now": "2099-12-31T23:59:59Z"},
    {"now": "yesterday"},
    {"now": 5},
    {"now": None},
    {"now": "9999-12-31T23:59:59-23:00"},
    {"now": "0001-01-01T00:00:00+23:00"},
    {"advance": 250_000_000_000},
]


@pytest.mark.parametrize("move", BAD_MOVES, ids=str)
def test_bad_move_of_a_clock_is_one_line_and_leaves_nothing_half_done(world, move):
    freeze(world)
    before = said(world, "GET", "clock")
    good = {"now": "2100-06-01T00:00:00Z", "freeze": False, "scale": 5, "jump": True}

    reply = world.control("POST", "clock", {**good, **move})

    assert (reply.status_code, list(reply.json())) == (400, ["error"])
    assert len(reply.json()["error"].splitlines()) == 1
    assert said(world, "GET", "clock") == before


def test_refused_move_does_not_part_the_account_from_the_servers_clock(own):
    own.control("POST", "clock", {"scale": 0})

    defaults(own, "POST", "clock", {"now": "2100-01-01T00:00:00Z", "freeze": True})

    assert said(own, "GET", "clock")["now"] == "2100-01-01T00:00:00.000Z"


def test_clock_of_an_account_is_its_own(world, other_world):
    freeze(world)

    assert said(other_world, "GET", "clock")["frozen"] is False
    assert world.http.get("/__emulator__/clock").json()["frozen"] is False


def test_clock_of_the_server_is_everybodys_who_has_none(own):
    freeze(own)
    defaults(own, "POST", "clock", {"now": "2200-01-01T00:00:00Z", "freeze": True})

    another = own.http.get(f"/__emulator__/clock?account_id={'f' * 32}").json()

    assert another["now"] == "2200-01-01T00:00:00.000Z"
    assert said(own, "GET", "clock")["now"] == "2100-01-01T00:00:00.000Z"


def test_batches_are_listed_in_the_order_of_their_submits(world):
    freeze(world)
    body = {"requests": [{"text": "a"}, {"text": "b"}]}
    first = world.submit(body)
    second = world.submit({"text": "a"}, "@cf/baai/bge-small-en-v1.5", script="failed:3040")
    world.poll(first)

    shown = said(world, "GET", "batches")

    common = {"account_id": world.id, "submitted_at": "2100-01-01T00:00:00.000Z"}
    expected = [
        {
            "request_id": first,
            "account_id": world.id,
            "model": BGE_M3,
            "state": "queued",
            "script": DEFAULT_SCRIPT,
            "items": 2,
            "bytes": len(json.dumps(body)),
            "polls": 1,
            "submitted_at": common["submitted_at"],
        },
        {
            "request_id": second,
            "model": "@cf/baai/bge-small-en-v1.5",
            "state": "failed",
            "script": "failed:3040",
            "items": 1,
            "bytes": len('{"text": "a"}'),
            "polls": 0,
            **common,
        },
    ]
    assert shown == {"batches": expected}
    assert list(shown["batches"][0]) == list(expected[0])


def test_list_of_batches_can_be_narrowed(world):
    queued = world.submit({"text": "a"})
    small = world.submit({"text": "a"}, "@cf/baai/bge-small-en-v1.5", script="done")

    def found(query: str) -> list[str]:
        reply = world.http.get(f"/__emulator__/batches?account_id={world.id}&{query}")
        return [batch["request_id"] for batch in reply.json()["batches"]]

    assert found("state=queued") == [queued]
    assert found("state=done") == [small]
    assert found(f"model={BGE_M3}") == [queued]
    assert found(f"model={BGE_M3}&state=done") == []
    refused = world.http.get(f"/__emulator__/batches?account_id={world.id}&state=")
    assert refused.status_code == 400
    assert refused.json() == {"error": "state: '' is not one of queued, running, done, failed, lost"}


def test_list_without_an_account_covers_all(own):
    mine = own.submit({"text": "a"})
    url = f"/client/v4/accounts/{'f' * 32}/ai/run/{BGE_M3}?queueRequest=true"
    theirs = own.http.post(url, content=b'{"text":"a"}').json()["result"]["request_id"]

    shown = defaults(own, "GET", "batches").json()["batches"]

    assert {batch["request_id"] for batch in shown} == {mine, theirs}
    assert [batch["request_id"] for batch in said(own, "GET", "batches")["batches"]] == [mine]


def test_one_batch_is_shown_with_its_request(world):
    body = {"requests": [{"text": "a", "external_reference": "\ud83d"}]}
    request_id = world.submit(body)

    shown = said(world, "GET", f"batches/{request_id}")

    assert shown["request"] == body
    assert {**shown, "request": None} == {**said(world, "GET", "batches")["batches"][0], "request": None}
    assert world.http.get(f"/__emulator__/batches/{request_id}").json() == shown


def test_looking_at_a_batch_is_no_poll(world):
    request_id = world.submit({"text": "a"})
    for _ in range(3):
        said(world, "GET", f"batches/{request_id}")
        said(world, "GET", "batches")

    assert world.poll(request_id).json()["result"]["status"] == "queued"


@pytest.mark.parametrize(
    ("action", "state", "script"),
    [
        ({"action": "go-on"}, "running", DEFAULT_SCRIPT),
        ({"action": "hold"}, "queued", "queued:hold, running:1, done"),
        ({"action": "lose"}, "lost", "queued:1, lost"),
        ({"action": "fail"}, "failed", "queued:1, failed"),
        ({"action": "fail", "code": 3040}, "failed", "queued:1, failed:3040"),
        ({"action": "fail", "code": "3040"}, "failed", "queued:1, failed:3040"),
        ({"action": "fail", "code": "capacity"}, "failed", "queued:1, failed:capacity"),
    ],
    ids=str,
)
def test_batch_can_be_moved_by_hand(world, action, state, script):
    request_id = world.submit({"text": "a"})

    shown = said(world, "POST", f"batches/{request_id}", action)

    assert (shown["state"], shown["script"], shown["polls"]) == (state, script, 0)
    assert said(world, "GET", f"batches/{request_id}")["state"] == state


@pytest.mark.parametrize(
    ("action", "named"),
    [
        ({}, "action"),
        ({"action": "stop"}, "action"),
        ({"action": None}, "action"),
        ({"action": ["fail"]}, "action"),
        ({"action": {}}, "action"),
        ({"action": "fail", "code": 1}, "code"),
        ({"action": "fail", "code": True}, "code"),
        ({"action": "fail", "code": [5001]}, "code"),
        ({"action": "fail", "code": 5001.5}, "code"),
        ({"action": "hold", "code": 5001}, "code"),
        ({"action": "hold", "why": "x"}, "why"),
    ],
    ids=str,
)
def test_bad_action_is_one_line_and_the_batch_goes_on(world, action, named):
    request_id = world.submit({"text": "a"})

    reply = world.control("POST", f"batches/{request_id}", action)

    assert (reply.status_code, list(reply.json())) == (400, ["error"])
    assert named in reply.json()["error"]
    assert world.poll(request_id).json()["result"]["status"] == "queued"


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("name", ["x", "%00", "a%2Fb", "x/y", "%FF", "__proto__"])
def test_batch_that_nobody_knows_is_404(world, method, name):
    reply = world.control(method, f"batches/{name}", {"action": "hold"} if method == "POST" else None)

    assert (reply.status_code, list(reply.json())) == (404, ["error"])


def test_another_accounts_batch_is_404_where_an_account_is_named(world, other_world):
    request_id = world.submit({"text": "a"})

    assert other_world.control("GET", f"batches/{request_id}").status_code == 404
    assert other_world.control("POST", f"batches/{request_id}", {"action": "lose"}).status_code == 404
    assert world.poll(request_id).json()["result"]["status"] == "queued"


def test_rule_is_shown_with_its_id_and_how_often_it_fired(world):
    rule = world.rule({"error": 3040, "retry_after": "1500ms"}, {"operation": "run", "text": "a"}, times=3)
    world.run({"text": "a"})
    world.run({"text": "b"})

    assert rule == {
        "id": "rule-1",
        "match": {"operation": "run", "text": "a"},
        "effect": {"error": "capacity", "retry_after": 1.5},
        "times": 3,
        "fired": 0,
    }
    assert said(world, "GET", "rules") == {"rules": [{**rule, "fired": 1}]}


@pytest.mark.parametrize(
    ("match", "hit"),
    [
        ({}, ["submit", "poll", "run"]),
        ({"operation": "submit"}, ["submit"]),
        ({"operation": "poll"}, ["poll"]),
        ({"operation": "run"}, ["run"]),
        ({"model": BGE_M3}, ["submit", "poll", "run"]),
        ({"model": "@cf/baai/bge-small-en-v1.5"}, []),
        ({"text": "needle"}, ["submit", "run"]),
        ({"text": "nowhere"}, []),
        ({"nth": 2}, ["poll"]),
        ({"every": 3}, ["run"]),
        ({"operation": "run", "nth": 2}, []),
    ],
    ids=str,
)
def test_match_says_which_requests_a_rule_is_for(world, match, hit):
    request_id = world.submit({"text": "a"})
    world.rule({"error": 3040}, match)

    replies = {
        "submit": world.run({"requests": [{"text": "a needle"}]}, query="?queueRequest=true"),
        "poll": world.poll(request_id),
        "run": world.run({"text": ["x", "needle y"]}),
    }

    assert [name for name, reply in replies.items() if reply.status_code == 429] == hit


def test_rule_with_times_fires_that_often(world):
    world.rule({"error": 3040}, times=2)

    assert [world.run({"text": "a"}).status_code for _ in range(4)] == [429, 429, 200, 200]


def test_newest_rule_goes_first_and_the_account_before_the_server(own):
    defaults(own, "POST", "rules", {"match": {}, "effect": {"error": 3050}})
    own.rule({"error": 3040})
    own.rule({"error": 3021}, times=1)

    codes = [own.run({"text": "a"}).json()["errors"][0]["code"] for _ in range(2)]
    own.control("DELETE", "rules")
    codes.append(own.run({"text": "a"}).json()["errors"][0]["code"])

    assert codes == [3021, 3040, 3050]


def test_rule_of_an_account_is_its_own(world, other_world):
    world.rule({"error": 3040})

    assert other_world.run({"text": "a"}).status_code == 200
    assert said(other_world, "GET", "rules") == {"rules": []}


def test_rule_can_give_batches_their_script(world):
    world.rule({"script": "running:hold, done"}, times=1)

    first, second = world.submit({"text": "a"}), world.submit({"text": "a"})

    assert world.poll(first).json()["result"]["status"] == "running"
    assert world.poll(second).json()["result"]["status"] == "queued"


def test_script_in_the_header_goes_before_rule_and_settings(world):
    said(world, "PATCH", "settings", {"script": "failed", "scripts": {BGE_M3: "lost"}})
    world.rule({"script": "queued:hold, done"})

    request_id = world.submit({"text": "a"}, script="running:7, done")

    assert said(world, "GET", f"batches/{request_id}")["script"] == "running:7, done"


@pytest.mark.parametrize("probability", [0, 1, 0.5])
def test_probability_of_a_rule(world, probability):
    world.rule({"error": 3040}, probability=probability)

    hits = sum(world.run({"request_id": "x"}).status_code == 429 for _ in range(60))

    assert {0: hits == 0, 1: hits == 60, 0.5: 15 < hits < 45}[probability]


def test_rules_are_deleted_one_by_one_and_all(world):
    first, second = world.rule({"error": 3040}), world.rule({"error": 3021})

    assert world.control("DELETE", f"rules/{second['id']}").status_code == 204
    assert said(world, "GET", "rules")["rules"] == [first]
    assert world.control("DELETE", f"rules/{second['id']}").status_code == 404
    assert world.control("DELETE", "rules").status_code == 204
    assert said(world, "GET", "rules") == {"rules": []}
    assert world.run({"text": "a"}).status_code == 200


BAD_RULES = [
    ({}, "effect"),
    ({"effect": None}, "effect"),
    ({"effect": []}, "effect"),
    ({"effect": {}}, "effect"),
    ({"effect": {"error": 3040, "script": "done"}}, "effect"),
    ({"effect": {"error": 1}}, "error"),
    ({"effect": {"error": None}}, "error"),
    ({"effect": {"error": []}}, "error"),
    ({"effect": {"error": {}}}, "error"),
    ({"effect": {"error": True}}, "error"),
    ({"effect": {"error": "\ud800"}}, "error"),
    ({"effect": {"error": 3040, "retry_after": "soon"}}, "duration"),
    ({"effect": {"error": 3040, "retry_after": -1}}, "duration"),
    ({"effect": {"error": 3040, "retry_after": True}}, "duration"),
    ({"effect": {"script": "sleeping"}}, "script"),
    ({"effect": {"script": 5}}, "script"),
    ({"effect": {"script": "done", "retry_after": 1}}, "retry_after"),
    ({"effect": {"explode": True}}, "explode"),
    ({"effect": {"error": 3040}, "match": []}, "match"),
    ({"effect": {"error": 3040}, "match": None}, "match"),
    ({"effect": {"error": 3040}, "match": {"operation": "walk"}}, "operation"),
    ({"effect": {"error": 3040}, "match": {"operation": ["run"]}}, "operation"),
    ({"effect": {"error": 3040}, "match": {"operation": {}}}, "operation"),
    ({"effect": {"error": 3040}, "match": {"model": 5}}, "model"),
    ({"effect": {"error": 3040}, "match": {"text": ["a"]}}, "text"),
    ({"effect": {"error": 3040}, "match": {"nth": 0}}, "nth"),
    ({"effect": {"error": 3040}, "match": {"nth": 1.5}}, "nth"),
    ({"effect": {"error": 3040}, "match": {"every": True}}, "every"),
    ({"effect": {"error": 3040}, "match": {"who": "me"}}, "who"),
    ({"effect": {"error": 3040}, "times": 0}, "times"),
    ({"effect": {"error": 3040}, "times": "2"}, "times"),
    ({"effect": {"error": 3040}, "probability": 2}, "probability"),
    ({"effect": {"error": 3040}, "probability": "half"}, "probability"),
    ({"effect": {"error": 3040}, "id": "mine"}, "id"),
]


@pytest.mark.parametrize(("rule", "named"), BAD_RULES, ids=ascii)
def test_bad_rule_is_one_line_that_names_the_part_and_is_not_kept(world, rule, named):
    reply = world.control("POST", "rules", rule)

    assert (reply.status_code, list(reply.json())) == (400, ["error"])
    assert named in reply.json()["error"]
    assert len(reply.json()["error"].splitlines()) == 1
    assert said(world, "GET", "rules") == {"rules": []}


def test_facts_are_the_whole_ledger(world):
    shown = world.http.get("/__emulator__/facts").json()

    assert list(shown) == ["facts"]
    rows = [(row["id"], row["level"], row["text"], row["source"]) for row in shown["facts"]]
    assert rows == [(fact.id, fact.level, fact.text, fact.source) for fact in facts().values()]


def test_reset_of_an_account_forgets_everything_of_it_and_nothing_else(world, other_world):
    theirs = other_world.submit({"text": "a"})
    freeze(world)
    said(world, "PATCH", "settings", {"script": "failed"})
    world.rule({"error": 3040}, {"operation": "run"})
    mine = world.submit({"text": "a"})

    reply = world.control("POST", "reset")

    assert (reply.status_code, reply.content) == (204, b"")
    assert said(world, "GET", "batches") == {"batches": []}
    assert said(world, "GET", "rules") == {"rules": []}
    assert said(world, "GET", "settings")["script"] == DEFAULT_SCRIPT
    assert said(world, "GET", "clock")["frozen"] is False
    assert world.poll(mine).status_code == 400
    assert world.submit({"text": "a"}) == mine
    assert other_world.poll(theirs).json()["result"]["status"] == "queued"


def test_reset_without_an_account_forgets_everything(own):
    before = defaults(own, "GET", "settings").json()
    mine = own.submit({"text": "a"})
    defaults(own, "PATCH", "settings", {"script": "failed", "limits": {"body_bytes": 1}})
    defaults(own, "POST", "clock", {"freeze": True})
    defaults(own, "POST", "rules", {"effect": {"error": 3040}})

    assert defaults(own, "POST", "reset").status_code == 204

    assert defaults(own, "GET", "settings").json() == before
    assert defaults(own, "GET", "clock").json()["frozen"] is False
    assert defaults(own, "GET", "rules").json() == {"rules": []}
    assert defaults(own, "GET", "batches").json() == {"batches": []}
    assert own.submit({"text": "a"}) == mine


def test_reset_of_an_empty_account_is_not_a_reset_of_everything(world):
    request_id = world.submit({"text": "a"})

    assert world.http.post("/__emulator__/reset?account_id=").status_code == 400
    assert world.poll(request_id).json()["result"]["status"] == "queued"


def test_reset_takes_nothing_but_an_account(world):
    request_id = world.submit({"text": "a"})

    assert world.control("POST", "reset", {"everything": True}).status_code == 400
    assert world.poll(request_id).json()["result"]["status"] == "queued"


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("POST", "health"),
        ("GET", "reset"),
        ("POST", "settings"),
        ("PUT", "clock"),
        ("DELETE", "batches"),
        ("DELETE", "batches/x"),
        ("PATCH", "rules"),
        ("GET", "rules/x"),
        ("POST", "facts"),
        ("HEAD", "health"),
        ("OPTIONS", "settings"),
    ],
)
def test_method_that_is_not_taken_is_405(world, method, name):
    reply = world.http.request(method, f"/__emulator__/{name}")

    assert reply.status_code == 405
    assert method == "HEAD" or list(reply.json()) == ["error"]


@pytest.mark.parametrize(
    "name", ["", "x", "health/", "settings/", "rules/", "batches/", "health/x", "Health", "%68ealth"]
)
def test_what_is_not_in_the_control_plane_is_404(world, name):
    reply = world.http.get(f"/__emulator__/{name}")

    assert (reply.status_code, list(reply.json())) == (404, ["error"])
    assert "health, reset, settings, clock, batches, rules" in reply.json()["error"]


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b"5", b"null", b'"x"', b"\xff", b"NaN", b"[" * 10_000, b'{"x":' * 980 + b"1" + b"}" * 980],
    ids=lambda body: repr(body[:12]),
)
@pytest.mark.parametrize(("method", "name"), [("PATCH", "settings"), ("POST", "rules"), ("POST", "clock")])
def test_body_that_is_no_json_object_is_refused(world, method, name, body):
    reply = world.http.request(method, f"/__emulator__/{name}", content=body)

    assert (reply.status_code, list(reply.json())) == (400, ["error"])
    assert len(reply.json()["error"].splitlines()) == 1


def test_body_over_a_megabyte_is_refused(world):
    body = b'{"script":"' + b" " * 1_000_000 + b'"}'

    reply = world.http.patch("/__emulator__/settings", content=body)

    assert (reply.status_code, reply.json()) == (
        400,
        {"error": "the body is too large: the control plane takes 1000000 bytes"},
    )


def test_control_plane_wants_no_token_of_the_service(world, converse, read):
    (answer,) = read(
        converse(b"GET /__emulator__/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    )

    assert answer.status == 200
