"""The one door to the domain: a `Call` goes in, an `Outcome` comes out, or a refusal is raised.

Nothing here knows HTTP; every dialect of the wire comes through `Service.run`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from workersai_contracts import ModelCard, error, model
from workersai_emulator.accounts import Account, Accounts
from workersai_emulator.admission import admit, check_input
from workersai_emulator.batches import Batches
from workersai_emulator.clock import pause
from workersai_emulator.effects import (
    AssumeEffect,
    DelayEffect,
    ErrorEffect,
    ItemsEffect,
    Operation,
    OutputEffect,
    ReplyEffect,
    ScriptEffect,
    Spoiling,
    TransportEffect,
)
from workersai_emulator.finished import Finished
from workersai_emulator.ids import chance, completion_order
from workersai_emulator.inference import Usage, answers, cost
from workersai_emulator.json_text import dumps, loads
from workersai_emulator.refusals import Refused, refused_input
from workersai_emulator.rules import Rule, Rules, mentions
from workersai_emulator.scenarios import scenario_rules
from workersai_emulator.scripts import Script, Step
from workersai_emulator.workbench import Workbench

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from workersai_emulator.effects import Effect
    from workersai_emulator.settings import Settings
    from workersai_emulator.store import Batch, Store

Made = TypeVar("Made")

LARGE_BODY = 256 * 1024
QUICK_TEXTS = 4
MANY_ITEMS = 500


@dataclass(slots=True)
class Trace:
    """What decided a call: the rule that fired, or the one that nearly did, and what it assumes."""

    rule: str = ""
    nearly: str = ""
    assumptions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    """One request to run a model, in any dialect: the inputs parsed, and as they came.

    `queue` is the wish to queue them. `script` and `scenario`, from headers of the request, are for it alone.
    """

    account: Account
    model: str
    inputs: Any
    body: bytes
    queue: bool = False
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


Answered = Queued | Pending | FailedStatus | Finished | Result


@dataclass(frozen=True, slots=True)
class Replayed:
    """A rule answers with this reply, whatever was asked."""

    effect: ReplyEffect


@dataclass(frozen=True, slots=True)
class Spoiled:
    """The outcome, if the request was taken, on a connection that is to be spoiled."""

    spoiling: Spoiling
    outcome: Answered | Refused | None


Outcome = Answered | Replayed | Spoiled


class Service:
    """Runs calls for all accounts over one store."""

    def __init__(self, store: Store, settings: Settings, seed: int, scenarios: Sequence[str] = ()) -> None:
        self.accounts = Accounts(settings, scenarios)
        self.batches = Batches(store, seed)
        self.workbench = Workbench()
        self._seed = seed

    async def run(self, call: Call) -> Outcome:
        """Submit, poll or run. Raises Refused with the service's own words.

        At most one rule fires, and may answer instead, or change how.
        """
        card = model(call.model)
        if card is None:
            raise Refused("model.unknown", model=call.model)
        rule = await self._rule(call)
        effect = None if rule is None else rule.effect
        match effect:
            case ErrorEffect():
                raise Refused(effect.row, retry_after=effect.retry_after, model=call.model)
            case ReplyEffect():
                return Replayed(effect)
            case TransportEffect():
                return await self._spoil(call, card, effect.spoiling)
            case DelayEffect():
                await pause(effect.seconds)
            case AssumeEffect():
                call.trace.assumptions = effect.assumptions
        return await self._answer_call(call, card, effect)

    async def _answer_call(self, call: Call, card: ModelCard, effect: Effect | None) -> Answered:
        match call.operation:
            case "poll":
                return await self._poll(call, card)
            case "submit":
                return await self._submit(call, card, effect)
            case "run":
                return await self._run(call, card, effect)

    async def _spoil(self, call: Call, card: ModelCard, spoiling: Spoiling) -> Spoiled:
        if spoiling in {"reset-before", "hang"}:
            return Spoiled(spoiling, None)
        try:
            return Spoiled(spoiling, await self._answer_call(call, card, None))
        except Refused as refused:
            return Spoiled(spoiling, refused)

    def close(self) -> None:
        """End the worker thread."""
        self.workbench.close()

    async def _rule(self, call: Call) -> Rule | None:
        """The one rule that fires. A batch that was ended by hand goes before all but the request's own."""
        sets = self._rule_sets(call)
        if not any(sets):
            return None
        if await self._was_ended_by_hand(call):
            sets = sets[: -len(call.account.rule_sets)]
        asked = call.operation, call.model, call.inputs
        fired = (rules.fire(*asked, self._chance(call)) for rules in sets)
        rule = next((rule for rule in fired if rule is not None), None)
        if rule is not None:
            call.trace.rule = rule.id
        else:
            nearly = (rules.nearly(*asked) for rules in sets)
            call.trace.nearly = next((told for told in nearly if told), "")
        return rule

    async def _was_ended_by_hand(self, call: Call) -> bool:
        if call.operation != "poll":
            return False
        batch = await self.batches.store.get((call.account.id, call.inputs["request_id"]))
        return batch is not None and batch.life.decided

    def _rule_sets(self, call: Call) -> tuple[Rules, ...]:
        """The rules that are asked, in this order: the request's own, the account's, the server's."""
        sets = call.account.rule_sets
        return sets if call.scenario is None else (scenario_rules(call.scenario), *sets)

    def _chance(self, call: Call) -> Callable[[str, int], float]:
        """What rules with a probability draw; a request's own are new each time, so they draw by its number."""
        drawn = partial(chance, self._seed, call.account.id)
        return drawn if call.scenario is None else partial(drawn, call.account.exchanges)

    async def _submit(self, call: Call, card: ModelCard, effect: Effect | None) -> Queued:
        """Facts: `batch.submit`, `batch.unsupported`, `model.queue`."""
        settings = call.settings
        queues = settings.assumed("model.queue") == "queued" if card.queue is None else card.queue
        if not queues:
            raise Refused("model.no-queue")
        admission = partial(admit, card, call.inputs, settings)
        admitted = await self._aside(admission, large=len(call.body) > LARGE_BODY)
        script = effect.script if isinstance(effect, ScriptEffect) else settings.script_for(card.name)
        items = call.inputs["requests"] if admitted.form == "requests" else [call.inputs]
        failures: Mapping[int, str] = {}
        if isinstance(effect, ItemsEffect):
            choose = partial(self._failures, call, effect, items)
            failures = await self._aside(choose, large=len(call.body) > LARGE_BODY)
        batch = await self.batches.submit(
            call.account,
            card.name,
            call.body,
            _runnable(call.script or script, runs=admitted.runs),
            form=admitted.form,
            items=admitted.items,
            outputs=self._outputs(call, items),
            failures=failures,
        )
        return Queued(batch.request_id, batch.model)

    def _outputs(self, call: Call, items: Sequence[Any]) -> dict[int, bytes]:
        """What rules say that items of a batch are answered."""
        sets = [rules for rules in self._rule_sets(call) if rules.have_outputs]
        asked = call.operation, call.model
        chosen: dict[int, tuple[str, bytes]] = {}
        for index, item in enumerate(items) if sets else ():
            fired = (rules.fire_for_item(*asked, item, self._chance(call)) for rules in sets)
            found = next((found for found in fired if found is not None), None)
            if found is not None:
                chosen[index] = found
        if chosen and not call.trace.rule:
            told = dict.fromkeys(rule_id for rule_id, _ in chosen.values())
            call.trace.rule, call.trace.nearly = ", ".join(told), ""
        return {index: output for index, (_, output) in chosen.items()}

    def _failures(self, call: Call, effect: ItemsEffect, items: Sequence[Any]) -> dict[int, str]:
        """Which items of a batch a rule lets fail, and with what."""
        failing = set(effect.indexes)
        if effect.share is not None:
            # The body may have megabytes: it is hashed once, not for each item.
            share, drawn_from = effect.share, chance(self._seed, call.account.id, call.body)
            failing = {index for index in range(len(items)) if chance(self._seed, drawn_from, index) < share}
        elif effect.text is not None:
            failing = {index for index, item in enumerate(items) if mentions(item, effect.text)}
        return {index: effect.row.id for index in failing if index < len(items)}

    async def _poll(self, call: Call, card: ModelCard) -> Answered:
        """Facts: `poll.pending`, `poll.done`, `batch.failed`, `poll.unknown`."""
        settings, wanted = call.settings, call.inputs["request_id"]
        batch = await self.batches.poll(call.account, settings, wanted, card.name)
        if batch is None:
            return self._unknown(settings, wanted)
        if batch.life.waiting:
            return Pending(batch.life.state, batch.request_id)
        if batch.life.state == "failed":
            return self._failed(settings, batch)
        return await self._finished(call.account, settings, batch)

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

    async def _finished(self, account: Account, settings: Settings, batch: Batch) -> Answered:
        payload = await self.batches.store.payload(batch.key)
        card = model(batch.model)
        if payload is None or card is None:
            return self._unknown(settings, batch.request_id)
        inputs = await self._aside(partial(loads, payload), large=batch.size > LARGE_BODY)
        count = self._counter(account, card) if batch.life.entry.polls == 1 else None
        if batch.form == "requests" or settings.assumed("submit.bare") == "batch":
            requests = inputs["requests"] if batch.form == "requests" else [inputs]
            told = await self._told(card, requests, batch.request_id, settings)
            return replace(told, outputs=batch.outputs, failures=batch.failures, count=count)
        if 0 in batch.failures:
            raise Refused(error(batch.failures[0]), model=batch.model)
        return Result(batch.outputs.get(0) or await self._answer(card, inputs, count))

    async def _run(self, call: Call, card: ModelCard, effect: Effect | None) -> Answered:
        """Facts: `batch.query.body`, `submit.no-query`."""
        settings = call.settings
        large = len(call.body) > LARGE_BODY
        if not isinstance(call.inputs, dict) or "requests" not in call.inputs:
            await self._aside(partial(check_input, card, call.inputs, settings), large=large)
            if isinstance(effect, OutputEffect):
                return Result(dumps(effect.output))
            return Result(await self._answer(card, call.inputs, self._counter(call.account, card)))
        if settings.assumed("submit.no-query") == "refused":
            raise refused_input("Additional or unevaluated properties '/requests' at '/' not allowed")
        admitted = await self._aside(partial(admit, card, call.inputs, settings), large=large)
        if not admitted.runs:
            raise Refused("batch.invalid")
        requests = call.inputs["requests"]
        told = await self._told(card, requests, call.body, settings)
        outputs, count = self._outputs(call, requests), self._counter(call.account, card)
        return replace(told, outputs=outputs, count=count)

    def _counter(self, account: Account, card: ModelCard) -> Callable[[Usage], None]:
        return lambda used: account.usage.add(card, used.prompt_tokens, used.completion_tokens)

    async def _answer(
        self, card: ModelCard, inputs: dict[str, Any], count: Callable[[Usage], None] | None
    ) -> bytes:
        job = partial(answers, card, [inputs])
        answer = await self._aside(job, large=cost(card, inputs) > QUICK_TEXTS)
        if count is not None:
            count(answer[0].usage)
        return answer[0].result

    async def _told(
        self, card: ModelCard, requests: list[Any], drawn_from: str | bytes, settings: Settings
    ) -> Finished:
        """The items in the order in which they got done. Fact: `done.order`."""
        if settings.assumed("done.order") == "request":
            return Finished(card, requests, range(len(requests)), settings, self.workbench)
        drawing = partial(completion_order, drawn_from, len(requests))
        order = await self._aside(drawing, large=len(requests) > MANY_ITEMS)
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
