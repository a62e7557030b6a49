"""The way to a Redis: one address, one prefix, and one line for whatever fails on it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from workersai_emulator.store import NotKept

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from redis.asyncio import Redis

#: What keys begin with unless the URL says `?prefix=…`.
PREFIX: Final = "workersai-emulator"
#: How long a reply of Redis is waited for, in seconds.
PATIENCE: Final = 5.0
CONNECTIONS: Final = 50
_PREFIX: Final = re.compile(r"[A-Za-z0-9_.-]+")


class RedisLink:
    """Runs scripts and commands; what fails is NotKept, in one line that tells no password."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        prefix = options.pop("prefix", PREFIX)
        if _PREFIX.fullmatch(prefix) is None:
            raise ValueError(f"--state: the prefix {prefix!r} may have letters, digits and _ . - alone")
        self.prefix = prefix + ":"
        self.shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self._url = url.partition("?")[0] + (f"?{urlencode(options)}" if options else "")
        self._scripts: dict[str, Callable[..., Awaitable[Any]]] = {}
        self._redis: Redis | None = None
        self._listening: Redis | None = None

    def open(self) -> None:
        """Get ready to connect. Raises ValueError for what is no address, or where the library is missing."""
        try:
            from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis
            from redis.asyncio.retry import Retry
            from redis.backoff import NoBackoff
        except ImportError:
            raise ValueError(
                "--state: a Redis needs the extra redis: pip install 'workersai-emulator[redis]'"
            ) from None
        options: dict[str, Any] = {
            "socket_timeout": PATIENCE,
            "socket_connect_timeout": PATIENCE,
            # What was sent may have been done: it is never sent twice.
            "retry": Retry(NoBackoff(), 0),
            "protocol": 2,
        }
        try:
            pool = BlockingConnectionPool.from_url(
                self._url, max_connections=CONNECTIONS, timeout=PATIENCE, **options
            )
            # Who waits for news has a connection to himself for as long.
            listening = ConnectionPool.from_url(self._url, **options)
        except ValueError as fault:
            raise ValueError(f"--state: {self.shown}: {fault}") from None
        self._redis, self._listening = Redis(connection_pool=pool), Redis(connection_pool=listening)

    async def close(self) -> None:
        """Close all connections."""
        for redis in (self._redis, self._listening):
            if redis is not None:
                await redis.aclose()
                await redis.connection_pool.disconnect()
        self._redis = self._listening = None
        self._scripts.clear()

    async def run(self, script: str, *arguments: str | bytes | int) -> Any:
        """Run a script with the prefix and these arguments. Raises NotKept."""
        registered = self._scripts.get(script)
        if registered is None:
            registered = self._scripts[script] = self._connected.register_script(script)
        return await self._answer(registered(args=[self.prefix, *map(_sent, arguments)]))

    async def ask(self, command: str, key: str, *arguments: str | bytes | int) -> Any:
        """Give a command about a key. Raises NotKept."""
        asked: Awaitable[Any] = self._connected.execute_command(  # type: ignore[no-untyped-call]
            command, _sent(self.prefix + key), *map(_sent, arguments)
        )
        return await self._answer(asked)

    async def news(self, key: str, after: str, seconds: float) -> Any:
        """The entries of a stream after one, as soon as there are any, or none when time is up. Raises NotKept."""
        assert self._listening is not None
        block = max(1, int(min(seconds, PATIENCE / 2) * 1000))
        streams = await self._answer(self._listening.xread({self.prefix + key: after}, block=block))
        return streams[0][1] if streams else []

    @property
    def _connected(self) -> Redis:
        assert self._redis is not None
        return self._redis

    async def _answer(self, asked: Awaitable[Any]) -> Any:
        from redis.exceptions import ConnectionError as Unreachable
        from redis.exceptions import RedisError
        from redis.exceptions import TimeoutError as Late

        try:
            return await asked
        except (Unreachable, Late, OSError) as fault:
            raise NotKept(f"the state at {self.shown} is out of reach: {_line(fault)}") from None
        except RedisError as fault:
            raise NotKept(f"the state at {self.shown} is refused: {_line(fault)}") from None


def _sent(argument: str | bytes | int) -> bytes | int:
    """A text as bytes, one that UTF-8 cannot hold too: a client may ask for any `request_id`."""
    return argument.encode("utf-8", "surrogatepass") if isinstance(argument, str) else argument


def _line(fault: Exception) -> str:
    return " ".join(str(fault).split()) or type(fault).__name__
