"""Who gets in at all: browsers of other sites do not, and the control plane only answers to its own names."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from workersai_emulator.api.reply import Reply, tool_refusal
from workersai_emulator.options import Options, is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping


class Guard:
    """Refuses what a stranger's page, or a stranger on the network, could make a program send."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def refuse_origin(self, headers: Mapping[str, str]) -> Reply | None:
        """Refuse a browser's request from another site, whatever it asks for.

        A page's images and scripts come without an origin, but say that they are another site's; a link that a
        person follows, or an address that one types, is no such thing.
        """
        origin = headers.get("Origin")
        if origin is None:
            if headers.get("Sec-Fetch-Site") == "cross-site" and headers.get("Sec-Fetch-Mode") != "navigate":
                return tool_refusal(
                    403, "a page of another site asks; send an Origin that --allow-host lets in"
                )
            return None
        if self._is_ours(_name_in(origin)):
            return None
        return tool_refusal(403, f"Origin {origin} is another site's; --allow-host lets a name in")

    def refuse_control(self, headers: Mapping[str, str], target: str) -> Reply | None:
        """Refuse the control plane to foreign Host names and, beyond loopback, to those without its token.

        A target that is a whole URL, as a proxy sends it, has a host as well.
        """
        host = headers.get("Host", "")
        in_target = () if target.startswith("/") else (_name_in(target),)
        if not all(map(self._is_ours, (_name_in(f"//{host}"), *in_target))):
            return tool_refusal(403, f"Host {host!r} is not this server's; --allow-host lets a name in")
        token = self._options.control_token
        if token is None:
            if self._options.loopback:
                return None
            return tool_refusal(403, "beyond loopback the control plane needs --control-token")
        given = headers.get("Authorization", "").removeprefix("Bearer ")
        if hmac.compare_digest(given.encode(errors="surrogateescape"), token.encode()):
            return None
        return tool_refusal(403, "send 'Authorization: Bearer …' with the token of --control-token")

    def _is_ours(self, host: str | None) -> bool:
        return host is not None and (
            is_loopback(host)
            or host in {name.lower() for name in (self._options.host, *self._options.allowed_hosts)}
        )


def _name_in(url: str) -> str | None:
    """The host that a URL names; None where there is none, or no sense in it."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
