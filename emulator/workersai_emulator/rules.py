"""Rules: match → effect, the one way in which anything out of the ordinary is made to happen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from workersai_contracts import ErrorRow, error
from workersai_emulator.clock import parse_duration
from workersai_emulator.scripts import Script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Operation = Literal["submit", "poll", "run"]
OPERATIONS: tuple[Operation, ...] = ("submit", "poll", "run")


@dataclass(frozen=True, slots=True)
class ErrorEffect:
    """The request is refused with a row of the catalogue; `retry_after` seconds go into a header."""

    row: ErrorRow
    retry_after: float | None = None

    def as_json(self) -> dict[str, Any]:
        """As the control plane spells it."""
        shown: dict[str, Any] = {"error": self.row.id}
        return shown if self.retry_after is None else {**shown, "retry_after": self.retry_after}


@dataclass(frozen=True, slots=True)
class ScriptEffect:
    """The batch that is submitted lives by this script."""

    script: Script

    def as_json(self) -> dict[str, Any]:
        """As the control plane spells it."""
        return {"script": str(self.script)}


Effect = ErrorEffect | ScriptEffect


@dataclass(frozen=True, slots=True)
class Match:
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


@dataclass(slots=True)
class Rule:
    """A match, an effect, and how often: `times`, or with a `probability`; without either until deleted."""

    id: str
    match: Match
    effect: Effect
    times: int | None = None
    probability: float | None = None
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
        return {**shown, "fired": self.fired}


class Rules:
    """The rules of one account, or of the server, in the order in which they came."""

    def __init__(self) -> None:
        self._rules: dict[str, Rule] = {}
        self._made = 0

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules.values())

    def __len__(self) -> int:
        return len(self._rules)

    def add(self, said: object) -> Rule:
        """Keep a rule spelled as the control plane spells it. ValueError names the part at fault."""
        match, effect, times, probability = _read(said)
        self._made += 1
        rule = Rule(f"rule-{self._made}", match, effect, times, probability)
        self._rules[rule.id] = rule
        return rule

    def delete(self, rule_id: str) -> bool:
        """Forget a rule; False when there was none of that id."""
        return self._rules.pop(rule_id, None) is not None

    def clear(self) -> None:
        """Forget all."""
        self._rules.clear()

    def fire(
        self, operation: Operation, model: str, inputs: object, chance: Callable[[str, int], float]
    ) -> Effect | None:
        """The effect of the newest rule that is for this request, counted as fired; None where none is.

        `chance(rule_id, occasion)` gives a number in [0, 1), for rules with a probability.
        """
        for rule in reversed(self._rules.values()):
            if _is_for(rule, operation, model, inputs) and _is_due(rule, chance):
                rule.fired += 1
                return rule.effect
        return None


def _is_for(rule: Rule, operation: Operation, model: str, inputs: object) -> bool:
    match = rule.match
    if match.operation not in {None, operation} or match.model not in {None, model}:
        return False
    if isinstance(rule.effect, ScriptEffect) and operation != "submit":
        return False
    return match.text is None or _mentions(inputs, match.text)


def _is_due(rule: Rule, chance: Callable[[str, int], float]) -> bool:
    if rule.times is not None and rule.fired >= rule.times:
        return False
    rule.seen += 1
    if rule.match.nth is not None and rule.seen != rule.match.nth:
        return False
    if rule.match.every is not None and rule.seen % rule.match.every:
        return False
    return rule.probability is None or chance(rule.id, rule.seen) < rule.probability


def _mentions(value: object, text: str) -> bool:
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
    _no_others(said, "rule", ("match", "effect", "times", "probability"))
    probability = said.get("probability")
    if probability is not None and (
        isinstance(probability, bool)
        or not isinstance(probability, (int, float))
        or not 0 <= probability <= 1
    ):
        raise ValueError(f"probability: {probability!r} is not a number from 0 to 1")
    return _match(said.get("match", {})), _effect(said.get("effect")), _count(said, "times"), probability


def _match(said: object) -> Match:
    if not isinstance(said, dict):
        raise ValueError("match: give a JSON object")
    _no_others(said, "match", ("operation", "model", "text", "nth", "every"))
    operation = said.get("operation")
    if operation is not None and operation not in OPERATIONS:
        raise ValueError(f"match: operation is one of {', '.join(OPERATIONS)}, not {operation!r}")
    for key in ("model", "text"):
        if said.get(key) is not None and not isinstance(said[key], str):
            raise ValueError(f"match: {key} is a text, not {said[key]!r}")
    return Match(operation, said.get("model"), said.get("text"), _count(said, "nth"), _count(said, "every"))


def _effect(said: object) -> Effect:
    if not isinstance(said, dict):
        raise ValueError('effect: give a JSON object, {"error":…} or {"script":…}')
    _no_others(said, "effect", ("error", "retry_after", "script"))
    if ("error" in said) == ("script" in said):
        raise ValueError("effect: give one of error and script")
    if "script" in said:
        if "retry_after" in said:
            raise ValueError("effect: retry_after goes with error")
        return ScriptEffect(Script.parse(said["script"]))
    try:
        row = error(said["error"])
    except (LookupError, TypeError) as unknown:
        raise ValueError(f"effect: error: {unknown.args[0]}") from None
    wait = said.get("retry_after")
    try:
        return ErrorEffect(row, None if wait is None else parse_duration(wait))
    except ValueError as fault:
        raise ValueError(f"effect: retry_after: {fault}") from None


def _count(said: dict[str, Any], key: str) -> int | None:
    value = said.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ValueError(f"{key}: {value!r} is not a number from 1 on")
    return value


def _no_others(said: dict[str, Any], place: str, keys: tuple[str, ...]) -> None:
    for key in said:
        if key not in keys:
            raise ValueError(f"{place}: there is no {key!r}; there are {', '.join(keys)}")
