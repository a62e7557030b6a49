"""Accounts: each a world of its own, over the server's defaults."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import TYPE_CHECKING

from workersai_emulator.clock import Clock
from workersai_emulator.ids import DEVELOPMENT_ACCOUNT
from workersai_emulator.journal import Journal
from workersai_emulator.rules import Rules
from workersai_emulator.scenarios import begin_scenario
from workersai_emulator.settings import Settings
from workersai_emulator.usage import DayUsage, MinuteCount

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ACCOUNTS_KEPT = 10_000
_ACCOUNT_ID = re.compile("[0-9a-f]{32}")


def is_account_id(text: str) -> bool:
    """Whether the API's router takes this for an account: 32 hex digits. Fact: `route.account`."""
    return _ACCOUNT_ID.fullmatch(text) is not None


class Defaults:
    """What the server says for every account: its own clock, rules and settings."""

    def __init__(self, settings: Settings, scenarios: Sequence[str] = ()) -> None:
        self._started_with = settings, tuple(scenarios)
        self.reset()

    def reset(self) -> None:
        """As when the server started."""
        self.clock = Clock()
        self.rules = Rules("server-")
        self.settings, scenarios = self._started_with
        for name in scenarios:
            begin_scenario(self.rules, name)


class Account:
    """One account's world: what it says itself, and what the server's defaults say where it says nothing.

    Batches are in the store. `exchanges` counts what reached Workers AI, for the ids of the replies, and `demos`
    the batches that the `/batch` Worker only pretended to queue.
    """

    def __init__(self, account_id: str, defaults: Defaults) -> None:
        self.id = account_id
        self.rules = Rules()
        self.exchanges = 0
        self.demos = 0
        self._defaults = defaults
        self._clock: Clock | None = None
        self._said = Settings()
        self._merged: tuple[Settings, Settings] | None = None
        self._usage: DayUsage | None = None
        self._minute: MinuteCount | None = None

    @property
    def clock(self) -> Clock:
        """The clock that this account goes by: its own once it was given one, else the server's."""
        return self._clock or self._defaults.clock

    @clock.setter
    def clock(self, clock: Clock) -> None:
        self._clock = clock

    def own_clock(self) -> Clock:
        """The account's own clock, to be changed; at first it shows what the server's shows."""
        if self._clock is None:
            self._clock = self._defaults.clock.copy()
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
        below = self._defaults.settings
        if self._merged is None or self._merged[0] is not below:
            self._merged = below, self._said.over(below)
        return self._merged[1]

    def change_settings(self, said: Settings) -> None:
        """Say something for this account alone."""
        self._said, self._merged = said.over(self._said), None

    def _now(self) -> float:
        return self.clock.now()  # whichever clock that is by then

    @property
    def rule_sets(self) -> tuple[Rules, Rules]:
        """The rules that are asked, in this order: the account's, then the server's."""
        return self.rules, self._defaults.rules


class Accounts:
    """All accounts that were ever named, up to a bound; the one unused for longest is forgotten beyond it.

    `journal` has the exchanges of all.
    """

    def __init__(self, settings: Settings, scenarios: Sequence[str] = ()) -> None:
        self.defaults = Defaults(settings, scenarios)
        self.journal = Journal()
        self._accounts: OrderedDict[str, Account] = OrderedDict()

    def __iter__(self) -> Iterator[Account]:
        return iter(list(self._accounts.values()))

    def get(self, account_id: str = DEVELOPMENT_ACCOUNT) -> Account:
        """The account of this id, made when it is first named."""
        account = self._accounts.get(account_id)
        if account is None:
            account = self._accounts[account_id] = Account(account_id, self.defaults)
            if len(self._accounts) > ACCOUNTS_KEPT:
                self._accounts.popitem(last=False)
        else:
            self._accounts.move_to_end(account_id)
        return account

    def reset(self, account_id: str | None) -> None:
        """Forget what an account said, did and counted; all of them, and the server's changes too, without an id."""
        self.journal.clear(account_id)
        if account_id is not None:
            self._accounts.pop(account_id, None)
            return
        self._accounts.clear()
        self.defaults.reset()
