"""Scenarios: how each is begun and ended, and that a real client sees of it what its description says."""

from __future__ import annotations

import asyncio
from typing import Any

import cloudflare
import pytest

from workersai_client import (
    AuthenticationError,
    BatchFailed,
    Client,
    Handle,
    InvalidRequest,
    ItemFailed,
    Pending,
    QuotaExceeded,
    RateLimited,
    RequestTooLarge,
    ServerError,
    TransportError,
    WaitTimeout,
    WorkersAIError,
)
from workersai_emulator import Emulator
from workersai_emulator.scenarios import SCENARIOS

M3 = "@cf/baai/bge-m3"
RUN = {"text": "a"}
ITEMS = [{"text": "a"}, {"text": "b"}]

NAMES = [
    "out-of-capacity",
    "busy",
    "rate-limited",
    "daily-limit",
    "payload-too-large",
    "batch-failed",
    "stuck",
    "lost",
    "expired",
    "item-failures",
    "out-of-order",
    "flaky-network",
    "duplicate-submit",
    "slow",
    "model-deprecated",
    "not-batch-capable",
    "bad-gateway",
    "paid-only",
]

# What each operation of a fresh account meets: a status and a code, (200, None) for an answer.
GOOD = (200, None)
MEETS: dict[str, dict[str, tuple[int, int | None]]] = {
    "out-of-capacity": {"run": (429, 3040), "submit": GOOD, "poll": GOOD},
    "rate-limited": {"run": (429, 3021), "submit": (429, 3021), "poll": GOOD},
    "daily-limit": {"run": (429, 4006), "submit": (429, 4006), "poll": GOOD},
    "payload-too-large": {"run": GOOD, "submit": (413, 3006), "poll": GOOD},
    "not-batch-capable": {"run": GOOD, "submit": (400, 8007), "poll": GOOD},
    "model-deprecated": {"run": (410, 5028), "submit": (410, 5028), "poll": GOOD},
    "paid-only": {"run": (403, 5035), "submit": (403, 5035), "poll": GOOD},
    "bad-gateway": {"run": (502, None), "submit": (502, None), "poll": (502, None)},
    **{
        name: {"run": GOOD, "submit": GOOD, "poll": GOOD}
        for name in ("batch-failed", "stuck", "lost", "expired", "item-failures", "out-of-order")
    },
}


def submit(world: Any) -> Handle:
    handle: Handle = world.client.submit(M3, ITEMS)
    return handle


def polls(world: Any, handle: Handle, times: int) -> list[str]:
    """What so many polls show our client."""
    seen = []
    for _ in range(times):
        try:
            found = world.client.poll(handle)
        except WorkersAIError as error:
            seen.append(f"{type(error).__name__} {error.code}")
        else:
            seen.append(found.status if isinstance(found, Pending) else "done")
    return seen


def test_these_are_the_scenarios() -> None:
    assert list(SCENARIOS) == NAMES


@pytest.mark.parametrize("operation", ["run", "submit", "poll"])
@pytest.mark.parametrize("name", MEETS)
def test_scenario_touches_what_it_says(world: Any, name: str, operation: str) -> None:
    body, queue = {
        "run": (RUN, False),
        "submit": ({"requests": ITEMS}, True),
        "poll": ({"request_id": world.submit("a")}, False),
    }[operation]
    world.scenario(name)

    reply = world.send(body, queue=queue)

    errors = reply.json()["errors"] if reply.headers["content-type"] == "application/json" else []
    assert (reply.status_code, errors[0]["code"] if errors else None) == MEETS[name][operation]


REFUSED: dict[str, tuple[type[WorkersAIError], bool, type[cloudflare.APIStatusError]]] = {
    "out-of-capacity": (RateLimited, True, cloudflare.RateLimitError),
    "rate-limited": (RateLimited, True, cloudflare.RateLimitError),
    "daily-limit": (QuotaExceeded, False, cloudflare.RateLimitError),
    "model-deprecated": (InvalidRequest, False, cloudflare.APIStatusError),
    "bad-gateway": (ServerError, True, cloudflare.InternalServerError),
    "paid-only": (AuthenticationError, False, cloudflare.PermissionDeniedError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_run_is_an_error_by_which_clients_know_what_to_do(world: Any, name: str) -> None:
    kind, retryable, official = REFUSED[name]
    world.scenario(name)

    with pytest.raises(WorkersAIError) as ours:
        world.client.run(M3, RUN)
    with pytest.raises(cloudflare.APIStatusError) as theirs:
        world.sdk.ai.run(M3, account_id=world.id, text="a")

    assert (type(ours.value), ours.value.retryable) == (kind, retryable)
    assert (ours.value.status, ours.value.code) == MEETS[name]["run"]
    assert (type(theirs.value), theirs.value.status_code) == (official, MEETS[name]["run"][0])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("payload-too-large", RequestTooLarge),
        ("not-batch-capable", InvalidRequest),
        ("rate-limited", RateLimited),
        ("daily-limit", QuotaExceeded),
        ("model-deprecated", InvalidRequest),
        ("paid-only", AuthenticationError),
        ("bad-gateway", ServerError),
    ],
)
def test_refused_submit_queues_nothing(world: Any, name: str, kind: type[WorkersAIError]) -> None:
    world.scenario(name)

    with pytest.raises(kind) as refused:
        submit(world)

    assert type(refused.value) is kind
    assert (refused.value.status, refused.value.code) == MEETS[name]["submit"]
    assert world.batches() == 0


def test_out_of_capacity_batch_waits_until_told_to_go_on(world: Any) -> None:
    world.scenario("out-of-capacity")
    handle = submit(world)

    waited = polls(world, handle, 20)
    world.control("POST", f"batches/{handle.request_id}", action="go-on")

    assert waited == ["queued"] * 20
    assert polls(world, handle, 2) == ["running", "done"]


def test_stuck_batch_stays_running_and_a_deadline_ends_the_wait(world: Any) -> None:
    world.scenario("stuck")
    handle = submit(world)
    passed = iter(range(10_000))

    with (
        Client(
            world.id,
            "a",
            world.emulator.base_url,
            sleep=lambda seconds: None,
            monotonic=lambda: float(next(passed)),
        ) as client,
        pytest.raises(WaitTimeout, match="is still running") as caught,
    ):
        client.wait(handle, timeout=60)

    assert (caught.value.handle, caught.value.last_status) == (handle, "running")
    world.control("POST", f"batches/{handle.request_id}", action="go-on")
    assert polls(world, handle, 1) == ["done"]


def test_batches_fail_in_each_way_and_then_in_the_first_again(world: Any) -> None:
    world.scenario("batch-failed")
    handles = [submit(world) for _ in range(6)]

    seen = [polls(world, handle, 3) for handle in handles]

    assert [shown[:2] for shown in seen] == [["queued", "running"]] * 6
    assert [shown[2] for shown in seen] == [
        "BatchFailed 5001",
        "BatchFailed 3030",
        "BatchFailed 5021",
        "RateLimited 3040",
        "BatchFailed 5001",
        "BatchFailed 5001",
    ]
    assert [world.poll(handle.request_id).status_code for handle in handles[:4]] == [500, 400, 413, 429]


def test_lost_batch_is_unknown_after_one_poll(world: Any) -> None:
    world.scenario("lost")
    handle = submit(world)

    assert polls(world, handle, 3) == ["queued", "BatchFailed 8007", "BatchFailed 8007"]
    with pytest.raises(BatchFailed, match="Request not found") as caught:
        world.client.wait(handle, timeout=60)
    assert (caught.value.handle, caught.value.retryable) == (handle, False)


def test_expired_batch_can_be_read_once(world: Any) -> None:
    world.scenario("expired")

    assert polls(world, submit(world), 5) == ["queued", "running", "done", *["BatchFailed 8007"] * 2]


def test_about_a_third_of_the_items_fail_and_the_poll_succeeds(world: Any) -> None:
    world.scenario("item-failures")
    handle = world.client.submit(M3, [{"text": f"text {number}"} for number in range(300)])

    done = world.client.wait(handle, timeout=30, interval=0.01)

    failed = [item for item in done.items if not item.success]
    assert 75 <= len(failed) <= 130
    assert {item.error.code for item in failed} == {3030}
    with pytest.raises(ItemFailed):
        done.raise_for_items()


def test_items_are_out_of_order_whatever_the_settings_say(world: Any) -> None:
    world.control("PATCH", "settings", assumptions={"done.order": "request"})
    wanted = world.submit(*"abcdefgh")
    assert [item["id"] for item in world.poll(wanted).json()["result"]["responses"]] == list(range(8))
    world.scenario("out-of-order")

    shown = [item["id"] for item in world.poll(wanted).json()["result"]["responses"]]

    assert shown != list(range(8))
    assert sorted(shown) == list(range(8))
    found = world.client.poll(Handle(world.id, M3, wanted))
    assert [item.id for item in found.items] == list(range(8))


def test_flaky_network_breaks_one_request_in_three_and_a_client_gets_through(world: Any) -> None:
    world.scenario("flaky-network")
    broken = 0
    for _ in range(150):
        try:
            world.client.run(M3, RUN)
        except TransportError:
            broken += 1
    assert 33 <= broken <= 67

    fired = [rule for rule in world.control("GET", "rules").json()["rules"] if rule["fired"]]
    assert [rule["effect"]["transport"] for rule in fired] == ["truncate", "reset-after", "reset-before"]

    with Client(world.id, "a", world.emulator.base_url, max_retries=10, sleep=lambda seconds: None) as client:
        for _ in range(10):
            handle = client.submit(M3, ITEMS, allow_duplicates=True)
            assert len(client.wait(handle, timeout=60, interval=0.01).items) == 2


def test_flaky_network_by_header_draws_for_each_request_anew(world: Any) -> None:
    outcomes = {"end": 0, "reset": 0}
    for _ in range(60):
        try:
            world.send(RUN, headers={"x-emulator-scenario": "flaky-network"})
            outcomes["end"] += 1
        except Exception:  # noqa: BLE001 - whatever httpx makes of it
            outcomes["reset"] += 1

    assert 8 <= outcomes["reset"] <= 35


def test_submit_whose_reply_is_lost_is_queued_twice_by_who_repeats_it(world: Any) -> None:
    world.scenario("duplicate-submit", times=1)

    with Client(world.id, "a", world.emulator.base_url, max_retries=1, sleep=lambda seconds: None) as client:
        client.submit(M3, ITEMS, allow_duplicates=True)

    assert world.batches() == 2


def test_submit_whose_reply_is_lost_is_queued_once_by_our_client(world: Any) -> None:
    world.scenario("duplicate-submit")

    with pytest.raises(TransportError) as caught:
        submit(world)

    assert caught.value.may_have_arrived
    assert world.batches() == 1
    assert world.client.run(M3, RUN)["shape"] == [1, 1024]


def test_slow_takes_two_seconds_more_for_everything(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[float] = []

    async def pause(seconds: float) -> None:
        made.append(seconds)
        await asyncio.sleep(0)  # noqa: TID251 - in place of the emulator's own pause

    monkeypatch.setattr("workersai_emulator.service.pause", pause)
    world.scenario("slow")

    assert polls(world, submit(world), 3) == ["queued", "running", "done"]
    world.client.run(M3, RUN)

    assert made == [2.0] * 5


@pytest.mark.parametrize("name", NAMES)
def test_scenario_begins_and_ends_at_the_control_plane(world: Any, name: str) -> None:
    begun = world.control("POST", f"scenarios/{name}")
    assert begun.json() == SCENARIOS[name].as_json()
    rules = world.control("GET", "rules").json()["rules"]
    assert {rule["scenario"] for rule in rules} == {name}
    assert len(rules) == len(SCENARIOS[name].rules)
    shown = world.control("GET", "scenarios").json()["scenarios"]
    assert [each["name"] for each in shown if each["begun"]] == [name]

    assert world.control("DELETE", f"scenarios/{name}").status_code == 204
    assert world.control("GET", "rules").json() == {"rules": []}
    assert world.control("DELETE", f"scenarios/{name}").status_code == 404
    assert world.client.run(M3, RUN)["shape"] == [1, 1024]


def test_ending_a_scenario_leaves_other_rules(world: Any) -> None:
    kept = world.rule({"delay": 0})
    world.scenario("stuck")
    world.scenario("rate-limited")

    world.control("DELETE", "scenarios/rate-limited")

    rules = world.control("GET", "rules").json()["rules"]
    assert [(rule["id"] == kept, rule.get("scenario")) for rule in rules] == [(True, None), (False, "stuck")]


def test_times_end_a_scenario_by_itself(world: Any) -> None:
    world.scenario("rate-limited", times=2)
    seen = []
    for _ in range(4):
        reply = world.send(RUN)
        seen.append(reply.status_code)

    assert seen == [429, 429, 200, 200]


def test_our_client_gets_past_a_scenario_that_ends(world: Any) -> None:
    world.scenario("out-of-capacity", times=3)

    with Client(world.id, "a", world.emulator.base_url, max_retries=3, sleep=lambda seconds: None) as client:
        assert client.run(M3, RUN)["shape"] == [1, 1024]


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_unknown_scenario_is_not_found(world: Any, method: str) -> None:
    reply = world.control(method, "scenarios/rain")

    assert reply.status_code == 404
    assert reply.json()["error"].startswith(
        "no scenario 'rain'; there are out-of-capacity, "
        if method == "POST"
        else "scenario 'rain' was not begun here"
    )


@pytest.mark.parametrize("times", [0, -1, True, "2", 1.5])
def test_times_is_a_number_from_1_on(world: Any, times: Any) -> None:
    reply = world.control("POST", "scenarios/stuck", times=times)

    assert (reply.status_code, reply.json()) == (
        400,
        {"error": f"times: {times!r} is not a number from 1 on"},
    )


def test_scenario_of_the_server_is_for_all_accounts_and_outlives_a_reset() -> None:
    with Emulator(seed=1, scenarios=("rate-limited",)) as emulator:
        for account in (emulator.account("a" * 32), emulator.account("b" * 32)):
            with (
                Client(account.account_id, "a", emulator.base_url, max_retries=0) as client,
                pytest.raises(RateLimited),
            ):
                client.run(M3, RUN)
        emulator.plane.ask("DELETE", "scenarios/rate-limited", {})
        with Client("a" * 32, "a", emulator.base_url, max_retries=0) as client:
            client.run(M3, RUN)
            emulator.reset()
            with pytest.raises(RateLimited):
                client.run(M3, RUN)


@pytest.mark.parametrize("name", [*MEETS, "slow"])
def test_header_brings_a_scenario_to_one_request(
    world: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async def pause(seconds: float) -> None:
        await asyncio.sleep(0)  # noqa: TID251 - in place of the emulator's own pause

    monkeypatch.setattr("workersai_emulator.service.pause", pause)
    meets = MEETS.get(name, {"submit": GOOD})["submit"]

    wished = world.send({"requests": ITEMS}, queue=True, headers={"x-emulator-scenario": name})
    plain = world.send({"requests": ITEMS}, queue=True)

    assert (wished.status_code, plain.status_code) == (meets[0], 200)
