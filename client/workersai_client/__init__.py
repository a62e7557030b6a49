"""A thin client of Cloudflare Workers AI, for its synchronous calls and its Asynchronous Batch API.

    with Client() as client:
        handle = client.submit("@cf/baai/bge-m3", [{"text": "one"}, {"text": "two"}])
        done = client.wait(handle, timeout=600)
        for item in done.items:
            print(item.id, item.success, item.result)

`Client` blocks, `AsyncClient` is awaited; both drive the same flows. A handle outlives its process:
`handle.to_json()`. Everything raised is a WorkersAIError, split by what the caller can do about it.
"""

from __future__ import annotations

from workersai_client.async_client import AsyncClient
from workersai_client.batches import Done, Handle, Item, ItemError, Pending, Usage
from workersai_client.client import Client
from workersai_client.errors import (
    AuthenticationError,
    BatchFailed,
    ConfigurationError,
    InvalidRequest,
    ItemFailed,
    QuotaExceeded,
    RateLimited,
    RequestTooLarge,
    ServerError,
    TransportError,
    UnexpectedReply,
    WaitTimeout,
    WorkersAIError,
)

__all__ = [
    "AsyncClient",
    "AuthenticationError",
    "BatchFailed",
    "Client",
    "ConfigurationError",
    "Done",
    "Handle",
    "InvalidRequest",
    "Item",
    "ItemError",
    "ItemFailed",
    "Pending",
    "QuotaExceeded",
    "RateLimited",
    "RequestTooLarge",
    "ServerError",
    "TransportError",
    "UnexpectedReply",
    "Usage",
    "WaitTimeout",
    "WorkersAIError",
]

# Tracebacks and documentation show where things are imported from, not where they are written.
for _name in __all__:
    globals()[_name].__module__ = __name__
