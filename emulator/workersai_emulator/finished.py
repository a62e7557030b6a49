"""The reply of a finished batch, computed in slices when it is asked for.

A slice is what some sixteen texts make; each is computed in the worker thread while the one before it is
written, so that no poll of anybody else waits for more than a slice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workersai_contracts import error
from workersai_emulator.admission import check_input
from workersai_emulator.inference import Answer, Usage, answers, cost, estimate, texts_of
from workersai_emulator.json_text import dumps
from workersai_emulator.refusals import Refused
from workersai_emulator.schema_walk import looks
from workersai_emulator.validation import validator_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence

    from workersai_contracts import ModelCard
    from workersai_emulator.settings import Settings
    from workersai_emulator.workbench import Workbench

SLICE_TEXTS = 16


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished batch: its items in the order in which they are told, and how to compute them.

    `good_looks` are those of items that were found to be inputs: items that look alike are judged alike.
    Facts: `poll.done`, `poll.item`, `poll.order`, `poll.reference`, `poll.usage`.
    """

    card: ModelCard
    requests: Sequence[Any]
    order: Sequence[int]
    settings: Settings
    workbench: Workbench
    outputs: Mapping[int, bytes] = field(default_factory=dict)
    failures: Mapping[int, str] = field(default_factory=dict)
    good_looks: set[str] = field(default_factory=set)
    count: Callable[[Usage], object] | None = None

    @property
    def small(self) -> bool:
        """Whether the whole is one slice, so that streaming would not pay."""
        return len(self.requests) <= SLICE_TEXTS and sum(map(self._cost, self.requests)) <= SLICE_TEXTS

    async def pieces(self) -> AsyncGenerator[bytes]:
        """The members of the reply's object, without its braces, in pieces.

        Facts: `done.status`, `done.shape`.
        """
        status = b'"status":"completed",' if self.settings.assumed("done.status") == "completed" else b""
        key = b"results" if self.settings.assumed("done.shape") == "results" else b"responses"
        yield status + b'"%b":[' % key
        usage, comma = Usage(0, 0), b""
        jobs: Iterator[Callable[[], tuple[bytes, Usage]]] = (self._job(slice_) for slice_ in self._slices())
        async for items, used in self.workbench.one_ahead(jobs):
            usage += used
            yield comma + items
            comma = b","
        if self.count is not None:
            self.count(usage)
        yield b"]," + b'"usage":' + dumps(usage.as_json())

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
        return max(1, cost(self.card, item)) if isinstance(item, dict) else 1

    def _job(self, indexes: list[int]) -> Callable[[], tuple[bytes, Usage]]:
        return lambda: self._compute(indexes)

    def _compute(self, indexes: list[int]) -> tuple[bytes, Usage]:
        refusals = [self._refusal(index) for index in indexes]
        good = [index for index, refusal in zip(indexes, refusals, strict=True) if refusal is None]
        asked = [index for index in good if index not in self.outputs]
        computed = iter(answers(self.card, [self.requests[index] for index in asked]))
        usage, items = Usage(0, 0), []
        for index, refusal in zip(indexes, refusals, strict=True):
            if refusal is not None:
                items.append(self._item(index, b"{}", refusal))
                continue
            answer = self._chosen(index) if index in self.outputs else next(computed)
            usage += answer.usage
            items.append(self._item(index, answer.result, None))
        return b",".join(items), usage

    def _refusal(self, index: int) -> Refused | None:
        if index in self.failures:
            return Refused(error(self.failures[index]), model=self.card.name)
        look = looks(self.requests[index]) if validator_for(self.card).by_looks else None
        if look in self.good_looks:
            return None
        try:
            check_input(self.card, self.requests[index], self.settings)
        except Refused as refused:
            return refused
        if look is not None:
            self.good_looks.add(look)
        return None

    def _chosen(self, index: int) -> Answer:
        """The answer that a rule chose for an item."""
        read = sum(map(estimate, texts_of(self.card, self.requests[index])))
        return Answer(self.outputs[index], Usage(read, 0))

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
