"""An emulator inside a program: for tests and demonstrations, in a thread of its own or in a running loop."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Self

from workersai_emulator.ids import DEVELOPMENT_ACCOUNT, DEVELOPMENT_TOKEN
from workersai_emulator.options import Options
from workersai_emulator.server import Server
from workersai_emulator.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from types import TracebackType


class Emulator:
    """A Workers AI on a free local port.

        with Emulator(script="instant") as emulator:
            Client(base_url=emulator.base_url, account_id=emulator.account_id, api_token=emulator.token)

    `script`, `assumptions`, `limits` and `worker_binding` are the server's settings, spelled as in the control
    plane; the other keywords are those of `Options`. Raises ValueError for what they cannot be. With `async with`
    it runs in the loop at hand; otherwise in a thread of its own.
    """

    account_id = DEVELOPMENT_ACCOUNT
    token = DEVELOPMENT_TOKEN

    def __init__(
        self,
        *,
        script: str | None = None,
        scripts: Mapping[str, str] | None = None,
        assumptions: Mapping[str, str] | None = None,
        limits: Mapping[str, int | None] | None = None,
        worker_binding: bool | None = None,
        port: int = 0,
        **options: Any,
    ) -> None:
        said = {
            "script": script,
            "scripts": scripts,
            "assumptions": assumptions,
            "limits": limits,
            "worker_binding": worker_binding,
        }
        settings = Settings.parse({key: value for key, value in said.items() if value is not None})
        self._server = Server(Options(settings=settings, port=port, **options))
        self._thread: _LoopThread | None = None

    @property
    def url(self) -> str:
        """The server's root, where the `/batch` Worker and the control plane are."""
        return f"http://127.0.0.1:{self._server.port}"

    @property
    def base_url(self) -> str:
        """What clients of the REST API take for their base URL."""
        return f"{self.url}/client/v4"

    @property
    def worker_url(self) -> str:
        """Where the `/batch` Worker is."""
        return self.url

    @property
    def seed(self) -> int:
        """What ids and orders are drawn from: the same seed and requests give the same bytes."""
        return self._server.seed

    def start(self) -> Self:
        """Listen in a thread of its own. Raises OSError when the address cannot be had."""
        self._thread = _LoopThread()
        try:
            self._thread.run(self._server.start())
        except BaseException:
            self._thread.end()
            raise
        return self

    def stop(self) -> None:
        """Stop listening and end the thread."""
        if self._thread is not None:
            self._thread.run(self._server.stop())
            self._thread.end()
            self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await self._server.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.stop()


class _LoopThread:
    """A thread that does nothing but turn an event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="workersai-emulator", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work in the loop and wait for its end."""
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def end(self) -> None:
        """Stop the loop and wait for the thread."""
        self.run(_cancel_the_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_the_others() -> None:
    """End what connections have left behind, such as the wait for the rest of a body that was refused."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
