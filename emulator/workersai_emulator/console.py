"""What `serve` says to a person: where it is, what to export, and a line for each exchange."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from workersai_emulator.clock import format_time, local_time_of_day, system_now
from workersai_emulator.ids import DEVELOPMENT_ACCOUNT, DEVELOPMENT_TOKEN
from workersai_emulator.json_text import dumps

if TYPE_CHECKING:
    from collections.abc import Callable

    from workersai_emulator.api.exchange import Exchange
    from workersai_emulator.controls import RequestView

#: What the log for programs says of an exchange, in this order.
_LOGGED = (
    *("account_id", "dialect", "operation", "model", "method", "path", "status", "code", "duration_ms"),
    *("client", "request_id", "state", "rule", "why"),
)
_RED, _YELLOW, _DIM, _PLAIN = "\x1b[31m", "\x1b[33m", "\x1b[2m", "\x1b[0m"


def greeting(url: str, seed: int, *, strict: bool) -> str:
    """What a person needs to point a client here."""
    token = "one of --api-token" if strict else f"{DEVELOPMENT_TOKEN} (any will do)"
    return f"""\
workersai-emulator: Cloudflare Workers AI, offline
  account  {DEVELOPMENT_ACCOUNT} (any 32 hex digits will do)
  token    {token}
  seed     {seed} (--seed {seed} gives the same ids again)

  export CLOUDFLARE_BASE_URL={url}/client/v4
  export CLOUDFLARE_ACCOUNT_ID={DEVELOPMENT_ACCOUNT}
  export CLOUDFLARE_API_TOKEN={"…" if strict else DEVELOPMENT_TOKEN}

  the /batch Worker is at {url}/batch, the control plane at {url}/__emulator__/health
"""


def described(exchange: Exchange | RequestView) -> str:
    """An exchange in one line, the reason of a refusal and the rule that decided it included."""
    what = " ".join(filter(None, (exchange.operation, exchange.model, exchange.state)))
    shown = what or urlsplit(exchange.path).path
    code = "" if exchange.code is None else f"/{exchange.code}"
    rule = f"  [{exchange.rule or exchange.nearly}]" if exchange.rule or exchange.nearly else ""
    why = f"  {exchange.why}" if exchange.why else ""
    line = f"{exchange.method} {shown}  {exchange.status}{code}  {exchange.duration_ms:.1f} ms{rule}{why}"
    return "".join(character if character.isprintable() else "?" for character in line)


def exchange_line(exchange: Exchange, *, colour: bool) -> str:
    """One exchange in one line, with the time of day."""
    line = described(exchange)
    time = local_time_of_day()
    if not colour:
        return f"{time} {line}"
    tint = _RED if exchange.status >= 500 else _YELLOW if exchange.status >= 400 else ""
    return f"{_DIM}{time}{_PLAIN} {tint}{line}{_PLAIN}"


def json_line(event: str, **told: Any) -> str:
    """One line of the log for programs: what happened, when, and what there is to say of it."""
    return dumps({"time": format_time(system_now()), "event": event, **told}).decode()


def json_printer(write: Callable[[str], object]) -> Callable[[Exchange], None]:
    """Tell of each exchange in one line of JSON: whose it was and what came of it, without bodies and credentials."""

    def tell(exchange: Exchange) -> None:
        shown = exchange.as_json()
        write(json_line("exchange", **{name: shown[name] for name in _LOGGED}))

    return tell


def formatter(log: str) -> logging.Formatter:
    """How what is no exchange is told: a warning, a fault of the emulator."""
    return _JsonLines() if log == "json" else logging.Formatter("workersai-emulator: %(message)s")


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return json_line(record.levelname.lower(), message=super().format(record))


def printer(write: Callable[[str], object], *, every: bool, colour: bool) -> Callable[[Exchange], None]:
    """Tell of each exchange or, off a terminal, only of the hint that each kind of mistake deserves, once."""
    hinted: set[str] = set()

    def tell(exchange: Exchange) -> None:
        if every:
            write(exchange_line(exchange, colour=colour))
        elif exchange.hint and exchange.hint not in hinted:
            hinted.add(exchange.hint)
            write(f"workersai-emulator: {exchange.hint}")

    return tell
