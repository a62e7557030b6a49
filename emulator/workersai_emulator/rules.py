"""Rules: match → effect, the one way in which anything out of the ordinary is made to happen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from workersai_contracts import model as card_of
from workersai_emulator.effects import (
    OPERATIONS,
    Effect,
    Operation,
    OutputEffect,
    StreamEffect,
    happens_to,
    is_share,
    no_others,
    read_effect,
)
from workersai_emulator.json_text import dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Chance = Callable[[str, int], float]


class Match(NamedTuple):
    """Which requests a rule is for; what is left out matches all.

    `text` is looked for in every string of the inputs. `nth` takes the one request of that number among those
    that match otherwise, `every` each so-manyeth.
    """

    operation: Operation | None = None
    model: str | None = None
    text: str | None = None
    nth: int | None = None
    every: int | None = None

    def as_json(self) -> dict[str, Any]:
        """As the control plane spells it."""
        fields = ("operation", "model", "text", "nth", "every")
        return {name: value for name in fields if (value := getattr(self, name)) is not None}


@dataclass(slots=True, eq=False)
class Rule:
    """A match, an effect, and how often: `times`, or with a `probability`; without either until deleted.

    `scenario` names the scenario that it is part of, if any.
    """

    id: str
    match: Match
    effect: Effect
    times: int | None = None
    probability: float | None = None
    scenario: str | None = None
    seen: int = 0
    fired: int = 0

    def as_json(self) -> dict[str, Any]:
        """As the control plane shows it, with how often it fired."""
        shown: dict[str, Any] = {
            "id": self.id,
            "match": self.match.as_json(),
            "effect": self.effect.as_json(),
        }
        if self.times is not None:
            shown["times"] = self.times
        if self.probability is not None:
            shown["probability"] = self.probability
        if self.scenario is not None:
            shown["scenario"] = self.scenario
        return {**shown, "fired": self.fired}


class Rules:
    """The rules of one account, of the server, or of one request, in the order in which they came.

    `whose` begins their ids, so that the journal can tell them apart.
    """

    def __init__(self, whose: str = "") -> None:
        self._whose = whose
        self._rules: dict[str, Rule] = {}
        self._made = 0

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules.values())

    def __len__(self) -> int:
        return len(self._rules)

    def add(self, said: object, *, scenario: str | None = None) -> Rule:
        """Keep a rule spelled as the control plane spells it. ValueError names the part at fault."""
        match, effect, times, probability = _read(said)
        self._made += 1
        rule = Rule(f"{self._whose}rule-{self._made}", match, effect, times, probability, scenario)
        self._rules[rule.id] = rule
        return rule

    def said(self) -> dict[str, Any]:
        """All rules, and how many there ever were, as JSON that `take` reads; not how often each was counted."""
        return {"made": self._made, "rules": [rule.as_json() for rule in self]}

    def take(self, said: Mapping[str, Any]) -> None:
        """Have these rules and no others, uncounted. ValueError names the part at fault."""
        self._made, self._rules = said["made"], {}
        for one in said["rules"]:
            spelled = {key: value for key, value in one.items() if key not in {"id", "fired", "scenario"}}
            self._rules[one["id"]] = Rule(one["id"], *_read(spelled), one.get("scenario"))

    def counts(self) -> dict[str, Any]:
        """How often each rule was seen and fired, as JSON that `go_on` reads."""
        return {rule.id: [rule.seen, rule.fired] for rule in self if rule.seen}

    def go_on(self, counts: Mapping[str, Any]) -> None:
        """Go on from what was counted of these rules."""
        for rule in self:
            rule.seen, rule.fired = counts.get(rule.id, (0, 0))

    def delete(self, rule_id: str) -> bool:
        """Forget a rule; False when there was none of that id."""
        return self._rules.pop(rule_id, None) is not None

    def end_scenario(self, name: str) -> bool:
        """Forget the rules of a scenario; False when there were none."""
        ended = [rule.id for rule in self if rule.scenario == name]
        for rule_id in ended:
            del self._rules[rule_id]
        return bool(ended)

    def clear(self) -> None:
        """Forget all."""
        self._rules.clear()

    def fire(self, operation: Operation, model: str, inputs: object, chance: Chance) -> Rule | None:
        """The newest rule that is for this request, counted as fired; None where none is.

        `chance(rule_id, occasion)` gives a number in [0, 1), for rules with a probability. What a batch's items
        answer is not decided here: see `fire_for_item`.
        """
        by_item = operation == "submit" or (isinstance(inputs, dict) and "requests" in inputs)
        for rule in reversed(self._rules.values()):
            if by_item and isinstance(rule.effect, OutputEffect):
                continue
            if _misses(rule, operation, model, inputs) == [] and _is_due(rule, chance):
                rule.fired += 1
                return rule
        return None

    def fire_for_item(
        self, operation: Operation, model: str, item: object, chance: Chance
    ) -> tuple[str, bytes] | None:
        """The newest rule that says what this item of a batch is answered, counted: its id, and the answer as JSON.

        None where none does.
        """
        for rule in reversed(self._rules.values()):
            if not isinstance(rule.effect, OutputEffect) or _misses(rule, operation, model, item):
                continue
            if _is_due(rule, chance):
                rule.fired += 1
                return rule.id, dumps(rule.effect.output)
        return None

    @property
    def have_outputs(self) -> bool:
        """Whether there is any rule that says what a model answers."""
        return any(isinstance(rule.effect, OutputEffect) for rule in self)

    def nearly(self, operation: Operation, model: str, inputs: object) -> str:
        """The rule that missed this request by one thing, and by what; empty where there is none."""
        for rule in reversed(self._rules.values()):
            misses = _misses(rule, operation, model, inputs)
            if len(misses) == 1:
                return f"{rule.id} {misses[0]}"
        return ""


def _misses(rule: Rule, operation: Operation, model: str, inputs: object) -> list[str]:
    """What keeps a rule from being for a request, each in a few words."""
    match, misses = rule.match, []
    if match.operation is not None and match.operation != operation:
        misses.append(f"is for operation {match.operation}, not {operation}")
    elif operation not in (possible := happens_to(rule.effect)):
        misses.append(f"has an effect on {' and '.join(sorted(possible))}, not on a {operation}")
    if isinstance(rule.effect, StreamEffect) and not (
        isinstance(inputs, dict) and inputs.get("stream") is True
    ):
        misses.append("is for a stream")
    if match.model is not None and match.model != model:
        misses.append(f"is for model {match.model}")
    if match.text is not None and not mentions(inputs, match.text):
        misses.append(f"is for the text {match.text!r}")
    return misses


def _is_due(rule: Rule, chance: Chance) -> bool:
    if rule.times is not None and rule.fired >= rule.times:
        return False
    rule.seen += 1
    if rule.match.nth is not None and rule.seen != rule.match.nth:
        return False
    if rule.match.every is not None and rule.seen % rule.match.every:
        return False
    return rule.probability is None or chance(rule.id, rule.seen) < rule.probability


def mentions(value: object, text: str) -> bool:
    """Whether a text is in any string of a JSON value."""
    to_look_at = [value]
    while to_look_at:
        value = to_look_at.pop()
        if isinstance(value, str):
            if text in value:
                return True
        elif isinstance(value, list):
            to_look_at.extend(value)
        elif isinstance(value, dict):
            to_look_at.extend(value.values())
    return False


def _read(said: object) -> tuple[Match, Effect, int | None, float | None]:
    if not isinstance(said, dict):
        raise ValueError(
            'rule: give a JSON object such as {"match":{"operation":"poll"},"effect":{"error":3040}}'
        )
    no_others(said, "rule", ("match", "effect", "times", "probability"))
    probability = said.get("probability")
    if probability is not None and not is_share(probability):
        raise ValueError(f"probability: {probability!r} is not a number from 0 to 1")
    return _match(said.get("match", {})), read_effect(said.get("effect")), _count(said, "times"), probability


def _match(said: object) -> Match:
    if not isinstance(said, dict):
        raise ValueError("match: give a JSON object")
    no_others(said, "match", ("operation", "model", "text", "nth", "every"))
    operation = said.get("operation")
    if operation is not None and operation not in OPERATIONS:
        raise ValueError(f"match: operation is one of {', '.join(OPERATIONS)}, not {operation!r}")
    for key in ("model", "text"):
        if said.get(key) is not None and not isinstance(said[key], str):
            raise ValueError(f"match: {key} is a text, not {said[key]!r}")
    if said.get("model") is not None and card_of(said["model"]) is None:
        raise ValueError(f"match: {said['model']!r} is no model of this emulator")
    return Match(operation, said.get("model"), said.get("text"), _count(said, "nth"), _count(said, "every"))


def _count(said: Mapping[str, Any], key: str) -> int | None:
    value = said.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ValueError(f"{key}: {value!r} is not a number from 1 on")
    return value
