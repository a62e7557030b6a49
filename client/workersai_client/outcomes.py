"""What a reply to a submit or a poll means. Nothing here waits: what is not understood is an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from workersai_client.batches import Done, Handle, Item, ItemError, Pending, Usage
from workersai_client.errors import BatchFailed, InvalidRequest, UnexpectedReply, WorkersAIError
from workersai_client.replies import error_in, is_integer, result_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from workersai_client.wire import Reply

# Fact: `batch.failed`
BATCH_FAILED = 5001
# The router's own refusals say something of the request, not of the batch. Facts: `route.none`,
# `route.method`, `route.account`
ROUTER_CODES = frozenset({7000, 7001, 7003})


def submitted(reply: Reply, account_id: str, model: str, items: int) -> Handle:
    """Take the handle of a batch that was queued. Fact: `batch.submit`.

    Raises UnexpectedReply when the reply names no batch, as when something on the way dropped the query and
    the model ran at once.
    """
    result = result_of(reply)
    if not isinstance(result, dict):
        _unexpected(reply, result, "/result", "nothing was queued: the result is no object")
    request_id = result.get("request_id")
    if not isinstance(request_id, str) or not request_id:
        _unexpected(reply, result, "/result/request_id", "nothing was queued: the reply has no request_id")
    return Handle(account_id, model, request_id, items)


def looked_at(reply: Reply, handle: Handle) -> Pending | Done:
    """Say what a poll found. Facts: `poll.pending`, `poll.done`, `poll.results`, `batch.failed`.

    Pending only when the reply says queued or running, Done when it has responses or results. Raises
    BatchFailed when it says that nothing will come, UnexpectedReply when it says neither, and what
    `result_of` raises.
    """
    try:
        result = result_of(reply)
    except WorkersAIError as error:
        raise _failure(error, handle) from None
    if not isinstance(result, dict):
        _unexpected(reply, result, "/result", "the result of a poll is no object")
    status = result.get("status")
    if status == "failed":
        code, text = error_in(result)
        message = text or "the batch failed without a reason"
        raise BatchFailed(message, handle=handle, status=reply.status, code=code, body=result)
    key = next((key for key in ("responses", "results") if result.get(key) is not None), None)
    if status in ("queued", "running"):
        if key is not None:
            _unexpected(reply, result, "/result/status", f"a batch that is {status} has {key}")
        if result.get("request_id", handle.request_id) != handle.request_id:
            _unexpected(reply, result, "/result/request_id", "the reply is about another batch")
        return Pending(status)
    if key is None:
        path = "/result/status" if "status" in result else "/result"
        _unexpected(reply, result, path, "the batch is neither pending nor done")
    return _Reading(reply, handle, result, key).done()


def _failure(error: WorkersAIError, handle: Handle) -> WorkersAIError:
    """Take a final refusal of a poll by Workers AI as the end of the batch, but nothing that may pass.

    Facts: `batch.failed`, `batch.invalid`, `poll.unknown`.
    """
    refused = isinstance(error, InvalidRequest) and not error.retryable
    of_the_batch = refused and error.code is not None and error.code not in ROUTER_CODES
    if of_the_batch or error.code == BATCH_FAILED:
        details = error.details
        details["retryable"] = False
        return BatchFailed(error.message, handle=handle, **details)
    return error


def _unexpected(reply: Reply, result: Any, path: str, message: str) -> NoReturn:
    request_id = reply.headers.get("cf-ai-req-id")
    raise UnexpectedReply(message, path=path, status=reply.status, cf_request_id=request_id, body=result)


@dataclass(frozen=True, slots=True)
class _Reading:
    """A finished batch while it is read; `key` is `responses`, with ids, or `results`, with indexes."""

    reply: Reply
    handle: Handle
    result: dict[str, Any]
    key: str

    def done(self) -> Done:
        entries = self.result[self.key]
        if not isinstance(entries, list):
            self._refuse("", f"{self.key} is not a list")
        items: dict[int, Item] = {}
        for position, entry in enumerate(entries):
            item = self._item(position, entry)
            if item.id in items:
                self._refuse(f"/{position}", f"there are two items {item.id}")
            items[item.id] = item
        self._check_complete(items)
        return Done(tuple(items[number] for number in sorted(items)), self._usage())

    def _item(self, position: int, entry: Any) -> Item:
        if not isinstance(entry, dict):
            self._refuse(f"/{position}", "an item is not an object")
        name = "id" if "id" in entry else "index"
        number = entry.get(name)
        if not is_integer(number) or number < 0:
            self._refuse(f"/{position}/{name}", f"an item's {name} is not a position in the request")
        failure = entry.get("errors") or entry.get("error")
        success = entry.get("success", not failure)
        if not isinstance(success, bool):
            self._refuse(f"/{position}/success", "success is neither true nor false")
        if success and "result" not in entry:
            self._refuse(f"/{position}/result", f"item {number} succeeded without a result")
        return Item(
            number, success, entry.get("result"), entry.get("external_reference"), _error(success, entry)
        )

    def _check_complete(self, items: Iterable[int]) -> None:
        """Refuse a gap: an id is a position in the request, so an item was lost, however many were sent."""
        there = set(items)
        beyond = max(there, default=-1) + 1
        expected = beyond if self.handle.items is None else self.handle.items
        if beyond > expected:
            self._refuse("", f"item {beyond - 1} answers nothing: {expected} were submitted")
        if missing := expected - len(there):
            first = next(number for number in range(expected) if number not in there)
            self._refuse("", f"{missing} of {expected} items are missing, the first is item {first}")

    def _usage(self) -> Usage | None:
        usage = self.result.get("usage")
        if usage is None:
            return None
        if not isinstance(usage, dict):
            _unexpected(self.reply, self.result, "/result/usage", "usage is not an object")
        counts = []
        for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
            count = usage.get(name, 0)
            if not is_integer(count):
                _unexpected(self.reply, self.result, f"/result/usage/{name}", f"{name} is not a number")
            counts.append(count)
        return Usage(*counts)

    def _refuse(self, path: str, message: str) -> NoReturn:
        _unexpected(self.reply, self.result, f"/result/{self.key}{path}", message)


def _error(success: bool, entry: dict[str, Any]) -> ItemError | None:
    if success:
        return None
    code, message = error_in(entry)
    return ItemError(message or "no reason given", code)
