"""Named exchanges and lifecycles: what the suite sends to a target, and what must come back.

They are data, for the suite to run against any target. The texts are short and the models cheap, so that a run
against the live service costs next to nothing.
"""

from __future__ import annotations

from typing import Any

from workersai_contracts.exchange import (
    CONTEXTS,
    LLAMA,
    M2M100,
    QUERY,
    QUEUE,
    RERANKER,
    RUN,
    SMALL,
    STORIES,
    Exchange,
    Lifecycle,
    Ranking,
    Refusal,
    Text,
    Vectors,
)
from workersai_contracts.surfaces import SURFACES


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
    *SURFACES,
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
