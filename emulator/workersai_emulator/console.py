"""What `serve` says to a person: where it is, what to export, and a line for each exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from workersai_emulator.clock import local_time_of_day
from workersai_emulator.ids import DEVELOPMENT_ACCOUNT, DEVELOPMENT_TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from workersai_emulator.api.exchange import Exchange
    from workersai_emulator.controls import RequestView

_RED, _YELLOW, _DIM, _PLAIN = "\x1b[31m", "\x1b[33m", "\x1b[2m", "\x1b[0m"


def greeting(url: str, seed: int, *, strict: bool) -> str:
    """What a person needs to point a client here."""
    token = "one of --api-token" if strict else f"{DEVELOPMENT_TOKEN} (any will do)"
    return f"""\
workersai-emulator: Cloudflare Workers AI's batch queue, offline
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
