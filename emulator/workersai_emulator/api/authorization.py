"""Who may call: the router's check of the credentials."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from workersai_emulator.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_BEARER = re.compile(r"Bearer +(\S+)", re.IGNORECASE)


def authorize(headers: Mapping[str, str], tokens: Collection[str]) -> None:
    """Pass a request with a token, any token where `tokens` is empty. Raises Refused.

    A key with its email passes like a token, since the refusal of none asks for them.
    Facts: `auth.missing`, `auth.malformed`, `auth.unknown`.
    """
    header = headers.get("Authorization")
    if header is not None:
        bearer = _BEARER.fullmatch(header.strip())
        if bearer is None:
            raise Refused("auth.malformed")
        token = bearer[1]
    elif "X-Auth-Email" in headers and "X-Auth-Key" in headers:
        token = headers["X-Auth-Key"]
    else:
        raise Refused("auth.missing")
    if tokens and token not in tokens:
        raise Refused("auth.unknown")
