"""An arrival: a request as the binding sent it, however it was carried here."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp.web import BaseRequest


class Arrival(NamedTuple):
    """What the binding asked for; the body is in `carrier`, the HTTP request that it came in.

    `account_id` is meant where no header names another. The names in `headers` are found in any case.
    """

    carrier: BaseRequest
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    account_id: str
