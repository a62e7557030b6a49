"""Batches as records: what a store writes of them, and reads again after a restart or in another process.

A record has two parts: what a submit made, which never changes, and the life, which does.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from functools import lru_cache
from typing import Any

from workersai_emulator.json_text import dumps, loads
from workersai_emulator.lifecycle import Entry, Life
from workersai_emulator.scripts import Script, Step
from workersai_emulator.store import Batch


def written_life(life: Life) -> bytes:
    """The part that changes."""
    steps = [[step.state, step.polls, step.seconds, step.error] for step in life.script.steps]
    entries = [[entry.state, entry.since, entry.polls] for entry in life.entries]
    return dumps([dumps(steps).decode(), entries, life.decided])


def written_submit(batch: Batch) -> bytes:
    """The part that does not."""
    outputs = {str(index): b64encode(output).decode() for index, output in batch.outputs.items()}
    failures = {str(index): row for index, row in batch.failures.items()}
    said = [batch.number, batch.model, batch.form, batch.items, batch.size, batch.submitted_at]
    return dumps([*said, outputs, failures])


def read_batch(account_id: str, request_id: str, submit: bytes, life: bytes) -> Batch:
    """The batch that both parts are of."""
    number, model, form, items, size, submitted_at, outputs, failures = loads(submit)
    steps, entries, decided = loads(life)
    return Batch(
        account_id,
        request_id,
        number,
        model,
        form,
        items,
        size,
        submitted_at,
        Life(_script(steps), tuple(Entry(*entry) for entry in entries), decided),
        {int(index): b64decode(output) for index, output in outputs.items()},
        {int(index): row for index, row in failures.items()},
    )


def read_record(record: bytes | None) -> Any:
    """What an owner said or counted; None where nothing was."""
    return None if record is None else loads(record)


@lru_cache(maxsize=256)
def _script(steps: str) -> Script:
    """Most batches live by one of few scripts."""
    return Script(tuple(Step(*step) for step in loads(steps)))
