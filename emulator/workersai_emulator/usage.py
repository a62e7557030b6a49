"""Usage: the neurons and tokens of an account's day, by model, and what they would have cost; and its minute.

A day is a UTC day on the account's own clock, a minute one of its minutes. Facts: `limits.neurons`, `limits.prices`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from workersai_contracts import ModelCard

ALLOCATION = 10_000
USD_PER_NEURON = 0.011 / 1000
_DAY_SECONDS = 86_400
_MINUTE_SECONDS = 60
_MILLION = 1_000_000

Plan = Literal["free", "paid"]
PLANS: tuple[Plan, ...] = ("free", "paid")


class ModelUsage(NamedTuple):
    """What one model was used for: runs and batches, their tokens, and their neurons.

    `unpriced` says that nothing is published of the model's rate, and that its neurons count 0.
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    neurons: float = 0.0
    unpriced: bool = False

    def __add__(self, other: ModelUsage) -> ModelUsage:  # type: ignore[override]  # two tuples are not joined
        return ModelUsage(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.neurons + other.neurons,
            self.unpriced or other.unpriced,
        )

    def as_json(self) -> dict[str, Any]:
        """As the control plane shows it."""
        shown: dict[str, Any] = {
            "requests": self.requests,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "neurons": round(self.neurons, 6),
        }
        return {**shown, "unpriced": True} if self.unpriced else shown


class DayTotal(NamedTuple):
    """A day of use. `cost_usd` is what a live account would pay on the paid plan beyond the free allocation.

    `day` is its date, `allocation` the neurons that are free in it, and `left` what is left of them.
    """

    day: str
    plan: Plan = "free"
    allocation: int = ALLOCATION
    neurons: float = 0.0
    cost_usd: float = 0.0
    models: Mapping[str, ModelUsage] = {}

    @classmethod
    def of(
        cls, day: str, plan: Plan, models: Mapping[str, ModelUsage], allocation: int = ALLOCATION
    ) -> DayTotal:
        """The total of what models were used for. Facts: `limits.neurons`, `limits.prices`."""
        neurons = _neurons(models)
        cost = max(0.0, neurons - allocation) * USD_PER_NEURON if plan == "paid" else 0.0
        return cls(day, plan, allocation, round(neurons, 6), round(cost, 6), models)

    @property
    def left(self) -> float:
        """The neurons that are still free today."""
        return round(max(0.0, self.allocation - self.neurons), 6)

    @classmethod
    def read(cls, shown: Mapping[str, Any]) -> DayTotal:
        """Read what the control plane shows."""
        models = {name: ModelUsage(**used) for name, used in shown["models"].items()}
        said = {key: value for key, value in shown.items() if key != "left"}
        return cls(**{**said, "models": models})

    def as_json(self) -> dict[str, Any]:
        """As the control plane shows it."""
        return {
            "day": self.day,
            "plan": self.plan,
            "allocation": self.allocation,
            "neurons": self.neurons,
            "left": self.left,
            "cost_usd": self.cost_usd,
            "models": {name: used.as_json() for name, used in self.models.items()},
        }


class DayUsage:
    """The count of one account, begun anew at each midnight UTC that its clock passes."""

    __slots__ = ("_day", "_models", "_now")

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._day = 0
        self._models: dict[str, ModelUsage] = {}

    def add(self, card: ModelCard, prompt_tokens: int, completion_tokens: int) -> None:
        """Count one run that succeeded, or a batch whose result was read for the first time.

        Facts: `limits.neurons`, `settled.neurons`.
        """
        neurons = neurons_of(card, prompt_tokens, completion_tokens)
        used = ModelUsage(1, prompt_tokens, completion_tokens, neurons or 0.0, neurons is None)
        today = self.today
        today[card.name] = today.get(card.name, ModelUsage()) + used

    @property
    def neurons(self) -> float:
        """The neurons of today, all models together."""
        return _neurons(self.today)

    @property
    def today(self) -> dict[str, ModelUsage]:
        """What was used today, by model."""
        day = int(self._now() // _DAY_SECONDS)
        if day != self._day:
            self._day, self._models = day, {}
        return self._models

    def counts(self) -> list[Any]:
        """The day and what was used in it, as JSON that `go_on` reads."""
        return [self._day, {name: [*used] for name, used in self._models.items()}]

    def go_on(self, counts: Sequence[Any]) -> None:
        """Go on from what was counted."""
        self._day, models = counts
        self._models = {name: ModelUsage(*used) for name, used in models.items()}


class MinuteCount:
    """The runs and submits of one account in the minute that its clock shows, by model. Fact: `settled.rate`."""

    __slots__ = ("_minute", "_now", "_taken")

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._minute = 0
        self._taken: dict[str, int] = {}

    def counts(self) -> list[Any]:
        """The minute and what came in it, as JSON that `go_on` reads."""
        return [self._minute, self._taken]

    def go_on(self, counts: Sequence[Any]) -> None:
        """Go on from what was counted."""
        self._minute, self._taken = counts[0], dict(counts[1])

    def take(self, model_name: str, most: int | None) -> bool:
        """Count one more of a model, unless the minute has as many as it may; says whether it was counted."""
        minute = int(self._now() // _MINUTE_SECONDS)
        if minute != self._minute:
            self._minute, self._taken = minute, {}
        taken = self._taken.get(model_name, 0)
        if most is not None and taken >= most:
            return False
        self._taken[model_name] = taken + 1
        return True


def date_of(now: float) -> str:
    """The UTC date at a moment, such as 2026-11-29."""
    return datetime.fromtimestamp(now, UTC).date().isoformat()


def together(days: Iterable[Mapping[str, ModelUsage]]) -> dict[str, ModelUsage]:
    """The use of several accounts as one."""
    total: dict[str, ModelUsage] = {}
    for models in days:
        for name, used in models.items():
            total[name] = total.get(name, ModelUsage()) + used
    return total


def _neurons(models: Mapping[str, ModelUsage]) -> float:
    return sum(used.neurons for used in models.values())


def neurons_of(card: ModelCard, prompt_tokens: int, completion_tokens: int) -> float | None:
    """What so many tokens cost; None where the model's price is not by tokens. Fact: `limits.prices`."""
    read, written = card.neurons_per_million_input, card.neurons_per_million_output
    if read is None and written is None:
        return None
    return (prompt_tokens * (read or 0.0) + completion_tokens * (written or 0.0)) / _MILLION
