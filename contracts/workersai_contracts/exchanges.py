"""Named exchanges: a request, what its reply must be, and the facts that say so.

They are data, for the suite to run against any target. The texts are short and the models cheap, so that a run
against the live service costs next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from workersai_contracts.catalogue import error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

M3 = "@cf/baai/bge-m3"
SMALL = "@cf/baai/bge-small-en-v1.5"
GEMMA = "@cf/google/embeddinggemma-300m"
RERANKER = "@cf/baai/bge-reranker-base"
M2M100 = "@cf/meta/m2m100-1.2b"
LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
GPT_OSS = "@cf/openai/gpt-oss-120b"

OF_EVERY_REPLY = ("head.content-type", "head.req-id")
RUN = "/client/v4/accounts/{account_id}/ai/run/"
QUEUE = "queueRequest=true"

STORIES = (
    "This is a story about an orange cloud",
    "This is a story about a llama",
    "This is a story about a hugging emoji",
)
QUERY = "This is a story about Cloudflare"
CONTEXTS = tuple({"text": story} for story in STORIES)


@dataclass(frozen=True, slots=True)
class Vectors:
    """The reply has a vector for each of these texts, under this key of the result."""

    texts: Sequence[str]
    key: str = "data"


@dataclass(frozen=True, slots=True)
class Ranking:
    """The reply scores so many contexts, the best first."""

    contexts: int


@dataclass(frozen=True, slots=True)
class Text:
    """The reply is a text under this key of the result."""

    key: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reply is this row of the error catalogue, its description filled with these."""

    row: str
    params: Mapping[str, object] = field(default_factory=dict)


Reply = Vectors | Ranking | Text | Refusal


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and what its reply must be, which stands for the facts that it is `about`.

    `path` may name `{account_id}`; a `body` of bytes is sent raw.
    """

    name: str
    about: tuple[str, ...]
    body: Any
    reply: Reply
    model: str = M3
    path: str = ""
    method: str = "POST"
    query: str = ""
    credentials: Literal["good", "unknown", "malformed", "missing"] = "good"

    @property
    def facts(self) -> tuple[str, ...]:
        """All that the exchange cites: what it is about, and what every reply of its kind shows."""
        return (*self.about, *OF_EVERY_REPLY, *_of_kind(self.reply))


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """One batch from its submit to its last poll: its items, and what each one's result must be."""

    name: str
    requests: Sequence[Mapping[str, Any]]
    results: Sequence[Reply]
    model: str = M3


def _of_kind(reply: Reply) -> tuple[str, ...]:
    match reply:
        case Vectors():
            return ("env.success", "sync.run", "models.dimensions", "models.items", "models.precision")
        case Ranking():
            return ("env.success", "sync.run", "models.reranking")
        case Text():
            return ("env.success", "sync.run")
        case Refusal():
            return (reply.row, "env.edge" if error(reply.row).envelope == "edge" else "env.ai")


def _bad_input(name: str, complaint: str, body: Any, model: str = SMALL) -> Exchange:
    refusal = Refusal("input.text", {"complaint": f"Error: {complaint}"})
    return Exchange(f"refused input: {name}", ("input.validator",), body, refusal, model)


EXCHANGES: tuple[Exchange, ...] = (
    Exchange("one text", ("sync.run",), {"text": STORIES[0]}, Vectors(STORIES[:1])),
    Exchange(
        "several texts",
        ("sync.run",),
        {"text": list(STORIES)},
        Vectors(STORIES),
    ),
    Exchange(
        "several texts, the small model",
        ("sync.run",),
        {"text": list(STORIES), "pooling": "cls"},
        Vectors(STORIES),
        SMALL,
    ),
    Exchange(
        "contexts alone",
        ("sync.run",),
        {"contexts": list(CONTEXTS)},
        Vectors(STORIES, "response"),
    ),
    Exchange(
        "query and contexts",
        ("models.reranking",),
        {"query": QUERY, "contexts": list(CONTEXTS)},
        Ranking(3),
    ),
    Exchange(
        "reranking",
        ("models.reranking",),
        {"query": QUERY, "contexts": list(CONTEXTS), "top_k": 2},
        Ranking(2),
        RERANKER,
    ),
    Exchange(
        "translation",
        ("sync.languages",),
        {"text": "an orange cloud", "source_lang": "english", "target_lang": "fr"},
        Text("translated_text"),
        M2M100,
    ),
    Exchange(
        "text generation",
        ("sync.text-generation",),
        {"prompt": "Say yes.", "max_tokens": 8},
        Text("response"),
        LLAMA,
    ),
    *(
        Exchange(f"model path {spelling}", ("sync.path",), {"text": "a"}, Vectors(["a"]), path=RUN + spelling)
        for spelling in ("@cf/baai/bge-m3", "%40cf/baai/bge-m3", "@cf%2Fbaai%2Fbge-m3")
    ),
    Exchange(
        "unknown query keys", ("batch.query",), {"text": "a"}, Vectors(["a"]), query="tags=test&other=1"
    ),
    Exchange(
        "queueRequest in the body", ("batch.query.body",), {"text": "a", "queueRequest": True}, Vectors(["a"])
    ),
    Exchange(
        "queueRequest=false", ("settled.query",), {"text": "a"}, Vectors(["a"]), query="queueRequest=false"
    ),
    _bad_input(
        "nothing",
        "oneOf at '/' not met, 0 matches: required properties at '/' are 'text', "
        "required properties at '/' are 'requests'",
        {},
    ),
    _bad_input(
        "a number for a text",
        "oneOf at '/' not met, 0 matches: Type mismatch of '/text', 'string' not in 'number','integer', "
        "required properties at '/' are 'text', required properties at '/' are 'requests'",
        {"text": 1},
    ),
    _bad_input(
        "an unknown pooling",
        "oneOf at '/' not met, 0 matches: Type mismatch of '/text', 'array' not in 'string', "
        "enum max not in mean,cls at '/pooling', "
        "required properties at '/' are 'requests'",
        {"text": "a", "pooling": "max"},
    ),
    _bad_input("a query alone", "required properties at '/' are 'query,contexts'", {"query": "a"}, RERANKER),
    Exchange(
        "a payload over any limit",
        ("batch.limit",),
        {"requests": [{"text": "a", "padding": "x" * 11_000_000}]},
        Refusal("request.too-large"),
        query=QUEUE,
    ),
    Exchange(
        "another method",
        ("route.method",),
        None,
        Refusal("route.method", {"method": "GET"}),
        method="GET",
    ),
    Exchange(
        "an account that is none",
        ("route.account",),
        {"text": "a"},
        Refusal("route.account", {"path": "/client/v4/accounts/no%20account/ai/run/@cf/baai/bge-m3"}),
        path="/client/v4/accounts/no%20account/ai/run/@cf/baai/bge-m3",
    ),
    Exchange(
        "a model that nobody knows",
        ("route.none",),
        {"text": "a"},
        Refusal("route.none"),
        path=RUN + "@cf/nobody/knows-this",
    ),
    Exchange(
        "a token that nobody knows",
        ("auth.unknown",),
        {"text": "a"},
        Refusal("auth.unknown"),
        credentials="unknown",
    ),
    Exchange(
        "credentials of the wrong form",
        ("auth.malformed",),
        {"text": "a"},
        Refusal("auth.malformed"),
        credentials="malformed",
    ),
    Exchange(
        "no credentials",
        ("auth.missing",),
        {"text": "a"},
        Refusal("auth.missing"),
        credentials="missing",
    ),
)

LIFECYCLES: tuple[Lifecycle, ...] = (
    Lifecycle(
        "embeddings",
        [
            {"text": STORIES[0], "external_reference": "first"},
            {"text": list(STORIES)},
            {"text": list(STORIES[:2]), "external_reference": {"row": 3}},
            {"contexts": list(CONTEXTS), "external_reference": "first"},
            {"query": QUERY, "contexts": list(CONTEXTS)},
            *({"text": f"text number {number}", "external_reference": f"#{number}"} for number in range(7)),
        ],
        [
            Vectors(STORIES[:1]),
            Vectors(STORIES),
            Vectors(STORIES[:2]),
            Vectors(STORIES, "response"),
            Ranking(3),
            *(Vectors([f"text number {number}"]) for number in range(7)),
        ],
    ),
    Lifecycle(
        "embeddings of the small model",
        [{"text": story} for story in STORIES],
        [Vectors([story]) for story in STORIES],
        SMALL,
    ),
    Lifecycle(
        "translations",
        [{"text": "an orange cloud", "target_lang": "fr"}, {"text": "a llama", "target_lang": "de"}],
        [Text("translated_text"), Text("translated_text")],
        M2M100,
    ),
    Lifecycle(
        "text generation",
        [
            {"prompt": "Say yes.", "max_tokens": 8, "external_reference": "yes"},
            {"prompt": "Say no.", "max_tokens": 8},
        ],
        [Text("response"), Text("response")],
        LLAMA,
    ),
)
