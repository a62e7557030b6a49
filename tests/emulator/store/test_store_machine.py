"""A machine that drives the stores of every kind at once, restarts included, against a model made of plain values."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from opened_stores import KINDS, Opened, opened

from workersai_emulator.lifecycle import advance, begin
from workersai_emulator.scripts import Script
from workersai_emulator.settings import Settings
from workersai_emulator.store import Batch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

A, B = "a" * 32, "b" * 32
M3 = "@cf/baai/bge-m3"
MOST_BYTES, MOST_BATCHES = 1000, 5
STATES = ["queued", "running", "done"]
WHO = st.sampled_from([A, B])
Got = TypeVar("Got")


class Stores(RuleBasedStateMachine):
    """Every kind of store is told the same, and has to say what the model says."""

    requests = Bundle("requests")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, new_state: Callable[[str], str | None], kind: str
    ) -> None:
        super().__init__()
        self.loop = loop
        self.state = new_state(kind)
        self.beside: list[Opened] = []
        self.names = itertools.count(1)

    def do(self, work: Awaitable[Got]) -> Got:
        return self.loop.run_until_complete(work)  # type: ignore[arg-type]

    def open(self) -> Opened:
        self.beside.append(self.do(opened(self.state, max_bytes=MOST_BYTES, max_batches=MOST_BATCHES)))
        return self.beside[-1]

    @initialize()
    def begin(self) -> None:
        self.world = self.open()
        #: By account and request: polls, size; in the order in which they leave.
        self.kept: dict[tuple[str, str], list[int]] = {}
        self.numbers: dict[tuple[str, str], int] = {}
        #: By owner and rule: how often it may fire still, or None, and how often it did.
        self.rules: dict[str, dict[str, list[Any]]] = {"server": {}, A: {}, B: {}}
        self.made = dict.fromkeys(self.rules, 0)
        self.scripts: dict[str, str] = {}

    def teardown(self) -> None:
        for world in self.beside:
            self.do(world.store.close())

    def owner(self, name: str) -> Any:
        return self.world.accounts.defaults if name == "server" else self.world.accounts.get(name)

    @rule(target=requests, who=WHO, size=st.sampled_from([0, 10, 300, 999]))
    def submit(self, who: str, size: int) -> tuple[str, str]:
        number = self.do(self.world.store.next(who, "submit"))
        self.numbers[who, "submit"] = self.numbers.get((who, "submit"), 0) + 1
        assert number == self.numbers[who, "submit"]
        request = f"r{next(self.names)}"
        life = begin(Script.parse("queued:1, running:1, done"), 1000.0)
        batch = Batch(who, request, number, M3, "requests", 1, size, 1000.0, life)
        self.do(self.world.store.put(batch, b"x" * size))
        self.kept[who, request] = [0, size]
        while len(self.kept) > 1 and (
            len(self.kept) > MOST_BATCHES or sum(size for _, size in self.kept.values()) > MOST_BYTES
        ):
            self.kept.pop(next(iter(self.kept)))
        return who, request

    @rule(key=requests, keeps=st.sampled_from([True, True, True, False]))
    def poll(self, key: tuple[str, str], keeps: bool) -> None:
        def change(batch: Batch) -> Batch | None:
            return batch.lived(advance(batch.life, 1000.0, polled=True)) if keeps else None

        found = self.do(self.world.store.poll(self.owner(key[0]), key[1], change))
        known = self.kept.pop(key, None)
        if known is None or not keeps:
            assert found is None
            return
        self.kept[key] = [known[0] + 1, known[1]]
        assert found is not None
        assert (found.life.state, found.life.polls) == (STATES[min(known[0], 2)], known[0] + 1)

    @rule(key=requests)
    def forget(self, key: tuple[str, str]) -> None:
        self.do(self.world.store.forget(key))
        self.kept.pop(key, None)

    @rule(who=WHO)
    def arrive(self, who: str) -> None:
        number = self.do(self.world.store.arrive(self.owner(who)))
        self.numbers[who, "exchange"] = self.numbers.get((who, "exchange"), 0) + 1
        assert number == self.numbers[who, "exchange"]

    @rule(name=st.sampled_from(["server", A, B]), times=st.sampled_from([None, 1, 2]))
    def add_rule(self, name: str, times: int | None) -> None:
        owner, said = self.owner(name), {"effect": {"error": 3040}, "times": times}
        added = self.do(self.world.store.say(owner, lambda: owner.rules.add(said)))
        self.made[name] += 1
        assert added.id == f"{'server-' if name == 'server' else ''}rule-{self.made[name]}"
        self.rules[name][added.id] = [times, 0]

    @rule(name=st.sampled_from(["server", A, B]))
    def delete_oldest_rule(self, name: str) -> None:
        owner, oldest = self.owner(name), next(iter(self.rules[name]), "none")
        deleted = self.do(self.world.store.say(owner, lambda: owner.rules.delete(oldest)))
        assert deleted is (self.rules[name].pop(oldest, None) is not None)

    @rule(who=WHO)
    def fire(self, who: str) -> None:
        account = self.owner(who)

        def first() -> str | None:
            fired = (rules.fire("run", M3, {}, lambda *_: 0.0) for rules in account.rule_sets)
            return next((each.id for each in fired if each is not None), None)

        expected = None
        for name in (who, "server"):
            due = [
                each for each, (times, fired) in self.rules[name].items() if times is None or fired < times
            ]
            if due and expected is None:
                expected = due[-1]
                self.rules[name][expected][1] += 1
        assert self.do(self.world.store.count(account, first)) == expected

    @rule(name=st.sampled_from(["server", A, B]), script=st.sampled_from(["lost", "done", "queued:3, done"]))
    def set_script(self, name: str, script: str) -> None:
        owner = self.owner(name)
        self.do(
            self.world.store.say(owner, lambda: owner.change_settings(Settings.parse({"script": script})))
        )
        self.scripts[name] = script

    @rule(who=st.sampled_from([A, B, None]))
    def reset(self, who: str | None) -> None:
        self.do(self.world.accounts.reset(who))
        for key in [key for key in self.kept if who in {None, key[0]}]:
            del self.kept[key]
        for numbered in [numbered for numbered in self.numbers if who in {None, numbered[0]}]:
            del self.numbers[numbered]
        for name in [who] if who else list(self.rules):
            self.rules[name], self.made[name] = {}, 0
            self.scripts.pop(name, None)

    @rule(politely=st.booleans())
    def restart(self, politely: bool) -> None:
        """Another process, after the first one's end or beside it; in memory there is none."""
        if self.state is None:
            return
        self.do(self.world.store.kept())
        if politely or "://" not in self.state:
            self.do(self.beside.pop().store.close())
        self.world = self.open()

    @rule(which=st.integers(0, 3))
    def ask_another_process(self, which: int) -> None:
        """What several processes share may be asked of any."""
        if self.state is not None and "://" in self.state:
            self.world = self.beside[which % len(self.beside)]

    @invariant()
    def all_is_as_the_model_says(self) -> None:
        if not hasattr(self, "world"):
            return
        store = self.world.store
        found = {batch.key: batch for batch in self.do(store.list(None))}
        assert {key: [batch.life.polls, batch.size] for key, batch in found.items()} == self.kept
        for key, (_, size) in self.kept.items():
            assert self.do(store.payload(key)) == b"x" * size
        for name in self.rules:
            owner = self.owner(name)
            self.do(store.refresh(owner))
            counted = {each.id: [each.times, each.fired] for each in owner.rules}
            assert counted == self.rules[name]
            below = None if name == "server" else self.scripts.get("server")
            script = owner.settings.script
            assert (None if script is None else str(script)) == self.scripts.get(name, below)


@pytest.mark.parametrize("kind", KINDS)
def test_stores_say_what_the_model_says(kind: str, new_state: Callable[[str], str | None]) -> None:
    new_state(kind)  # skips where there is no Redis
    loop = asyncio.new_event_loop()
    chosen = settings(max_examples=max(10, settings().max_examples * 3 // 10), stateful_step_count=30)
    try:
        run_state_machine_as_test(lambda: Stores(loop, new_state, kind), settings=chosen)  # type: ignore[arg-type]
    finally:
        loop.close()
