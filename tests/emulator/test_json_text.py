from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workersai_emulator.json_text import dumps, loads

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None), max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec=None), max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_what_is_written_reads_back_as_it_was(value: Any) -> None:
    written = dumps(value)
    assert json.loads(written) == value
    assert written == dumps(json.loads(written))


@given(VALUES, st.booleans())
def test_what_another_writer_wrote_is_read(value: Any, escaped: bool) -> None:
    assert loads(json.dumps(value, ensure_ascii=escaped)) == value


def test_text_is_compact_and_not_escaped_without_need() -> None:
    assert dumps({"a": [1, "é"], "b": {}}) == '{"a":[1,"é"],"b":{}}'.encode()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("\ud800", rb'"\ud800"'),
        ({"\udfff": ["é", [], {}], "b": 1}, rb'{"\udfff":["\u00e9",[],{}],"b":1}'),
        ([2**64, math.inf, -math.inf, math.nan, 0.5, True, None, 2**70], None),
    ],
    ids=["lone surrogate", "in an object", "numbers"],
)
def test_what_orjson_refuses_is_written_with_escapes(value: Any, text: bytes | None) -> None:
    expected = text or b"[18446744073709551616,null,null,null,0.5,true,null,1180591620717411303424]"
    assert dumps(value) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (rb'"\ud83d"', "\ud83d"),
        (rb'{"\udc00":["\ud83d\ude80"]}', {"\udc00": ["🚀"]}),
        ("[1e999]", [math.inf]),
        (' {"a":1,"a":2} ', {"a": 2}),
    ],
    ids=["lone surrogate", "beside a pair", "beyond a double", "last of two"],
)
def test_what_javascript_reads_is_read(text: bytes | str, value: Any) -> None:
    assert loads(text) == value


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"a":1',
        b"[1,]",
        b"[NaN]",
        b"[Infinity]",
        b"[-Infinity]",
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b"\xef\xbb\xbf{}",
        b"'a'",
        b"1 2",
        "{}".encode("utf-16"),
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000,
        b"9" * 5000 + b"e",
    ],
    ids=lambda data: repr(data[:12]) + str(len(data)),
)
def test_what_is_not_json_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        loads(data)


@given(st.binary(max_size=30))
def test_any_bytes_are_read_or_are_a_value_error(data: bytes) -> None:
    try:
        value = loads(data)
    except ValueError:
        return
    assert loads(dumps(value)) == value


def test_depth_is_no_limit_to_writing() -> None:
    deep: dict[str, Any] = {}
    for _ in range(20_000):
        deep = {"a": [deep]}
    assert dumps(deep) == b'{"a":[' * 20_000 + b"{}" + b"]}" * 20_000


def test_what_json_has_no_form_for_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        dumps({"a": object()})
