"""API tokens: which ones pass, for which account, and with which of Workers AI's permissions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, get_args

from workersai_emulator.ids import DEVELOPMENT_ACCOUNT, DEVELOPMENT_TOKEN

#: Workers AI Read, Workers AI Edit, or the permissions of other products alone.
Permission = Literal["read", "edit", "none"]
PERMISSIONS: tuple[Permission, ...] = get_args(Permission)

_SPELLING = re.compile(
    rf"(?P<value>[!-~]+?)(?::(?P<permission>{'|'.join(PERMISSIONS)}))?(?:@(?P<account>[0-9a-f]{{32}}))?"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token that passes. Without an account it is for all of them.

    `read` runs and lists models, `edit` would create fine-tunes too, and with `none` a token is known and good for
    nothing here. Facts: `auth.permissions`, `auth.no-permission`.
    """

    value: str = field(repr=False)
    permission: Permission = "edit"
    account_id: str | None = None

    @classmethod
    def parse(cls, text: str) -> Token:
        """Read `TOKEN[:read|edit|none][@ACCOUNT]`. Raises ValueError, which does not tell the token.

        A token that has a colon or an at sign itself needs its permission, so that a mistake in either ending is
        seen.
        """
        spelled = _SPELLING.fullmatch(text)
        if spelled is None:
            raise ValueError("a token is one word of ASCII, as TOKEN[:read|edit|none][@ACCOUNT]")
        value, permission, account_id = spelled.groups()
        if permission is None and (":" in value or "@" in value):
            raise ValueError(
                f"a token ends in none of :{', :'.join(PERMISSIONS)} and @ with 32 hex digits; "
                "if the colon or the at sign is its own, write :edit behind it"
            )
        return cls(value, next((one for one in PERMISSIONS if one == permission), "edit"), account_id)


def credentials(tokens: tuple[Token, ...]) -> tuple[str, str]:
    """The account and the token that a program is pointed here with: the first, by its letters, that can run models."""
    usable = [token for token in tokens if token.permission != "none"]
    chosen = min(usable or tokens, key=lambda token: token.value, default=Token(DEVELOPMENT_TOKEN))
    return chosen.account_id or DEVELOPMENT_ACCOUNT, chosen.value
