"""The one door to the domain: a `Call` goes in, an `Outcome` comes out, or a refusal is raised.

Nothing here knows HTTP; every dialect of the wire comes through `Service.run`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from workersai_contracts import ModelCard, error, model
from workersai_emulator.accounts import Account, Accounts
from workersai_emulator.admission import admit, check_input
from workersai_emulator.batches import Batches
from workersai_emulator.finished import Finished
from workersai_emulator.ids import chance, completion_order
from workersai_emulator.inference import answers, cost
from workersai_emulator.json_text import loads
from workersai_emulator.refusals import Refused, refused_input
from workersai_emulator.rules import Effect, ErrorEffect, Operation, ScriptEffect
from workersai_emulator.scripts import Script, Step
from workersai_emulator.workbench import Workbench

if TYPE_CHECKING:
    from collections.abc import Callable

    from workersai_emulator.settings import Settings
    from workersai_emulator.store import Batch, Store

Made = TypeVar("Made")

LARGE_BODY = 256 * 1024
QUICK_TEXTS = 4


@dataclass(frozen=True, slots=True)
class Call:
    """One request to run a model, in any dialect: the inputs parsed, and as they came.

    `queue` is the wish to queue them. `script`, from a header of the request, is for the batch it makes.
    """

    account: Account
    model: str
    inputs: Any
    body: bytes
    queue: bool = False
    script: Script | None = None

    @property
    def operation(self) -> Operation:
        """What is asked for: `request_id` is looked for before anything else. Fact: `poll.request`."""
        if isinstance(self.inputs, dict) and isinstance(self.inputs.get("request_id"), str):
            return "poll"
        return "submit" if self.queue else "run"


@dataclass(frozen=True, slots=True)
class Queued:
    """A submit was taken. Fact: `batch.submit`."""

    request_id: str
    model: str


@dataclass(frozen=True, slots=True)
class Pending:
    """A batch waits. Fact: `poll.pending`."""

    status: str
    request_id: str


@dataclass(frozen=True, slots=True)
class FailedStatus:
    """A batch failed, told as a status. Fact: `batch.failed`, its alternative `status`."""

    error: str


@dataclass(frozen=True, slots=True)
class Result:
    """What the model answers, as JSON bytes."""

    json: bytes


Outcome = Queued | Pending | FailedStatus | Finished | Result


class Service:
    """Runs calls for all accounts over one store."""

    def __init__(self, store: Store, settings: Settings, seed: int) -> None:
        self.accounts = Accounts(settings)
        self.batches = Batches(store, seed)
        self.workbench = Workbench()
        self._seed = seed

    async def run(self, call: Call) -> Outcome:
        """Submit, poll or run. Raises Refused with the service's own words."""
        card = model(call.model)
        if card is None:
            raise Refused("model.unknown", model=call.model)
        operation = call.operation
        effect = await self._effect(call, operation)
        if isinstance(effect, ErrorEffect):
            raise Refused(effect.row, retry_after=effect.retry_after, model=call.model)
        if operation == "poll":
            return await self._poll(call, card)
        if operation == "submit":
            return await self._submit(call, card, effect)
        return await self._run(call, card)

    def close(self) -> None:
        """End the worker thread."""
        self.workbench.close()

    async def _effect(self, call: Call, operation: Operation) -> Effect | None:
        """The effect of the one rule that fires. A batch that was ended by hand goes before every rule."""
        account = call.account
        if not any(account.rule_sets):
            return None
        if operation == "poll":
            batch = await self.batches.store.get((account.id, call.inputs["request_id"]))
            if batch is not None and batch.life.decided:
                return None
        drawn = partial(chance, self._seed, account.id)
        fired = (rules.fire(operation, call.model, call.inputs, drawn) for rules in account.rule_sets)
        return next((effect for effect in fired if effect is not None), None)

    async def _submit(self, call: Call, card: ModelCard, effect: Effect | None) -> Queued:
        """Facts: `batch.submit`, `batch.unsupported`, `model.queue`."""
        settings = call.account.settings
        queues = settings.assumed("model.queue") == "queued" if card.queue is None else card.queue
        if not queues:
            raise Refused("model.no-queue")
        admission = partial(admit, card, call.inputs, settings)
        admitted = await self._aside(admission, large=len(call.body) > LARGE_BODY)
        script = settings.script_for(card.name)
        if isinstance(effect, ScriptEffect):
            script = effect.script
        batch = await self.batches.submit(
            call.account,
            card.name,
            call.body,
            _runnable(call.script or script, runs=admitted.runs),
            form=admitted.form,
            items=admitted.items,
        )
        return Queued(batch.request_id, batch.model)

    async def _poll(self, call: Call, card: ModelCard) -> Outcome:
        """Facts: `poll.pending`, `poll.done`, `batch.failed`, `poll.unknown`."""
        account, wanted = call.account, call.inputs["request_id"]
        batch = await self.batches.poll(account, wanted, card.name)
        if batch is None:
            return self._unknown(account.settings, wanted)
        if batch.life.waiting:
            return Pending(batch.life.state, batch.request_id)
        if batch.life.state == "failed":
            return self._failed(account.settings, batch)
        return await self._finished(account, batch)

    def _unknown(self, settings: Settings, wanted: str) -> Pending:
        answer = settings.assumed("poll.unknown")
        if answer == "queued":
            return Pending("queued", wanted)
        row = error("poll.unknown")
        raise Refused(row if answer == "refused" else replace(row, status=404))

    def _failed(self, settings: Settings, batch: Batch) -> FailedStatus:
        refused = Refused(error(batch.life.step.error or "batch.failed"), model=batch.model)
        if settings.assumed("batch.failed") == "status":
            return FailedStatus(refused.message())
        raise refused

    async def _finished(self, account: Account, batch: Batch) -> Outcome:
        payload = await self.batches.store.payload(batch.key)
        card = model(batch.model)
        if payload is None or card is None:
            return self._unknown(account.settings, batch.request_id)
        inputs = await self._aside(partial(loads, payload), large=batch.size > LARGE_BODY)
        if batch.form == "requests":
            return self._told(card, inputs["requests"], batch.request_id, account.settings)
        if account.settings.assumed("submit.bare") == "batch":
            return self._told(card, [inputs], batch.request_id, account.settings)
        return Result(await self._answer(card, inputs))

    async def _run(self, call: Call, card: ModelCard) -> Outcome:
        """Facts: `batch.query.body`, `submit.no-query`."""
        settings = call.account.settings
        large = len(call.body) > LARGE_BODY
        if not isinstance(call.inputs, dict) or "requests" not in call.inputs:
            await self._aside(partial(check_input, card, call.inputs, settings), large=large)
            return Result(await self._answer(card, call.inputs))
        if settings.assumed("submit.no-query") == "refused":
            raise refused_input("Additional or unevaluated properties '/requests' at '/' not allowed")
        admitted = await self._aside(partial(admit, card, call.inputs, settings), large=large)
        if not admitted.runs:
            raise Refused("batch.invalid")
        return self._told(card, call.inputs["requests"], call.body, settings)

    async def _answer(self, card: ModelCard, inputs: dict[str, Any]) -> bytes:
        job = partial(answers, card, [inputs])
        answer = await self._aside(job, large=cost(card, inputs) > QUICK_TEXTS)
        return answer[0].result

    def _told(
        self, card: ModelCard, requests: list[Any], drawn_from: str | bytes, settings: Settings
    ) -> Finished:
        """The items in the order in which they got done. Fact: `done.order`."""
        in_order = settings.assumed("done.order") == "request"
        order = range(len(requests)) if in_order else completion_order(drawn_from, len(requests))
        return Finished(card, requests, order, settings, self.workbench)

    async def _aside(self, job: Callable[[], Made], *, large: bool) -> Made:
        return await self.workbench.make(job) if large else job()


def _runnable(script: Script, *, runs: bool) -> Script:
    """The script of a batch whose run the model's server will refuse: it fails where it would be done.

    Facts: `batch.bare`, `batch.invalid`.
    """
    if runs or script.steps[-1].state != "done":
        return script
    return Script((*script.steps[:-1], Step("failed", error="batch.invalid")))
