"""Where state is kept: the one interface through which everything changes that an answer depends on."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from workersai_emulator.accounts import Account, Accounts, Defaults
    from workersai_emulator.journal import Journal
    from workersai_emulator.lifecycle import Life

RETENTION_SECONDS = 24 * 3600.0

Key = tuple[str, str]
#: What is counted one by one: exchanges that reached Workers AI, submits, and batches that were only pretended.
Counter = Literal["exchange", "submit", "demo"]
Told = TypeVar("Told")
_NONE: Final[Mapping[int, Any]] = MappingProxyType({})


class NotKept(Exception):
    """The store is out of reach, or cannot keep any more; one line says what to do."""


class Batch(NamedTuple):
    """What one submit queued, without its body.

    `form` is `requests` for a list of them and `bare` for a single input without one; `items` counts them.
    `number` is that of the submit among its account's. `outputs` and `failures` say of items, by index, what a
    rule chose: the answer, as JSON, or the row of the catalogue that they fail with.
    """

    account_id: str
    request_id: str
    number: int
    model: str
    form: Literal["requests", "bare"]
    items: int
    size: int
    submitted_at: float
    life: Life
    outputs: Mapping[int, bytes] = _NONE
    failures: Mapping[int, str] = _NONE

    @property
    def key(self) -> Key:
        """What the batch is found by; another account's is not found."""
        return self.account_id, self.request_id

    def lived(self, life: Life) -> Batch:
        """The same batch, so much later."""
        return Batch(*self[:8], life, *self[9:])  # `_replace` takes three times as long

    def expires_at(self) -> float:
        """When it is forgotten: 24 h after it was done, or after the submit if it never was.

        Fact: `poll.retention`.
        """
        ended, given_up = self.life.entry.since, self.submitted_at + RETENTION_SECONDS
        # One that ended too late had been forgotten by then, whether or not anybody looked.
        return given_up if self.life.waiting or ended >= given_up else ended + RETENTION_SECONDS


class Store(Protocol):
    """Batches by account and `request_id`, each with the bytes of its request; and what owners say and count.

    An owner is an account, or the server with its defaults; its object is what is known of it in this process. A
    `do` makes a change there, and may be called again after the object was brought up to date. Everything but
    `open` raises NotKept where the store is out of reach.
    """

    @property
    def journal(self) -> Journal:
        """The exchanges."""

    async def open(self, accounts: Accounts, seed: int | None, fresh: int) -> int:
        """Get ready to keep the state of these accounts, and give the seed that holds: said, kept, or a fresh one.

        Raises ValueError, in one line, for what can't be opened.
        """

    async def close(self) -> None:
        """Let go of everything; nothing is changed after that."""

    async def kept(self) -> None:
        """Return once everything that was changed before is kept: a reply waits for this."""

    async def refresh(self, owner: Account | Defaults) -> None:
        """Bring what is known here of an owner, and of the server, up to date."""

    async def arrive(self, account: Account) -> int:
        """The same, and the number of the account's exchange that this is."""

    async def next(self, account_id: str, counter: Counter) -> int:
        """The next number of its kind for the account, counted from 1."""

    async def say(self, owner: Account | Defaults, do: Callable[[], Told]) -> Told:
        """Change what an owner says, at one stroke: its settings, rules and clock. What `do` raises changes nothing."""

    async def count(self, account: Account, do: Callable[[], Told]) -> Told:
        """Change what is counted of an account and of the server's rules, at one stroke."""

    async def account_ids(self) -> list[str]:
        """The accounts that others may have named."""

    def drop(self, account_id: str) -> None:
        """Forget what an account that is unused for long said and counted, but for its batches."""

    async def put(self, batch: Batch, payload: bytes) -> None:
        """Keep a new batch and its request."""

    async def get(self, key: Key) -> Batch | None:
        """The batch, if it is known."""

    async def poll(
        self, account: Account, wanted: str, change: Callable[[Batch], Batch | None]
    ) -> Batch | None:
        """Change a batch, and maybe its account's clock, at one stroke, and give what it became.

        None from `change` forgets it; None comes back for that, and where it is unknown.
        """

    async def payload(self, key: Key) -> bytes | None:
        """The bytes of the batch's request, as they came."""

    async def forget(self, key: Key) -> None:
        """Drop one batch."""

    async def list(self, account_id: str | None) -> list[Batch]:
        """The batches of an account, or of all, in the order of their submits."""

    async def reset(self, account_id: str | None) -> None:
        """Drop all that is kept of an account, or of all and the server."""
