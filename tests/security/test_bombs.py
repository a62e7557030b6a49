"""Bombs: messages that are small to send and would be endless to answer."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from workersai_emulator.markdown import NotConvertedError, convert

if TYPE_CHECKING:
    import httpx

ACCOUNT = "0123456789abcdef0123456789abcdef"
RUN = f"/client/v4/accounts/{ACCOUNT}/ai/run"
LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
M3 = "@cf/baai/bge-m3"
WHISPER = "@cf/openai/whisper"
#: A WAV file of some bytes that says it has 2 GB at one sample a second.
LONG_RECORDING = (
    b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\1\0\1\0\1\0\0\0\1\0\0\0\1\0\x08\0data\xff\xff\xff\x7f"
)
#: Every bomb is answered within this, on a busy machine too; by itself it takes less than one second.
ANSWERED_WITHIN = 15.0
UNMET = 5024


def doubling(levels: int) -> dict[str, Any]:
    each = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$defs": {**each, f"d{levels}": {"type": "string"}}}


def alternatives(levels: int) -> Any:
    schema: Any = {"type": "string"}
    for _ in range(levels):
        schema = {"anyOf": [schema, schema]}
    return schema


LONG = "a" * 40 + "!"


def asked(question: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": question}]


def tools_of(number: int, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    told = {"description": "", "parameters": {"type": "object", "properties": {}, **parameters}}
    return [{"type": "function", "function": {"name": f"t{n}", **told}} for n in range(number)]


SCHEMAS: dict[str, Any] = {
    "a pattern over a constant": {"enum": [LONG], "pattern": "^(a+)+$"},
    "a pattern over a name": {
        "enum": [{LONG: 1}],
        "patternProperties": {"^(a|a)+$": {}},
        "additionalProperties": False,
    },
    "a pattern over what is drawn for it": {"type": "string", "pattern": "(a+)+$b"},
    "a pattern that repeats": {"type": "string", "pattern": "((((a{1000}){1000}){1000}){1000})!"},
    "a pattern that refers back": {"enum": ["a" * 50_000], "pattern": r"^(a*)(a*)(a*)\1\2\3b$"},
    "a long pattern": {"type": "string", "pattern": "(a|b)" * 100_000},
    "patterns beside what is not evaluated": {
        "enum": [{LONG: 1}],
        "unevaluatedProperties": False,
        "patternProperties": {"^(a+)+$": {}},
    },
    "references that double": {"$ref": "#/$defs/d0", **doubling(40), "not": {}},
    "references that double, denied": {"type": "string", "not": {"$ref": "#/$defs/d0"}, **doubling(40)},
    "a reference to itself": {"$ref": "#"},
    "alternatives of alternatives": {**alternatives(8), "not": {}},
    "alternatives beside alternatives": {
        "allOf": [{"anyOf": [{"required": [f"p{i}-{j}"]} for j in range(10)]} for i in range(20)],
        "not": {},
    },
    "many members": {
        "type": "object",
        "properties": {f"p{n}": {"type": "string"} for n in range(1_000)},
        "not": {},
    },
    "many values": {"enum": list(range(20_000)), "not": {}},
    "many different items": {
        "type": "array",
        "minItems": 9_000,
        "uniqueItems": True,
        "items": {"type": "object"},
    },
    "long items": {"type": "array", "minItems": 10_000, "items": {"type": "string", "minLength": 100_000}},
    "a step that is not there": {"type": "number", "multipleOf": 1e-300, "minimum": 1e300},
    "more than anybody says": {"enum": ["x" * 1_000_000], "not": {}},
}
NESTED = 200_000
BOMBS: dict[str, tuple[str, bytes, int]] = {
    "lists in lists": (LLAMA, b'{"messages":' + b"[" * NESTED + b"]" * NESTED + b"}", 400),
    "objects in objects": (M3, b'{"text":' + b'{"a":' * NESTED + b"1" + b"}" * NESTED + b"}", 400),
    "an item of lists": (M3, b'{"requests":[{"text":' + b"[" * 3_000 + b"]" * 3_000 + b"}]}", 400),
    "lists of one object in each other": (
        M3,
        b'{"requests":[' * 60 + b'{"text":"%b"}' % (b"x" * 20) + b"]}" * 60,
        400,
    ),
    "a number of a million digits": (LLAMA, b'{"prompt":"a","seed":' + b"9" * 1_000_000 + b"}", 400),
    "many long numbers": (LLAMA, b'{"prompt":"a","x":[' + b",".join([b"9" * 4_000] * 500) + b"]}", 200),
    "an exponent": (LLAMA, b'{"prompt":"a","temperature":1e999999999}', 400),
    "many members": (M3, json.dumps({f"k{n}": n for n in range(100_000)}).encode(), 400),
    "the same member": (M3, b"{" + b",".join([b'"text":"a"'] * 100_000) + b"}", 200),
    "many texts": (M3, json.dumps({"text": ["a"] * 100_000}).encode(), 400),
    "many tools": (LLAMA, json.dumps({"messages": asked("t7"), "tools": tools_of(5_000, {})}).encode(), 200),
    "as much as there is": (LLAMA, b'{"prompt":"a","max_tokens":1000000000000000000}', 413),
    "the widest image": (
        "@cf/lykon/dreamshaper-8-lcm",
        b'{"prompt":"a","width":100000,"height":100000}',
        400,
    ),
    "a recording of numbers": (WHISPER, json.dumps({"audio": [1] * 500_000}).encode(), 200),
    "a recording that says it is long": (WHISPER, json.dumps({"audio": list(LONG_RECORDING)}).encode(), 200),
}


def answered(http: httpx.Client, model: str, body: bytes, **headers: str) -> httpx.Response:
    """The reply, which must come soon, and until which nobody else waits."""
    with ThreadPoolExecutor(1) as sender:
        began = monotonic()
        reply = sender.submit(http.post, f"{RUN}/{model}", content=body, headers=headers, timeout=60)
        while not reply.done():
            assert http.get("/__emulator__/health", timeout=5).status_code == 200
        assert monotonic() - began < ANSWERED_WITHIN
        return reply.result()


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_json_mode_gives_up_a_schema_that_never_ends(http: httpx.Client, schema: Any) -> None:
    body = {
        "messages": asked("a"),
        "response_format": {"type": "json_schema", "json_schema": schema},
    }

    reply = answered(http, LLAMA, json.dumps(body).encode())

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (400, UNMET)


@pytest.mark.parametrize("name", ["a pattern over a constant", "references that double, denied"])
def test_tools_with_such_schemas_share_what_they_may_take(http: httpx.Client, name: str) -> None:
    parameters = {
        "properties": {"x": SCHEMAS[name]},
        "required": ["x"],
        "$defs": SCHEMAS[name].get("$defs", {}),
    }
    body = {"messages": asked(" ".join(f"t{n}" for n in range(5))), "tools": tools_of(5, parameters)}

    reply = answered(http, LLAMA, json.dumps(body).encode())

    assert reply.status_code in {200, 400}


@pytest.mark.parametrize(("model", "body", "status"), BOMBS.values(), ids=BOMBS)
def test_a_large_message_is_answered_or_refused(
    http: httpx.Client, model: str, body: bytes, status: int
) -> None:
    reply = answered(http, model, body)

    assert reply.status_code == status
    assert reply.json()["success"] is (status == 200)


@pytest.mark.parametrize("times", [1, 2], ids=["packed", "packed twice"])
def test_a_packed_body_is_not_unpacked_beyond_its_limit(http: httpx.Client, times: int) -> None:
    bomb = b"[" + b" " * 200_000_000 + b"]"
    for _ in range(times):
        bomb = gzip.compress(bomb, compresslevel=1)

    reply = answered(http, M3, bomb, **{"content-encoding": "gzip"})

    assert reply.status_code == (413 if times == 1 else 400)


@pytest.mark.parametrize("kind", ["docx", "xlsx"])
def test_a_document_that_unpacks_to_too_much_is_not_converted(kind: str) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("word/document.xml", b" " * 150_000_000)

    with pytest.raises(NotConvertedError, match="it unpacks to 150000000 bytes, over 100000000"):
        convert(f"a.{kind}", "", packed.getvalue())


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("run/@cf/openai/whisper", b'{"audio":[1,1e999,' + b"9" * 400 + b",-1,2]}", 200),
        ("v1/embeddings", b'{"model":"@cf/baai/bge-m3","input":["a"],"encoding_format":[[]]}', 400),
    ],
    ids=["numbers beyond all bytes", "a list where a name should be"],
)
def test_what_the_fuzzer_once_broke_holds(http: httpx.Client, path: str, body: bytes, status: int) -> None:
    assert http.post(f"/client/v4/accounts/{ACCOUNT}/ai/{path}", content=body).status_code == status
