"""Calls: what a dialect asks of the domain, with no HTTP in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workersai_emulator.accounts import Account
    from workersai_emulator.effects import Operation
    from workersai_emulator.scripts import Script
    from workersai_emulator.settings import Settings

#: What of the catalogue is listed, in place of a run.
Listing = Literal["search", "schema", "tasks", "authors", "finetunes"]

#: What the inputs and the answer look like: the model's own form, or one of OpenAI's three.
Form = Literal["native", "chat", "responses", "embeddings"]


@dataclass(slots=True, eq=False)
class Trace:
    """What decided a call: the rule that fired, or the one that nearly did, and what it assumes."""

    rule: str = ""
    nearly: str = ""
    assumptions: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Call:
    """One request to run a model, in any dialect: the inputs parsed, and as they came. Only its trace changes.

    `number` is that of the exchange among its account's. `queue` is the wish to queue the inputs, and `raw` says that
    the body was no JSON but the one input itself. `busy_refused` is the wish not to wait for capacity. `listing` asks
    for a part of the catalogue instead, and its inputs are the query. `script` and `scenario`, from headers of the
    request, are for it alone.
    """

    account: Account
    model: str
    inputs: Any
    body: bytes
    number: int = 0
    queue: bool = False
    form: Form = "native"
    raw: bool = False
    busy_refused: bool = False
    listing: Listing | None = None
    script: Script | None = None
    scenario: str | None = None
    trace: Trace = field(default_factory=Trace)

    @property
    def settings(self) -> Settings:
        """What holds for this call."""
        settings = self.account.settings
        return settings.assume(self.trace.assumptions) if self.trace.assumptions else settings

    @property
    def operation(self) -> Operation:
        """What is asked for: `request_id` is looked for before anything else. Fact: `poll.request`."""
        if self.listing is not None:
            return "models"
        if self.form != "native":
            return "run"
        if isinstance(self.inputs, dict) and isinstance(self.inputs.get("request_id"), str):
            return "poll"
        return "submit" if self.queue else "run"

    @property
    def wants_stream(self) -> bool:
        """Whether a text is to come in events. Fact: `sync.text-generation`."""
        return isinstance(self.inputs, dict) and self.inputs.get("stream") is True
