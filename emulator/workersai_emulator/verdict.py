"""The verdict: what an account's exchanges say about the client that made them.

`judge` is a pure function of the journal and the batches. An error is a fault of the client, a warning will be one
on a bad day, a note is worth knowing; a verdict is clean without errors and warnings.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from workersai_emulator.api.exchange import Exchange, Slip
    from workersai_emulator.store import Batch

#: Polls of one batch that are closer together than this are made without a pause, in seconds.
SHORTEST_PAUSE = 0.1
#: So many pauses in a row have to be too short.
HASTY_PAUSES = 2
#: From this share of its limit on a body came close to it.
NEAR = 0.9
#: Refusals that pass by themselves. Facts: `rate.minute`, `capacity`.
PASSING = frozenset({3021, 3040})
#: Refusals that last until midnight UTC. Facts: `quota.daily`, `quota.documented`.
DAILY = frozenset({4006, 3036})
_TIMEOUT = 408
_EARLY_ENOUGH = 0.05
_DAY_SECONDS = 86_400

Severity = Literal["error", "warning", "note"]


class Finding(NamedTuple):
    """One thing that the client did: what it is called, what shows it, and what to do instead.

    `seqs` are the numbers of the exchanges in the journal that show it.
    """

    code: str
    severity: Severity
    title: str
    evidence: str
    advice: str
    seqs: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.severity} {self.code}: {self.title}. {self.evidence}. {self.advice}"

    def as_json(self) -> dict[str, Any]:
        """As the control plane shows it."""
        return {
            "code": self.code,
            "severity": self.severity,
            "title": self.title,
            "evidence": self.evidence,
            "advice": self.advice,
            "seqs": list(self.seqs),
        }


class Verdict(NamedTuple):
    """All findings, the gravest first."""

    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Verdict:
        """The verdict that these findings make."""
        return cls(tuple(sorted(findings, key=lambda finding: _GRAVEST_FIRST.index(finding.severity))))

    @classmethod
    def read(cls, shown: Mapping[str, Any]) -> Verdict:
        """Read what the control plane shows."""
        return cls(tuple(Finding(**{**one, "seqs": tuple(one["seqs"])}) for one in shown["findings"]))

    @property
    def clean(self) -> bool:
        """Whether there is neither an error nor a warning."""
        return not self.faults

    @property
    def faults(self) -> tuple[Finding, ...]:
        """The errors and warnings."""
        return tuple(finding for finding in self.findings if finding.severity != "note")

    def __str__(self) -> str:
        if self.clean:
            return "the verdict on the client is clean"
        return "\n  ".join(["the verdict on the client is not clean:", *map(str, self.faults)])

    def assert_clean(self) -> None:
        """Raise AssertionError that lists each error and warning with what to do about it."""
        if not self.clean:
            raise AssertionError(str(self))

    def as_json(self) -> dict[str, Any]:
        """As the control plane shows it."""
        return {"clean": self.clean, "findings": [finding.as_json() for finding in self.findings]}


def judge(exchanges: Sequence[Exchange], batches: Sequence[Batch]) -> list[Finding]:
    """Everything that one account's exchanges, in their order, and its batches as they are now show."""
    seen = _Seen(exchanges, batches)
    return [finding for look in _LOOKS for finding in look(seen)]


class _Seen:
    """The exchanges sorted by what the findings are about."""

    def __init__(self, exchanges: Sequence[Exchange], batches: Sequence[Batch]) -> None:
        self.exchanges = exchanges
        self.batches = {batch.request_id: batch for batch in batches}
        self.polls: dict[str, list[Exchange]] = defaultdict(list)
        self.submits: dict[str, Exchange] = {}
        self.attempts: dict[tuple[str, str, str], list[Exchange]] = defaultdict(list)
        for exchange in exchanges:
            if exchange.operation == "poll":
                self.polls[exchange.request_id].append(exchange)
            elif exchange.operation == "submit" and exchange.request_id:
                self.submits[exchange.request_id] = exchange
            told_apart_by = exchange.request_id if exchange.operation == "poll" else exchange.digest
            if told_apart_by:
                self.attempts[exchange.operation, exchange.model, told_apart_by].append(exchange)

    def repeats(self) -> Iterator[tuple[Exchange, Exchange]]:
        """Each attempt with the one that followed it: the same poll, or the same payload to the same model."""
        for attempts in self.attempts.values():
            yield from pairwise(attempts)


def _polled_without_pause(seen: _Seen) -> Iterator[Finding]:
    for request_id, polls in seen.polls.items():
        batch = seen.batches.get(request_id)
        if batch is None:
            continue
        timed = {step.state for step in batch.life.script.steps if step.seconds is not None}
        longest = _longest_hasty(polls, timed)
        if len(longest) > HASTY_PAUSES:
            span = longest[-1].clock - longest[0].clock
            yield Finding(
                "polled-without-pause",
                "warning",
                "Polled a waiting batch without a pause",
                f"{len(longest)} polls of {request_id} within {span:.3f} s of the account's clock",
                "Wait between polls, half a second at first, then longer: a batch takes minutes",
                _seqs(longest),
            )


def _longest_hasty(polls: Sequence[Exchange], timed: Collection[str]) -> Sequence[Exchange]:
    """The most polls in a row without a pause between them, while time decided over the batch."""
    first, found = 0, (0, 0)
    for place, (poll, following) in enumerate(pairwise(polls), 1):
        if poll.state not in timed or round(following.clock - poll.clock, 3) >= SHORTEST_PAUSE:
            first = place
        elif place - first > found[1] - found[0]:
            found = first, place
    return polls[found[0] : found[1] + 1]


def _polled_finished(seen: _Seen) -> Iterator[Finding]:
    """Facts: `poll.done`, `done.status`."""
    for request_id, polls in seen.polls.items():
        ends = [poll for poll in polls if poll.state in {"done", "failed"} and not poll.spoiled]
        late = [poll for poll in polls if ends and poll.seq > ends[0].seq]
        if late:
            yield Finding(
                "polled-finished",
                "warning",
                "Polled a batch that was finished",
                f"{_times(late)} after poll {ends[0].seq} had the outcome of {request_id}",
                "A reply with responses is the end; the documented one has no status to wait for",
                _seqs([ends[0], *late]),
            )


def _ignored_retry_after(seen: _Seen) -> Iterator[Finding]:
    """Fact: `head.retry-after`."""
    for refused, again in seen.repeats():
        if refused.retry_after is None or refused.spoiled:
            continue
        # Waiting on either clock is waiting: a program may sleep while its account's clock is frozen.
        waited = max(again.clock - refused.clock, again.time - refused.time - refused.seconds)
        if waited < refused.retry_after - _EARLY_ENOUGH:
            yield Finding(
                "ignored-retry-after",
                "error",
                "Ignored Retry-After",
                f"{_named(again)} came {waited:.2f} s after a refusal that asked for {refused.retry_after:g} s",
                "Wait as long as Retry-After says before the same request is made again",
                _seqs([refused, again]),
            )


def _resubmitted(seen: _Seen) -> Iterator[Finding]:
    """Fact: `batch.duplicate`."""
    for (operation, _, _), attempts in seen.attempts.items():
        if operation != "submit":
            continue
        for earlier, again in pairwise(attempts):
            if earlier.state == "queued" and not _ended(seen.polls[earlier.request_id], before=again):
                lost = ", though its reply was lost" if earlier.spoiled else ""
                yield Finding(
                    "resubmitted",
                    "error",
                    "Submitted the same payload again instead of polling",
                    f"submit {again.seq} repeats submit {earlier.seq}, which is batch {earlier.request_id}{lost}",
                    "Keep the request_id and poll it; a submit has no idempotency key, so the work is done twice",
                    _seqs([earlier, again]),
                )


def _retried_final(seen: _Seen) -> Iterator[Finding]:
    """Facts: `quota.daily`, `quota.documented`."""
    for refused, again in seen.repeats():
        if not _is_final(refused) or refused.spoiled:
            continue
        if refused.code in DAILY and _day(again) > _day(refused):
            continue
        lasting = "the allocation ends at midnight UTC" if refused.code in DAILY else "it will not pass"
        yield Finding(
            "retried-final",
            "error",
            "Treated a final error as retryable",
            f"{_named(again)} repeats {refused.seq}, which was refused with {_refusal(refused)}",
            f"Give up on {refused.code} and tell whoever has to know: {lasting}",
            _seqs([refused, again]),
        )


def _gave_up(seen: _Seen) -> Iterator[Finding]:
    """Facts: `rate.minute`, `capacity`."""
    for attempts in seen.attempts.values():
        last = attempts[-1]
        if last.code in PASSING:
            yield Finding(
                "gave-up",
                "note",
                "Gave up on an error that passes",
                f"{_named(last)} was refused with {_refusal(last)}, and nothing came after it",
                f"Try again after {last.code}, later each time: it is not the daily limit",
                _seqs([last]),
            )


def _slipped(slip: Slip, severity: Severity, title: str, advice: str) -> Callable[[_Seen], Iterator[Finding]]:
    def look(seen: _Seen) -> Iterator[Finding]:
        shown = [exchange for exchange in seen.exchanges if slip in exchange.slips]
        if shown:
            yield Finding(slip, severity, title, f"{_times(shown)} to {shown[0].model}", advice, _seqs(shown))

    return look


def _near_limit(seen: _Seen) -> Iterator[Finding]:
    """Facts: `batch.limit`, `body.limit`."""
    near = [exchange for exchange in seen.exchanges if NEAR <= exchange.limit_share < 1]
    if near:
        largest = max(near, key=lambda exchange: exchange.limit_share)
        yield Finding(
            "near-limit",
            "note",
            "Came close to the limit of a body",
            f"{largest.body_bytes:,} bytes in {_named(largest)}, {largest.limit_share:.0%} of what is taken",
            "Split by bytes before the limit is met: beyond it the whole submit is refused",
            _seqs(near),
        )


def _never_collected(seen: _Seen) -> Iterator[Finding]:
    """Fact: `poll.retention`."""
    for batch in seen.batches.values():
        if batch.life.state in {"done", "failed"} and not batch.life.entry.polls:
            yield _uncollected(batch.request_id, f"is {batch.life.state}", seen.submits.get(batch.request_id))
    for request_id, submit in seen.submits.items():
        if request_id not in seen.batches and not _ended(seen.polls[request_id]):
            yield _uncollected(request_id, "has expired", submit)


def _uncollected(request_id: str, state: str, submit: Exchange | None) -> Finding:
    return Finding(
        "never-collected",
        "warning",
        "Never collected a finished batch",
        f"batch {request_id} {state}, and no poll saw it",
        "Store every request_id with its model before anything else can fail, and poll until the end",
        () if submit is None else (submit.seq,),
    )


def _polled_other_model(seen: _Seen) -> Iterator[Finding]:
    """Fact: `poll.other-model`."""
    for request_id, polls in seen.polls.items():
        known = seen.batches.get(request_id) or seen.submits.get(request_id)
        strays = [poll for poll in polls if known is not None and poll.model != known.model]
        if known is not None and strays:
            yield Finding(
                "polled-other-model",
                "error",
                "Polled an id under another model",
                f"{_times(strays)} of {request_id} under {strays[0].model}; it was submitted to {known.model}",
                "Store the model beside the request_id: a poll needs both",
                _seqs(strays),
            )


_GRAVEST_FIRST: tuple[Severity, ...] = ("error", "warning", "note")
_LOOKS: tuple[Callable[[_Seen], Iterable[Finding]], ...] = (
    _resubmitted,
    _retried_final,
    _ignored_retry_after,
    _polled_other_model,
    # Fact: `batch.query.body`
    _slipped(
        "queue-in-body",
        "error",
        "Sent queueRequest in the body",
        "Put it in the query, ?queueRequest=true: in the body it is ignored, and the call runs synchronously",
    ),
    # Fact: `batch.bare`
    _slipped(
        "bare-body",
        "warning",
        "Queued a body without requests",
        'Send {"requests": […]}: a bare body is taken, and on many models fails once it runs',
    ),
    # Fact: `poll.reference`
    _slipped(
        "reference-in-contexts",
        "warning",
        "Put external_reference into contexts",
        "Put it on the request, beside contexts: within them it does not come back",
    ),
    _polled_without_pause,
    _polled_finished,
    _never_collected,
    _near_limit,
    _gave_up,
)


def _is_final(refused: Exchange) -> bool:
    """Whether the service will say the same again: what is wrong is the request, or the day's allocation."""
    if refused.code in DAILY:
        return True
    return (
        400 <= refused.status < 500
        and refused.code is not None
        and refused.code not in PASSING
        and refused.status != _TIMEOUT
    )


def _ended(polls: Sequence[Exchange], before: Exchange | None = None) -> bool:
    """Whether a poll, before some exchange, said how the batch ended, be it that it is not known."""
    return any(
        (poll.state in {"done", "failed"} or (poll.code is not None and poll.code not in PASSING))
        for poll in polls
        if not poll.spoiled and (before is None or poll.seq < before.seq)
    )


def _day(exchange: Exchange) -> int:
    return int(exchange.clock // _DAY_SECONDS)


def _refusal(refused: Exchange) -> str:
    return f"{refused.status}/{refused.code}"


def _named(exchange: Exchange) -> str:
    return f"{exchange.operation} {exchange.seq}"


def _times(exchanges: Sequence[Exchange]) -> str:
    first = exchanges[0]
    return _named(first) if len(exchanges) == 1 else f"{_named(first)} and {len(exchanges) - 1} more"


def _seqs(exchanges: Sequence[Exchange]) -> tuple[int, ...]:
    return tuple(exchange.seq for exchange in exchanges)
