"""Limits: what is refused though it is the model's input, because it is too much or comes too often.

Each is switched by a setting (`settings.LIMITS`). Token counts are estimates, so a refusal near a limit may
come some texts earlier or later than the service's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workersai_emulator import inference
from workersai_emulator.refusals import Refused
from workersai_emulator.usage import ALLOCATION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workersai_contracts import ModelCard
    from workersai_emulator.accounts import Account
    from workersai_emulator.calls import Form
    from workersai_emulator.settings import Settings

#: What a text model may write where the request does not say.
OUTPUT_TOKENS = 256


def check_allowance(account: Account, card: ModelCard, settings: Settings) -> None:
    """Let the account make one more run or submit of this model, and count it. Raises Refused.

    The plan is looked at first, then the minute, then the day. On the paid plan the day has no end, since what is
    beyond the allocation is billed; a model for that plan alone is refused only where the day is looked at. The
    run that crosses the allocation is answered.
    Facts: `plan.paid`, `rate.minute`, `limits.rate`, `poll.rate`, `settled.rate`, `quota.daily`,
    `limits.neurons`, `settled.allocation`.
    """
    free = settings.limit("daily_neurons", ALLOCATION) if settings.plan != "paid" else None
    if card.paid_only and free is not None:
        raise Refused("plan.paid")
    most = settings.limit("requests_per_minute", card.requests_per_minute)
    if not account.minute.take(card.name, most):
        raise Refused("rate.minute")
    if free is not None and account.usage.neurons >= free:
        raise Refused("quota.daily")


def check_tokens(
    card: ModelCard, inputs: Mapping[str, Any], settings: Settings, form: Form = "native"
) -> None:
    """Pass inputs that fit into the model. Raises Refused.

    Only bge-m3 is known to refuse long texts; other embedding models cut them.
    Facts: `models.context`, `models.truncation`, `context.window`.
    """
    if card.writes_text:
        _check_window(card, inputs, settings)
    elif card.answers == "embedding" and card.context_tokens is not None:
        if form == "embeddings":
            tokens = [text.tokens for text in inference.read_texts(inputs.get("input"))]
        else:
            tokens = [inference.estimate(text) for text in inference.texts_of(card, inputs)]
        _check_texts(card, tokens, settings, cut=inputs.get("truncate_inputs") is True)


def _check_texts(card: ModelCard, tokens: Sequence[int], settings: Settings, *, cut: bool) -> None:
    """Hold the texts of a call against what one may have, and all, each padded to the longest.

    Facts: `model.sequence`, `model.context`.
    """
    longest = max(tokens, default=0)
    if cut and card.max_input_tokens is not None:
        longest = min(longest, card.max_input_tokens)
    most = settings.limit("text_tokens", card.max_input_tokens)
    if most is not None and not cut and longest > most:
        raise Refused("model.sequence", tokens=longest, limit=most)
    padded = len(tokens) * longest
    most = settings.limit("call_tokens", card.context_tokens)
    if most is not None and padded > most:
        raise Refused("model.context", tokens=padded, limit=most)


def _check_window(card: ModelCard, inputs: Mapping[str, Any], settings: Settings) -> None:
    """Hold what a text model is to read and may write against its window. Fact: `context.window`."""
    window = settings.limit("context_tokens", card.context_tokens)
    if window is None:
        return
    tokens = sum(map(inference.estimate, inference.texts_of(card, inputs))) + (
        inference.token_limit(inputs) or OUTPUT_TOKENS
    )
    if tokens > window:
        raise Refused("context.window", tokens=tokens, limit=window)
