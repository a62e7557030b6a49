"""Who may call: the router's check of the credentials."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from workersai_emulator.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from workersai_emulator.api_tokens import Token

_BEARER = re.compile(r"Bearer +(\S+)", re.IGNORECASE)


def authorize(
    headers: Mapping[str, str], tokens: Collection[Token], account_id: str, *, edits: bool = False
) -> None:
    """Pass a request with a token that may do this in the account, any token where `tokens` is empty.

    A key with its email passes like a token, since the refusal of none asks for them. Raises Refused.
    Facts: `auth.missing`, `auth.malformed`, `auth.unknown`, `auth.forbidden`, `auth.permissions`,
    `auth.no-permission`.
    """
    value = _credential(headers)
    if not tokens:
        return
    known = [token for token in tokens if token.value == value]
    if not known:
        raise Refused("auth.unknown")
    permissions = {token.permission for token in known if token.account_id in {None, account_id}}
    if permissions == {"none"}:
        raise Refused("auth.unknown")
    if not permissions or (edits and "edit" not in permissions):
        raise Refused("auth.forbidden")


@lru_cache(maxsize=64)
def _token(header: str) -> str | None:
    bearer = _BEARER.fullmatch(header.strip())
    return None if bearer is None else bearer[1]


def _credential(headers: Mapping[str, str]) -> str:
    header = headers.get("Authorization")
    if header is not None:
        token = _token(header)
        if token is None:
            raise Refused("auth.malformed")
        return token
    if "X-Auth-Email" in headers and "X-Auth-Key" in headers:
        return headers["X-Auth-Key"]
    raise Refused("auth.missing")
