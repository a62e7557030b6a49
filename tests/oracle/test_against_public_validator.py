"""Our verdicts and messages against the service's own public validator.

Facts: `input.validator`, `input.semantics`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from body_strategies import bodies, schemas
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workersai_contracts import models
from workersai_emulator.validation import InputRefused, Validator, compile_validator, validator_for

if TYPE_CHECKING:
    from validator_oracle import Oracle

pytestmark = pytest.mark.oracle

EXAMPLES = int(os.environ.get("ORACLE_EXAMPLES", "300"))
long_run = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def complaint(validator: Validator, body: Any) -> str | None:
    try:
        validator.validate(body)
    except InputRefused as refusal:
        return refusal.complaint
    return None


@pytest.mark.parametrize("name", {id(card.input_schema): name for name, card in models().items()}.values())
def test_every_card_is_read_as_the_public_validator_reads_it(oracle: Oracle, name: str) -> None:
    card = models()[name]

    @long_run
    @given(body=bodies(card.input_schema))
    def compare(body: Any) -> None:
        assert complaint(validator_for(card), body) == oracle.complaint(card.input_schema, body)

    compare()


@long_run
@given(data=st.data())
def test_any_schema_is_read_as_the_public_validator_reads_it(oracle: Oracle, data: st.DataObject) -> None:
    schema = data.draw(schemas(), label="schema")
    validator = compile_validator(schema)
    for _ in range(5):
        body = data.draw(bodies(schema), label="body")
        assert complaint(validator, body) == oracle.complaint(schema, body)
