"""A request and a reply as they pass: what they are made of, before anything is hidden."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import httpx


@dataclass(frozen=True, slots=True)
class Request:
    """A request: its target is the path with the query, as it was sent; header names are spelled as they were."""

    method: str
    target: str
    headers: Sequence[tuple[str, str]] = field(repr=False)
    content: bytes = field(repr=False)

    @property
    def line(self) -> str:
        """Its first line, without the protocol."""
        return f"{self.method} {self.target}"

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        """What follows the path."""
        return self.target.partition("?")[2]

    def named_headers(self) -> Mapping[str, str]:
        """The headers by their names in lower case."""
        return {name.lower(): value for name, value in self.headers}


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply, its body unpacked."""

    status: int
    headers: Sequence[tuple[str, str]]
    content: bytes = field(repr=False)

    @property
    def content_type(self) -> str:
        """What the body is said to be; empty where nothing is said."""
        return next((value for name, value in self.headers if name.lower() == "content-type"), "")


def spelled(headers: httpx.Headers) -> list[tuple[str, str]]:
    """Headers of httpx's as they were written, upper and lower case."""
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers.raw]
