"""Pointing: what each known client needs, so that it talks to a server of ours instead of the live one.

Variables where a client reads them, else lines of code for its own way: a base URL in the form that it wants, a
constant to patch, a `fetch` to pass. They are in `data/clients.toml`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from workersai_emulator.environment import variables

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Pointer:
    """How one client is pointed at a server.

    `variables` are those that it reads by itself; `code` is for what it does not, with `<url>`, `<base_url>`,
    `<openai_base_url>`, `<account_id>` and `<token>` in it.
    """

    about: str
    variables: tuple[str, ...] = ()
    code: str = ""


@cache
def pointers() -> Mapping[str, Pointer]:
    """All clients that are known, by name."""
    read = tomllib.loads((Path(__file__).parent / "data" / "clients.toml").read_text(encoding="utf-8"))
    return MappingProxyType(
        {
            name: Pointer(row["about"], tuple(row.get("variables", ())), row.get("code", "").strip())
            for name, row in read.items()
        }
    )


def exports(url: str, account_id: str, token: str, client: str | None = None) -> str:
    """Lines for a shell that point every client at the server at this root, or what one client needs.

    Raises LookupError, with one line that says what there is, for a client that is not known.
    """
    values = variables(url, account_id, token)
    if client is None:
        return "\n".join(f"export {name}={value}" for name, value in values.items())
    pointer = pointers().get(client)
    if pointer is None:
        near = get_close_matches(client, pointers(), n=3, cutoff=0.4)
        meant = f"; did you mean {' or '.join(near)}?" if near else "."
        raise LookupError(f"--for: no client {client!r} is known{meant} There are {', '.join(pointers())}")
    lines = [f"export {name}={values[name]}" for name in pointer.variables]
    return "\n".join([*lines, *filter(None, [_filled(pointer.code, values, url)])])


def _filled(code: str, values: Mapping[str, str], url: str) -> str:
    for place, value in (
        ("<openai_base_url>", values["OPENAI_BASE_URL"]),
        ("<base_url>", values["CLOUDFLARE_BASE_URL"]),
        ("<account_id>", values["CLOUDFLARE_ACCOUNT_ID"]),
        ("<token>", values["CLOUDFLARE_API_TOKEN"]),
        ("<url>", url),
    ):
        code = code.replace(place, value)
    return code
