"""The truth about the wire of Workers AI: its facts, errors, models and messages, as data.

Importing it is cheap: nothing is read before it is asked for, and JSON Schema code is loaded to validate.
"""

from __future__ import annotations

from workersai_contracts.catalogue import (
    Answers,
    Assumption,
    Envelope,
    ErrorRow,
    Fact,
    Level,
    ModelCard,
    Validated,
    assumptions,
    error,
    errors,
    facts,
    load_schema,
    model,
    models,
    schema_names,
)
from workersai_contracts.mismatch import ContractMismatch, Mismatch, mismatches, validate

__all__ = [
    "Answers",
    "Assumption",
    "ContractMismatch",
    "Envelope",
    "ErrorRow",
    "Fact",
    "Level",
    "Mismatch",
    "ModelCard",
    "Validated",
    "assumptions",
    "error",
    "errors",
    "facts",
    "load_schema",
    "mismatches",
    "model",
    "models",
    "schema_names",
    "validate",
]
