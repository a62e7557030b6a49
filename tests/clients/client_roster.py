"""The clients: where each one's program and packages are, what it can do, and what it makes of what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: The HTTP status of each fault, and the code that the service's envelope has.
STATUSES = {
    "capacity": 429,
    "capacity, retry-after": 429,
    "capacity, once": 429,
    "bad input": 400,
    "no such model": 400,
    "failed": 500,
    "bad gateway": 502,
}
CODES = {
    "capacity": [3040],
    "capacity, retry-after": [3040],
    "bad input": [5006],
    "no such model": [5007],
    "failed": [5001],
    "bad gateway": [],
}
EMPTY, NULL = "success: false", "success: false, null"


@dataclass(frozen=True)
class Met:
    """What a client makes of a fault: an exception of this class with these words in it, or what it returned.

    `status` and `codes` are what the exception tells; None where it has no place for them. `requests` is how
    often the client asked.
    """

    kind: str | None = None
    says: str = ""
    status: int | None = None
    codes: list[int] | None = None
    requests: int = 1
    returned: Any = None


@dataclass(frozen=True, eq=False)
class Client:
    """A client: `environment` has its Python packages, None for one of npm; `program` is its program's name.

    `can` names the parts that its program tells. `requests` is how many of them reach a model, where a client
    might ask twice.
    """

    name: str
    program: str
    environment: str | None
    can: str
    errors: dict[str, Met] = field(repr=False)
    in_ci: bool = True
    requests: int | None = None

    def __str__(self) -> str:
        return self.name


def by_status(
    kinds: dict[int, str],
    empty: Met,
    null: Met,
    *,
    retried: dict[int, str] | None = None,
    requests: int = 1,
    returned: Any = 3,
    codes: bool = False,
    status: bool = True,
    says: str = "",
) -> dict[str, Met]:
    """What a client makes of each fault that looks at the HTTP status.

    Those statuses in `retried`, with the class raised in the end, are asked for `requests` times; one that
    passes ends in what the client `returned`. With `codes` the exception has the service's own.
    """
    retried = retried or {}
    kinds = {**kinds, **retried}
    met = {EMPTY: empty, NULL: null}
    for fault, number in STATUSES.items():
        told = CODES[fault] if codes and fault in CODES else None
        asked = requests if number in retried else 1
        met[fault] = Met(kinds.get(number, ""), says, number if status else None, told, asked)
    if 429 in retried:
        met["capacity, once"] = Met(returned=returned, requests=2)
    return met


def by_body(lost: Met, page: Met, empty: Met, null: Met) -> dict[str, Met]:
    """What a client makes of each fault that reads the body whatever the status is, and never asks twice."""
    met = dict.fromkeys(STATUSES, lost)
    return {**met, "bad gateway": page, EMPTY: empty, NULL: null}


_REFUSED = {400: "BadRequestError"}
_RETRIED = {429: "RateLimitError", 500: "InternalServerError", 502: "InternalServerError"}
_HTTP = dict.fromkeys((400, 429, 500, 502), "HTTPError")
_HTTPX = dict.fromkeys((400, 429, 500, 502), "HTTPStatusError")
_NO_DATA = Met("KeyError", "'data'")
_NONE = Met("TypeError", "'NoneType' object is not subscriptable")
_NOT_JSON = Met("JSONDecodeError", "Expecting value")
_GAVE_UP = "InstructorRetryException"
_LOST = by_body(_NO_DATA, _NOT_JSON, _NO_DATA, _NONE)


def _stainless(empty: Met, null: Met, *, codes: bool = False, returned: Any = 3) -> dict[str, Met]:
    """Cloudflare's and OpenAI's SDKs: two retries of 429 and 5xx."""
    return by_status(_REFUSED, empty, null, retried=_RETRIED, requests=3, codes=codes, returned=returned)


_OPENAI_NPM = _stainless(Met("TypeError"), Met("TypeError"))

CLIENTS = [
    Client(
        "cloudflare-python",
        "cloudflare",
        "official",
        "embedding asynchronous by_path images chat stream tools batch models",
        _stainless(Met(returned={}), Met(returned=None), codes=True),
    ),
    Client(
        "cloudflare-npm",
        "cloudflare",
        None,
        "embedding by_path chat stream tools batch models",
        _stainless(Met(returned=None), Met(returned=None), codes=True),
    ),
    Client(
        "openai-python",
        "openai",
        "official",
        "embedding asynchronous chat stream tools tools_streamed responses",
        _stainless(
            Met("ValueError", "No embedding data received"),
            Met("ValueError", "No embedding data received"),
            codes=True,
        ),
    ),
    Client(
        "openai-npm-6",
        "openai-6",
        None,
        "embedding chat stream tools tools_streamed responses",
        _OPENAI_NPM,
    ),
    Client(
        "openai-npm-7",
        "openai-7",
        None,
        "embedding chat stream tools tools_streamed responses",
        _OPENAI_NPM,
    ),
    Client(
        "langchain-cloudflare-python",
        "langchain_cloudflare",
        "langchain",
        "embedding query chat stream tools",
        by_status(_HTTP, _NO_DATA, _NONE),
    ),
    Client(
        "workers-ai-provider",
        "workers-ai-provider",
        None,
        "embedding chat stream tools tools_streamed reranked images transcribed",
        by_status(
            {400: "APICallError"},
            Met("TypeError", "Cannot read properties of undefined"),
            Met("TypeError", "Cannot read properties of null"),
            retried=dict.fromkeys((429, 500, 502), "RetryError"),
            requests=3,
        ),
        requests=8,
    ),
    Client(
        "langchain-community-python",
        "langchain_community",
        "langchain",
        "embedding chat stream",
        _LOST,
        in_ci=False,
    ),
    Client(
        "llama-index",
        "llama_index",
        "vectors",
        "embedding asynchronous query",
        _LOST,
        in_ci=False,
    ),
    Client("chromadb-python", "chromadb", "vectors", "embedding", _LOST, in_ci=False),
    Client(
        "cloudflare-ai-python",
        "cloudflare_ai_python",
        "vectors",
        "chat",
        by_status(_HTTP, Met("KeyError", "'response'"), _NONE),
        in_ci=False,
    ),
    Client(
        "litellm",
        "litellm",
        "tools",
        "embedding chat stream tools",
        by_status(
            {**_REFUSED, **_RETRIED, 502: "BadGatewayError"},
            Met("APIError", "no 'choices'"),
            Met("APIError", "no 'choices'"),
        ),
        in_ci=False,
    ),
    Client(
        "instructor",
        "instructor",
        "tools",
        "structured by_tool by_schema",
        by_status(
            {400: _GAVE_UP},
            Met(_GAVE_UP, "No choices in OpenAI response"),
            Met(_GAVE_UP, "No choices in OpenAI response"),
            retried=dict.fromkeys((429, 500, 502), _GAVE_UP),
            requests=3,
            returned=True,
            status=False,
        ),
        in_ci=False,
    ),
    Client(
        "pydantic-ai",
        "pydantic_ai",
        "openai-based",
        "embedding chat stream by_tool",
        by_status(
            {400: "ModelRequestRejectedError"},
            Met("UnexpectedModelBehavior", "Invalid response from openai"),
            Met("UnexpectedModelBehavior", "Invalid response from openai"),
            retried={429: "ModelRateLimitError", 500: "ModelServerError", 502: "ModelServerError"},
            requests=3,
            returned=True,
        ),
        in_ci=False,
    ),
    Client(
        "pydantic-ai-cloudflare",
        "pydantic_ai_cloudflare",
        "openai-based",
        "embedding chat",
        by_status(
            _HTTPX,
            Met("CloudflareAPIError", "Model execution failed"),
            Met("CloudflareAPIError", "Model execution failed"),
        ),
        in_ci=False,
    ),
    Client(
        "pydantic-ai-cloudflare-ai",
        "pydantic_ai_cloudflare_ai",
        "openai-based",
        "embedding chat model_in_body",
        by_status(_HTTPX, _NO_DATA, _NONE),
        in_ci=False,
    ),
    Client(
        "haystack",
        "haystack",
        "openai-based",
        "embedding query chat stream",
        by_status(_REFUSED, _NONE, _NONE, retried=_RETRIED, requests=2, returned=1024),
        in_ci=False,
    ),
    Client(
        "llm-cloudflare",
        "llm_cloudflare",
        "openai-based",
        "chat",
        by_status(
            {400: "ModelError"},
            _NONE,
            _NONE,
            retried=dict.fromkeys((429, 500, 502), "ModelError"),
            requests=3,
            returned=True,
            status=False,
            says="(status code: ",
        ),
        in_ci=False,
    ),
    Client(
        "chromadb-npm",
        "chroma",
        None,
        "embedding",
        by_body(
            *[Met("Error", "Error calling Cloudflare Workers AI API")] * 4,
        ),
        in_ci=False,
    ),
    Client(
        "langchain-cloudflare-npm",
        "langchain",
        None,
        "embedding chat stream",
        {
            **by_status(
                dict.fromkeys((400, 429), "Error"),
                Met("TypeError", "reading 'additional_kwargs'"),
                Met("TypeError", "reading 'response'"),
                retried=dict.fromkeys((500, 502), "Error"),
                requests=2,
                status=False,
                says="Cloudflare LLM call failed with status code",
            ),
            "capacity, retry-after": Met("Error", "status code 429", requests=2),
        },
        in_ci=False,
    ),
    Client(
        "tanstack-ai",
        "tanstack-ai",
        None,
        "stream",
        {
            # What fails as a stream is asked for once more as a whole, by the same client with its two retries.
            **by_status(
                {},
                Met(returned=False),
                Met(returned=False),
                retried=dict.fromkeys((429, 500, 502), "Error"),
                requests=6,
                returned=True,
                status=False,
            ),
            **dict.fromkeys(("bad input", "no such model"), Met("Error", "400 status code", requests=2)),
        },
        in_ci=False,
    ),
    Client(
        "cloudflare-ai-npm",
        "cloudflare-ai",
        None,
        "embedding chat tools",
        {
            **dict.fromkeys(
                ("capacity", "capacity, retry-after", "capacity, once"), Met("Error", "3040: AiError: ")
            ),
            "bad input": Met("Error", "5006: AiError: Bad input: "),
            "no such model": Met("Error", "5007: AiError: No such model"),
            **dict.fromkeys(("failed", EMPTY, NULL), Met("Error", "5001: AiError: ")),
            "bad gateway": Met("SyntaxError", "is not valid JSON"),
        },
        in_ci=False,
    ),
]
