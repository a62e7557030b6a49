"""Batches: what becomes of a submit, and what a poll finds. Facts: `batch.submit`, `poll.request`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from workersai_emulator.ids import request_id
from workersai_emulator.lifecycle import Life, advance, begin, decide, go_on, hold, next_change
from workersai_emulator.scripts import Script, Step
from workersai_emulator.store import Batch, Store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workersai_emulator.accounts import Account
    from workersai_emulator.settings import Settings

Action = Literal["go-on", "hold", "lose", "fail"]
ACTIONS: tuple[Action, ...] = ("go-on", "hold", "lose", "fail")


class Batches:
    """The queue: submit and poll over one store, each batch by its account's clock."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.seed = seed

    async def submit(
        self,
        account: Account,
        model: str,
        payload: bytes,
        script: Script,
        *,
        form: Literal["requests", "bare"],
        items: int,
        outputs: Mapping[int, bytes],
        failures: Mapping[int, str],
    ) -> Batch:
        """Queue a request that was found good, and give the batch that it became."""
        number = await self.store.next(account.id, "submit")
        now = account.clock.now()
        batch = Batch(
            account_id=account.id,
            request_id=request_id(self.seed, account.id, number),
            number=number,
            model=model,
            form=form,
            items=items,
            size=len(payload),
            submitted_at=now,
            life=begin(script, now),
            outputs=outputs,
            failures=failures,
        )
        await self.store.put(batch, payload)
        return batch

    async def poll(self, account: Account, settings: Settings, wanted: str, model: str) -> Batch | None:
        """The batch as this poll finds it; None where the id is unknown.

        Expired, lost and, unless `poll.other-model` says otherwise, another model's are unknown. With a clock
        that jumps, the poll first moves it to the batch's next change.
        Facts: `poll.unknown`, `poll.other-model`, `poll.retention`.
        """
        answers_others = settings.assumed("poll.other-model") == "answered"
        reads_once = settings.assumed("poll.retention") == "once"

        def change(batch: Batch) -> Batch | None:
            if batch.model != model and not answers_others:
                return batch
            if account.clock.jump:
                _jump(account, batch)
            now = account.clock.now()
            polled = batch.lived(advance(batch.life, now, polled=True))
            return None if now >= polled.expires_at() else polled

        batch = await self.store.poll(account, wanted, change)
        if batch is None or batch.life.state == "lost" or (batch.model != model and not answers_others):
            return None
        if reads_once and batch.life.state == "done" and batch.life.entry.polls > 1:
            await self.store.forget(batch.key)
            return None
        return batch

    async def get(self, account: Account, wanted: str) -> Batch | None:
        """The batch as it is now, lost ones too, without a poll; None where the id is unknown."""
        batch = await self.store.get((account.id, wanted))
        return None if batch is None else _now(account, batch)

    async def list(self, account: Account) -> list[Batch]:
        """An account's batches as they are now, in the order of their submits."""
        shown = (_now(account, batch) for batch in await self.store.list(account.id))
        return [batch for batch in shown if batch is not None]

    async def act(self, account: Account, wanted: str, action: Action, error: str | None) -> Batch | None:
        """Do something to a batch by hand, and give what it became; None where the id is unknown."""

        def change(batch: Batch) -> Batch | None:
            shown = _now(account, batch)
            if shown is None:
                return None
            now = account.clock.now()
            return shown.lived(_acted(shown.life, action, error, now))

        return await self.store.poll(account, wanted, change)


def _acted(life: Life, action: Action, error: str | None, now: float) -> Life:
    match action:
        case "go-on":
            return go_on(life, now)
        case "hold":
            return hold(life)
        case "lose":
            return decide(life, Step("lost"), now)
        case "fail":
            return decide(life, Step("failed", error=error), now)


def _now(account: Account, batch: Batch) -> Batch | None:
    now = account.clock.now()
    shown = batch.lived(advance(batch.life, now, polled=False))
    return None if now >= shown.expires_at() else shown


def _jump(account: Account, batch: Batch) -> None:
    change = next_change(advance(batch.life, account.clock.now(), polled=False))
    if change is not None:
        account.own_clock().reach(min(change, batch.expires_at()))
