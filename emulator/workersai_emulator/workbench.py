"""The workbench: one worker thread for what would keep the event loop from its other clients."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

Made = TypeVar("Made")


class Workbench:
    """Runs jobs one after the other in a thread of its own; many small jobs share it fairly."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="workbench")

    async def make(self, job: Callable[[], Made]) -> Made:
        """What the job returns; what it raises is raised here."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, job)

    async def aside(self, job: Callable[[], Made], *, large: bool) -> Made:
        """What the job returns; only a large one goes to the thread, for a small one costs less than the way there."""
        return await self.make(job) if large else job()

    async def one_ahead(self, jobs: Iterator[Callable[[], Made]]) -> AsyncGenerator[Made]:
        """What each job returns, in order; the next is under way while the caller uses the last."""
        loop = asyncio.get_running_loop()
        under_way: asyncio.Future[Made] | None = None
        try:
            for job in jobs:
                following = loop.run_in_executor(self._thread, job)
                if under_way is not None:
                    made, under_way = await under_way, following
                    yield made
                under_way = following
            if under_way is not None:
                yield await under_way
        finally:
            if under_way is not None:
                under_way.cancel()

    def close(self) -> None:
        """Let the job under way end and start no other."""
        self._thread.shutdown(wait=False, cancel_futures=True)
