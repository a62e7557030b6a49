"""Synchronous runs: what a model answers at once, whole, item by item, or in events."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from workersai_emulator import inference
from workersai_emulator.admission import admit, check_form, check_input
from workersai_emulator.effects import OutputEffect, StreamEffect
from workersai_emulator.finished import Bill, Finished, chosen_answer
from workersai_emulator.ids import completion_order
from workersai_emulator.json_text import dumps
from workersai_emulator.limits import check_tokens
from workersai_emulator.outcome import Result, Streamed
from workersai_emulator.refusals import Refused, refused_input
from workersai_emulator.usage import neurons_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from workersai_contracts import ModelCard
    from workersai_emulator.calls import Call
    from workersai_emulator.effects import Effect
    from workersai_emulator.inference import Answer, Event, Usage
    from workersai_emulator.store import Store
    from workersai_emulator.workbench import Workbench

LARGE_BODY = 256 * 1024
QUICK_TEXTS = 4
MANY_ITEMS = 500


class Runs:
    """Runs models. What takes long is done in the worker thread."""

    def __init__(self, workbench: Workbench, store: Store) -> None:
        self._workbench = workbench
        self._store = store

    async def run(
        self,
        call: Call,
        card: ModelCard,
        effect: Effect | None,
        outputs: Callable[[Sequence[Any]], Awaitable[Mapping[int, bytes]]],
    ) -> Finished | Result | Streamed:
        """Answer a call. `outputs` says what rules choose for items. Raises Refused.

        Facts: `sync.run`, `batch.query.body`, `submit.no-query`, `openai.run`.
        """
        if _has_requests(call, card):
            return await self._run_all(call, card, outputs)
        if not call.raw:
            await self._workbench.aside(partial(_check, call, card), large=len(call.body) > LARGE_BODY)
        chosen = effect.output if isinstance(effect, OutputEffect) else inference.NOTHING
        if card.writes_text and call.wants_stream:
            return await self._stream(call, card, chosen, effect)
        answer = await self._answer(call, card, chosen)
        neurons = await self.count(call, card, answer.usage)
        return Result(answer.result, answer.content_type, neurons)

    async def bare(self, card: ModelCard, inputs: dict[str, Any], *, large: bool = False) -> Answer:
        """What the model answers to the one item of a bare batch. Raises Refused. Fact: `submit.bare`."""
        try:
            return await self._workbench.aside(
                lambda: inference.answers(card, [inputs])[0],
                large=large or inference.cost(card, inputs) > QUICK_TEXTS,
            )
        except inference.CannotMeet as unmet:
            raise Refused("json-mode.unmet") from unmet

    def told(
        self,
        call: Call,
        card: ModelCard,
        requests: Callable[[], Sequence[Any]],
        drawn_from: str | bytes,
        *,
        outputs: Mapping[int, bytes],
        failures: Mapping[int, str],
        counted: bool,
    ) -> Finished:
        """The items in the order in which they got done, not read yet. Fact: `done.order`."""

        def in_order() -> tuple[Sequence[Any], Sequence[int]]:
            items = requests()
            if call.settings.assumed("done.order") == "request":
                return items, range(len(items))
            return items, completion_order(drawn_from, len(items))

        bill = Bill(None if counted else partial(self.count, call, card))
        return Finished(card, in_order, call.settings, self._workbench, outputs, failures, bill)

    async def count(self, call: Call, card: ModelCard, used: Usage) -> float | None:
        """Count what was used for the day; the neurons that it cost, None where the model has no price."""
        account = call.account
        await self._store.count(
            account, lambda: account.usage.add(card, used.prompt_tokens, used.completion_tokens)
        )
        return neurons_of(card, used.prompt_tokens, used.completion_tokens)

    async def _answer(self, call: Call, card: ModelCard, chosen: Any) -> Answer:
        large = _takes_long(call)
        try:
            if call.form == "embeddings":
                from workersai_emulator.inference.embeddings import embeddings

                cut = call.settings.assumed("openai.dimensions") == "cut"
                return await self._workbench.aside(
                    partial(embeddings, card, call.inputs, cut_dimensions=cut), large=True
                )
            if card.writes_text:
                job = partial(inference.generate, card, call.inputs, call.form, chosen)
                return await self._workbench.aside(job, large=large)
        except inference.CannotMeet as unmet:
            raise Refused("json-mode.unmet") from unmet
        if chosen is not inference.NOTHING:
            job = partial(chosen_answer, card, call.inputs, dumps(chosen))
            return await self._workbench.aside(job, large=large)
        return await self.bare(card, call.inputs, large=large)

    async def _stream(self, call: Call, card: ModelCard, chosen: Any, effect: Effect | None) -> Streamed:
        assert call.form != "embeddings"  # which no text model has
        job = partial(inference.stream, card, call.inputs, call.form, chosen)
        try:
            written = await self._workbench.aside(job, large=_takes_long(call))
        except inference.CannotMeet as unmet:
            raise Refused("json-mode.unmet") from unmet
        await self.count(call, card, written.usage)
        if not isinstance(effect, StreamEffect):
            return Streamed(written.events, self._workbench)
        refused = None if effect.row is None else Refused(effect.row, model=card.name)
        begun = _begun(written.events, effect.after)
        return Streamed(begun, self._workbench, broken=refused is None, refused=refused)

    async def _run_all(
        self,
        call: Call,
        card: ModelCard,
        outputs: Callable[[Sequence[Any]], Awaitable[Mapping[int, bytes]]],
    ) -> Finished:
        settings = call.settings
        if settings.assumed("submit.no-query") == "refused":
            raise refused_input("Additional or unevaluated properties '/requests' at '/' not allowed")
        admission = partial(admit, card, call.inputs, settings)
        admitted = await self._workbench.aside(admission, large=len(call.body) > LARGE_BODY)
        if not admitted.runs:
            raise Refused("batch.invalid")
        requests = call.inputs["requests"]
        chosen = await outputs(requests)
        told = self.told(call, card, lambda: requests, call.body, outputs=chosen, failures={}, counted=False)
        await told.read(large=len(requests) > MANY_ITEMS)
        return told


def _takes_long(call: Call) -> bool:
    """Whether an answer may take so long that the event loop is not to wait for it: a value of a schema is sought."""
    inputs = call.inputs
    return len(call.body) > LARGE_BODY or inference.schema_wanted(inputs) is not None or "tools" in inputs


def _has_requests(call: Call, card: ModelCard) -> bool:
    """Whether a run is of many items; to a model without such a form, `requests` is a key that it ignores.

    Facts: `submit.no-query`, `batch.schema`, `batch.items`.
    """
    if call.form != "native" or not isinstance(call.inputs, dict) or "requests" not in call.inputs:
        return False
    return card.takes_requests or call.settings.queues(card)


def _check(call: Call, card: ModelCard) -> None:
    """Pass what the model takes, and what fits into it. Raises Refused."""
    if call.form == "native":
        check_input(card, call.inputs, call.settings)
    else:
        check_form(card, call.inputs, call.settings, form=call.form)
    check_tokens(card, call.inputs, call.settings, call.form)


def _begun(events: Iterator[Event], most: int) -> Iterator[Event]:
    """The first events of a stream, and never its last, which would tell that the text is whole."""
    coming = next(events, None)
    for _ in range(most):
        following = next(events, None)
        if coming is None or following is None:
            return
        yield coming
        coming = following
