"""Stores of every kind, opened; and a second look at what one has kept.

Its modules are found beside this file.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from workersai_emulator.store import Store

sys.path.insert(0, str(Path(__file__).parent))

from opened_stores import KEPT, KINDS, Opened, opened

MakeStore = Callable[[int, int], Awaitable[Store]]
Again = Callable[[], Awaitable[Opened]]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def make(
    kind: str, new_state: Callable[[str], str | None]
) -> AsyncIterator[Callable[..., Awaitable[Opened]]]:
    """Opens a new state of this kind, with bounds of the test's own."""
    made: list[Opened] = []

    async def open_new(**options: object) -> Opened:
        made.append(await opened(new_state(kind), **options))  # type: ignore[arg-type]
        return made[-1]

    yield open_new
    for each in made:
        await each.store.close()


@pytest.fixture
def make_store(make: Callable[..., Awaitable[Opened]]) -> MakeStore:
    async def open_new(max_bytes: int, max_batches: int) -> Store:
        return (await make(max_bytes=max_bytes, max_batches=max_batches)).store

    return open_new


@pytest.fixture
async def world(make: Callable[..., Awaitable[Opened]]) -> Opened:
    return await make()


@pytest.fixture
def store(world: Opened) -> Store:
    return world.store


@pytest.fixture(params=KEPT)
async def kept_world(
    request: pytest.FixtureRequest, new_state: Callable[[str], str | None]
) -> AsyncIterator[Opened]:
    """A world whose state outlives its process."""
    world = await opened(new_state(request.param), max_bytes=10**9)
    yield world
    await world.store.close()


@pytest.fixture
async def again(kept_world: Opened) -> AsyncIterator[Again]:
    """The same state as another process finds it: after the end of the first for a file, beside it for a Redis."""
    found: list[Opened] = []

    async def look() -> Opened:
        await kept_world.store.kept()
        if kept_world.state is not None and "://" not in kept_world.state:
            await (found or [kept_world])[-1].store.close()
        found.append(await opened(kept_world.state, max_bytes=10**9))
        return found[-1]

    yield look
    for each in found:
        await each.store.close()
