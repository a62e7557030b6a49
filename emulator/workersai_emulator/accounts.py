"""Accounts: each a world of its own, over the server's defaults.

What an owner (an account, or the server for all) says, and what is counted of it, are two records that a store may
keep: both change through the store alone (`say`, `count`), so that nothing that was answered is forgotten.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from workersai_emulator.clock import Clock
from workersai_emulator.ids import DEVELOPMENT_ACCOUNT
from workersai_emulator.memory_store import MemoryStore
from workersai_emulator.rules import Rules
from workersai_emulator.scenarios import begin_scenario
from workersai_emulator.settings import Settings
from workersai_emulator.usage import DayUsage, MinuteCount

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workersai_emulator.journal import Journal
    from workersai_emulator.store import Store

ACCOUNTS_KEPT = 10_000
#: What the server's own records are found by, beside the accounts'.
SERVER: Final = "server"
_ACCOUNT_ID = re.compile("[0-9a-f]{32}")


def is_account_id(text: str) -> bool:
    """Whether the API's router takes this for an account: 32 hex digits. Fact: `route.account`."""
    return _ACCOUNT_ID.fullmatch(text) is not None


class Defaults:
    """What the server says for every account: its own clock, rules and settings.

    `settings` are those that it started with under those that were said since.
    """

    id: Final = SERVER

    def __init__(self, settings: Settings, scenarios: Sequence[str] = ()) -> None:
        self._started_with = settings, tuple(scenarios)
        self._said = Settings()
        self._begun: list[str] = []
        self.reset()

    def reset(self) -> None:
        """As when the server started."""
        self.take_said(None)

    def change_settings(self, said: Settings) -> None:
        """Say something for all accounts."""
        self._said = said.over(self._said)
        self.settings = self._said.over(self._started_with[0])

    def said(self) -> dict[str, Any]:
        """What was said, as JSON that `take_said` reads."""
        return {
            "settings": self._said.said(),
            "rules": self.rules.said(),
            "clock": self.clock.said(),
            "begun": self._begun,
        }

    def take_said(self, said: Mapping[str, Any] | None) -> None:
        """Take what was said for what holds; None for nothing. The rules are not counted yet.

        A scenario of the start begins once: where it was ended, another start does not begin it again.
        """
        self.clock = Clock() if said is None else Clock.of(said["clock"])
        self.rules = Rules("server-")
        self._said, self._begun = Settings(), []
        if said is not None:
            self.rules.take(said["rules"])
            self._said, self._begun = Settings.parse(said["settings"]), list(said["begun"])
        started_with, scenarios = self._started_with
        self.settings = self._said.over(started_with)
        for name in scenarios:
            if name not in self._begun:
                begin_scenario(self.rules, name)
                self._begun.append(name)

    def counts(self) -> dict[str, Any]:
        """What was counted, as JSON that `take_counts` reads."""
        return {"rules": self.rules.counts()}

    def take_counts(self, counts: Mapping[str, Any] | None) -> None:
        """Go on from what was counted; None for nothing."""
        self.rules.go_on({} if counts is None else counts["rules"])


class Account:
    """One account's world: what it says itself, and what the server's defaults say where it says nothing.

    Batches are in the store, and so are the numbers of its exchanges and submits.
    """

    def __init__(self, account_id: str, defaults: Defaults) -> None:
        self.id = account_id
        self.defaults = defaults
        self.rules = Rules()
        self._clock: Clock | None = None
        self._said = Settings()
        self._merged: tuple[Settings, Settings] | None = None
        self._usage: DayUsage | None = None
        self._minute: MinuteCount | None = None

    @property
    def clock(self) -> Clock:
        """The clock that this account goes by: its own once it was given one, else the server's."""
        return self._clock or self.defaults.clock

    @clock.setter
    def clock(self, clock: Clock) -> None:
        self._clock = clock

    def own_clock(self) -> Clock:
        """The account's own clock, to be changed; at first it shows what the server's shows."""
        if self._clock is None:
            self._clock = self.defaults.clock.copy()
        return self._clock

    @property
    def usage(self) -> DayUsage:
        """What the account uses today, by its own clock."""
        if self._usage is None:
            self._usage = DayUsage(self._now)
        return self._usage

    @property
    def minute(self) -> MinuteCount:
        """What the account asks for in this minute, by its own clock."""
        if self._minute is None:
            self._minute = MinuteCount(self._now)
        return self._minute

    @property
    def settings(self) -> Settings:
        """What holds for this account."""
        below = self.defaults.settings
        if self._merged is None or self._merged[0] is not below:
            self._merged = below, self._said.over(below)
        return self._merged[1]

    def change_settings(self, said: Settings) -> None:
        """Say something for this account alone."""
        self._said, self._merged = said.over(self._said), None

    def said(self) -> dict[str, Any]:
        """What the account says, as JSON that `take_said` reads."""
        return {
            "settings": self._said.said(),
            "rules": self.rules.said(),
            "clock": None if self._clock is None else self._clock.said(),
        }

    def take_said(self, said: Mapping[str, Any] | None) -> None:
        """Take what was said for what holds; None for nothing. The rules are not counted yet."""
        self.rules, self._clock, self._said, self._merged = Rules(), None, Settings(), None
        if said is not None:
            self.rules.take(said["rules"])
            self._said = Settings.parse(said["settings"])
            self._clock = None if said["clock"] is None else Clock.of(said["clock"])

    def counts(self) -> dict[str, Any]:
        """What was counted of the account, as JSON that `take_counts` reads."""
        return {
            "rules": self.rules.counts(),
            "usage": None if self._usage is None else self._usage.counts(),
            "minute": None if self._minute is None else self._minute.counts(),
        }

    def take_counts(self, counts: Mapping[str, Any] | None) -> None:
        """Go on from what was counted; None for nothing."""
        self._usage = self._minute = None
        self.rules.go_on({} if counts is None else counts["rules"])
        if counts is not None and counts["usage"] is not None:
            self.usage.go_on(counts["usage"])
        if counts is not None and counts["minute"] is not None:
            self.minute.go_on(counts["minute"])

    def _now(self) -> float:
        return self.clock.now()  # whichever clock that is by then

    @property
    def rule_sets(self) -> tuple[Rules, Rules]:
        """The rules that are asked, in this order: the account's, then the server's."""
        return self.rules, self.defaults.rules


class Accounts:
    """All accounts that were ever named, up to a bound; the one unused for longest is forgotten beyond it.

    `store` keeps what they say and count, where it keeps anything.
    """

    def __init__(self, settings: Settings, scenarios: Sequence[str] = (), store: Store | None = None) -> None:
        self.defaults = Defaults(settings, scenarios)
        self.store = store or MemoryStore()
        self._accounts: OrderedDict[str, Account] = OrderedDict()

    @property
    def journal(self) -> Journal:
        """The exchanges of all."""
        return self.store.journal

    def get(self, account_id: str = DEVELOPMENT_ACCOUNT) -> Account:
        """The account of this id as it is known here, made when it is first named."""
        account = self._accounts.get(account_id)
        if account is None:
            account = self._accounts[account_id] = Account(account_id, self.defaults)
            if len(self._accounts) > ACCOUNTS_KEPT:
                forgotten, _ = self._accounts.popitem(last=False)
                self.store.drop(forgotten)
        else:
            self._accounts.move_to_end(account_id)
        return account

    async def arrive(self, account_id: str) -> tuple[Account, int]:
        """The account as it is now, and the number of an exchange that reached Workers AI for it."""
        account = self.get(account_id)
        return account, await self.store.arrive(account)

    async def fresh(self, account_id: str | None) -> Account | None:
        """The account as it is now; None, and the server's defaults as they are now, without an id."""
        account = None if account_id is None else self.get(account_id)
        await self.store.refresh(account or self.defaults)
        return account

    async def all(self) -> list[Account]:
        """Every account that is known, as it is now."""
        for account_id in await self.store.account_ids():
            await self.store.refresh(self.get(account_id))
        return list(self._accounts.values())

    async def reset(self, account_id: str | None) -> None:
        """Forget all that is kept of an account; without an id of every one, and what the server was told."""
        if account_id is not None:
            self._accounts.pop(account_id, None)
        else:
            self._accounts.clear()
            self.defaults.reset()
        await self.store.reset(account_id)
        await self.journal.clear(account_id)
