"""Scenarios: named lists of rules, for what production is known to throw at a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from workersai_emulator.effects import OPERATIONS
from workersai_emulator.rules import Rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PAGE = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"


class Scenario(NamedTuple):
    """A list of rules with what it touches and what a client sees of it, each in a few words."""

    name: str
    touches: str
    sees: str
    rules: Sequence[Mapping[str, Any]]

    def as_json(self) -> dict[str, Any]:
        """As the control plane shows it."""
        return {"name": self.name, "touches": self.touches, "sees": self.sees, "rules": list(self.rules)}


def _on(operation: str, **effect: Any) -> dict[str, Any]:
    return {"match": {"operation": operation}, "effect": effect}


def _new_work(**effect: Any) -> list[dict[str, Any]]:
    """Runs and submits alike; polls are not counted, nor charged (Fact: `poll.rate`)."""
    return [_on("run", **effect), _on("submit", **effect)]


_ALL = (
    Scenario(
        "out-of-capacity",
        "runs and submits",
        "runs are refused with 429/3040; batches are taken, and wait until told to go on",
        [_on("run", error="capacity"), _on("submit", script="queued:hold, running:1, done")],
    ),
    Scenario(
        "busy",
        "runs",
        "no capacity for two seconds: runs wait for it, and with rejectIfBusy are refused at once with 429/3040",
        [_on("run", busy="2s")],
    ),
    Scenario("rate-limited", "runs and submits", "429/3021, worth retrying", _new_work(error="rate.minute")),
    Scenario(
        "daily-limit",
        "runs and submits",
        "429/4006, final until midnight UTC",
        _new_work(error="quota.daily"),
    ),
    Scenario("payload-too-large", "submits", "413/3006", [_on("submit", error="request.too-large")]),
    Scenario(
        "batch-failed",
        "submits",
        "batches fail, one after the other in each way: 500/5001, 400/3030, 413/5021, 429/3040; then 5001 again",
        [
            _on("submit", script="queued:1, running:1, failed"),
            *(
                {
                    "match": {"operation": "submit", "nth": 1},
                    "times": 1,
                    "effect": {"script": f"queued:1, running:1, failed:{row}"},
                }
                for row in ("capacity", "context.window", "batch.invalid", "batch.failed")
            ),
        ],
    ),
    Scenario(
        "stuck",
        "submits",
        "batches stay running until told to go on",
        [_on("submit", script="queued:1, running:hold, done")],
    ),
    Scenario(
        "lost",
        "submits",
        "after one poll the request_id is unknown",
        [_on("submit", script="queued:1, lost")],
    ),
    Scenario(
        "expired",
        "polls",
        "a finished batch can be read once; then its request_id is unknown",
        [_on("poll", assume={"poll.retention": "once"})],
    ),
    Scenario(
        "item-failures",
        "submits",
        "about a third of a batch's items fail with 3030; the poll itself succeeds",
        [_on("submit", items={"share": 0.34, "code": "model.context"})],
    ),
    Scenario(
        "out-of-order",
        "polls",
        "items come in completion order, whatever the settings say",
        [_on("poll", assume={"done.order": "shuffled"})],
    ),
    Scenario(
        "flaky-network",
        "everything",
        "one request in three meets a connection that is reset before or after it was taken, or a reply cut short",
        [
            {"match": {"operation": operation}, "probability": share, "effect": {"transport": spoiling}}
            for operation in OPERATIONS
            for spoiling, share in (("truncate", 0.11), ("reset-after", 0.12), ("reset-before", 0.14))
        ],
    ),
    Scenario(
        "duplicate-submit",
        "submits",
        "the submit is taken, and its reply is lost: who sends it again has two batches",
        [_on("submit", transport="reset-after")],
    ),
    Scenario(
        "slow", "everything", "every reply takes two seconds more", [{"match": {}, "effect": {"delay": "2s"}}]
    ),
    Scenario("model-deprecated", "runs and submits", "410/5028", _new_work(error="model.deprecated")),
    Scenario("not-batch-capable", "submits", "400/8007", [_on("submit", error="model.no-queue")]),
    Scenario(
        "bad-gateway",
        "everything",
        "502 with a page of HTML",
        [
            {
                "match": {},
                "effect": {"reply": {"status": 502, "headers": {"content-type": "text/html"}, "body": PAGE}},
            }
        ],
    ),
    Scenario("paid-only", "runs and submits", "403/5035", _new_work(error="plan.paid")),
)
SCENARIOS: Mapping[str, Scenario] = {scenario.name: scenario for scenario in _ALL}


def scenario(name: str) -> Scenario:
    """The scenario of that name. Raises LookupError that names what there is."""
    found = SCENARIOS.get(name)
    if found is None:
        raise LookupError(f"no scenario {name!r}; there are {', '.join(SCENARIOS)}")
    return found


def begin_scenario(rules: Rules, name: str, times: int | None = None) -> Scenario:
    """Add a scenario's rules, each for so many times where it is said. Raises LookupError for an unknown one."""
    found = scenario(name)
    for rule in found.rules:
        rules.add(rule if times is None else {**rule, "times": times}, scenario=name)
    return found


def scenario_rules(name: str) -> Rules:
    """A scenario's rules by themselves, for one request."""
    rules = Rules("request-")
    begin_scenario(rules, name)
    return rules
