"""What every store keeps to of accounts and the server: numbers, what they say, and what is counted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from workersai_contracts import model
from workersai_emulator.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from workersai_emulator.accounts import Account, Defaults

A, B = "a" * 32, "b" * 32
M3 = "@cf/baai/bge-m3"
World = Any


def never(rule_id: str, occasion: int) -> float:
    return 0.99


def fire(account: Account) -> str | None:
    """The id of the rule that fires for a run, the account's before the server's."""
    fired = (rules.fire("run", M3, {"text": "a"}, never) for rules in account.rule_sets)
    return next((rule.id for rule in fired if rule is not None), None)


async def rule(world: World, owner: Account | Defaults, **more: Any) -> str:
    added = await world.store.say(owner, lambda: owner.rules.add({"effect": {"error": 3040}, **more}))
    return str(added.id)


async def test_each_counter_of_each_account_counts_from_one(world: World) -> None:
    store = world.store
    assert [await store.next(A, "submit"), await store.next(A, "submit"), await store.next(A, "demo")] == [
        1,
        2,
        1,
    ]
    assert [await store.arrive(world.account), await store.arrive(world.account)] == [1, 2]
    assert (await store.next(B, "submit"), await store.next(A, "exchange")) == (1, 3)


async def test_what_a_change_gives_comes_back(world: World) -> None:
    assert await world.store.say(world.account, lambda: "said") == "said"
    assert await world.store.count(world.account, lambda: 5) == 5


@pytest.mark.parametrize("whose", ["account", "server"])
async def test_what_an_owner_says_holds_after_it_was_brought_up_to_date(world: World, whose: str) -> None:
    owner = world.account if whose == "account" else world.accounts.defaults
    await world.store.say(owner, lambda: owner.change_settings(Settings.parse({"script": "lost"})))
    await rule(world, owner, times=2)
    await world.store.refresh(owner)
    assert str(owner.settings.script) == "lost"
    assert [each.as_json() for each in owner.rules] == [
        {
            "id": "rule-1" if whose == "account" else "server-rule-1",
            "match": {},
            "effect": {"error": "capacity"},
            "times": 2,
            "fired": 0,
        }
    ]


async def test_a_change_that_fails_changes_nothing(world: World) -> None:
    account = world.account
    await rule(world, account)
    with pytest.raises(ValueError, match="there is no 'oops'"):
        await rule(world, account, oops=1)
    await world.store.refresh(account)
    assert [each.id for each in account.rules] == ["rule-1"]
    assert await rule(world, account) == "rule-2"


@pytest.mark.parametrize("whose", ["account", "server"])
async def test_a_rule_for_one_time_fires_once_however_many_ask_at_once(world: World, whose: str) -> None:
    await rule(world, world.account if whose == "account" else world.accounts.defaults, times=1)
    accounts = [world.accounts.get(account_id) for account_id in (A, A, B, A, B)]
    if whose == "account":
        accounts = [world.account] * 5
    fired = await asyncio.gather(
        *(world.store.count(account, lambda account=account: fire(account)) for account in accounts)
    )
    assert len([each for each in fired if each is not None]) == 1


async def test_counts_stay_where_a_rule_is_added_or_deleted(world: World) -> None:
    account = world.account
    await rule(world, account)
    await world.store.count(account, lambda: fire(account))
    await rule(world, account, match={"operation": "poll"})
    await world.store.count(account, lambda: fire(account))
    await world.store.say(account, lambda: account.rules.delete("rule-2"))
    await world.store.refresh(account)
    assert [(each.id, each.seen, each.fired) for each in account.rules] == [("rule-1", 2, 2)]


async def test_own_clock_begins_with_the_servers_and_goes_its_own_way(world: World) -> None:
    account, server = world.account, world.accounts.defaults
    # The clock may be another one when it is called.
    await world.store.say(server, lambda: server.clock.freeze())  # noqa: PLW0108
    await world.store.say(account, lambda: account.own_clock().advance(60))
    await world.store.say(server, lambda: server.clock.advance(5))
    await world.store.refresh(account)
    assert account.clock.now() == server.clock.now() + 55
    assert account.clock.frozen


async def test_reset_of_an_account_forgets_what_it_said_and_counted(world: World) -> None:
    card = model(M3)
    assert card is not None
    for account_id in (A, B):
        account, _ = await world.accounts.arrive(account_id)
        await rule(world, account)
        await world.store.say(account, lambda account=account: account.own_clock().advance(1e6))
        await world.store.count(account, lambda account=account: account.usage.add(card, 1000, 0))
    await world.accounts.reset(A)
    account, number = await world.accounts.arrive(A)
    assert (number, len(account.rules), account.usage.neurons) == (1, 0, 0.0)
    assert account.clock is world.accounts.defaults.clock
    other, number = await world.accounts.arrive(B)
    assert (number, len(other.rules)) == (2, 1)
    assert other.usage.neurons > 0


async def test_reset_of_all_begins_as_the_server_started(
    make: Callable[..., Awaitable[World]],
) -> None:
    world = await make(settings=Settings.parse({"script": "instant"}), scenarios=("stuck",))
    server = world.accounts.defaults
    await world.store.say(server, lambda: server.change_settings(Settings.parse({"script": "lost"})))
    await world.store.say(server, lambda: server.rules.end_scenario("stuck"))
    await world.accounts.arrive(A)
    await world.accounts.reset(None)
    await world.store.refresh(server)
    assert str(server.settings.script) == "done"
    assert [each.scenario for each in server.rules] == ["stuck"]
    assert await world.accounts.all() == []


async def test_every_account_that_was_named_is_known(world: World) -> None:
    for account_id in (B, A):
        await world.accounts.arrive(account_id)
    assert {account.id for account in await world.accounts.all()} == {A, B}
