"""Where the client calls and as whom, from arguments and the environment."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from workersai_client.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

LIVE = "https://api.cloudflare.com/client/v4"
API_ROOT = "/client/v4"

_ACCOUNT = re.compile(r"[0-9a-fA-F]{32}")
# What a header can carry in one word. What cannot be sent is refused here: the HTTP library would quote it in
# its error.
_TOKEN = re.compile(r"[!-~]+")
_VISIBLE = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Settings:
    """One client's account, token and server, all checked; `base_url` ends in /client/v4."""

    account_id: str
    api_token: str = field(repr=False)
    base_url: str
    timeout: float
    max_retries: int

    @classmethod
    def resolve(
        cls,
        account_id: str | None,
        api_token: str | None,
        base_url: str | None,
        *,
        timeout: float,
        max_retries: int,
        environ: Mapping[str, str],
    ) -> Settings:
        """Fill what is not given from CLOUDFLARE_ACCOUNT_ID, CLOUDFLARE_API_TOKEN and CLOUDFLARE_BASE_URL.

        Raises ConfigurationError, in one line that names the argument and the variable, for what is missing
        or unfit.
        """
        account_id = account_id or environ.get("CLOUDFLARE_ACCOUNT_ID")
        if not account_id:
            raise ConfigurationError("no account: pass account_id or set CLOUDFLARE_ACCOUNT_ID")
        api_token = api_token or environ.get("CLOUDFLARE_API_TOKEN")
        if not api_token:
            raise ConfigurationError("no token: pass api_token or set CLOUDFLARE_API_TOKEN")
        if not _TOKEN.fullmatch(api_token):
            raise ConfigurationError(
                "api_token (CLOUDFLARE_API_TOKEN) has a character that no header carries, perhaps a line end"
            )
        if not math.isfinite(timeout) or timeout <= 0:
            raise ConfigurationError(f"timeout must be a positive number of seconds, not {timeout}")
        if max_retries < 0:
            raise ConfigurationError(f"max_retries must not be negative, as {max_retries} is")
        return cls(
            account_id=checked_account(account_id),
            api_token=api_token,
            base_url=api_url(base_url or environ.get("CLOUDFLARE_BASE_URL") or LIVE),
            timeout=timeout,
            max_retries=max_retries,
        )


def checked_account(account_id: str) -> str:
    """Hand back an account id that the service's router will take (Fact: `route.account`).

    Raises ConfigurationError otherwise, without the value: what stands in the wrong place may be the token.
    """
    if not _ACCOUNT.fullmatch(account_id):
        raise ConfigurationError("account_id (CLOUDFLARE_ACCOUNT_ID) is not 32 hexadecimal digits")
    return account_id


def api_url(base_url: str) -> str:
    """Complete a server's root to the API's, which ends in /client/v4; trailing slashes don't matter.

    Raises ConfigurationError for what is no http URL, or carries credentials, a query or a fragment.
    """
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not _VISIBLE.fullmatch(base_url):
        raise ConfigurationError(
            "base_url (CLOUDFLARE_BASE_URL) is not an http or https URL such as http://127.0.0.1:8799"
        )
    if "@" in parts.netloc or "?" in base_url or "#" in base_url:
        raise ConfigurationError(
            "base_url (CLOUDFLARE_BASE_URL) must not carry credentials, a query or a fragment"
        )
    root = base_url.rstrip("/")
    return root if root.endswith(API_ROOT) else root + API_ROOT
