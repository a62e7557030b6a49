"""What a request's own headers ask of the emulator, for that request alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from workersai_emulator.accounts import is_account_id
from workersai_emulator.scenarios import scenario
from workersai_emulator.scripts import Script

if TYPE_CHECKING:
    from collections.abc import Mapping

SCRIPT_HEADER = "x-emulator-script"
SCENARIO_HEADER = "x-emulator-scenario"
ACCOUNT_HEADER = "x-emulator-account"


class Wishes(NamedTuple):
    """The script of the batch that the request makes, and the scenario that the request meets."""

    script: Script | None = None
    scenario: str | None = None


_NONE = Wishes()


def wishes(headers: Mapping[str, str]) -> Wishes:
    """Read the headers. Raises ValueError that names the one at fault."""
    if SCRIPT_HEADER not in headers and SCENARIO_HEADER not in headers:
        return _NONE
    text, name = headers.get(SCRIPT_HEADER), headers.get(SCENARIO_HEADER)
    try:
        script = None if text is None else Script.parse(text)
    except ValueError as fault:
        raise ValueError(f"{SCRIPT_HEADER}: {fault}") from None
    try:
        return Wishes(script, None if name is None else scenario(name).name)
    except LookupError as fault:
        raise ValueError(f"{SCENARIO_HEADER}: {fault.args[0]}") from None


def account_meant(headers: Mapping[str, str], otherwise: str) -> str:
    """The account that a request names where its path has none. Raises ValueError that names the header."""
    named = headers.get(ACCOUNT_HEADER, otherwise)
    if not is_account_id(named):
        raise ValueError(f"{ACCOUNT_HEADER}: {named!r} is not 32 hex digits")
    return named
