"""What a client's program tells of what it got: one JSON object on stdout."""

from __future__ import annotations

import json
import os
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ACCOUNT = os.environ["CLOUDFLARE_ACCOUNT_ID"]
ANSWERED = os.environ["CLIENT_ANSWERED_ACCOUNT"]
TOKEN = os.environ["CLOUDFLARE_API_TOKEN"]
BASE_URL = os.environ["CLOUDFLARE_BASE_URL"]
EMBEDDING = os.environ["CLIENT_EMBEDDING_MODEL"]
TEXT = os.environ["CLIENT_TEXT_MODEL"]
TEXTS = json.loads(os.environ["CLIENT_TEXTS"])
PROMPT = os.environ["CLIENT_PROMPT"]
WEATHER = json.loads(os.environ["CLIENT_TOOL"])
QUESTION = os.environ["CLIENT_QUESTION"]


def openai_url(account_id: str) -> str:
    """What OpenAI's clients take for the base URL of an account."""
    return f"{BASE_URL}/accounts/{account_id}/ai/v1"


class Report:
    """The parts that a program tells, each apart from the others: one that fails is told as such."""

    def __init__(self) -> None:
        self._told: dict[str, Any] = {}

    def tell(self, part: str, get: Callable[[], Any]) -> None:
        """Tell what the client got."""
        try:
            self._told[part] = get()
        except Exception:  # noqa: BLE001 - the test shows it
            self._told[part] = {"fault": traceback.format_exc()}

    def faults(self, ask: Callable[[str], Any], **describe: Callable[[Any], Any]) -> None:
        """Ask the same of each account in which something goes wrong, at the same time; tell what came of it.

        `ask` gets an account id. What `describe` names is read from the exception too.
        """
        accounts = json.loads(os.environ["CLIENT_FAULTS"])
        with ThreadPoolExecutor(len(accounts)) as pool:
            met = pool.map(lambda account: _met(ask, account, describe), accounts.values())
            self._told["errors"] = dict(zip(accounts, met, strict=True))

    def end(self) -> None:
        """Print all of it, and end at once, whatever threads a client has left behind."""
        sys.stdout.write(json.dumps(self._told) + "\n")
        sys.stdout.flush()
        os._exit(0)


def raised(ask: Callable[[], Any], **describe: Callable[[Any], Any]) -> dict[str, Any]:
    """What came of a call: what it returned, or the exception's class and words."""
    try:
        return {"returned": ask()}
    except Exception as fault:  # noqa: BLE001 - the test shows it
        told: dict[str, Any] = {"kind": type(fault).__name__, "says": str(fault)[:2000]}
        for name, read in describe.items():
            with suppress(AttributeError, LookupError, TypeError):  # not an exception of the kind that has it
                told[name] = read(fault)
        return told


def _met(
    ask: Callable[[str], Any], account: str, describe: dict[str, Callable[[Any], Any]]
) -> dict[str, Any]:
    return raised(lambda: ask(account), **describe)
