"""Settings: the lowest rules, said for the whole server and, over that, for one account."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from workersai_contracts import assumptions, model
from workersai_emulator.scripts import Script
from workersai_emulator.usage import PLANS, Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workersai_contracts import ModelCard

MEGABYTE = 1_000_000

#: A number, None for no limit, or the service's own figure.
Limit = int | Literal["documented"] | None
DOCUMENTED: Final = "documented"

LIMITS = {
    "payload_bytes": "a submit's body is refused from this size on (Fact: `batch.limit`)",
    "body_bytes": "any other body is refused from this size on (Fact: `body.limit`)",
    "requests_per_minute": "more runs and submits of a model in a minute are refused "
    "(Facts: `limits.rate`, `settled.rate`)",
    "daily_neurons": "on the free plan, runs and submits are refused when the day has used so many neurons, and models "
    "of the paid plan always (Facts: `limits.neurons`, `plan.paid`)",
    "text_tokens": "a longer text for bge-m3 is refused (Fact: `models.context`)",
    "call_tokens": "bge-m3 is refused more, as texts times the longest (Fact: `models.context`)",
    "context_tokens": "what a text model reads and may write is refused beyond it (Fact: `context.window`)",
}

#: Off where a test would be surprised by what its clock does, or does not.
_DEFAULTS: Final[Mapping[str, Limit]] = {
    **dict.fromkeys(LIMITS, DOCUMENTED),
    "requests_per_minute": None,
    "daily_neurons": None,
}

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})

KEYS = ("script", "scripts", "assumptions", "limits", "plan", "worker_binding")


class Settings(NamedTuple):
    """What holds where no rule says otherwise; what one layer leaves out, the layer below it says."""

    script: Script | None = None
    scripts: Mapping[str, Script] = _NOTHING
    assumptions: Mapping[str, str] = _NOTHING
    limits: Mapping[str, Limit] = _NOTHING
    plan: Plan | None = None
    worker_binding: bool | None = None

    @classmethod
    def parse(cls, said: object) -> Settings:
        """Read settings as the control plane and the configuration spell them; ValueError names the key."""
        if not isinstance(said, dict):
            raise ValueError("settings: give a JSON object")
        for key in said:
            if key not in KEYS:
                raise ValueError(f"settings: there is no {key!r}; there are {', '.join(KEYS)}")
        binding = said.get("worker_binding")
        if binding is not None and not isinstance(binding, bool):
            raise ValueError("worker_binding: give true or false")
        return cls(
            script=Script.parse(said["script"]) if said.get("script") is not None else None,
            scripts={_model(name): Script.parse(text) for name, text in _object(said, "scripts").items()},
            assumptions={key: alternative(key, value) for key, value in _object(said, "assumptions").items()},
            limits={key: _limit(key, value) for key, value in _object(said, "limits").items()},
            plan=_plan(said.get("plan")),
            worker_binding=binding,
        )

    def said(self) -> dict[str, Any]:
        """What these settings say and nothing else, as JSON that `parse` reads."""
        said: dict[str, Any] = {
            "script": None if self.script is None else str(self.script),
            "scripts": {name: str(script) for name, script in self.scripts.items()},
            "assumptions": dict(self.assumptions),
            "limits": dict(self.limits),
            "plan": self.plan,
            "worker_binding": self.worker_binding,
        }
        return {key: value for key, value in said.items() if value is not None and value != {}}

    def over(self, below: Settings) -> Settings:
        """These settings with what they leave out taken from the layer below."""
        return Settings(
            script=self.script or below.script,
            scripts={**below.scripts, **self.scripts},
            assumptions={**below.assumptions, **self.assumptions},
            limits={**below.limits, **self.limits},
            plan=self.plan or below.plan,
            worker_binding=below.worker_binding if self.worker_binding is None else self.worker_binding,
        )

    def script_for(self, model_name: str) -> Script:
        """The script of a batch of this model: the model's own, or the general one."""
        return self.scripts.get(model_name) or self.script or Script.parse("default")

    def queues(self, card: ModelCard) -> bool:
        """Whether a model takes batches. Fact: `model.queue`."""
        return self.assumed("model.queue") == "queued" if card.queue is None else card.queue

    def assume(self, chosen: Mapping[str, str]) -> Settings:
        """These settings with some open facts answered otherwise."""
        return self._replace(assumptions={**self.assumptions, **chosen})

    def assumed(self, fact_id: str) -> str:
        """Which alternative of an open fact holds."""
        return self.assumptions.get(fact_id) or assumptions()[fact_id].default

    def limit(self, name: str, documented: int | None) -> int | None:
        """The limit of this name that holds, given the service's own; None for none."""
        said = self.limits.get(name, _DEFAULTS[name])
        return documented if isinstance(said, str) else said

    @property
    def payload_bytes(self) -> int | None:
        """The size from which on a submit's body is too large. Facts: `batch.limit`, `submit.too-large`."""
        decimal = self.assumed("submit.too-large") == "decimal"
        return self.limit("payload_bytes", 10 * MEGABYTE if decimal else 10 * 2**20)

    @property
    def body_bytes(self) -> int | None:
        """The size from which on any other body is too large. Fact: `body.limit`."""
        return self.limit("body_bytes", 25 * MEGABYTE if self.assumed("body.limit") == "25 MB" else None)

    def as_json(self) -> dict[str, Any]:
        """Every setting with what it is now, spelled as `parse` reads it."""
        return {
            "script": str(self.script or Script.parse("default")),
            "scripts": {name: str(script) for name, script in self.scripts.items()},
            "assumptions": {fact_id: self.assumed(fact_id) for fact_id in assumptions()},
            "limits": {
                **_DEFAULTS,
                **self.limits,
                "payload_bytes": self.payload_bytes,
                "body_bytes": self.body_bytes,
            },
            "plan": self.plan or "free",
            "worker_binding": self.worker_binding is not False,
        }


def _object(said: dict[str, Any], key: str) -> dict[str, Any]:
    value = said.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{key}: give a JSON object")
    return value


def _model(name: str) -> str:
    if model(name) is None:
        raise ValueError(f"scripts: {name!r} is no model of this emulator")
    return name


def alternative(fact_id: str, chosen: object, place: str = "assumptions") -> str:
    """The alternative that is chosen for an open fact. Raises ValueError that names the place and what there is."""
    fact = assumptions().get(fact_id)
    if fact is None:
        raise ValueError(f"{place}: {fact_id!r} is no open fact; those are {', '.join(assumptions())}")
    if not isinstance(chosen, str) or chosen not in fact.alternatives:
        raise ValueError(f"{place}: {fact_id} is one of {', '.join(fact.alternatives)}, not {chosen!r}")
    return chosen


def _plan(name: object) -> Plan | None:
    chosen = next((plan for plan in PLANS if plan == name), None)
    if name is not None and chosen is None:
        raise ValueError(f"plan: {name!r} is not one of {', '.join(PLANS)}")
    return chosen


def _limit(name: str, amount: object) -> Limit:
    if name not in LIMITS:
        raise ValueError(f"limits: there is no {name!r}; there are {', '.join(LIMITS)}")
    if amount is None or amount == "none":
        return None
    if amount == DOCUMENTED:
        return DOCUMENTED
    if isinstance(amount, bool) or not isinstance(amount, int) or amount < 1:
        raise ValueError(
            f"limits: {name} is a number from 1 on, none (null in JSON) or documented, not {amount!r}"
        )
    return amount
