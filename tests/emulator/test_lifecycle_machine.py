"""A machine that drives one account over HTTP, against a simple account of what a batch's life is.

The model below knows nothing of the emulator's own: it keeps a list of steps and counts.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from workersai_emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

M3, BASE = "@cf/baai/bge-m3", "@cf/baai/bge-base-en-v1.5"
DAY = 86_400
START = datetime(2100, 1, 1, tzinfo=UTC)
UNKNOWN = "6c8e3a4e-1111-4222-8333-444455556666"
_numbers = itertools.count(1)

#: A step as the model has it: a state, and polls ("n"), seconds ("s"), "hold", or for a failure its code ("code").
Step = tuple[str, str, int]

WAITING_STEPS = st.tuples(
    st.sampled_from(["queued", "running"]),
    st.sampled_from([("n", 0), ("n", 1), ("n", 2), ("s", 61), ("s", 90_001), ("hold", 0)]),
).map(lambda step: (step[0], *step[1]))
FINAL_STEPS = st.sampled_from(
    [("done", "", 0), ("lost", "", 0), ("failed", "code", 3040), ("failed", "code", 5001)]
)
SCRIPTS = st.tuples(st.lists(WAITING_STEPS, max_size=4), FINAL_STEPS).map(
    lambda script: [*script[0], script[1]]
)
DEFAULT: list[Step] = [("queued", "n", 1), ("running", "n", 1), ("done", "", 0)]
MODELS = st.sampled_from([M3, BASE])
OPERATIONS = st.sampled_from([None, "poll", "submit", "poll", "run"])


def written(script: list[Step]) -> str:
    """The script as one writes it."""
    amounts = {"n": ":{}", "s": ":{}s", "hold": ":hold", "code": ":{}", "": ""}
    return ", ".join(state + amounts[kind].format(amount) for state, kind, amount in script)


@dataclass
class Batch:
    """What the model knows of one batch."""

    request_id: str
    model: str
    items: int
    steps: list[Step]
    submitted: int
    place: int = 0
    since: int = 0
    seen_here: int = 0
    polls: int = 0
    ended_by_hand: bool = False
    forgotten: bool = False

    @property
    def state(self) -> str:
        return self.steps[self.place][0]

    @property
    def waiting(self) -> bool:
        return self.state in {"queued", "running"}

    def kept_until(self) -> int:
        """A day after the end, or after the submit for one that had not ended by then."""
        late = self.since >= self.submitted + DAY
        return self.submitted + DAY if self.waiting or late else self.since + DAY

    def enter(self, place: int, at: int) -> None:
        self.place, self.since, self.seen_here = place, at, 0

    def pass_time(self, now: int) -> None:
        while self.steps[self.place][1] == "s" and self.since + self.steps[self.place][2] <= now:
            self.enter(self.place + 1, self.since + self.steps[self.place][2])

    def poll(self, now: int) -> None:
        self.pass_time(now)
        while self.steps[self.place][1] == "n" and self.seen_here >= self.steps[self.place][2]:
            self.enter(self.place + 1, now)
            self.pass_time(now)
        self.seen_here += 1
        self.polls += 1

    def end(self, step: Step, now: int) -> None:
        if self.waiting:
            self.steps = [*self.steps[: self.place + 1], step]
            self.enter(self.place + 1, now)
        else:
            self.steps[self.place] = step
        self.ended_by_hand = True


@dataclass
class Rule:
    """What the model knows of one rule."""

    rule_id: str
    operation: str | None
    model: str | None
    code: int | None
    script: list[Step] | None
    left: int | None

    def is_for(self, operation: str, model: str) -> bool:
        if self.script is not None and operation != "submit":
            return False
        return self.left != 0 and self.operation in {None, operation} and self.model in {None, model}


class Account(RuleBasedStateMachine):
    """One account, driven over HTTP."""

    batches = Bundle("batches")
    added_rules = Bundle("added_rules")

    def __init__(self, http: httpx.Client) -> None:
        super().__init__()
        self.http = http
        self.account_id = f"{next(_numbers):032x}"

    @initialize()
    def begin(self) -> None:
        self.known: dict[str, Batch] = {}
        self.added: list[Rule] = []
        self.script: list[Step] | None = None
        self.model_scripts: dict[str, list[Step]] = {}
        self.now = 0
        self.jumps = False
        self.control("POST", "clock", freeze=True, now=START.isoformat())

    def control(self, method: str, path: str, **said: Any) -> Any:
        reply = self.http.request(
            method, f"/__emulator__/{path}", json={**said, "account_id": self.account_id}
        )
        assert reply.status_code in {200, 204}, reply.text
        return reply.json() if reply.content else None

    def send(self, model: str, inputs: Any, *, script: list[Step] | None = None, queue: bool = False) -> Any:
        """POST to a model; the result, or the code of the refusal."""
        reply = self.http.post(
            f"/client/v4/accounts/{self.account_id}/ai/run/{model}",
            params={"queueRequest": "true"} if queue else {},
            headers={} if script is None else {"x-emulator-script": written(script)},
            json=inputs,
        )
        told = reply.json()
        assert told["success"] == (reply.status_code == 200)
        return told["result"] if told["success"] else told["errors"][0]["code"]

    def fired(self, operation: str, model: str) -> Rule | None:
        """The newest rule for a request, counted."""
        for added in reversed(self.added):
            if added.is_for(operation, model):
                if added.left is not None:
                    added.left -= 1
                return added
        return None

    @precondition(lambda self: sum(not batch.forgotten for batch in self.known.values()) < 3)
    @rule(target=batches, model=MODELS, items=st.integers(1, 3), asked=st.none() | SCRIPTS)
    def submit(self, model: str, items: int, asked: list[Step] | None) -> Any:
        result = self.send(model, {"requests": [{"text": "a"}] * items}, script=asked, queue=True)
        fired = self.fired("submit", model)
        if fired is not None and fired.code is not None:
            assert result == fired.code
            return multiple()
        assert list(result) == ["status", "request_id", "model"]
        assert (result["status"], result["model"]) == ("queued", model)
        ruled = None if fired is None else fired.script
        script = asked or ruled or self.model_scripts.get(model) or self.script or DEFAULT
        batch = Batch(result["request_id"], model, items, [*script], self.now, since=self.now)
        assert batch.request_id not in self.known
        self.known[batch.request_id] = batch
        return batch.request_id

    @rule(wanted=batches)
    def poll(self, wanted: str) -> None:
        batch = self.known.get(wanted)
        model = M3 if batch is None else batch.model
        result = self.send(model, {"request_id": wanted})
        fired = None if batch and batch.ended_by_hand and not batch.forgotten else self.fired("poll", model)
        expected = fired.code if fired else self.polled(batch)
        if expected != "done":
            assert result == (
                expected if isinstance(expected, int) else {"status": expected, "request_id": wanted}
            )
            return
        assert batch is not None
        assert list(result) == ["responses", "usage"]
        assert sorted(item["id"] for item in result["responses"]) == list(range(batch.items))

    def polled(self, batch: Batch | None) -> str | int:
        """What the model says of a poll: a state, or the code of a refusal."""
        if batch is None or batch.forgotten:
            return 8007
        batch.pass_time(self.now)
        if self.jumps and batch.steps[batch.place][1] == "s":
            change = batch.since + batch.steps[batch.place][2]
            self.now = max(self.now, min(change, batch.submitted + DAY))
        batch.poll(self.now)
        batch.forgotten = self.now >= batch.kept_until()
        if batch.forgotten or batch.state == "lost":
            return 8007
        return batch.steps[batch.place][2] if batch.state == "failed" else batch.state

    @rule(wanted=batches, what=st.sampled_from(["another model", "unknown", "run"]))
    def ask_beside(self, wanted: str, what: str) -> None:
        batch = self.known.get(wanted)
        if what == "another model" and batch is not None:
            model = BASE if batch.model == M3 else M3
            result = self.send(model, {"request_id": wanted})
            fired = None if batch.ended_by_hand and not batch.forgotten else self.fired("poll", model)
            assert result == (fired.code if fired else 8007)
        elif what == "run":
            result = self.send(M3, {"text": "a"})
            fired = self.fired("run", M3)
            assert (result if fired else result["shape"][0]) == (fired.code if fired else 1)
        else:
            result = self.send(M3, {"request_id": UNKNOWN})
            fired = self.fired("poll", M3)
            assert result == (fired.code if fired else 8007)

    @rule(seconds=st.sampled_from([0, 1, 60, 61, DAY - 61, DAY - 1, DAY]), by=st.booleans())
    def move_clock(self, seconds: int, by: bool) -> None:
        self.now += seconds
        moment = START + timedelta(seconds=self.now)
        said = {"advance": f"{seconds}s"} if by else {"now": moment.isoformat()}
        assert datetime.fromisoformat(self.control("POST", "clock", **said)["now"]) == moment

    @rule(on=st.booleans())
    def jump(self, on: bool) -> None:
        self.jumps = on
        self.control("POST", "clock", jump=on)

    @rule(
        target=added_rules,
        operation=OPERATIONS,
        model=st.none() | MODELS,
        code=st.sampled_from([3021, 3040, 4006]),
        times=st.sampled_from([1, 1, 2, None]),
    )
    def add_error(self, operation: str | None, model: str | None, code: int, times: int | None) -> str:
        return self.add_rule(Rule("", operation, model, code, None, times), {"error": code})

    @rule(
        target=added_rules, model=st.none() | MODELS, script=SCRIPTS, times=st.sampled_from([1, 1, 2, None])
    )
    def add_script(self, model: str | None, script: list[Step], times: int | None) -> str:
        return self.add_rule(Rule("", None, model, None, script, times), {"script": written(script)})

    def add_rule(self, added: Rule, effect: dict[str, Any]) -> str:
        match = {"operation": added.operation, "model": added.model}
        shown = self.control("POST", "rules", match=match, effect=effect, times=added.left)
        added.rule_id = shown["id"]
        self.added.append(added)
        return added.rule_id

    @rule(rule_id=consumes(added_rules))
    def delete_rule(self, rule_id: str) -> None:
        known = [added for added in self.added if added.rule_id == rule_id]
        reply = self.http.delete(f"/__emulator__/rules/{rule_id}", params={"account_id": self.account_id})
        assert reply.status_code == (204 if known else 404)
        self.added = [added for added in self.added if added not in known]

    @rule(wanted=batches, action=st.sampled_from(["go-on", "hold", "lose", "fail"]))
    def act(self, wanted: str, action: str) -> None:
        batch = self.known.get(wanted)
        if batch is not None:
            batch.pass_time(self.now)
        said = {
            "account_id": self.account_id,
            "action": action,
            **({"code": 3050} if action == "fail" else {}),
        }
        reply = self.http.post(f"/__emulator__/batches/{wanted}", json=said)
        if batch is None or batch.forgotten or self.now >= batch.kept_until():
            assert reply.status_code == 404
            return
        if action == "go-on" and batch.waiting:
            batch.enter(batch.place + 1, self.now)
        elif action == "hold" and batch.waiting:
            batch.steps[batch.place] = (batch.state, "hold", 0)
        elif action in {"lose", "fail"}:
            batch.end(("lost", "", 0) if action == "lose" else ("failed", "code", 3050), self.now)
        assert reply.json()["state"] == batch.state

    @rule(model=st.none() | MODELS, script=SCRIPTS)
    def set_script(self, model: str | None, script: list[Step]) -> None:
        if model is None:
            self.script = script
            shown = self.control("PATCH", "settings", script=written(script))["script"]
        else:
            self.model_scripts[model] = script
            shown = self.control("PATCH", "settings", scripts={model: written(script)})["scripts"][model]
        assert shown == written(script)

    @precondition(lambda self: len(self.known) > 2)
    @rule()
    def reset(self) -> None:
        self.control("POST", "reset")
        self.begin()

    @invariant()
    def batches_are_shown_as_they_are(self) -> None:
        if not hasattr(self, "known"):
            return
        for batch in self.known.values():
            batch.pass_time(self.now)
        expected = [
            {
                "request_id": batch.request_id,
                "account_id": self.account_id,
                "model": batch.model,
                "state": batch.state,
                "script": written(batch.steps)
                .replace("3600s", "1h")
                .replace("90000s", "25h")
                .replace("60s", "1m"),
                "items": batch.items,
                "bytes": len(b'{"requests":[]}') + 13 * batch.items - 1,
                "polls": batch.polls,
                "submitted_at": (START + timedelta(seconds=batch.submitted))
                .isoformat()
                .replace("+00:00", ".000Z"),
            }
            for batch in self.known.values()
            if not batch.forgotten and self.now < batch.kept_until()
        ]
        assert self.control("GET", "batches")["batches"] == expected


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with Emulator(seed=3) as emulator:
        headers = {"Authorization": f"Bearer {emulator.token}"}
        with httpx.Client(base_url=emulator.url, headers=headers, timeout=60) as http:
            yield http


def test_account_lives_as_the_model_says(http: httpx.Client) -> None:
    chosen = settings(max_examples=settings().max_examples // 2, stateful_step_count=40)
    run_state_machine_as_test(lambda: Account(http), settings=chosen)  # type: ignore[arg-type]  # any maker will do
