"""Replaying: which recorded exchange answers a request, and why none does.

A request is answered by the recorded ones that asked for the same, in their order and each once. The polls of a batch
ask for the same where they name the same batch, so that each batch has a sequence of its own: queued, running, done.
"""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from workersai_contracts.asked import Asked, asked_in
from workersai_contracts.body_forms import content_of
from workersai_contracts.redaction import ACCOUNT, Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from workersai_contracts.recorded import Recorded
    from workersai_contracts.recording import Recording

ACCOUNTS_KEPT = 10_000
_COMPARED = 2_000  # characters of a body, where the nearest is looked for


class NotRecorded(LookupError):
    """The recording has no answer; the message says in one line what ran out, or what comes nearest."""


@dataclass(slots=True)
class _Walk:
    """How far one account has come, and which recorded ids its own stand for."""

    used: set[int] = field(default_factory=set)
    stands_for: dict[str, str] = field(default_factory=dict)
    references: dict[str, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """A recorded exchange as the answer to a request: the reply's body is for the account that asked."""

    recorded: Recorded
    content: bytes


class Replaying:
    """A recording as a service: each account walks through it from the beginning."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._same: defaultdict[tuple[object, ...], list[tuple[Asked, Recorded]]] = defaultdict(list)
        for one in recording.exchanges:
            asked = asked_in(one)
            self._same[asked.route, asked.body].append((asked, one))
        self._issued = _issued(recording.exchanges)
        self._walks: OrderedDict[str, _Walk] = OrderedDict()

    def rewind(self, account_id: str | None) -> None:
        """Begin again, for an account or for all."""
        if account_id is None:
            self._walks.clear()
        else:
            self._walks.pop(account_id, None)

    def answer(
        self, asked: Asked, account_id: str, sent: Callable[[], Any], *, strangers: bool = True
    ) -> Answer:
        """The recorded answer to a request; `sent` parses its body. Raises NotRecorded.

        With `strangers` an id that the recording never gave out stands for one that its client made up too.
        """
        walk = self._walk(account_id)
        same = self._same.get((asked.route, asked.body), [])
        about = self._about(asked, same, walk, strangers=strangers)
        if not about:
            raise NotRecorded(self._unmatched(asked, same))
        left = [one for _, one in about if one.number not in walk.used]
        if not left:
            raise NotRecorded(_ran_out(asked, [one for _, one in about]))
        recorded = left[0]
        walk.used.add(recorded.number)
        return Answer(recorded, self._content(recorded, asked, walk, account_id, sent))

    def _walk(self, account_id: str) -> _Walk:
        walk = self._walks.setdefault(account_id, _Walk())
        self._walks.move_to_end(account_id)
        if len(self._walks) > ACCOUNTS_KEPT:
            self._walks.popitem(last=False)
        return walk

    def _about(
        self, asked: Asked, same: Sequence[tuple[Asked, Recorded]], walk: _Walk, *, strangers: bool
    ) -> Sequence[tuple[Asked, Recorded]]:
        """Those that are about the same ids."""
        wanted = tuple(walk.stands_for.get(one, one) for one in asked.ids)
        about = [one for one in same if one[0].ids == wanted]
        if about or not strangers or not asked.ids:
            return about
        for candidate, _ in same:
            pairs = list(zip(wanted, candidate.ids, strict=False))
            new = [(mine, theirs) for mine, theirs in pairs if mine != theirs]
            taken = walk.stands_for.values()
            if len(wanted) == len(candidate.ids) and not any(
                mine in self._issued or theirs in self._issued or theirs in taken for mine, theirs in new
            ):
                walk.stands_for.update(new)
                return [one for one in same if one[0].ids == candidate.ids]
        return []

    def _unmatched(self, asked: Asked, same: Sequence[tuple[Asked, Recorded]]) -> str:
        if same:
            known = ", ".join(dict.fromkeys(one for other, _ in same for one in other.ids))
            return f"the recording has no {asked.line} for {', '.join(asked.ids)}; it has it for {known}"
        nearest = _nearest(asked, [pair for pairs in self._same.values() for pair in pairs])
        if nearest is None:
            return f"the recording has nothing like {asked.line}"
        other, recorded = nearest
        return f"the recording has no {asked.line}; the nearest is {recorded.name}, {other.line}"

    def _content(
        self, recorded: Recorded, asked: Asked, walk: _Walk, account_id: str, sent: Callable[[], Any]
    ) -> bytes:
        if self.recording.texts_hidden:
            recorded = _with_references(recorded, walk, sent())
        content = content_of(recorded.got).replace(ACCOUNT.encode(), account_id.encode())
        for mine in asked.ids:
            if (theirs := walk.stands_for.get(mine)) is not None:
                content = content.replace(theirs.encode(), mine.encode())
        return content


def _ran_out(asked: Asked, about: Sequence[Recorded]) -> str:
    last = about[-1]
    if last.poll:
        state = last.result.get("status", "done") if isinstance(last.result, dict) else last.status
        told = f"batch {last.request_id} was polled {_times(len(about))}"
        return f"the recording has run out: {told}, the last in {last.name} ({state})"
    told = f"{asked.line} was sent {_times(len(about))}"
    return f"the recording has run out: {told}, the last in {last.name}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _nearest(asked: Asked, others: Sequence[tuple[Asked, Recorded]]) -> tuple[Asked, Recorded] | None:
    """The recorded request that is most like this one: of its route, else of its path, else of its operation."""
    circles = (
        [one for one in others if one[0].route == asked.route],
        [one for one in others if one[0].route[:2] == asked.route[:2]],
        [one for one in others if asked.operation and one[0].operation == asked.operation],
    )
    circle = next((found for found in circles if found), [])
    return max(circle, key=lambda one: _likeness(asked.body, one[0].body), default=None)


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one[:_COMPARED], other[:_COMPARED], autojunk=False).quick_ratio()


def _issued(exchanges: Sequence[Recorded]) -> frozenset[str]:
    """The ids that the recorded service gave out, and its client had not named before."""
    named: set[str] = set()
    issued: set[str] = set()
    for one in exchanges:
        named.update(asked_in(one).ids)
        told = Redactor(alike=True)
        told.value(one.got or {})
        issued.update(found for found in told.ids if found not in named)
    return frozenset(issued)


def _with_references(recorded: Recorded, walk: _Walk, sent: Any) -> Recorded:
    """The reply with the references of whoever submitted, where the recording hides them. Fact: `poll.reference`."""
    if recorded.operation == "submit" and isinstance(sent, dict) and isinstance(recorded.result, dict):
        items = sent.get("requests")
        told = [one.get("external_reference") if isinstance(one, dict) else None for one in items or []]
        walk.references[recorded.result.get("request_id", "")] = told
    references = walk.references.get(recorded.request_id)
    if recorded.operation != "poll" or references is None or not isinstance(recorded.result, dict):
        return recorded
    told = json.loads(json.dumps(recorded.got))
    result = told["json"]["result"]
    for item in result.get("responses", result.get("results")) or []:
        number = item.get("id", item.get("index"))
        if isinstance(number, int) and number < len(references) and "external_reference" in item:
            item["external_reference"] = references[number]
    return replace(recorded, got=told)
