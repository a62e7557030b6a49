"""What `serve` and `Emulator` can be told: one place for the defaults and for what each option means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, Literal

from workersai_emulator.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from workersai_emulator.api_tokens import Token

DEFAULT_PORT = 8799


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a server is to run.

    `seed` None means a random one. Without `tokens` any token passes. `allowed_hosts` are names, beside
    the loopback ones, under which the control plane and browsers may call. Bounds are on what batches keep.
    `grace_seconds` is how long replies under way may still take when the server is told to end; `log` is how a
    server with a process of its own tells of exchanges.
    `replay` is a recording that answers in the emulator's place; `replay_or_emulate` emulates what is not in it.
    `state` names where state outlives the process: a file, or a Redis as a URL, which `workers`
    processes of one `serve` share.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    seed: int | None = None
    settings: Settings = field(default_factory=Settings)
    scenarios: tuple[str, ...] = ()
    worker_model: str | None = None
    tokens: tuple[Token, ...] = ()
    allowed_hosts: frozenset[str] = frozenset()
    control_token: str | None = None
    state: str | None = None
    workers: int = 1
    replay: Path | None = None
    replay_or_emulate: bool = False
    grace_seconds: float = 5.0
    log: Literal["text", "json"] = "text"
    store_bytes: int = 1_000_000_000
    store_batches: int = 100_000

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)


def url_of(host: str, port: int) -> str:
    """Where this machine reaches a server that listens so."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - it is looked for, not bound
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def pairs(texts: Mapping[str, str] | tuple[str, ...], option: str) -> dict[str, str]:
    """Read `NAME=VALUE` texts. Raises ValueError that names the option."""
    if isinstance(texts, Mapping):
        return dict(texts)
    read: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"{option}: {text!r} is not NAME=VALUE")
        read[name.strip()] = value.strip()
    return read
