"""What a batch is to its caller: a handle to find it again, and what a look at it brings back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from workersai_client.errors import ConfigurationError, ItemFailed

PendingStatus = Literal["queued", "running"]


@dataclass(frozen=True, slots=True)
class Handle:
    """All that another process needs to find a submitted batch again.

    A poll needs the model and the account as well as the id (Fact: `poll.request`). `items` is how many
    requests were submitted, where it is known: with it a finished batch that lacks its last items is noticed.
    Two handles are equal when they name the same batch.
    """

    account_id: str
    model: str
    request_id: str
    items: int | None = field(default=None, compare=False)

    def to_json(self) -> str:
        """One line of JSON, for a file or a queue."""
        known = {"account_id": self.account_id, "model": self.model, "request_id": self.request_id}
        return json.dumps(known if self.items is None else {**known, "items": self.items})

    @classmethod
    def from_json(cls, text: str | bytes) -> Handle:
        """Read what `to_json` wrote; further keys are ignored.

        Raises ConfigurationError when the text is no handle.
        """
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            raise ConfigurationError("not a handle: the text is not JSON") from None
        if not isinstance(found, dict):
            raise ConfigurationError("not a handle: the JSON is not an object")
        items = found.get("items")
        if items is not None and (type(items) is not int or items < 0):
            raise ConfigurationError("not a handle: items must be a number of items")
        return cls(_name(found, "account_id"), _name(found, "model"), _name(found, "request_id"), items)


def _name(found: dict[str, Any], key: str) -> str:
    name = found.get(key)
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"not a handle: {key} must be a string")
    return name


@dataclass(frozen=True, slots=True)
class Pending:
    """The batch waits or runs: look again later. Fact: `poll.pending`."""

    status: PendingStatus


@dataclass(frozen=True, slots=True)
class ItemError:
    """Why one item failed, in the service's words. Fact: `item.failed`."""

    message: str
    code: int | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One answer of a finished batch.

    `id` is the position of its request in the submit (Fact: `poll.item`), `result` the model's own output,
    and `external_reference` whatever JSON the request carried (Fact: `poll.reference`). `error` is None when
    `success`.
    """

    id: int
    success: bool
    result: Any
    external_reference: Any = None
    error: ItemError | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, summed over the items. Fact: `poll.usage`."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


@dataclass(frozen=True, slots=True)
class Done:
    """A finished batch: its items in the order of the requests, however they came.

    Items come in completion order (Fact: `poll.order`); here they are sorted by id. A failed item is one of
    them.
    """

    items: tuple[Item, ...]
    usage: Usage | None = None

    def raise_for_items(self) -> Done:
        """Raise ItemFailed for the first item that failed; hand back the batch when none did."""
        failed = [item for item in self.items if not item.success]
        if not failed:
            return self
        error = failed[0].error or ItemError("no reason given")
        count = f"{len(failed)} of {len(self.items)} items failed"
        raise ItemFailed(
            f"{count}, the first is item {failed[0].id}: {error.message}", item=failed[0], code=error.code
        )
