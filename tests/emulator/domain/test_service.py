from __future__ import annotations

import itertools
import json
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workersai_contracts import models
from workersai_emulator import Emulator

M3, BASE = "@cf/baai/bge-m3", "@cf/baai/bge-base-en-v1.5"
LLAMA, SCOUT = "@cf/meta/llama-3.3-70b-instruct-fp8-fast", "@cf/meta/llama-4-scout-17b-16e-instruct"
GPT_OSS, RERANKER = "@cf/openai/gpt-oss-120b", "@cf/baai/bge-reranker-base"
UNKNOWN = "6c8e3a4e-1111-4222-8333-444455556666"


def finished(reply: httpx.Response) -> list[dict[str, Any]]:
    """The items of a finished poll."""
    assert reply.status_code == 200, reply.text
    items: list[dict[str, Any]] = reply.json()["result"]["responses"]
    return items


def by_id(reply: httpx.Response) -> dict[int, dict[str, Any]]:
    items = finished(reply)
    found = {item["id"]: item for item in items}
    assert len(found) == len(items)
    return found


def refused(reply: httpx.Response) -> tuple[int, int, str]:
    error = reply.json()["errors"][0]
    return (
        reply.status_code,
        error["code"],
        error["message"].replace(f" ({reply.headers['cf-ai-req-id']})", " (id)"),
    )


def test_order_is_shuffled_and_every_id_is_told_once(door: Any) -> None:
    texts = [f"text {number}" for number in range(50)]
    items = finished(door.poll(door.submit(*texts, script="instant")))
    order = [item["id"] for item in items]
    assert order != sorted(order)
    assert sorted(order) == list(range(50))
    alone = {item["id"]: item["result"] for item in items}
    for number in (0, 17, 49):
        assert alone[number] == door.send({"text": texts[number]}).json()["result"]


def test_order_stays_the_same_from_poll_to_poll_and_differs_from_batch_to_batch(door: Any) -> None:
    texts = [str(number) for number in range(30)]
    wanted = door.submit(*texts, script="instant")
    assert door.poll(wanted).content == door.poll(wanted).content
    again = door.poll(door.submit(*texts, script="instant"))
    assert [item["id"] for item in finished(door.poll(wanted))] != [item["id"] for item in finished(again)]


def test_same_seed_and_requests_give_the_same_bytes() -> None:
    def life() -> list[tuple[bytes, str, str]]:
        with Emulator(seed=11) as emulator:
            run = f"{emulator.base_url}/accounts/{emulator.account_id}/ai/run/{M3}"
            headers = {"Authorization": "Bearer a"}
            with httpx.Client(headers=headers) as http:
                body = {"requests": [{"text": f"{number}"} for number in range(40)] + [{"foo": 1}, 5]}
                replies = [http.post(f"{run}?queueRequest=true", json=body)]
                wanted = replies[0].json()["result"]["request_id"]
                replies += [http.post(run, json={"request_id": wanted}) for _ in range(4)]
                replies.append(http.post(run, json={"text": 5.5, "requests": 7}))
            return [
                (reply.content, reply.headers["cf-ray"], reply.headers["cf-ai-req-id"]) for reply in replies
            ]

    assert life() == life()


SCALARS = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text()
REFERENCES = st.recursive(
    SCALARS | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(REFERENCES, min_size=1, max_size=5))
def test_reference_of_any_json_comes_back_with_its_item(door: Any, references: list[Any]) -> None:
    inputs = {"requests": [{"text": "a", "external_reference": reference} for reference in references]}
    reply = door.send(json.dumps(inputs).encode(), queue=True, headers={"x-emulator-script": "instant"})
    items = by_id(door.poll(door.queued(reply)))
    assert [items[index]["external_reference"] for index in range(len(references))] == references


def test_reference_is_null_where_none_was_given_and_need_not_be_unique(door: Any) -> None:
    inputs = {
        "requests": [
            {"text": "a"},
            {"text": "b", "external_reference": "r"},
            {"text": "c", "external_reference": "r"},
        ]
    }
    items = by_id(
        door.poll(door.queued(door.send(inputs, queue=True, headers={"x-emulator-script": "done"})))
    )
    assert [items[index]["external_reference"] for index in range(3)] == [None, "r", "r"]


def test_item_that_slipped_through_fails_alone(door: Any) -> None:
    inputs = {"requests": [{"text": "a"}, {"foo": 1, "external_reference": [1]}, 5]}
    items = by_id(
        door.poll(door.queued(door.send(inputs, queue=True, headers={"x-emulator-script": "done"})))
    )
    assert [items[index]["success"] for index in range(3)] == [True, False, False]
    assert list(items[1]) == ["id", "result", "success", "errors", "external_reference"]
    assert items[1]["external_reference"] == [1]
    assert items[2]["external_reference"] is None
    for index in (1, 2):
        assert items[index]["result"] == {}
        assert [error["code"] for error in items[index]["errors"]] == [5006]
        assert items[index]["errors"][0]["message"].startswith("AiError: Bad input: Error: ")


def test_item_with_more_texts_than_a_call_takes_fails_alone(door: Any) -> None:
    inputs = {"requests": [{"text": ["a"] * 101}, {"text": ["b"] * 100}]}
    reply = door.poll(door.queued(door.send(inputs, queue=True, headers={"x-emulator-script": "done"})))
    items = by_id(reply)
    assert (
        items[0]["errors"][0]["message"]
        == "AiError: Bad input: Error: Length of '/text' must be <= 100 not met"
    )
    assert items[1]["result"]["shape"] == [100, 1024]
    assert reply.json()["result"]["usage"]["completion_tokens"] == 0


def test_failed_items_are_not_in_the_usage(door: Any) -> None:
    def usage(requests: list[Any]) -> Any:
        reply = door.send({"requests": requests}, queue=True, headers={"x-emulator-script": "done"})
        return door.poll(door.queued(reply)).json()["result"]["usage"]

    assert usage([{"text": "a"}, {"foo": "b c d e f"}, 5]) == usage([{"text": "a"}])


@pytest.mark.parametrize("model", [LLAMA, SCOUT])
def test_bare_body_on_a_text_model_is_queued_and_fails_when_it_is_run(door: Any, model: str) -> None:
    wanted = door.queued(door.send({"prompt": "a"}, model=model, queue=True))
    assert door.batch(wanted)["script"] == "queued:1, running:1, failed:batch.invalid"
    assert [door.seen(wanted, model=model) for _ in range(3)] == ["queued", "running", 3030]
    status, code, message = refused(door.poll(wanted, model=model))
    assert (status, code) == (400, 3030)
    assert message.startswith("AiError: AiError: 1 validation error for VllmBatchRequest")


def test_bad_item_of_a_text_model_fails_the_whole_batch_when_it_is_run(door: Any) -> None:
    inputs = {"requests": [{"prompt": "a"}, {"prompt": 5}]}
    wanted = door.queued(door.send(inputs, model=SCOUT, queue=True))
    assert [door.seen(wanted, model=SCOUT) for _ in range(3)] == ["queued", "running", 3030]


@pytest.mark.parametrize(
    ("script", "seen"),
    [("queued:1, lost", ["queued", 8007]), ("queued:1, failed:3040", ["queued", 3040])],
)
def test_script_that_ends_badly_goes_before_a_run_that_fails(door: Any, script: str, seen: list[Any]) -> None:
    reply = door.send({"prompt": "a"}, model=LLAMA, queue=True, headers={"x-emulator-script": script})
    wanted = door.queued(reply)
    assert [door.seen(wanted, model=LLAMA) for _ in range(2)] == seen


def test_run_that_fails_is_not_saved_by_going_on(door: Any) -> None:
    headers = {"x-emulator-script": "queued:hold, done"}
    wanted = door.queued(door.send({"prompt": "a"}, model=LLAMA, queue=True, headers=headers))
    assert door.act(wanted, "go-on")["state"] == "failed"


@pytest.mark.parametrize("code", [5001, 3040, "quota.daily"])
def test_failed_batch_is_told_with_its_own_status_and_code(door: Any, code: int | str) -> None:
    wanted = door.submit(script=f"failed:{code}")
    expected = {
        5001: (500, 5001, "AiError: Model execution failed"),
        3040: (429, 3040, "AiError: AiError: Capacity temporarily exceeded, please try again."),
        "quota.daily": (
            429,
            4006,
            "AiError: AiError: you have used up your daily free allocation of 10,000 neurons",
        ),
    }[code]
    status, seen, message = refused(door.poll(wanted))
    assert (status, seen) == expected[:2]
    assert message.startswith(expected[2])


@pytest.mark.parametrize("rule_first", [True, False], ids=["rule first", "action first"])
@pytest.mark.parametrize(("action", "code"), [("fail", 5001), ("lose", 8007)])
def test_batch_that_was_ended_by_hand_goes_before_rules(
    door: Any, rule_first: bool, action: str, code: int
) -> None:
    wanted = door.submit()
    if rule_first:
        door.rule({"error": 3040}, match={"operation": "poll"})
    door.act(wanted, action)
    if not rule_first:
        door.rule({"error": 3040}, match={"operation": "poll"})
    assert door.seen(wanted) == code
    assert [rule["fired"] for rule in door.control("GET", "rules").json()["rules"]] == [0]
    assert door.seen(door.submit()) == 3040


def test_batch_that_a_script_ended_does_not_go_before_rules(door: Any) -> None:
    wanted = door.submit(script="failed")
    door.rule({"error": 3040}, match={"operation": "poll"}, times=1)
    assert [door.seen(wanted), door.seen(wanted)] == [3040, 5001]


def test_refused_poll_does_not_move_the_batch(door: Any) -> None:
    wanted = door.submit()
    door.rule({"error": 3021}, match={"operation": "poll"}, times=2)
    assert [door.seen(wanted) for _ in range(5)] == [3021, 3021, "queued", "running", "done"]
    assert door.batch(wanted)["polls"] == 3


def test_refused_submit_queues_nothing(door: Any) -> None:
    door.rule({"error": 3040, "retry_after": 1.2}, match={"operation": "submit"}, times=1)
    reply = door.send({"requests": [{"text": "a"}]}, queue=True)
    assert refused(reply) == (
        429,
        3040,
        "AiError: AiError: Capacity temporarily exceeded, please try again. (id)",
    )
    assert reply.headers["retry-after"] == "2"
    assert door.control("GET", "batches").json() == {"batches": []}
    assert door.seen(door.submit()) == "queued"


SOURCES = ["header", "rule", "model", "account", "server"]


@pytest.mark.parametrize(("stronger", "weaker"), [*itertools.combinations(SOURCES, 2)])
def test_script_is_taken_from_the_most_specific_place(stronger: str, weaker: str) -> None:
    said = {source: f"queued:{number}, done" for number, source in enumerate(SOURCES, 10)}
    places = (stronger, weaker)
    authorized = {"Authorization": "Bearer a"}
    with (
        Emulator(script=said["server"] if "server" in places else None) as emulator,
        httpx.Client(base_url=emulator.url, headers=authorized) as http,
    ):
        account = {"account_id": emulator.account_id}
        if "account" in places:
            http.patch("/__emulator__/settings", json={**account, "script": said["account"]})
        if "model" in places:
            http.patch("/__emulator__/settings", json={**account, "scripts": {M3: said["model"]}})
        if "rule" in places:
            http.post("/__emulator__/rules", json={**account, "effect": {"script": said["rule"]}})
        headers = {"x-emulator-script": said["header"]} if "header" in places else {}
        http.post(
            f"/client/v4/accounts/{emulator.account_id}/ai/run/{M3}?queueRequest=true",
            json={"requests": [{"text": "a"}]},
            headers=headers,
        )
        shown = http.get("/__emulator__/batches").json()["batches"]
    assert [batch["script"] for batch in shown] == [said[stronger]]


def test_accounts_rule_goes_before_a_newer_one_of_the_servers() -> None:
    with Emulator() as emulator, httpx.Client(base_url=emulator.url) as http:
        account = {"account_id": emulator.account_id}
        http.post("/__emulator__/rules", json={**account, "effect": {"error": 3040}, "times": 1})
        http.post("/__emulator__/rules", json={"effect": {"error": 3021}})
        run = f"/client/v4/accounts/{emulator.account_id}/ai/run/{M3}"
        replies = [
            http.post(run, json={"text": "a"}, headers={"Authorization": "Bearer a"}).json()["errors"][0][
                "code"
            ]
            for _ in range(2)
        ]
    assert replies == [3040, 3021]


def test_changed_settings_leave_batches_that_are_queued_as_they_are(door: Any) -> None:
    wanted = door.submit()
    door.assume(script="lost")
    assert [door.seen(wanted) for _ in range(3)] == ["queued", "running", "done"]


def test_request_id_is_looked_for_before_anything_else(door: Any) -> None:
    wanted = door.submit()
    for extra, queue in (
        ({}, True),
        ({}, False),
        ({"requests": [{"text": "a"}]}, True),
        ({"text": 5}, False),
    ):
        assert door.send({"request_id": wanted, **extra}, queue=queue).json()["success"]
    assert door.batch(wanted)["polls"] == 4


def test_request_id_that_is_no_text_is_no_poll(door: Any) -> None:
    assert door.send({"request_id": 5, "text": "a"}).json()["result"]["shape"] == [1, 1024]
    assert refused(door.send({"request_id": 5}))[1] == 5006


@pytest.mark.parametrize(
    "wanted",
    [UNKNOWN, "", "x" * 1000, "../../etc", "\ud800"],
    ids=["uuid", "empty", "long", "path", "surrogate"],
)
def test_unknown_request_id_is_not_found(door: Any, wanted: str) -> None:
    reply = door.send(json.dumps({"request_id": wanted}).encode())
    assert refused(reply) == (400, 8007, "AiError: AiError: Request not found (id)")


def test_expired_batch_and_another_accounts_are_not_found(door: Any) -> None:
    wanted = door.submit(script="instant")
    assert door.other().seen(wanted) == 8007
    assert door.seen(wanted) == "done"
    door.clock(advance="24h")
    assert door.seen(wanted) == 8007


def test_batch_without_room_is_not_found_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with Emulator(store_batches=2, script="instant") as emulator:
        headers = {"Authorization": "Bearer a"}
        run = f"{emulator.base_url}/accounts/{emulator.account_id}/ai/run/{M3}"
        with httpx.Client(headers=headers) as http:
            ids = [
                http.post(f"{run}?queueRequest=true", json={"requests": [{"text": "a"}]}).json()["result"][
                    "request_id"
                ]
                for _ in range(3)
            ]
            statuses = [http.post(run, json={"request_id": wanted}).status_code for wanted in ids]
    assert statuses == [400, 200, 200]
    assert f"batch {ids[0]} of account {emulator.account_id} is forgotten" in caplog.text


def test_batch_that_is_failed_by_hand_keeps_its_count_of_polls(door: Any) -> None:
    wanted = door.submit(script="instant")
    for _ in range(3):
        door.poll(wanted)
    assert door.act(wanted, "fail")["polls"] == 3


def test_reset_forgets_batches_and_begins_the_ids_again(door: Any) -> None:
    wanted = door.submit(script="instant")
    assert door.control("POST", "reset").status_code == 204
    assert door.seen(wanted) == 8007
    assert door.control("GET", "batches").json() == {"batches": []}
    assert door.submit() == wanted


def test_clock_is_moved_all_or_nothing(door: Any) -> None:
    before = door.control("GET", "clock").json()
    reply = door.control("POST", "clock", now="9998-12-31T00:00:00Z", advance="100h", freeze=False)
    assert (reply.status_code, reply.json()) == (400, {"error": "the clock cannot go beyond the calendar"})
    assert door.control("GET", "clock").json() == before


def test_clock_that_is_frozen_and_set_at_once_stands_exactly_there(door: Any) -> None:
    other = door.other()
    other.clock(freeze=True, now="2100-01-01T00:00:00Z")
    wanted = other.submit(script="queued:10s, done")
    other.clock(now="2100-01-01T00:00:10Z")
    assert other.batch(wanted)["state"] == "done"


def test_clock_that_was_refused_a_move_still_follows_the_servers() -> None:
    with Emulator() as emulator, httpx.Client(base_url=emulator.url) as http:
        account = {"account_id": emulator.account_id}
        assert http.post("/__emulator__/clock", json={**account, "advance": "soon"}).status_code == 400
        http.post("/__emulator__/clock", json={"freeze": True, "now": "2100-01-01T00:00:00Z"})
        shown = http.get("/__emulator__/clock", params=account).json()
    assert shown == {"now": "2100-01-01T00:00:00.000Z", "frozen": True, "scale": 1.0, "jump": False}


def test_clock_can_be_set_to_what_it_shows(door: Any) -> None:
    shown = door.control("GET", "clock").json()
    assert door.clock(now=shown["now"]) == shown


def test_requests_without_the_query_are_run_at_once_with_all_their_ids(door: Any) -> None:
    items = by_id(door.send({"requests": [{"text": str(number)} for number in range(40)]}))
    assert sorted(items) == list(range(40))
    assert door.control("GET", "batches").json() == {"batches": []}


def test_bad_requests_without_the_query_are_refused_at_once(door: Any) -> None:
    assert refused(door.send({"requests": [{"prompt": 5}]}, model=SCOUT))[:2] == (400, 3030)
    assert refused(door.send({"requests": [{}]}, model=BASE))[:2] == (400, 5006)


@pytest.mark.parametrize("inputs", [{"requests": [{"text": "a"}]}, {"text": "a"}], ids=["requests", "bare"])
def test_model_without_a_queue_says_so_before_it_looks_at_the_input(door: Any, inputs: Any) -> None:
    expected = (400, 8007, "AiError: Ai: This model does not support request queuing (id)")
    assert refused(door.send(inputs, model=RERANKER, queue=True)) == expected


ODD_REQUESTS: list[Any] = [
    None,
    5,
    "ab",
    {},
    {"0": {"text": "a"}},
    [5],
    [[]],
    [None],
    [{}],
    [{"text": 5}],
    [{"text": []}],
]
ODD_BODIES: list[Any] = [
    *({"requests": requests} for requests in ODD_REQUESTS),
    {},
    {"text": 5},
    {"text": []},
    {"text": [None, {}]},
    {"prompt": 5},
    {"messages": []},
    {"messages": [5]},
    {"input": []},
    {"query": [], "contexts": 5},
    {"query": "a", "contexts": []},
    {"query": "a", "contexts": [5]},
    {"text": "a", "target_lang": 5},
    {"documents": 5, "queries": {}},
    [],
    5,
    "a",
    None,
]


#: A model of each kind of answer and each input schema.
OF_EACH_KIND = sorted(
    {(card.answers, id(card.input_schema)): name for name, card in models().items()}.values()
)


@pytest.mark.parametrize("model", OF_EACH_KIND)
@pytest.mark.parametrize("moment", ["by-task", "submit", "run"])
def test_nothing_that_the_validator_lets_through_is_a_fault(door: Any, model: str, moment: str) -> None:
    door.assume(script="instant", assumptions={"submit.validation": moment, "model.queue": "queued"})
    for body in ODD_BODIES:
        run = door.send(body, model=model)
        assert run.status_code in {200, 400}, (body, run.text)
        submit = door.send(body, model=model, queue=True)
        assert submit.status_code in {200, 400}, (body, submit.text)
        if submit.status_code == 200:
            poll = door.poll(submit.json()["result"]["request_id"], model=model)
            assert poll.status_code in {200, 400}, (body, poll.text)


def test_large_batch_comes_whole_and_matches_what_each_item_gives_alone(door: Any) -> None:
    texts = [f"document {number} about {number % 7}" for number in range(500)]
    reply = door.poll(door.submit(*texts, script="instant"))
    items = by_id(reply)
    assert sorted(items) == list(range(500))
    assert items[333]["result"] == door.send({"text": texts[333]}).json()["result"]
    assert (
        reply.json()["result"]["usage"]["total_tokens"]
        == reply.json()["result"]["usage"]["prompt_tokens"]
        > 500
    )


def test_batch_of_gpt_oss_answers_in_the_responses_form(door: Any) -> None:
    inputs = {"requests": [{"input": "a", "external_reference": "r"}]}
    wanted = door.queued(door.send(inputs, model=GPT_OSS, queue=True, headers={"x-emulator-script": "done"}))
    items = by_id(door.poll(wanted, model=GPT_OSS))
    assert "output" in items[0]["result"]
    assert items[0]["external_reference"] == "r"
