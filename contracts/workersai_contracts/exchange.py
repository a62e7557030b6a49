"""One exchange of the suite: a request, what its reply must be, and the facts that say so."""

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
AI = "/client/v4/accounts/{account_id}/ai/"
RUN = AI + "run/"
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
    """The reply is this row of the error catalogue, its description filled with these.

    Where the words of the row are not the service's, only its status and its code are looked at.
    """

    row: str
    params: Mapping[str, object] = field(default_factory=dict)
    in_our_words: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """The reply is a page of models that are about this text, so many at least and at most."""

    about: str
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Schemas:
    """The reply is what a model takes and gives; what it takes names this member."""

    member: str


@dataclass(frozen=True, slots=True)
class Completion:
    """The reply is OpenAI's chat completion with a text."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """The reply has, in OpenAI's form, a vector for each of these texts in this encoding."""

    texts: Sequence[str]
    encoding: Literal["float", "base64"]


@dataclass(frozen=True, slots=True)
class Response:
    """The reply is OpenAI's response object."""


@dataclass(frozen=True, slots=True)
class Events:
    """The reply is a text in events, of Workers AI's own form or in OpenAI's chunks."""

    form: Literal["native", "chat"]


Enveloped = Vectors | Ranking | Text
Reply = Enveloped | Refusal | Page | Schemas | Completion | Embedded | Response | Events


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
        shown = ("head.req-id",) if isinstance(self.reply, Events) else OF_EVERY_REPLY
        return (*self.about, *shown, *_of_kind(self.reply))


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """One batch from its submit to its last poll: its items, and what each one's result must be."""

    name: str
    requests: Sequence[Mapping[str, Any]]
    results: Sequence[Enveloped]
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
            return (reply.row, *_of_envelope(reply))
        case Page() | Schemas():
            return ("env.success",)
        case _:
            return ()


def _of_envelope(refusal: Refusal) -> tuple[str, ...]:
    if refusal.in_our_words:
        return ()
    return ("env.edge",) if error(refusal.row).envelope == "edge" else ("env.ai",)
