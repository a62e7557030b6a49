"""What the journal keeps of a request: who sent it, how large it is, and what its sender will be sorry for."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workersai_emulator.accounts import Account
    from workersai_emulator.api.exchange import Exchange, Slip
    from workersai_emulator.calls import Call

# By how the user agent begins; the first that fits.
_CLIENTS = {
    "workersai-client/": "workersai-client",
    "cloudflare/python": "cloudflare-python",
    "asynccloudflare/python": "cloudflare-python",
    "cloudflare/js": "cloudflare-npm",
    "openai/python": "openai-python",
    "asyncopenai/python": "openai-python",
    "openai/js": "openai-npm",
    "litellm/": "litellm",
    "pydantic-ai/": "pydantic-ai",
    "python-httpx/": "httpx",
    "python-requests/": "requests",
    "python-urllib/": "urllib",
    "python/": "aiohttp",
    "curl/": "curl",
    "wget/": "wget",
    "go-http-client/": "go",
    "node": "node",
    "undici": "node",
    "mozilla/": "browser",
}


@lru_cache(maxsize=128)
def client_of(user_agent: str | None) -> str:
    """Which client this is, by its user agent; that itself, cut short, where nobody knows it."""
    if not user_agent:
        return "unknown"
    lowered = user_agent.lower()
    known = (name for prefix, name in _CLIENTS.items() if lowered.startswith(prefix))
    return next(known, user_agent[:40])


def arrived(exchange: Exchange, account: Account, model: str, user_agent: str | None) -> None:
    """Write down whose request this is, and what its account's clock shows."""
    exchange.account_id, exchange.model = account.id, model
    exchange.clock = account.clock.now()
    exchange.client = client_of(user_agent)


def observe(exchange: Exchange, call: Call, limit: int | None) -> None:
    """Write down what is asked for; a large body takes its time, which is a worker thread's."""
    exchange.operation = call.operation
    exchange.body_bytes = len(call.body)
    if limit is not None:
        exchange.limit_share = len(call.body) / limit
    if exchange.operation == "poll":
        exchange.request_id = call.inputs["request_id"][:128]
        return
    # Processors have instructions for this one: of a large body it takes half of what blake2b does.
    exchange.digest = hashlib.sha256(call.body).hexdigest()[:16]
    if isinstance(call.inputs, dict):
        exchange.slips = tuple(_slips(call.inputs, queue=call.queue))


def _slips(inputs: dict[str, Any], *, queue: bool) -> Iterator[Slip]:
    """Facts: `batch.query.body`, `batch.bare`, `poll.reference`."""
    if not queue and "queueRequest" in inputs:
        yield "queue-in-body"
    requests = inputs.get("requests")
    if queue and "requests" not in inputs:
        yield "bare-body"
    items = requests if isinstance(requests, list) else [inputs]
    told = [item["contexts"] for item in items if type(item) is dict and "contexts" in item]
    if any(map(_refers, told)):
        yield "reference-in-contexts"


def _refers(contexts: object) -> bool:
    if not isinstance(contexts, list):
        return False
    return any(isinstance(context, dict) and "external_reference" in context for context in contexts)
