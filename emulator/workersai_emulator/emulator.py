"""An emulator inside a program, for tests and demonstrations."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Self

from workersai_emulator.api_tokens import Token, credentials
from workersai_emulator.controls import WorkersAI
from workersai_emulator.options import Options, url_of
from workersai_emulator.plane import HttpPlane
from workersai_emulator.server import Server
from workersai_emulator.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping
    from types import TracebackType

    from workersai_emulator.settings import Limit


class Emulator(WorkersAI):
    """A Workers AI on a free local port, in a thread of its own.

        with Emulator(script="instant") as emulator:
            Client(base_url=emulator.base_url, account_id=emulator.account_id, api_token=emulator.token)

    `script`, `scripts`, `assumptions`, `limits`, `plan` and `worker_binding` are the server's settings, spelled
    as in the control plane, and `tokens` as by the flag `--api-token`; the other keywords are those of `Options`.
    Raises ValueError for what they cannot be.

    What it does (`clock`, `batches`, `rules`, `settings`, `script`, `fail`, `reset`) is meant for the server as a
    whole, every account included; `account(id)` is one alone. `async with` is the same: since the server has its
    own thread, a test's loop can wait for it, and even block, without keeping it from answering.
    """

    def __init__(
        self,
        *,
        script: str | None = None,
        scripts: Mapping[str, str] | None = None,
        assumptions: Mapping[str, str] | None = None,
        limits: Mapping[str, Limit] | None = None,
        plan: str | None = None,
        worker_binding: bool | None = None,
        tokens: Iterable[str | Token] = (),
        port: int = 0,
        **options: Any,
    ) -> None:
        said = {
            "script": script,
            "scripts": scripts,
            "assumptions": assumptions,
            "limits": limits,
            "plan": plan,
            "worker_binding": worker_binding,
        }
        settings = Settings.parse({key: value for key, value in said.items() if value is not None})
        accepted = tuple(Token.parse(token) if isinstance(token, str) else token for token in tokens)
        self._build(Options(settings=settings, tokens=accepted, port=port, **options))

    @classmethod
    def of(cls, options: Options) -> Self:
        """One that runs as the options say, the port and the host included."""
        built = cls.__new__(cls)
        built._build(options)
        return built

    def _build(self, options: Options) -> None:
        self._server = Server(options)
        self._thread: _LoopThread | None = None
        self._http = HttpPlane(url_of(options.host, options.port), options.control_token)
        account_id, token = credentials(options.tokens)
        super().__init__(self._http, account_id, token, everywhere=True)

    @property
    def seed(self) -> int:
        """What ids and orders are drawn from: the same seed and requests give the same bytes."""
        return self._server.seed

    def start(self) -> Self:
        """Listen. Raises OSError when the address cannot be had."""
        self._thread = _LoopThread()
        try:
            self._thread.run(self._server.start())
        except BaseException:
            self._thread.end()
            raise
        self._http.url = url_of(self._server.options.host, self._server.port)
        return self

    def stop(self) -> None:
        """Stop listening and end the thread."""
        self._http.close()
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
        return self.start()  # in about a millisecond

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)  # which waits for what is under way, maybe with this very loop


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
