"""Routes: what a path of the REST API, or of the AI Gateway in front of it, leads to."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote

from workersai_emulator.accounts import is_account_id
from workersai_emulator.refusals import Refused

REST_PREFIX: Final = "/client/v4/"
GATEWAY_PREFIX: Final = "/v1/"

Surface = Literal[
    "run",
    "run-body",
    "chat",
    "embeddings",
    "responses",
    "search",
    "schema",
    "tasks",
    "authors",
    "finetunes",
    "new-finetune",
]

_POSTS: Final[dict[str, Surface]] = {
    "run": "run-body",
    "v1/chat/completions": "chat",
    "v1/embeddings": "embeddings",
    "v1/responses": "responses",
}
_GETS: Final[dict[str, Surface]] = {
    "models/search": "search",
    "models/schema": "schema",
    "tasks/search": "tasks",
    "authors/search": "authors",
    "finetunes": "finetunes",
    "finetunes/public": "finetunes",
}
#: A path without anything behind it, that the API's router answers with 405 all the same. Fact: `openai.models`.
_NOTHING_BEHIND: Final = frozenset({"v1/models"})


class Route(NamedTuple):
    """Whose request it is, what it is for, and the model where the path names it."""

    account_id: str
    surface: Surface
    model: str = ""


@lru_cache(maxsize=512)
def route(method: str, path: str) -> Route:
    """What a request leads to. Raises Refused with the router's own words.

    A model comes raw, with `%40`, and with `%2F`. A gateway's path has the account, the gateway and the provider in
    front of what REST has behind `/ai/run/` or `/ai/`.
    Facts: `route.none`, `route.account`, `route.method`, `sync.path`, `sync.run-body`, `openai.run`, `gateway.path`.
    """
    account_id, rest = _account_and_rest(path)
    if not is_account_id(account_id):
        raise Refused("route.account", path=path)
    surface = _POSTS.get(rest)
    if surface is not None or rest.startswith("run/"):
        if method != "POST":
            raise Refused("route.method", method=method)
        if surface is not None:
            return Route(account_id, surface)
        return Route(account_id, "run", unquote(rest.removeprefix("run/")))
    surface = _GETS.get(rest)
    if surface == "finetunes" and method == "POST":
        return Route(account_id, "new-finetune")
    if (surface is not None and method != "GET") or rest in _NOTHING_BEHIND:
        raise Refused("route.method", method=method)
    if surface is None:
        raise Refused("route.none")
    return Route(account_id, surface)


def _account_and_rest(path: str) -> tuple[str, str]:
    """The account, and what stands behind its `/ai/`."""
    if path.startswith(GATEWAY_PREFIX):
        parts = path.split("/", 5)
        if len(parts) < 6 or parts[4] != "workers-ai" or not parts[3]:
            raise Refused("route.none")
        behind = parts[5]
        return parts[2], behind if behind.startswith("v1/") else f"run/{behind}"
    parts = path.split("/", 6)
    if len(parts) < 7 or parts[1:4] != ["client", "v4", "accounts"] or parts[5] != "ai":
        raise Refused("route.none")
    return parts[4], parts[6]
