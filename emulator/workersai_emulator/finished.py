"""The reply of a finished batch, computed in slices when it is asked for.

A slice is what some sixteen texts make; each is computed in the worker thread while the one before it is
written, so that no poll of anybody else waits for more than a slice.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from workersai_contracts import error
from workersai_emulator import inference
from workersai_emulator.admission import check_input
from workersai_emulator.json_text import dumps
from workersai_emulator.limits import check_tokens
from workersai_emulator.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence

    from workersai_contracts import ModelCard
    from workersai_emulator.inference import Answer, Usage
    from workersai_emulator.settings import Settings
    from workersai_emulator.workbench import Workbench

SLICE_TEXTS = 16
#: How many texts may be gone through before a reply begins: they take some 20 ms.
FORESEEN_TEXTS = 1000


@dataclass(slots=True, eq=False)
class Bill:
    """What a batch costs: its tokens are counted once, by whoever knows them first."""

    count: Callable[[Usage], Awaitable[float | None]] | None = None
    neurons: float | None = None

    async def settle(self, usage: Usage) -> None:
        """Count the tokens, unless they were counted."""
        count, self.count = self.count, None
        if count is not None:
            self.neurons = await count(usage)


@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    """A finished batch: its items in the order in which they are told, and how to compute them.

    Facts: `poll.done`, `poll.item`, `poll.order`, `poll.reference`, `poll.usage`.
    """

    card: ModelCard
    requests: Sequence[Any]
    order: Sequence[int]
    settings: Settings
    workbench: Workbench
    outputs: Mapping[int, bytes] = field(default_factory=dict)
    failures: Mapping[int, str] = field(default_factory=dict)
    bill: Bill = field(default_factory=Bill)

    def with_choices(
        self,
        outputs: Mapping[int, bytes],
        failures: Mapping[int, str],
        count: Callable[[Usage], Awaitable[float | None]] | None,
    ) -> Finished:
        """The same with what rules chose for items, and who counts the usage."""
        return replace(self, outputs=outputs, failures=failures, bill=Bill(count))

    @property
    def small(self) -> bool:
        """Whether the whole is not much, so that streaming would not pay. Vectors and files are long, texts short."""
        long = self.card.answers in {"embedding", "image", "speech"}
        return self._has_at_most(SLICE_TEXTS if long else FORESEEN_TEXTS)

    async def foresee(self) -> None:
        """Settle the bill before the reply is computed, so that its header can tell it.

        A small reply needs no foresight, and of one that is larger than `FORESEEN_TEXTS` it would take too long.
        Facts: `settled.neurons`, `head.neurons`.
        """
        if self.bill.count is None or self.small or not self._has_at_most(FORESEEN_TEXTS):
            return
        await self.bill.settle(await self.workbench.make(self._foreseen))

    async def pieces(self) -> AsyncGenerator[bytes]:
        """The members of the reply's object, without its braces, in pieces.

        Facts: `done.status`, `done.shape`.
        """
        status = b'"status":"completed",' if self.settings.assumed("done.status") == "completed" else b""
        key = b"results" if self.settings.assumed("done.shape") == "results" else b"responses"
        yield status + b'"%b":[' % key
        usage, comma = inference.Usage(0, 0), b""
        jobs: Iterator[Callable[[], tuple[bytes, Usage]]] = (self._job(slice_) for slice_ in self._slices())
        async for items, used in self.workbench.one_ahead(jobs):
            usage += used
            yield comma + items
            comma = b","
        await self.bill.settle(usage)
        yield b"]," + b'"usage":' + dumps(usage.as_json())

    def _has_at_most(self, texts: int) -> bool:
        return len(self.requests) <= texts and sum(map(self._cost, self.requests)) <= texts

    def _foreseen(self) -> Usage:
        """The usage of a batch of vectors, for which nothing is written."""
        usage = inference.Usage()
        for index, item in enumerate(self.requests):
            if self._refusal(index) is None:
                usage += inference.read_only(self.card, inference.texts_of(self.card, item))
        return usage

    def _slices(self) -> Iterator[list[int]]:
        chosen: list[int] = []
        texts = 0
        for index in self.order:
            chosen.append(index)
            texts += self._cost(self.requests[index])
            if texts >= SLICE_TEXTS:
                yield chosen
                chosen, texts = [], 0
        if chosen:
            yield chosen

    def _cost(self, item: Any) -> int:
        return max(1, inference.cost(self.card, item)) if isinstance(item, dict) else 1

    def _job(self, indexes: list[int]) -> Callable[[], tuple[bytes, Usage]]:
        return lambda: self._compute(indexes)

    def _compute(self, indexes: list[int]) -> tuple[bytes, Usage]:
        refusals = {index: self._refusal(index) for index in indexes}
        asked = [index for index in indexes if refusals[index] is None and index not in self.outputs]
        computed = dict(zip(asked, self._computed(asked), strict=True))
        usage, items = inference.Usage(0, 0), []
        for index in indexes:
            came = refusals[index] or computed.get(index) or self._chosen(index)
            if isinstance(came, Refused):
                items.append(self._item(index, b"{}", came))
                continue
            usage += came.usage
            items.append(self._item(index, _as_json(came), None))
        return b",".join(items), usage

    def _computed(self, indexes: list[int]) -> Sequence[Answer | Refused]:
        """What the model makes of these items; together where they have vectors, else one by one."""
        if self.card.writes_text:
            return [self._written(self.requests[index]) for index in indexes]
        return inference.answers(self.card, [self.requests[index] for index in indexes])

    def _written(self, item: Any) -> Answer | Refused:
        try:
            return inference.generate(self.card, item, "native")
        except inference.CannotMeet:
            return Refused("json-mode.unmet")

    def _chosen(self, index: int) -> Answer:
        return chosen_answer(self.card, self.requests[index], self.outputs[index])

    def _refusal(self, index: int) -> Refused | None:
        if index in self.failures:
            return Refused(error(self.failures[index]), model=self.card.name)
        request = self.requests[index]
        try:
            check_input(self.card, request, self.settings)
            check_tokens(self.card, request, self.settings)
        except Refused as refused:
            return refused
        return None

    def _item(self, index: int, result: bytes, refusal: Refused | None) -> bytes:
        key = b"index" if self.settings.assumed("done.shape") == "results" else b"id"
        request = self.requests[index]
        reference = request.get("external_reference") if isinstance(request, dict) else None
        shown = b"null" if reference is None else dumps(reference)
        if refusal is None:
            return b'{"%b":%d,"result":%b,"success":true,"external_reference":%b}' % (
                key,
                index,
                result,
                shown,
            )
        told = self._told(refusal)
        return b'{"%b":%d,"result":%b,"success":false,%b,"external_reference":%b}' % (
            key,
            index,
            result,
            told,
            shown,
        )

    def _told(self, refusal: Refused) -> bytes:
        """How an item says that it failed. Fact: `item.failed`."""
        message = refusal.message()
        if self.settings.assumed("item.failed") == "error":
            return b'"error":' + dumps(message)
        return b'"errors":' + dumps([{"message": message, "code": refusal.row.code}])


def chosen_answer(card: ModelCard, item: Mapping[str, Any], output: bytes) -> Answer:
    """The answer that a rule chose for an item: what was read for it is counted all the same."""
    return inference.Answer(output, inference.read_only(card, inference.texts_of(card, item)))


def _as_json(answer: Answer) -> bytes:
    """What an item's answer is in a reply of JSON: bytes are base64 there. Fact: `settled.binary-items`."""
    if answer.content_type == "application/json":
        return answer.result
    kind = answer.content_type.partition("/")[0]
    return dumps({kind: b64encode(answer.result).decode()})
