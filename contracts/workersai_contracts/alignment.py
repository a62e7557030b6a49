"""Which exchange of one run is compared with which of another: by their purpose and their step in a batch's life."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from workersai_contracts.recorded import Recorded

_PENDING = ("queued", "running")
_POLLS = frozenset({"poll", "worker-poll"})


def steps(exchanges: Iterable[Recorded]) -> dict[str, dict[str, Recorded]]:
    """The exchanges by what they were sent for, and in that by their step: `submit`, `poll: queued`, `poll: end`.

    A step that comes again is numbered, but for a batch that still waits: how often it says so means nothing.
    """
    tests: defaultdict[str, dict[str, Recorded]] = defaultdict(dict)
    for of, made in _by_purpose(exchanges).items():
        batches = list(dict.fromkeys(one.request_id for one in made if one.request_id))
        counted = Counter[str]()
        for one in made:
            step = _step(one, batches)
            if step.endswith(_PENDING):
                tests[of].setdefault(step, one)
                continue
            counted[step] += 1
            tests[of][step if counted[step] == 1 else f"{step}, {counted[step]}"] = one
    return dict(tests)


def pairs(
    a: dict[str, Recorded], b: dict[str, Recorded]
) -> tuple[list[tuple[str, Recorded, Recorded]], list[tuple[str, Recorded | None]]]:
    """The steps that both have, and those that have no counterpart with whose it is, None for b's.

    Steps of the same operation that are left over on both sides are compared too: one went another way.
    """
    both = [(step, one, b[step]) for step, one in a.items() if step in b]
    left = [(step, one) for step, one in a.items() if step not in b]
    right = [(step, one) for step, one in b.items() if step not in a]
    alone: list[tuple[str, Recorded | None]] = []
    for step, one in left:
        other = next((pair for pair in right if pair[1].operation == one.operation), None)
        if other is None:
            alone.append((step, one))
            continue
        right.remove(other)
        both.append((f"{step} / {other[0]}", one, other[1]))
    return both, alone + [(step, None) for step, _ in right]


def _by_purpose(exchanges: Iterable[Recorded]) -> dict[str, list[Recorded]]:
    found: defaultdict[str, list[Recorded]] = defaultdict(list)
    for one in exchanges:
        found[one.of].append(one)
    return found


def _step(one: Recorded, batches: list[str]) -> str:
    operation = one.operation or f"{one.method} {one.path.rpartition('/')[2]}"
    if one.operation not in _POLLS:
        return operation
    which = batches.index(one.request_id) if one.request_id in batches else 0
    told = one.result if one.operation == "poll" else (one.got or {}).get("json")
    status = told.get("status") if isinstance(told, dict) else None
    state = status if status in _PENDING else "end"
    return f"{operation}{f' of batch {which + 1}' if which else ''}: {state}"
