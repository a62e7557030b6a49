"""Named exchanges beside the runs of a model in the path: listings, OpenAI's routes, streams."""

from __future__ import annotations

from workersai_contracts.exchange import (
    AI,
    GPT_OSS,
    LLAMA,
    M3,
    SMALL,
    STORIES,
    Completion,
    Embedded,
    Events,
    Exchange,
    Page,
    Refusal,
    Response,
    Schemas,
    Vectors,
)

MESSAGES = [{"role": "user", "content": "Say yes."}]
CHAT = {"model": LLAMA, "messages": MESSAGES, "max_tokens": 8}

SURFACES: tuple[Exchange, ...] = (
    Exchange(
        "a model in the body",
        ("sync.run-body",),
        {"model": M3, "input": {"text": STORIES[0]}},
        Vectors(STORIES[:1]),
        path=AI + "run",
    ),
    Exchange(
        "a page of models",
        ("models.search",),
        None,
        Page("bge", 2, 2),
        path=AI + "models/search",
        method="GET",
        query="search=bge&per_page=2",
    ),
    Exchange(
        "a page beyond the last",
        ("models.search",),
        None,
        Page("", 0, 0),
        path=AI + "models/search",
        method="GET",
        query="page=9999&per_page=100",
    ),
    Exchange(
        "a model's schema",
        ("models.schema",),
        None,
        Schemas("text"),
        path=AI + "models/schema",
        method="GET",
        query="model=%40cf%2Fbaai%2Fbge-m3",
    ),
    Exchange(
        "the schema of a model that nobody knows",
        ("models.schema",),
        None,
        Refusal("schema.unknown", in_our_words=True),
        path=AI + "models/schema",
        method="GET",
        query="model=%40cf%2Fnobody%2Fknows-this",
    ),
    Exchange(
        "OpenAI's list of models",
        ("openai.models",),
        None,
        Refusal("route.method", {"method": "GET"}),
        path=AI + "v1/models",
        method="GET",
    ),
    Exchange(
        "a chat completion",
        ("openai.run",),
        CHAT,
        Completion(),
        LLAMA,
        path=AI + "v1/chat/completions",
    ),
    *(
        Exchange(
            f"OpenAI's embeddings, {encoding}",
            ("openai.run", "openai.embeddings"),
            {"model": SMALL, "input": list(STORIES), "encoding_format": encoding},
            Embedded(STORIES, encoding),
            SMALL,
            path=AI + "v1/embeddings",
        )
        for encoding in ("float", "base64")
    ),
    Exchange(
        "a response",
        ("openai.run",),
        {"model": GPT_OSS, "input": "Say yes.", "max_output_tokens": 16},
        Response(),
        GPT_OSS,
        path=AI + "v1/responses",
    ),
    Exchange(
        "a stream",
        ("head.sse", "stream.native"),
        {"prompt": "Say yes.", "max_tokens": 8, "stream": True},
        Events("native"),
        LLAMA,
    ),
    Exchange(
        "a chat completion in chunks",
        ("head.sse", "openai.stream"),
        {**CHAT, "stream": True},
        Events("chat"),
        LLAMA,
        path=AI + "v1/chat/completions",
    ),
)
