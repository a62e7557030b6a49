"""Checks of replies: each says of a fact whether it holds here."""

from __future__ import annotations

import math
import re
import struct
from typing import TYPE_CHECKING, Any

from workersai_contracts.catalogue import ErrorRow, ModelCard, error, model
from workersai_contracts.exchange import Enveloped, Ranking, Refusal, Text, Vectors
from workersai_contracts.findings import Finding
from workersai_contracts.mismatch import mismatches

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from workersai_contracts.suite.wire import Answer

UUID4 = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
RAY = re.compile("[0-9a-f]{16}-[A-Z]{3}")
TASK_SCHEMA = {
    "embedding": "run/embedding.reply",
    "reranking": "run/reranking.reply",
    "translation": "run/translation.reply",
    "response": "run/response.reply",
    "choices": "run/choices.reply",
    "output": "run/output.reply",
}


class Checks:
    """Collects findings in one place of the suite; `note` hears of each."""

    def __init__(self, where: str, note: Callable[[Finding], None]) -> None:
        self._where = where
        self._note = note

    def that(self, fact: str, held: bool, message: str) -> bool:
        """Say of a fact whether it holds; the message is what is wrong if it does not."""
        self._note(Finding(fact, held, "" if held else message, self._where))
        return held

    def shows(self, fact: str, alternative: str | None, message: str = "") -> None:
        """Say which alternative of an open fact the target shows; None where it shows none of them."""
        known = alternative is not None
        self._note(Finding(fact, known, "" if known else message, self._where, alternative))

    def schema(self, fact: str, message: Any, name: str) -> bool:
        """Hold a message to its schema."""
        found = mismatches(message, name)
        return self.that(fact, not found, "; ".join(mismatch.message for mismatch in found))

    def headers(self, answer: Answer, *, reached: bool) -> None:
        """Facts: `head.content-type`, `head.req-id`."""
        given = answer.headers.get("content-type")
        self.that("head.content-type", given == "application/json", f"content-type is {given!r}")
        ray = answer.headers.get("cf-ray", "")
        self.that("head.req-id", RAY.fullmatch(ray) is not None, f"cf-ray is {ray!r}")
        if reached:
            request_id = answer.headers.get("cf-ai-req-id", "")
            self.that(
                "head.req-id", UUID4.fullmatch(request_id) is not None, f"cf-ai-req-id is {request_id!r}"
            )

    def success(self, fact: str, answer: Answer) -> bool:
        """A success in its envelope. Fact: `env.success`; the other is the fact that it should succeed at all."""
        self.headers(answer, reached=True)
        if not self.succeeded(fact, answer):
            return False
        keys = list(answer.json) if isinstance(answer.json, dict) else None
        expected = ["result", "success", "errors", "messages"]
        in_order = self.that("env.success", keys == expected, f"keys are {keys}, not {expected}")
        return in_order and self.schema("env.success", answer.json, "envelope/success")

    def succeeded(self, fact: str, answer: Answer) -> bool:
        """Whether the status says so."""
        return self.that(fact, answer.status == 200, f"HTTP {answer.status}: {_excerpt(answer)}")

    def refusal(self, answer: Answer, refusal: Refusal) -> bool:
        """A refusal by a row of the catalogue, in the envelope of whoever refuses."""
        row = error(refusal.row)
        self.headers(answer, reached=row.envelope == "ai" and not refusal.in_our_words)
        code = first_code(answer)
        told = f"HTTP {answer.status}/{code}, not {row.status}/{row.code}: {_excerpt(answer)}"
        if not self.that(row.id, (answer.status, code) == (row.status, row.code), told):
            return False
        if refusal.in_our_words:
            return True
        if row.envelope == "edge":
            return self._edge_refusal(answer, row, refusal.params)
        return self._ai_refusal(answer, row, refusal.params)

    def _edge_refusal(self, answer: Answer, row: ErrorRow, params: Mapping[str, object]) -> bool:
        """Fact: `env.edge`."""
        there = "cf-ai-req-id" in answer.headers
        self.that("env.edge", not there, "the router's refusal has a cf-ai-req-id")
        self._keys("env.edge", answer.json, ["result", "success", "errors", "messages"], ["code", "message"])
        self.schema("env.edge", answer.json, "envelope/edge-error")
        expected = [(row.code, row.describe(**params)), *row.also]
        told = [(one.get("code"), one.get("message")) for one in answer.json["errors"]]
        return self.that(row.id, told == expected, f"errors are {told}, not {expected}")

    def _ai_refusal(self, answer: Answer, row: ErrorRow, params: Mapping[str, object]) -> bool:
        """Fact: `env.ai`."""
        self._keys("env.ai", answer.json, ["errors", "success", "result", "messages"], ["message", "code"])
        self.schema("env.ai", answer.json, "envelope/ai-error")
        title = "" if row.title is None else f"{row.title}: "
        expected = f"AiError: {title}{row.describe(**params)}"
        message = str(answer.json["errors"][0].get("message"))
        if row.names_request:
            ending = f" ({answer.headers.get('cf-ai-req-id')})"
            told = f"the message does not end in the cf-ai-req-id{ending}: {message}"
            self.that("env.ai", message.endswith(ending), told)
            message = re.sub(r" \([0-9a-f-]{36}\)$", "", message)
        return self.that(row.id, message == expected, f"the message is {message!r}, not {expected!r}")

    def _keys(self, fact: str, body: Any, expected: list[str], of_errors: list[str]) -> None:
        keys = list(body) if isinstance(body, dict) else None
        self.that(fact, keys == expected, f"keys are {keys}, not {expected}")
        for one in body.get("errors", []) if isinstance(body, dict) else []:
            self.that(fact, list(one) == of_errors, f"an error's keys are {list(one)}, not {of_errors}")

    def output(self, fact: str, result: Any, reply: Enveloped, card: ModelCard) -> bool:
        """A model's output answers the input: the right number, the right dimension, nothing empty."""
        named = TASK_SCHEMA[card.answers] if not isinstance(reply, Ranking) else "run/reranking.reply"
        if not self.schema(fact, {"result": result, "success": True, "errors": [], "messages": []}, named):
            return False
        match reply:
            case Vectors():
                return self._vectors(fact, result, reply, card)
            case Ranking():
                return self._ranking(fact, result, reply)
            case Text():
                text = result.get(reply.key)
                return self.that(fact, isinstance(text, str) and bool(text), f"{reply.key} is {text!r}")

    def _vectors(self, fact: str, result: dict[str, Any], reply: Vectors, card: ModelCard) -> bool:
        """Facts: `models.dimensions`, `models.precision`, `models.items`."""
        rows = result.get(reply.key)
        if not self.that(fact, isinstance(rows, list) and len(rows) == len(reply.texts), _count(rows, reply)):
            return False
        assert isinstance(rows, list)
        lengths = {len(row) for row in rows if isinstance(row, list)}
        if card.dimensions is not None:
            right = lengths == {card.dimensions}
            self.that(
                "models.dimensions", right, f"vectors have {sorted(lengths)} numbers, not {card.dimensions}"
            )
        shape, expected = result.get("shape"), [len(rows), card.dimensions]
        self.that("models.items", shape == expected, f"shape is {shape}, not {expected}")
        empty = [number for number, row in enumerate(rows) if not any(row)]
        self.that(fact, not empty, f"vectors {empty} are all zeros")
        distinct = len({tuple(row) for row in rows}) == len(set(reply.texts))
        self.that(fact, distinct, "different texts have the same vector")
        numbers = [number for row in rows for number in row]
        finite = all(math.isfinite(number) for number in numbers)
        self.that(
            "models.precision", finite and all(map(_is_half, numbers)), "a number is not a half-precision one"
        )
        return not empty and distinct

    def _ranking(self, fact: str, result: dict[str, Any], reply: Ranking) -> bool:
        """Fact: `models.reranking`."""
        ranked = result["response"]
        right = self.that(fact, len(ranked) == reply.contexts, f"{len(ranked)} scores, not {reply.contexts}")
        scores = [one["score"] for one in ranked]
        ids = [one["id"] for one in ranked]
        self.that(
            "models.reranking", scores == sorted(scores, reverse=True), f"scores are not best first: {scores}"
        )
        self.that("models.reranking", len(set(ids)) == len(ids), f"a context is scored twice: {ids}")
        return right


def card_of(model_name: str) -> ModelCard:
    """The card of a model that the suite names."""
    card = model(model_name)
    if card is None:
        raise LookupError(f"the suite names {model_name!r}, which has no card")
    return card


def first_code(answer: Answer) -> Any:
    """The code of a refusal's first error; None where there is none."""
    try:
        return answer.json["errors"][0]["code"]
    except (KeyError, IndexError, TypeError):
        return None


def _excerpt(answer: Answer) -> str:
    text = answer.content.decode("utf-8", "replace")
    return text if len(text) <= 300 else f"{text[:300]} … ({len(text)} characters)"


def _count(rows: Any, reply: Vectors) -> str:
    there = len(rows) if isinstance(rows, list) else "no"
    return f"{there} vectors under {reply.key!r} for {len(reply.texts)} texts"


def _is_half(number: float) -> bool:
    try:
        return bool(struct.unpack("<e", struct.pack("<e", number))[0] == number)
    except (OverflowError, struct.error):
        return False
