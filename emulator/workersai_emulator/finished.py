"""The reply of a finished batch, computed in slices when it is asked for.

Each slice is computed in the worker thread while the one before it is written, piece by piece, so that no poll of
anybody else waits for more than a piece.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
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

#: How many texts a slice is made of.
SLICE_TEXTS = 16
#: The same of texts that get vectors, all at once: the more there are, the less the two threads wait for each other.
SLICE_VECTORS = 128
#: How much of a reply is written in one go, about: meanwhile, nobody else's is.
PIECE_BYTES = 1 << 18
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


@dataclass(slots=True, eq=False)
class Finished:
    """A finished batch: its items in the order in which they are told, and how to compute them.

    `unread` gives the items and the order; a large batch's are not read before its reply has begun. `outputs` and
    `failures` are what rules chose for items.
    Facts: `poll.done`, `poll.item`, `poll.order`, `poll.reference`, `poll.usage`.
    """

    card: ModelCard
    unread: Callable[[], tuple[Sequence[Any], Sequence[int]]] | None
    settings: Settings
    workbench: Workbench
    outputs: Mapping[int, bytes]
    failures: Mapping[int, str]
    bill: Bill
    requests: Sequence[Any] = ()
    order: Sequence[int] = ()

    async def read(self, *, large: bool) -> None:
        """Read the items, unless they were read."""
        unread, self.unread = self.unread, None
        if unread is not None:
            self.requests, self.order = await self.workbench.aside(unread, large=large)

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
        await self.read(large=True)
        usage, begin = inference.Usage(0, 0), len(b",")
        jobs: Iterator[Callable[[], tuple[list[bytes], Usage]]] = (
            self._job(slice_) for slice_ in self._slices()
        )
        async for pieces, used in self.workbench.one_ahead(jobs):
            usage += used
            for piece in pieces:
                yield piece[begin:]
                begin = 0  # only the first item has no comma in front of it
        await self.bill.settle(usage)
        yield b"]," + b'"usage":' + dumps(usage.as_json())

    def _has_at_most(self, texts: int) -> bool:
        return (
            self.unread is None
            and len(self.requests) <= texts
            and sum(map(self._cost, self.requests)) <= texts
        )

    def _foreseen(self) -> Usage:
        """The usage of a batch of vectors, for which nothing is written."""
        usage = inference.Usage()
        for index, item in enumerate(self.requests):
            if self._refusal(index) is None:
                usage += inference.read_only(self.card, inference.texts_of(self.card, item))
        return usage

    def _slices(self) -> Iterator[list[int]]:
        most = SLICE_VECTORS if self.card.answers == "embedding" else SLICE_TEXTS
        chosen: list[int] = []
        texts = 0
        for index in self.order:
            chosen.append(index)
            texts += self._cost(self.requests[index])
            if texts >= most:
                yield chosen
                chosen, texts = [], 0
        if chosen:
            yield chosen

    def _cost(self, item: Any) -> int:
        return max(1, inference.cost(self.card, item)) if isinstance(item, dict) else 1

    def _job(self, indexes: list[int]) -> Callable[[], tuple[list[bytes], Usage]]:
        return lambda: self._compute(indexes)

    def _compute(self, indexes: list[int]) -> tuple[list[bytes], Usage]:
        """The items of a slice, each with a comma in front of it, in pieces to be written."""
        key = b"index" if self.settings.assumed("done.shape") == "results" else b"id"
        refusals = {index: self._refusal(index) for index in indexes}
        asked = [index for index in indexes if refusals[index] is None and index not in self.outputs]
        computed = dict(zip(asked, self._computed(asked), strict=True))
        read = written = 0
        pieces: list[bytes] = []
        parts: list[bytes] = []
        size = 0
        for index in indexes:
            came = refusals[index] or computed.pop(index, None) or self._chosen(index)
            if isinstance(came, Refused):
                result, ending = b"{}", self._told(came)
            else:
                read += came.usage.prompt_tokens
                written += came.usage.completion_tokens
                result, ending = _as_json(came), b'"success":true'
            parts += (b',{"%b":%d,"result":' % (key, index), result, b"," + ending, self._reference(index))
            size += len(result)
            if size >= PIECE_BYTES:
                pieces.append(b"".join(parts))
                parts, size = [], 0
        if parts:
            pieces.append(b"".join(parts))
        return pieces, inference.Usage(read, written)

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

    def _reference(self, index: int) -> bytes:
        """The end of an item. Fact: `poll.reference`."""
        request = self.requests[index]
        reference = request.get("external_reference") if isinstance(request, dict) else None
        return b',"external_reference":%b}' % (b"null" if reference is None else dumps(reference))

    def _told(self, refusal: Refused) -> bytes:
        """How an item says that it failed. Fact: `item.failed`."""
        message = refusal.message()
        if self.settings.assumed("item.failed") == "error":
            return b'"success":false,"error":' + dumps(message)
        return b'"success":false,"errors":' + dumps([{"message": message, "code": refusal.row.code}])


def chosen_answer(card: ModelCard, item: Mapping[str, Any], output: bytes) -> Answer:
    """The answer that a rule chose for an item: what was read for it is counted all the same."""
    return inference.Answer(output, inference.read_only(card, inference.texts_of(card, item)))


def _as_json(answer: Answer) -> bytes:
    """What an item's answer is in a reply of JSON: bytes are base64 there. Fact: `settled.binary-items`."""
    if answer.content_type == "application/json":
        return answer.result
    kind = answer.content_type.partition("/")[0]
    return dumps({kind: b64encode(answer.result).decode()})
