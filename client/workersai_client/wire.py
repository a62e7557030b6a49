"""Requests as they go over the wire, and replies as they come back, whatever library carries them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from workersai_client.errors import ConfigurationError
from workersai_client.settings import checked_account

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workersai_client.batches import Handle

QUEUE = "?queueRequest=true"
HEADERS: Mapping[str, str] = {"accept": "application/json", "content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Request:
    """One request, without the token: whoever sends it adds that."""

    url: str
    content: bytes = field(repr=False)
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=lambda: HEADERS)


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply, whole and decompressed; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes = field(repr=False)


def run_request(base_url: str, account_id: str, model: str, inputs: Mapping[str, Any]) -> Request:
    """Ask a model and wait for the answer.

    Raises ConfigurationError for inputs that are no JSON, or a model that is no path.
    """
    return Request(model_url(base_url, account_id, model), json_bytes(inputs))


def submit_request(
    base_url: str, account_id: str, model: str, requests: Sequence[Mapping[str, Any]]
) -> Request:
    """Queue a batch. Facts: `batch.submit`, `batch.query`.

    Raises ConfigurationError for requests that are no JSON, or a model that is no path.
    """
    url = model_url(base_url, account_id, model) + QUEUE
    return Request(url, json_bytes({"requests": list(requests)}))


def poll_request(base_url: str, handle: Handle) -> Request:
    """Ask after a batch, in the documented form with the query. Fact: `poll.request`."""
    url = model_url(base_url, handle.account_id, handle.model) + QUEUE
    return Request(url, json_bytes({"request_id": handle.request_id}))


def model_url(base_url: str, account_id: str, model: str) -> str:
    """Make the address of a model, whose name stands in the path as it is: `@cf/baai/bge-m3`."""
    if not model or any(part in ("", ".", "..") for part in model.split("/")):
        raise ConfigurationError(f"model {model!r} is not a model's name such as '@cf/baai/bge-m3'")
    return f"{base_url}/accounts/{checked_account(account_id)}/ai/run/{quote(model, safe='@/')}"


def json_bytes(value: object) -> bytes:
    """Write compact JSON in UTF-8; NaN and lone surrogates, which are none, raise ConfigurationError."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(
            f"the request is no JSON: a lone surrogate at character {error.start}"
        ) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"the request is no JSON: {error}") from None
