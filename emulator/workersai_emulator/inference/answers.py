"""Answers: what a model makes of items, as the JSON that goes into a reply.

Pure functions of the model and its input: no clock, no seed, no state. They are total over what the service's
validator lets through (Fact: `input.semantics`), and quick when they get several items at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from workersai_emulator.inference.inputs import (
    contexts_of,
    has_contexts,
    ranks,
    text_of,
    texts_of,
    whole_number,
)
from workersai_emulator.inference.numbers import rows_json
from workersai_emulator.inference.reranking import ranking
from workersai_emulator.inference.text import chat_completion, native, response, translation, written
from workersai_emulator.inference.tokens import Usage, estimate
from workersai_emulator.inference.vectors import chunks, embedder, words_limit
from workersai_emulator.json_text import dumps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from workersai_contracts import ModelCard


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model answers to one item: its synchronous output as JSON, and the tokens it took.

    Fact: `poll.item`.
    """

    result: bytes
    usage: Usage


def answers(card: ModelCard, items: Sequence[Mapping[str, Any]]) -> list[Answer]:
    """Return an answer for each item, in their order.

    Items that have vectors are computed together, so hand over as many as make some 32 texts (`cost` counts
    them).
    """
    if card.answers == "embedding":
        embedded = _embedded(card, [item for item in items if not ranks(card, item)])
        return [_ranked(card, item) if ranks(card, item) else next(embedded) for item in items]
    if card.answers == "reranking":
        return [_ranked(card, item) for item in items]
    if card.answers == "translation":
        return [_translated(card, item) for item in items]
    return [_generated(card, item) for item in items]


def _embedded(card: ModelCard, items: Sequence[Mapping[str, Any]]) -> Iterator[Answer]:
    """Yield an answer with vectors for each item; the next texts are computed when their turn comes."""
    texts = [texts_of(card, item) for item in items]
    vectors = embedder(card.name).vectors
    rows = chain.from_iterable(rows_json(vectors(chunk)) for chunk in chunks([*chain.from_iterable(texts)]))
    for item, own in zip(items, texts, strict=True):
        before, after = _around(card, item, b'"shape":[%d,%d]' % (len(own), card.dimensions or 0))
        data = b",".join(islice(rows, len(own)))
        yield Answer(b"".join((before, data, after)), _read_only(card, own))


def _around(card: ModelCard, item: Mapping[str, Any], shape: bytes) -> tuple[bytes, bytes]:
    """Return what stands before and after the vectors. Facts: `batch.items`, `poll.item`.

    The three English bge models say which pooling was asked for, and bge-m3 always `cls`; the vectors are the
    same. bge-m3 calls the vectors of contexts `response`.
    """
    if has_contexts(card, item):
        return b'{"response":[', b"]," + shape + b',"pooling":"cls"}'
    if card.name == "@cf/baai/bge-m3":
        return b"{" + shape + b',"data":[', b'],"pooling":"cls"}'
    if card.name.startswith("@cf/baai/bge-"):
        pooling = b"cls" if item.get("pooling") == "cls" else b"mean"
        return b"{" + shape + b',"data":[', b'],"pooling":"' + pooling + b'"}'
    return b'{"data":[', b"]," + shape + b"}"


def _ranked(card: ModelCard, item: Mapping[str, Any]) -> Answer:
    query, contexts = text_of(item.get("query")), contexts_of(item)
    top_k = whole_number(item.get("top_k")) if card.answers == "reranking" else None
    ranked = ranking(query, contexts, words_limit(card), top_k)
    result = dumps({"response": [{"id": index, "score": score} for index, score in ranked]})
    return Answer(result, _read_only(card, [query, *contexts]))


def _translated(card: ModelCard, item: Mapping[str, Any]) -> Answer:
    text = translation(item)
    usage = Usage(_read_only(card, texts_of(card, item)).prompt_tokens, estimate(text))
    return Answer(dumps({"translated_text": text}), usage)


def _generated(card: ModelCard, item: Mapping[str, Any]) -> Answer:
    new = written(card, item)
    if card.answers == "response":
        return Answer(dumps(native(new)), new.usage)
    form = response if card.answers == "output" else chat_completion
    return Answer(dumps(form(card, item, new)), new.usage)


def _read_only(card: ModelCard, texts: Sequence[str]) -> Usage:
    """Return the tokens of texts, each counted up to the model's limit; nothing is written.

    Fact: `poll.usage`.
    """
    most = card.max_input_tokens
    return Usage(sum(estimate(text) if most is None else min(estimate(text), most) for text in texts))
