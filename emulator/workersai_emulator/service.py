"""The one door to the domain: a `Call` goes in, an `Outcome` comes out, or a refusal is raised.

Nothing here knows HTTP; every dialect of the wire comes through `Service.run`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from workersai_contracts import error, model
from workersai_emulator.accounts import Accounts
from workersai_emulator.admission import admit
from workersai_emulator.batches import Batches
from workersai_emulator.clock import pause
from workersai_emulator.effects import (
    AssumeEffect,
    BusyEffect,
    DelayEffect,
    ErrorEffect,
    ItemsEffect,
    ReplyEffect,
    ScriptEffect,
    TransportEffect,
)
from workersai_emulator.finished import FORESEEN_TEXTS, chosen_answer
from workersai_emulator.ids import chance
from workersai_emulator.json_text import loads
from workersai_emulator.limits import check_allowance, check_tokens
from workersai_emulator.outcome import FailedStatus, Pending, Queued, Replayed, Result, Spoiled
from workersai_emulator.refusals import Refused
from workersai_emulator.rules import Rule, Rules, mentions
from workersai_emulator.runs import LARGE_BODY, Runs
from workersai_emulator.scenarios import scenario_rules
from workersai_emulator.scripts import Script, Step
from workersai_emulator.workbench import Workbench

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from workersai_contracts import ModelCard
    from workersai_emulator.calls import Call
    from workersai_emulator.effects import Effect, Spoiling
    from workersai_emulator.outcome import Answered, Outcome
    from workersai_emulator.settings import Settings
    from workersai_emulator.store import Batch, Store


class Service:
    """Runs calls for all accounts over one store."""

    def __init__(self, store: Store, settings: Settings, seed: int, scenarios: Sequence[str] = ()) -> None:
        self.accounts = Accounts(settings, scenarios, store)
        self.batches = Batches(store, seed)
        self.workbench = Workbench()
        self._runs = Runs(self.workbench, store)

    @property
    def seed(self) -> int:
        """What ids, orders and chances are drawn from; a store that was opened may have one of its own."""
        return self.batches.seed

    async def open(self, seed: int | None) -> None:
        """Take up what the store has kept. Raises ValueError for a state that can't be opened."""
        self.batches.seed = await self.accounts.store.open(self.accounts, seed, self.batches.seed)

    async def run(self, call: Call) -> Outcome:
        """Submit, poll or run. Raises Refused with the service's own words.

        At most one rule fires, and may answer instead, or change how.
        """
        card = model(call.model)
        if card is None and call.listing is None:
            raise Refused("model.unknown", model=call.model)
        rule = await self._rule(call) if any(self._rule_sets(call)) else None
        effect = None if rule is None else rule.effect
        match effect:
            case ErrorEffect():
                raise Refused(effect.row, retry_after=effect.retry_after, model=call.model)
            case ReplyEffect():
                return Replayed(effect)
            case TransportEffect():
                return await self._spoil(call, card, effect.spoiling)
            case BusyEffect() if call.busy_refused:
                raise Refused("capacity")
            case DelayEffect() | BusyEffect():
                await pause(effect.seconds)
            case AssumeEffect():
                call.trace.assumptions = effect.assumptions
        return await self._answer_call(call, card, effect)

    async def _answer_call(self, call: Call, card: ModelCard | None, effect: Effect | None) -> Answered:
        if card is None:
            from workersai_emulator.listing import listed

            listing = partial(listed, call.listing, call.inputs, call.account.clock.now())
            return await self.workbench.aside(listing, large=True)  # the first one reads all cards
        if call.operation == "poll":
            return await self._poll(call, card)
        checking = partial(_not_allowed, call, card)
        refused = await self.accounts.store.count(call.account, checking)
        if refused is not None:
            raise refused
        if call.operation == "submit":
            return await self._submit(call, card, effect)
        return await self._runs.run(call, card, effect, partial(self._outputs, call))

    async def _spoil(self, call: Call, card: ModelCard | None, spoiling: Spoiling) -> Spoiled:
        if spoiling in {"reset-before", "hang"}:
            return Spoiled(spoiling, None)
        try:
            return Spoiled(spoiling, await self._answer_call(call, card, None))
        except Refused as refused:
            return Spoiled(spoiling, refused)

    async def close(self) -> None:
        """End the worker thread, and let go of the store."""
        self.workbench.close()
        await self.accounts.store.close()

    async def _rule(self, call: Call) -> Rule | None:
        """The one rule that fires. A batch that was ended by hand goes before all but the request's own."""
        by_hand = await self._was_ended_by_hand(call)
        firing = partial(self._fired, call, by_hand=by_hand)
        rule, call.trace.nearly = await self.accounts.store.count(call.account, firing)
        if rule is not None:
            call.trace.rule = rule.id
        return rule

    def _fired(self, call: Call, *, by_hand: bool) -> tuple[Rule | None, str]:
        """The rule that fires, or what one nearly did."""
        sets = self._rule_sets(call)
        if by_hand:
            sets = sets[: -len(call.account.rule_sets)]
        asked = call.operation, call.model, call.inputs
        fired = (rules.fire(*asked, self._chance(call)) for rules in sets)
        rule = next((rule for rule in fired if rule is not None), None)
        nearly = (rules.nearly(*asked) for rules in sets) if rule is None else ()
        return rule, next((told for told in nearly if told), "")

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
        drawn = partial(chance, self.seed, call.account.id)
        return drawn if call.scenario is None else partial(drawn, call.number)

    async def _submit(self, call: Call, card: ModelCard, effect: Effect | None) -> Queued:
        """Facts: `batch.submit`, `batch.unsupported`, `model.queue`."""
        settings = call.settings
        if not settings.queues(card):
            raise Refused("model.no-queue")
        if len(call.body) <= LARGE_BODY:
            admitted = admit(card, call.inputs, settings)
        else:
            admitted = await self.workbench.make(partial(admit, card, call.inputs, settings))
        script = effect.script if isinstance(effect, ScriptEffect) else settings.script_for(card.name)
        items = call.inputs["requests"] if admitted.form == "requests" else [call.inputs]
        failures: Mapping[int, str] = {}
        if isinstance(effect, ItemsEffect):
            choose = partial(self._failures, call, effect, items)
            failures = await self.workbench.aside(choose, large=len(call.body) > LARGE_BODY)
        batch = await self.batches.submit(
            call.account,
            card.name,
            call.body,
            _runnable(call.script or script, runs=admitted.runs),
            form=admitted.form,
            items=admitted.items,
            outputs=await self._outputs(call, items) if any(self._rule_sets(call)) else {},
            failures=failures,
        )
        return Queued(batch.request_id, batch.model)

    async def _outputs(self, call: Call, items: Sequence[Any]) -> dict[int, bytes]:
        """What rules say that items of a batch are answered."""
        if not any(rules.have_outputs for rules in self._rule_sets(call)):
            return {}
        choosing = partial(self._chosen, call, items)
        chosen = await self.accounts.store.count(call.account, choosing)
        if chosen and not call.trace.rule:
            told = dict.fromkeys(rule_id for rule_id, _ in chosen.values())
            call.trace.rule, call.trace.nearly = ", ".join(told), ""
        return {index: output for index, (_, output) in chosen.items()}

    def _chosen(self, call: Call, items: Sequence[Any]) -> dict[int, tuple[str, bytes]]:
        """The items that rules say the answers of, each with the rule's id."""
        sets = [rules for rules in self._rule_sets(call) if rules.have_outputs]
        chosen: dict[int, tuple[str, bytes]] = {}
        for index, item in enumerate(items):
            chance_of = self._chance(call)
            fired = (rules.fire_for_item(call.operation, call.model, item, chance_of) for rules in sets)
            found = next((found for found in fired if found is not None), None)
            if found is not None:
                chosen[index] = found
        return chosen

    def _failures(self, call: Call, effect: ItemsEffect, items: Sequence[Any]) -> dict[int, str]:
        """Which items of a batch a rule lets fail, and with what."""
        failing = set(effect.indexes)
        if effect.share is not None:
            # The body may have megabytes: it is hashed once, not for each item.
            share, drawn_from = effect.share, chance(self.seed, call.account.id, call.body)
            failing = {index for index in range(len(items)) if chance(self.seed, drawn_from, index) < share}
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
            row = error(batch.life.step.error or "batch.failed")
            return self._failed(settings, Refused(row, model=batch.model))
        return await self._finished(call, settings, batch)

    def _unknown(self, settings: Settings, wanted: str) -> Pending:
        answer = settings.assumed("poll.unknown")
        if answer == "queued":
            return Pending("queued", wanted)
        row = error("poll.unknown")
        raise Refused(row if answer == "refused" else row._replace(status=404))

    def _failed(self, settings: Settings, refused: Refused) -> FailedStatus:
        if settings.assumed("batch.failed") == "status":
            return FailedStatus(refused.message())
        raise refused

    async def _finished(self, call: Call, settings: Settings, batch: Batch) -> Answered:
        """What a batch has come to. Facts: `poll.done`, `submit.bare`, `settled.neurons`, `settled.item-tokens`."""
        payload = await self.batches.store.payload(batch.key)
        card = model(batch.model)
        if payload is None or card is None:
            return self._unknown(settings, batch.request_id)
        first, large = batch.life.entry.polls == 1, batch.size > LARGE_BODY
        if batch.form == "requests" or settings.assumed("submit.bare") == "batch":
            told = self._runs.told(
                call,
                card,
                partial(_requests_of, batch, payload),
                batch.request_id,
                outputs=batch.outputs,
                failures=batch.failures,
                counted=not first,
            )
            if batch.items <= FORESEEN_TEXTS:
                await told.read(large=large)
            return told
        inputs = await self.workbench.aside(partial(loads, payload), large=large)
        if 0 in batch.failures:
            raise Refused(error(batch.failures[0]), model=batch.model)
        try:
            await self.workbench.aside(partial(check_tokens, card, inputs, settings), large=large)
        except Refused as refused:
            return self._failed(settings, refused)
        if 0 in batch.outputs:
            choosing = partial(chosen_answer, card, inputs, batch.outputs[0])
            answer = await self.workbench.aside(choosing, large=large)
        else:
            answer = await self._runs.bare(card, inputs)
        neurons = await self._runs.count(call, card, answer.usage) if first else None
        return Result(answer.result, answer.content_type, neurons)


def _requests_of(batch: Batch, payload: bytes) -> Sequence[Any]:
    inputs = loads(payload)
    return inputs["requests"] if batch.form == "requests" else [inputs]


def _not_allowed(call: Call, card: ModelCard) -> Refused | None:
    """Why the account may not make this run; it was counted all the same."""
    try:
        check_allowance(call.account, card, call.settings)
    except Refused as refused:
        return refused
    return None


def _runnable(script: Script, *, runs: bool) -> Script:
    """The script of a batch whose run the model's server will refuse: it fails where it would be done.

    Facts: `batch.bare`, `batch.invalid`.
    """
    if runs or script.steps[-1].state != "done":
        return script
    return Script((*script.steps[:-1], Step("failed", error="batch.invalid")))
