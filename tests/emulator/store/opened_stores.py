"""A state opened as a server does it, with the accounts that go by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workersai_emulator.accounts import Account, Accounts
from workersai_emulator.options import Options
from workersai_emulator.settings import Settings
from workersai_emulator.state import store_of

if TYPE_CHECKING:
    from workersai_emulator.store import Store

A, B = "a" * 32, "b" * 32
KINDS = ["memory", "file", "redis"]
KEPT = ["file", "redis"]


@dataclass
class Opened:
    """A store with the accounts that go by it, as one process has them."""

    state: str | None
    store: Store
    accounts: Accounts
    seed: int

    @property
    def account(self) -> Account:
        return self.accounts.get(A)


async def opened(
    state: str | None,
    *,
    max_bytes: int = 1000,
    max_batches: int = 100,
    settings: Settings | None = None,
    scenarios: tuple[str, ...] = (),
    seed: int | None = None,
) -> Opened:
    """Open a state as a server does."""
    options = Options(state=state, store_bytes=max_bytes, store_batches=max_batches)
    store = store_of(options)
    accounts = Accounts(settings or Settings(), scenarios, store)
    return Opened(state, store, accounts, await store.open(accounts, seed, 5))
