"""Verdicts and messages of the service's own validator. Facts: `input.validator`, `input.semantics`, `input.text`."""

from __future__ import annotations

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workersai_contracts import ModelCard, models
from workersai_emulator.javascript import number_printed, printed
from workersai_emulator.schema_walk import Walk, looks
from workersai_emulator.validation import (
    InputRefused,
    Validator,
    compile_validator,
    validate_input,
    validator_for,
)

FROZEN = json.loads((Path(__file__).parent / "data" / "validation_cases.json").read_text())

M3 = "@cf/baai/bge-m3"
SMALL = "@cf/baai/bge-small-en-v1.5"
RERANKER = "@cf/baai/bge-reranker-base"
LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
PLAMO = "@cf/pfnet/plamo-embedding-1b"


def complaint(validator: Validator, body: Any) -> str | None:
    try:
        validator.validate(body)
    except InputRefused as refusal:
        return refusal.complaint
    return None


def complaint_of(model: str, body: Any) -> str | None:
    return complaint(validator_for(models()[model]), body)


@pytest.mark.parametrize("subject", dict.fromkeys(case[0] for case in FROZEN["cases"]))
def test_frozen_answers_of_the_public_validator(subject: str) -> None:
    schema = FROZEN["schemas"].get(subject)
    validator = compile_validator(schema) if schema else validator_for(models()[subject])
    expected = [(body, answer) for name, body, answer in FROZEN["cases"] if name == subject]
    assert [(body, complaint(validator, body)) for body, _ in expected] == expected


def test_every_schema_has_frozen_answers_of_both_kinds() -> None:
    verdicts = {(name, answer is None) for name, _, answer in FROZEN["cases"]}
    names = {id(card.input_schema): name for name, card in models().items()}
    assert verdicts >= {(name, False) for name in names.values()}
    # nova-3 takes the recording itself: to the validator an object without properties is none.
    assert verdicts >= {(name, True) for name in names.values() if name != "@cf/deepgram/nova-3"}


@pytest.mark.parametrize(
    ("model", "body", "message"),
    [
        pytest.param(
            SMALL,
            {},
            "oneOf at '/' not met, 0 matches: "
            "required properties at '/' are 'text', required properties at '/' are 'requests'",
            id="empty",
        ),
        pytest.param(
            RERANKER,
            {"query": "a"},
            "required properties at '/' are 'query,contexts'",
            id="all that is required",
        ),
        pytest.param(
            RERANKER,
            {"query": 5, "contexts": []},
            "Type mismatch of '/query', 'string' not in 'number','integer'",
            id="number",
        ),
        pytest.param(
            RERANKER, {"query": None}, "Type mismatch of '/query', 'string' not in 'null'", id="null"
        ),
        pytest.param(
            RERANKER, {"query": []}, "Type mismatch of '/query', 'string' not in 'array','binary'", id="array"
        ),
        pytest.param(RERANKER, {"query": ""}, "Length of '/query' must be >= 1 not met", id="too short"),
        pytest.param(
            SMALL,
            {"text": "a", "pooling": "max"},
            "oneOf at '/' not met, 0 matches: Type mismatch of '/text', 'array' not in 'string', "
            "enum max not in mean,cls at '/pooling', required properties at '/' are 'requests'",
            id="not in the enum",
        ),
        pytest.param(
            SMALL,
            {"requests": [{"text": "a"}, {}]},
            "oneOf at '/' not met, 0 matches: required properties at '/' are 'text', "
            "Type mismatch of '/requests/0/text', 'array' not in 'string', "
            "required properties at '/requests/1' are 'text'",
            id="an item of a batch",
        ),
        pytest.param(
            SMALL,
            {"text": "a", "requests": [{"text": "a"}]},
            "oneOf at '/' not met, 2 matches: Type mismatch of '/text', 'array' not in 'string', "
            "Type mismatch of '/requests/0/text', 'array' not in 'string'",
            id="two forms at once",
        ),
    ],
)
def test_complaints_have_the_words_of_the_service(model: str, body: Any, message: str) -> None:
    with pytest.raises(InputRefused) as refusal:
        validate_input(models()[model], body)
    assert refusal.value.complaint == message


def test_closed_schemas_name_what_is_too_much() -> None:
    closed = compile_validator({"type": "object", "properties": {"text": {}}, "additionalProperties": False})
    assert complaint(closed, {"text": "a", "seed": 1}) == (
        "Additional or unevaluated properties '/seed' at '/' not allowed"
    )


@pytest.mark.parametrize(
    ("model", "body"),
    [
        pytest.param(M3, {"text": [1]}, id="an array of numbers for texts"),
        pytest.param(M3, {"text": []}, id="no texts"),
        pytest.param(M3, {"text": ["a"] * 500}, id="maxItems is not looked at"),
        pytest.param(M3, {"text": ["a", None, {}]}, id="null hides what is behind it in an array"),
        pytest.param(M3, {"text": "a", "unheard-of": 1}, id="schemas are open"),
        pytest.param(LLAMA, {"prompt": "a"}, id="strict JSON Schema would refuse it"),
        pytest.param(PLAMO, {"text": ""}, id="no minimum"),
    ],
)
def test_inputs_that_strictness_would_refuse_are_accepted(model: str, body: Any) -> None:
    assert complaint_of(model, body) is None


def test_text_is_counted_in_utf16_units() -> None:
    validator = compile_validator({"type": "string", "minLength": 2, "maxLength": 2})
    assert complaint(validator, "\N{GRINNING FACE}") is None
    assert complaint(validator, "\N{GRINNING FACE}!") == "Length of '/' must be <= 2"


def test_integer_like_keys_come_first() -> None:
    closed = compile_validator({"type": "object", "additionalProperties": False})
    assert complaint(closed, {"b": 1, "10": 1, "9": 1, "01": 1}) == (
        "Additional or unevaluated properties '/9, /10, /b, /01' at '/' not allowed"
    )


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (1e21, "1e+21"),
        (10**21 - 1, "1e+21"),
        (123456789012345680000, "123456789012345680000"),
        (1e-6, "0.000001"),
        (1.5e-7, "1.5e-7"),
        (0.1, "0.1"),
        (-12.5, "-12.5"),
        (10**400, "Infinity"),
        (5e-324, "5e-324"),
    ],
)
def test_numbers_are_printed_as_javascript_prints_them(number: float, text: str) -> None:
    assert number_printed(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_printed_numbers_read_back_as_themselves(number: float) -> None:
    assert float(number_printed(number)) == number


def test_values_are_printed_as_javascript_prints_them() -> None:
    assert printed([1, [], [None, [True, "a"]], {"a": 1}]) == "1,,,true,a,[object Object]"


#: A model of each input schema; cards of one form share theirs.
SUBJECTS = sorted({id(card.input_schema): name for name, card in models().items()}.values())
QUEUEING = [name for name in SUBJECTS if models()[name].takes_requests]


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize(
    ("opening", "closing"),
    [(b"[", b"]"), (b'{"text":', b"}")],
    ids=["arrays in arrays", "objects in objects"],
)
def test_deep_nesting_is_answered_as_shallow_nesting_is(name: str, opening: bytes, closing: bytes) -> None:
    deep, shallow = (orjson.loads(opening * depth + b"{}" + closing * depth) for depth in (1000, 3))
    assert complaint_of(name, deep) == complaint_of(name, shallow)


def test_deep_nesting_is_printed_in_a_complaint() -> None:
    validator = compile_validator({"enum": ["a"]})
    assert complaint(validator, orjson.loads(b"[" * 1000 + b"1" + b"]" * 1000)) == "enum 1 not in a at '/'"


def test_a_validator_is_compiled_once_a_card() -> None:
    assert validator_for(models()[M3]) is validator_for(models()[M3])


def test_validations_in_several_threads_do_not_meet() -> None:
    bodies = [{"requests": [{"text": number}] * number} for number in range(1, 40)]
    alone = [complaint_of(M3, body) for body in bodies]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda body: complaint_of(M3, body), bodies)) == alone


@pytest.mark.parametrize("pattern", ["a.c", r"\d", "a$b", "a|b", "(?i)a", "[^a]"])
def test_patterns_that_the_languages_read_differently_are_not_compiled(pattern: str) -> None:
    with pytest.raises(ValueError, match="keep to literals"):
        compile_validator({"type": "string", "pattern": pattern})


@pytest.mark.parametrize(
    ("text", "holds"), [("16000", True), ("16000\n", False), ("16k", False), ("", False)]
)
def test_a_pattern_ends_where_the_text_does(text: str, holds: bool) -> None:
    digits = compile_validator({"type": "string", "pattern": "^[0-9]+$"})
    assert (complaint(digits, text) is None) == holds


LONG, SHORT = "a text of more than thirty-two characters", "short"
ITEMS = st.sampled_from(
    [
        {"text": LONG},
        {"text": SHORT},
        {"text": ""},
        {"text": LONG, "pooling": "cls"},
        {"text": LONG, "pooling": LONG},
        *({name: LONG} for name in ("query", "pooling", "prompt", "contexts", "target_lang", LONG)),
        LONG,
    ]
)


@pytest.mark.parametrize("card", [models()[name] for name in QUEUEING], ids=QUEUEING)
@given(items=st.lists(ITEMS, max_size=6))
def test_looking_alike_changes_no_verdict(card: ModelCard, items: list[object]) -> None:
    root = validator_for(card).root
    body = {"requests": items}
    verdicts: list[object] = []
    for hasty in (True, False):
        try:
            verdicts.append(root.check(body, "", Walk(body, hasty=hasty)))
        except InputRefused:
            verdicts.append("refused")
    assert verdicts[0] == verdicts[1]


BODIES = st.builds(
    lambda key, items: {key: items}, st.sampled_from(["requests", "text", LONG]), st.lists(ITEMS, max_size=3)
)


@pytest.mark.parametrize("card", [models()[name] for name in QUEUEING], ids=QUEUEING)
@given(bodies=st.lists(BODIES | ITEMS, max_size=6))
def test_what_was_found_good_before_changes_no_verdict(card: ModelCard, bodies: list[object]) -> None:
    root = validator_for(card).root
    kept = Validator(root, by_looks=True)
    assert [complaint(kept, body) for body in bodies] == [
        complaint(Validator(root, by_looks=False), body) for body in bodies
    ]


def test_how_many_there_are_is_part_of_the_looks() -> None:
    """Each match in an array counts, and `oneOf` takes one only."""
    texts = {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "string"}}}}
    either = {"oneOf": [texts, {"type": "string"}]}
    validator = compile_validator({"type": "object", "required": ["a"], "properties": {"a": either}})
    assert validator.by_looks
    bodies = [{"a": [{"b": LONG}] * count} for count in (1, 2, 1)]
    assert [complaint(validator, body) is None for body in bodies] == [True, False, True]


@pytest.mark.parametrize(
    ("value", "look"),
    [
        ({"text": "x" * 17}, "text"),
        ({"text": "x" * 16}, None),
        ({"text": 1}, None),
        ({"n" * 64: LONG}, "n" * 64),
        ({"n" * 65: LONG}, None),
        ({"text": LONG, "pooling": LONG}, None),
        ({"requests": [{"text": LONG}, {"text": LONG}]}, ("requests", "text", 2)),
        ({"requests": [{"text": LONG}, {"query": LONG}]}, None),
        ({"requests": [{"text": LONG}, LONG]}, None),
        ({"requests": [{"n" * 65: LONG}]}, None),
        ({"requests": [{"contexts": [{"text": LONG}]}]}, None),
        ({"requests": [{}]}, None),
        ({"requests": []}, None),
        ([{"text": LONG}], None),
        (LONG, None),
    ],
)
def test_what_looks_alike(value: object, look: object) -> None:
    assert looks(value) == look


def test_looks_that_were_found_good_are_kept_up_to_a_number() -> None:
    validator = compile_validator({"type": "object"})
    for count in range(1, 1_502):
        validator.validate({"requests": [{"text": LONG}] * count})
    assert len(validator.good_looks) == 501


@pytest.mark.parametrize(
    "judging",
    [
        {"type": "string", "maxLength": 42},
        {"type": "string", "minLength": 42},
        {"type": "string", "pattern": "^a"},
        {"type": "string", "enum": [LONG]},
        {"const": LONG},
    ],
    ids=lambda schema: next(word for word in schema if word != "type"),
)
def test_where_a_schema_tells_long_texts_apart_each_is_looked_at(judging: dict[str, object]) -> None:
    item = {"properties": {"text": judging}, "required": ["text"]}
    validator = compile_validator(
        {"properties": {"requests": {"type": "array", "items": item}}, "required": ["requests"]}
    )
    texts = [LONG, LONG + "!", "x" * 50]
    alone = [complaint(validator, {"requests": [{"text": text}]}) is None for text in texts]
    assert len(set(alone)) == 2
    for first, text in itertools.product(texts, texts):
        both = complaint(validator, {"requests": [{"text": first}, {"text": text}]}) is None
        assert both == (alone[texts.index(first)] and alone[texts.index(text)])
