from __future__ import annotations

from typing import Any

import pytest

from workersai_emulator import accounts as accounts_module
from workersai_emulator.accounts import Accounts, is_account_id
from workersai_emulator.ids import DEVELOPMENT_ACCOUNT
from workersai_emulator.settings import Settings

A, B = "a" * 32, "b" * 32


@pytest.mark.parametrize("text", [DEVELOPMENT_ACCOUNT, A, "0" * 32])
def test_thirty_two_hex_digits_are_an_account(text: str) -> None:
    assert is_account_id(text)


@pytest.mark.parametrize("text", ["", "me", "a" * 31, "a" * 33, "g" * 32, "a" * 32 + "\n", "٣" * 32])
def test_anything_else_is_none(text: str) -> None:
    assert not is_account_id(text)


async def test_account_is_made_when_first_named_and_then_the_same() -> None:
    accounts = Accounts(Settings())
    assert accounts.get(A) is accounts.get(A)
    assert accounts.get().id == DEVELOPMENT_ACCOUNT
    assert [account.id for account in await accounts.all()] == [A, DEVELOPMENT_ACCOUNT]


def test_account_follows_the_servers_settings_where_it_says_nothing() -> None:
    accounts = Accounts(Settings.parse({"script": "instant"}))
    account = accounts.get(A)
    assert str(account.settings.script) == "done"
    account.change_settings(Settings.parse({"assumptions": {"done.order": "request"}}))
    accounts.defaults.settings = Settings.parse(
        {"script": "lost", "assumptions": {"done.status": "completed"}}
    )
    assert str(account.settings.script) == "lost"
    assert account.settings.assumed("done.order") == "request"
    assert account.settings.assumed("done.status") == "completed"
    assert accounts.get(B).settings.assumed("done.order") == "shuffled"


def test_what_an_account_says_later_adds_to_what_it_said() -> None:
    account = Accounts(Settings()).get(A)
    account.change_settings(Settings.parse({"script": "lost", "limits": {"body_bytes": 7}}))
    account.change_settings(Settings.parse({"script": "instant"}))
    assert str(account.settings.script) == "done"
    assert account.settings.body_bytes == 7


def test_account_goes_by_the_servers_clock_until_it_has_its_own(system: Any) -> None:
    accounts = Accounts(Settings())
    account = accounts.get(A)
    accounts.defaults.clock.freeze()
    accounts.defaults.clock.advance(60)
    assert account.clock.now() == system.now + 60
    own = account.own_clock()
    assert own is account.clock is account.own_clock()
    assert (own.now(), own.frozen) == (system.now + 60, True)
    own.advance(5)
    accounts.defaults.clock.advance(100)
    assert account.clock.now() == system.now + 65
    assert accounts.get(B).clock.now() == system.now + 160


def test_accounts_rules_are_asked_before_the_servers() -> None:
    accounts = Accounts(Settings())
    assert accounts.get(A).rule_sets == (accounts.get(A).rules, accounts.defaults.rules)
    assert accounts.get(A).rules is not accounts.get(B).rules


async def test_reset_forgets_what_one_account_said() -> None:
    accounts = Accounts(Settings())
    for account_id in (A, B):
        accounts.get(account_id).change_settings(Settings.parse({"script": "lost"}))
        accounts.get(account_id).rules.add({"effect": {"error": 3040}})
        accounts.get(account_id).own_clock().advance(1e6)
        await accounts.arrive(account_id)
    await accounts.reset(A)
    fresh, number = await accounts.arrive(A)
    assert (fresh.settings.script, len(fresh.rules), number) == (None, 0, 1)
    assert fresh.clock is accounts.defaults.clock
    assert str(accounts.get(B).settings.script) == "lost"


async def test_reset_of_all_brings_back_what_the_server_started_with(system: Any) -> None:
    accounts = Accounts(Settings.parse({"script": "instant"}))
    accounts.get(A).change_settings(Settings.parse({"script": "lost"}))
    accounts.defaults.settings = Settings.parse({"script": "realistic"})
    accounts.defaults.rules.add({"effect": {"error": 3040}})
    accounts.defaults.clock.advance(1e6)
    await accounts.reset(None)
    assert await accounts.all() == []
    assert str(accounts.get(A).settings.script) == "done"
    assert len(accounts.defaults.rules) == 0
    assert accounts.get(A).clock.now() == system.now


async def test_account_unused_for_longest_is_forgotten_beyond_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accounts_module, "ACCOUNTS_KEPT", 3)
    accounts = Accounts(Settings())
    first = [accounts.get(f"{number:032x}") for number in range(3)]
    assert accounts.get(first[0].id) is first[0]
    accounts.get(A)
    assert [account.id for account in await accounts.all()] == [first[2].id, first[0].id, A]
