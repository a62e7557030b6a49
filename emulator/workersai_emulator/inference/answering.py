"""Answers: what a model makes of items, as the JSON that goes into a reply.

Pure functions of the model and its input: no clock, no seed, no state. They are total over what the service's
validator lets through (Fact: `input.semantics`), but for JSON mode's schemas that nothing satisfies. They are
quick when they get several items at once.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from workersai_emulator.inference.answer import Answer
from workersai_emulator.inference.chosen import NOTHING, completed, read_chosen
from workersai_emulator.inference.descriptions import description
from workersai_emulator.inference.forms import TextForm, choices_wanted, put, shape_of, usage_of
from workersai_emulator.inference.generation import written
from workersai_emulator.inference.images import image
from workersai_emulator.inference.inputs import (
    contexts_of,
    has_contexts,
    listed,
    ranks,
    text_of,
    texts_of,
    whole_number,
)
from workersai_emulator.inference.labels import boxes, labels
from workersai_emulator.inference.media import members_of
from workersai_emulator.inference.speech import speech
from workersai_emulator.inference.text import placeholder, translation, within
from workersai_emulator.inference.tokens import Usage, estimate
from workersai_emulator.inference.transcripts import transcript, turn
from workersai_emulator.json_text import dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from workersai_contracts import ModelCard


def answers(card: ModelCard, items: Sequence[Mapping[str, Any]]) -> list[Answer]:
    """Return an answer for each item, in their order.

    Items that have vectors are computed together, so hand over as many as make some 128 texts (`cost` counts
    them).
    """
    if card.answers == "embedding":
        embedded = _embedded(card, [item for item in items if not ranks(card, item)])
        return [_ranked(card, item) if ranks(card, item) else next(embedded) for item in items]
    if card.answers == "reranking":
        return [_ranked(card, item) for item in items]
    if card.writes_text:
        return [generate(card, item, "native") for item in items]
    answer = _BY_KIND[card.answers]
    return [answer(card, item) for item in items]


def _embedded(card: ModelCard, items: Sequence[Mapping[str, Any]]) -> Iterator[Answer]:
    """Yield an answer with vectors for each item; the next texts are computed when their turn comes."""
    from workersai_emulator.inference.numbers import rows_json
    from workersai_emulator.inference.vectors import chunks, embedder

    texts = [texts_of(card, item) for item in items]
    vectors = embedder(card.name).vectors
    rows = chain.from_iterable(rows_json(vectors(chunk)) for chunk in chunks([*chain.from_iterable(texts)]))
    for item, own in zip(items, texts, strict=True):
        before, after = _around(card, item, b'"shape":[%d,%d]' % (len(own), card.dimensions or 0))
        parts: list[bytes | memoryview] = [before]
        for row in islice(rows, len(own)):
            parts += (row, b",")
        if len(parts) > 1:
            parts.pop()  # the last comma
        yield Answer(b"".join([*parts, after]), read_only(card, own))


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
    from workersai_emulator.inference.reranking import ranking
    from workersai_emulator.inference.vectors import words_limit

    query, contexts = text_of(item.get("query")), contexts_of(item)
    top_k = whole_number(item.get("top_k")) if card.answers == "reranking" else None
    ranked = ranking(query, contexts, words_limit(card), top_k)
    result = dumps({"response": [{"id": index, "score": score} for index, score in ranked]})
    return Answer(result, read_only(card, [query, *contexts]))


def _translated(card: ModelCard, item: Mapping[str, Any]) -> Answer:
    """Answer with one translation, or with as many as there are texts where the card has it so."""
    text, language = item.get("text"), item.get("target_lang", item.get("target_language"))
    several = "translations" in members_of(card)
    told = [translation(one, language) for one in (listed(text) if several else [text])]
    usage = Usage(read_only(card, texts_of(card, item)).prompt_tokens, sum(map(estimate, told)))
    return Answer(dumps({"translations": told} if several else {"translated_text": told[0]}), usage)


def generate(card: ModelCard, inputs: Mapping[str, Any], form: TextForm, chosen: Any = NOTHING) -> Answer:
    """Return one run of a text model in one form: `native`, `chat` or `responses`.

    A `chosen` output is taken in place of what the model would write. In the native form it comes out as it
    is; in the others it is converted (`{"response": "billing"}` becomes a chat completion that says so), or,
    where it is no text generation, comes out as it is. Raises CannotMeet where JSON mode's schema has no
    value. Facts: `sync.text-generation`, `models.choices`, `sync.gpt-oss`, `openai.run`.
    """
    shape = shape_of(card, inputs, form)
    if chosen is NOTHING:
        new = written(card, inputs)
        choices = choices_wanted(inputs) if shape == "choices" else 1
        return Answer(dumps(put(card, inputs, new, shape, choices)), usage_of(new, choices))
    read = read_chosen(inputs, chosen)
    if read is None:
        return Answer(dumps(chosen), Usage(sum(map(estimate, texts_of(card, inputs)))))
    if form == "native":
        return Answer(dumps(chosen), read.usage)
    told = completed(card, inputs, chosen, read, shape)
    return Answer(dumps(put(card, inputs, read, shape) if told is None else told), read.usage)


def _summarized(card: ModelCard, item: Mapping[str, Any]) -> Answer:
    """Answer with a summary of at most `max_length` tokens. Fact: `models.outputs`."""
    text = text_of(item.get("input_text"))
    summary = within(placeholder(card, text), whole_number(item.get("max_length")))
    usage = Usage(read_only(card, [text]).prompt_tokens, estimate(summary))
    return Answer(dumps({"summary": summary}), usage)


def _told(card: ModelCard, item: Mapping[str, Any], result: Any) -> Answer:
    return Answer(dumps(result), read_only(card, texts_of(card, item)))


_BY_KIND: Final[dict[str, Callable[[ModelCard, Mapping[str, Any]], Answer]]] = {
    "translation": _translated,
    "summary": _summarized,
    "labels": lambda card, item: _told(card, item, labels(card, item)),
    "boxes": lambda card, item: _told(card, item, boxes(item)),
    "description": description,
    "image": image,
    "transcript": lambda card, item: _told(card, item, transcript(card, item)),
    "speech": speech,
    "turn": lambda card, item: _told(card, item, turn(item)),
}


def read_only(card: ModelCard, texts: Sequence[str]) -> Usage:
    """Return the tokens of texts, each counted up to the model's limit; nothing is written.

    Fact: `poll.usage`.
    """
    most = card.max_input_tokens
    return Usage(sum(estimate(text) if most is None else min(estimate(text), most) for text in texts))
