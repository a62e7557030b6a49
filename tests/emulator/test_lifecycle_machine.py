"""A machine that drives one account over HTTP, against a simple account of what a batch's life is.

The model below knows nothing of the emulator's own: it keeps a list of steps and counts.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

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
    from collections.abc import Callable, Iterator

M3, BASE = "@cf/baai/bge-m3", "@cf/baai/bge-base-en-v1.5"
DAY = 86_400
START = datetime(2100, 1, 1, tzinfo=UTC)
UNKNOWN = "6c8e3a4e-1111-4222-8333-444455556666"
_numbers = itertools.count(1)

#: A step as the model has it: a state, and polls ("n"), seconds ("s"), "hold", or for a failure its code ("code").
Step = tuple[str, str, int]

WAITING_STEPS = st.tuples(
    st.sampled_from(["queued", "running"]),
    st.sampled_from([("n", 0), ("n", 1), ("n", 2), ("s", 61), ("s", 61), ("s", 90_001), ("hold", 0)]),
).map(lambda step: (step[0], *step[1]))
FINAL_STEPS = st.sampled_from(
    [("done", "", 0), ("lost", "", 0), ("failed", "code", 3040), ("failed", "code", 5001)]
)
SCRIPTS = st.tuples(st.lists(WAITING_STEPS, min_size=1, max_size=3), FINAL_STEPS).map(
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

    def __init__(self, connection: HTTPConnection) -> None:
        super().__init__()
        self.connection = connection
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

    def ask(
        self, method: str, path: str, said: Any, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """The status of a reply, and what it says."""
        headers = {"Authorization": "Bearer a", **(headers or {})}
        self.connection.request(method, path, json.dumps(said), headers)
        reply = self.connection.getresponse()
        body = reply.read()
        return reply.status, json.loads(body) if body else None

    def control(self, method: str, path: str, **said: Any) -> Any:
        """What the control plane answers where it carries something out."""
        status, told = self.ask(method, f"/__emulator__/{path}", {**said, "account_id": self.account_id})
        assert status in {200, 204}, told
        return told

    def send(self, model: str, inputs: Any, *, script: list[Step] | None = None, queue: bool = False) -> Any:
        """POST to a model; the result, or the code of the refusal."""
        path = f"/client/v4/accounts/{self.account_id}/ai/run/{model}{'?queueRequest=true' if queue else ''}"
        headers = {} if script is None else {"x-emulator-script": written(script)}
        status, told = self.ask("POST", path, inputs, headers)
        assert told["success"] == (status == 200)
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
    @rule(target=batches, model=MODELS, items=st.integers(1, 3), asked=SCRIPTS | st.none())
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

    @rule(wanted=batches, times=st.integers(1, 4))
    def poll(self, wanted: str, times: int) -> None:
        for _ in range(times):
            self.poll_once(wanted)

    def poll_once(self, wanted: str) -> None:
        batch = self.known.get(wanted)
        model = M3 if batch is None else batch.model
        result = self.send(model, {"request_id": wanted})
        fired = None if batch and batch.ended_by_hand and not batch.forgotten else self.fired("poll", model)
        expected = fired.code if fired else self.polled(batch)
        if isinstance(expected, int):
            assert result == expected
        elif expected != "done":
            assert result == {"status": expected, "request_id": wanted}
        else:
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
            shown = self.control("GET", "clock")["now"]
            assert datetime.fromisoformat(shown) == START + timedelta(seconds=self.now)
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

    @rule(
        seconds=st.sampled_from([0, 61, 61, DAY - 61, DAY]),
        by=st.booleans(),
        jump=st.sampled_from([None, None, True, False]),
    )
    def move_clock(self, seconds: int, by: bool, jump: bool | None) -> None:
        self.now += seconds
        self.jumps = self.jumps if jump is None else jump
        moment = START + timedelta(seconds=self.now)
        said: dict[str, Any] = {"advance": f"{seconds}s"} if by else {"now": moment.isoformat()}
        shown = self.control("POST", "clock", **said, **({} if jump is None else {"jump": jump}))
        assert datetime.fromisoformat(shown["now"]) == moment
        assert (shown["frozen"], shown["jump"]) == (True, self.jumps)

    @precondition(lambda self: sum(added.left != 0 for added in self.added) < 2)
    @rule(
        target=added_rules,
        operation=OPERATIONS,
        model=st.none() | MODELS,
        effect=st.sampled_from([3021, 3040, 4006]) | SCRIPTS,
        times=st.sampled_from([1, 1, 2, None]),
    )
    def add_rule(
        self, operation: str | None, model: str | None, effect: int | list[Step], times: int | None
    ) -> str:
        code, script = (effect, None) if isinstance(effect, int) else (None, effect)
        said = {"error": code} if script is None else {"script": written(script)}
        match = {"operation": operation, "model": model}
        shown = self.control("POST", "rules", match=match, effect=said, times=times)
        self.added.append(Rule(shown["id"], operation, model, code, script, times))
        return self.added[-1].rule_id

    @rule(rule_id=consumes(added_rules))
    def delete_rule(self, rule_id: str) -> None:
        known = [added for added in self.added if added.rule_id == rule_id]
        said = {"account_id": self.account_id}
        status, _ = self.ask("DELETE", f"/__emulator__/rules/{rule_id}", said)
        assert status == (204 if known else 404)
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
        status, told = self.ask("POST", f"/__emulator__/batches/{wanted}", said)
        if batch is None or batch.forgotten or self.now >= batch.kept_until():
            assert status == 404
            return
        if action == "go-on" and batch.waiting:
            batch.enter(batch.place + 1, self.now)
        elif action == "hold" and batch.waiting:
            batch.steps[batch.place] = (batch.state, "hold", 0)
        elif action in {"lose", "fail"}:
            batch.end(("lost", "", 0) if action == "lose" else ("failed", "code", 3050), self.now)
        assert told["state"] == batch.state
        self.poll_once(wanted)

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
                "bytes": len(json.dumps({"requests": [{"text": "a"}] * batch.items})),
                "polls": batch.polls,
                "submitted_at": (START + timedelta(seconds=batch.submitted))
                .isoformat()
                .replace("+00:00", ".000Z"),
            }
            for batch in self.known.values()
            if not batch.forgotten and self.now < batch.kept_until()
        ]
        assert self.control("GET", "batches")["batches"] == expected


@pytest.fixture(params=["memory", "file", "redis"])
def connection(
    request: pytest.FixtureRequest, new_state: Callable[[str], str | None]
) -> Iterator[HTTPConnection]:
    with Emulator(seed=3, state=new_state(request.param)) as emulator:
        connection = HTTPConnection(emulator.url.removeprefix("http://"), timeout=60)
        yield connection
        connection.close()


def test_account_lives_as_the_model_says(connection: HTTPConnection, request: pytest.FixtureRequest) -> None:
    share = 2 / 3 if "memory" in request.node.name else 1 / 8
    chosen = settings(max_examples=int(settings().max_examples * share), stateful_step_count=40)
    run_state_machine_as_test(lambda: Account(connection), settings=chosen)  # type: ignore[arg-type]  # any maker
