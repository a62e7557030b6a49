"""Bad input: whatever is parsed gets an answer in one of the envelopes, and the server goes on."""

from __future__ import annotations

import json
import re
import socket
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workersai_contracts import ModelCard, assumptions, mismatches, models

BGE_M3 = "@cf/baai/bge-m3"
LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
BARE_400 = re.compile(rb"HTTP/1\.[01] 400 Bad Request\r\n(?:[^\r\n]+\r\n)+\r\n")
QUERIES = ("", "?queueRequest=true")


def check_envelope(reply: Any) -> None:
    """The reply is whole and in one of the service's envelopes, or in the tool's own; and no fault."""
    assert reply.status_code < 500, reply.text
    assert reply.headers["content-type"] == "application/json"
    told = reply.json()
    if reply.status_code in {200, 202}:
        assert mismatches(told, "envelope/success") == []
    elif list(told) == ["error"]:
        assert reply.status_code in {400, 403}
        assert len(told["error"].splitlines()) == 1
    else:
        envelope = "envelope/ai-error" if "cf-ai-req-id" in reply.headers else "envelope/edge-error"
        assert mismatches(told, envelope) == []


def check_worker(reply: Any) -> None:
    """The reply is one of the `/batch` Worker's own."""
    assert reply.headers["content-type"] == "application/json"
    if reply.status_code == 200:
        assert mismatches(reply.json(), "worker/submit.reply") == []
    else:
        assert reply.status_code in {400, 502}
        assert mismatches(reply.json(), "worker/error.reply") == []


def code_of(reply: Any) -> int:
    return int(reply.json()["errors"][0]["code"])


NOT_JSON = {
    "empty": b"",
    "blank": b" \r\n\t",
    "truncated": b'{"text":"a"',
    "truncated in a text": b'{"text":"a',
    "truncated escape": b'{"text":"\\u12',
    "more after the end": b'{"text":"a"}}',
    "two": b'{"text":"a"}{"text":"a"}',
    "single quotes": b"{'text':'a'}",
    "bare word": b"text",
    "comment": b'{"text":"a"/* */}',
    "trailing comma": b'{"text":"a",}',
    "control sign": b'{"text":"\x01"}',
    "NaN": b'{"text":NaN}',
    "Infinity": b'{"text":Infinity}',
    "-Infinity": b'{"text":-Infinity}',
    "leading zero": b'{"text":01}',
    "not utf-8": b'{"text":"\xff\xfe"}',
    "raw surrogate": b'{"text":"\xed\xa0\x80"}',
    "overlong": b'{"text":"\xc0\xaf"}',
    "utf-16": '{"text":"a"}'.encode("utf-16"),
    "byte order mark": b'\xef\xbb\xbf{"text":"a"}',
    "null bytes": b"\0" * 100,
    "form": b"text=a",
    "nested arrays": b"[" * 10_000 + b"]" * 10_000,
    "nested objects": b'{"text":' * 10_000 + b"1" + b"}" * 10_000,
    "nested and never closed": b"[" * 1_000_000,
}


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON)
def test_body_that_is_not_json_is_3003(world, body, query):
    reply = world.run(body, query=query)

    message = f"AiError: Request is missing headers or body: body ({reply.headers['cf-ai-req-id']})"
    assert (reply.status_code, reply.json()["errors"]) == (400, [{"message": message, "code": 3003}])
    check_envelope(reply)


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON)
def test_body_that_is_not_json_can_be_5006(world, body):
    world.assume(body__not_json="5006")

    reply = world.run(body)

    assert (reply.status_code, code_of(reply)) == (400, 5006)
    check_envelope(reply)


def test_request_without_a_length_has_no_body(world, converse, read):
    request = (
        f"POST {world.target()} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\nConnection: close\r\n\r\n"
    )

    (answer,) = read(converse(request.encode()))

    assert (answer.status, json.loads(answer.body)["errors"][0]["code"]) == (400, 3003)


NO_INPUT = [None, True, False, 0, -1.5, 1e300, "text", "", [], [1], [{"text": "a"}], {}, {"a": 1}]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("model", [BGE_M3, LLAMA, "@cf/openai/gpt-oss-120b", "@cf/meta/m2m100-1.2b"])
@pytest.mark.parametrize("body", NO_INPUT, ids=ascii)
def test_json_that_is_no_input_is_refused_or_fails(world, model, query, body):
    reply = world.run(body, model, query)

    check_envelope(reply)
    if reply.status_code == 200:
        assert isinstance(body, dict)
    else:
        assert (reply.status_code, code_of(reply)) == (400, 5006)


WRONG_TYPES = [
    None,
    True,
    0,
    1.5,
    "x",
    "",
    [],
    [None],
    [[]],
    [{}],
    {},
    {"0": "x"},
    {"length": 1},
    {"__proto__": []},
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("value", WRONG_TYPES, ids=ascii)
@pytest.mark.parametrize(
    "shape",
    [
        '{"text":%s}',
        '{"text":[%s]}',
        '{"text":"a","truncate_inputs":%s}',
        '{"contexts":%s}',
        '{"contexts":[%s]}',
        '{"contexts":[{"text":%s}]}',
        '{"query":%s,"contexts":[{"text":"a"}]}',
        '{"requests":%s}',
        '{"requests":[%s]}',
        '{"requests":[{"text":%s}]}',
        '{"requests":[{"text":[%s]}]}',
        '{"requests":[{"text":"a"},%s]}',
        '{"requests":[{"contexts":[{"text":%s}]}]}',
        '{"requests":[{"text":"a","external_reference":%s}]}',
        '{"request_id":%s}',
        '{"text":"a","queueRequest":%s}',
    ],
)
def test_wrong_type_at_any_depth_gets_an_envelope_now_and_at_its_poll(world, shape, value, query):
    reply = world.run((shape % json.dumps(value)).encode(), query=query)

    check_envelope(reply)
    result = reply.json()["result"]
    if reply.status_code == 200 and result.get("status") == "queued":
        world.control("POST", f"batches/{result['request_id']}", {"action": "go-on"})
        world.control("POST", f"batches/{result['request_id']}", {"action": "go-on"})
        check_envelope(world.poll(result["request_id"]))


STRANGE_TEXTS = {
    "lone surrogate": ("\\ud800", "\ud800"),
    "low surrogate first": ("\\udc00\\ud800", "\udc00\ud800"),
    "pair": ("\\ud83d\\ude00", "\U0001f600"),
    "null": ("\\u0000", "\0"),
    "line separator": ("\\u2028", "\u2028"),
    "html": ("</script>", "</script>"),
    "no character": ("\\uffff", "\uffff"),
}


@pytest.mark.parametrize(("escaped", "meant"), STRANGE_TEXTS.values(), ids=STRANGE_TEXTS)
def test_strange_text_is_embedded_and_its_reference_comes_back(world, escaped, meant):
    body = f'{{"requests":[{{"text":"{escaped}","external_reference":{{"{escaped}":"{escaped}"}}}}]}}'
    request_id = world.submit(body.encode(), script="done")

    (item,) = json.loads(world.poll(request_id).content)["result"]["responses"]

    assert item["external_reference"] == {meant: meant}
    assert item["result"]["shape"] == [1, 1024]


NUMBERS = [
    "-0",
    "-0.0",
    "1e5",
    "1E+2",
    "1.0",
    "0.1",
    "1e400",
    "-1e400",
    "1e-400",
    "9" * 30,
    "9007199254740993",
    "12345678901234567890",
]


@pytest.mark.parametrize("number", NUMBERS)
def test_number_beyond_what_json_parsers_hold_gets_an_envelope(world, number):
    for body in (f'{{"text":{number}}}', f'{{"requests":[{{"text":"a","external_reference":[{number}]}}]}}'):
        check_envelope(world.run(body.encode()))


@pytest.mark.parametrize("depth", [100, 250, 500, 900, 980])
@pytest.mark.parametrize("query", QUERIES)
def test_deep_nesting_that_is_still_parsed_gets_an_envelope(world, depth, query):
    arrays = "[" * depth + "]" * depth
    objects = '{"a":' * depth + "1" + "}" * depth
    for deep in (arrays, objects):
        for shape in ("{}", '{{"text":{}}}', '{{"requests":{}}}', '{{"contexts":[{{"text":{}}}]}}'):
            check_envelope(world.run(shape.format(deep).encode(), query=query))
            check_envelope(world.run(shape.format(deep).encode(), LLAMA, query))


def test_deep_reference_comes_back_whole(world):
    deep = "[" * 900 + "]" * 900
    request_id = world.submit(
        f'{{"requests":[{{"text":"a","external_reference":{deep}}}]}}'.encode(), script="done"
    )

    assert f'"external_reference":{deep}}}'.encode() in world.poll(request_id).content


@pytest.mark.parametrize(
    "wanted",
    [
        "",
        "x",
        "a/b",
        "a%2Fb",
        "../..",
        "__proto__",
        "constructor",
        "\0",
        "\ud800",
        "\U0001f600",
        " ",
        "0",
        "x" * 1_000_000,
    ],
    ids=lambda wanted: ascii(wanted[:12]),
)
def test_strange_request_id_is_not_found(world, wanted):
    reply = world.poll(wanted)

    message = f"AiError: AiError: Request not found ({reply.headers['cf-ai-req-id']})"
    assert (reply.status_code, reply.json()["errors"]) == (400, [{"message": message, "code": 8007}])


@pytest.mark.parametrize(
    "wanted", ["\ud800", "\U0001f600", "x" * 1_000_000], ids=["surrogate", "emoji", "long"]
)
def test_strange_request_id_is_echoed_where_unknown_ones_wait(world, wanted):
    world.assume(poll__unknown="queued")

    assert json.loads(world.poll(wanted).content)["result"] == {"status": "queued", "request_id": wanted}


@pytest.mark.parametrize(
    "body",
    [
        b'{"__proto__":{"text":"a"}}',
        b'{"__proto__":{"requests":[]},"text":"a"}',
        b'{"constructor":1,"toString":2,"text":"a"}',
        b'{"text":"a","text":"b"}',
        b'{"":"","text":"a"}',
        b'{"requests":[{"__proto__":{"text":"a"}}]}',
        b'{"requests":[{"text":"a","__proto__":5,"hasOwnProperty":1}]}',
    ],
    ids=repr,
)
@pytest.mark.parametrize("query", QUERIES)
def test_names_that_mean_something_to_javascript_are_names(world, body, query):
    check_envelope(world.run(body, query=query))


NOT_HTTP = {
    "bytes": bytes(range(256)),
    "null": b"\0",
    "TLS": bytes.fromhex("16030100c8010000c40303") + b"a" * 200,
    "ssh": b"SSH-2.0-OpenSSH_9.6\r\n",
    "http/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "http/9": b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
    "unknown method": b"BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "no colon": b"GET / HTTP/1.1\r\nHost x\r\n\r\n",
    "blank in a name": b"GET / HTTP/1.1\r\nHost: x\r\nA B: c\r\n\r\n",
    "null in a header": b"GET / HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n",
    "blank in the path": b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
    "not ascii in the path": "GET /\u010daj HTTP/1.1\r\nHost: x\r\n\r\n".encode(),
    "negative length": b"POST /batch HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    "length of letters": b"POST /batch HTTP/1.1\r\nHost: x\r\nContent-Length: ten\r\n\r\n",
    "length beyond 64 bits": b"POST /batch HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\n",
    "two lengths": b"POST /batch HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "length and chunks": (
        b"POST /batch HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    "chunks of letters": b"POST /batch HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    "unknown transfer": b"POST /batch HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: pigeon\r\n\r\n",
    "long path": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "long header": b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 100_000 + b"\r\n\r\n",
    "long name": b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a" * 100_000 + b": a\r\n\r\n",
    "header without an end": b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 1_000_000,
}


#: Older releases take these two for HTTP; `make test-lowest` runs with them.
OLDER_PARSER = tuple(map(int, aiohttp.__version__.split(".")[:2])) < (3, 14)


@pytest.mark.parametrize("name", NOT_HTTP)
def test_what_is_not_http_gets_a_bare_400_and_a_close(world, converse, name):
    if name == "no host" and OLDER_PARSER:
        pytest.skip("aiohttp before 3.14 asks for no host")
    received = converse(NOT_HTTP[name])

    assert BARE_400.fullmatch(received), received[:500]
    assert b"content-length: 0\r\n" in received.lower()
    assert world.run({"text": "a"}).status_code == 200


@pytest.mark.skipif(OLDER_PARSER, reason="aiohttp before 3.14 takes any number of headers")
def test_flood_of_headers_is_refused(world, converse):
    lines = b"".join(b"X-%d: a\r\n" % number for number in range(100_000))

    received = converse(b"GET / HTTP/1.1\r\nHost: x\r\n" + lines + b"\r\n")

    assert received == b"" or BARE_400.fullmatch(received)
    assert world.run({"text": "a"}).status_code == 200


def test_not_http_after_a_good_request_gets_a_bare_400_too(world):
    with socket.create_connection(("127.0.0.1", world.port), timeout=20) as connection:
        connection.sendall(f"GET {world.target()} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        first = connection.recv(65536)
        connection.sendall(b"\0\1\2\r\n\r\n")
        second = b""
        while piece := connection.recv(65536):
            second += piece

    assert first.startswith(b"HTTP/1.1 405 ")
    assert BARE_400.fullmatch(second)


def test_OPTIONS_of_the_whole_server_gets_an_envelope(converse, read):
    (answer,) = read(converse(b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))

    assert (answer.status, json.loads(answer.body)["errors"][0]["code"]) == (400, 7000)


def test_blank_lines_before_a_request_are_passed_over(world, converse, read):
    (answer,) = read(converse(b"\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))

    assert answer.status == 200


@pytest.mark.parametrize("method", ["PROPFIND", "SUBSCRIBE", "M-SEARCH", "TRACE", "LINK"])
@pytest.mark.parametrize("target", ["/", "/batch", "/__emulator__/health", "{run}"])
def test_methods_that_nobody_uses_get_an_envelope(world, converse, read, method, target):
    where = target.replace("{run}", world.target())
    request = f"{method} {where} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

    (answer,) = read(converse(request.encode()))

    assert answer.status == (405 if "run" in target or "health" in target else 400)
    assert answer.header("content-type") == "application/json"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=20)
    | st.sampled_from(["a", "text", "mean", "en", "true"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["text", "requests", "query", "contexts", "messages", "prompt", "input"])
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)

VALID: dict[str, list[dict[str, Any]]] = {
    "embedding": [
        {"text": "a"},
        {"text": ["a", "b"]},
        {"contexts": [{"text": "a"}]},
        {"query": "a", "contexts": [{"text": "b"}]},
        {"queries": "a", "documents": ["b"], "instruction": "c"},
    ],
    "reranking": [{"query": "a", "contexts": [{"text": "b"}, {"text": "c"}], "top_k": 1}],
    "translation": [{"text": "a", "source_lang": "en", "target_lang": "fr"}],
    "response": [
        {"prompt": "a", "max_tokens": 5},
        {"messages": [{"role": "user", "content": "a"}], "response_format": {"type": "json_object"}},
        {
            "prompt": "a",
            "response_format": {
                "type": "json_schema",
                "json_schema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            },
        },
    ],
    "choices": [
        {"prompt": "a"},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]},
    ],
    "output": [{"input": "a", "reasoning": {"effort": "low"}}, {"input": [{"role": "user", "content": "a"}]}],
    "summary": [{"input_text": "a", "max_length": 9}],
    "labels": [{"text": "a"}, {"image": [137, 80, 78, 71]}],
    "boxes": [{"image": [137, 80, 78, 71]}],
    "description": [{"image": [137, 80, 78, 71], "prompt": "a"}, {"image": "a", "task": "caption"}],
    "image": [{"prompt": "a", "steps": 4, "num_steps": 4}, {"multipart": {"body": {}, "contentType": "a"}}],
    "transcript": [{"audio": [82, 73, 70, 70]}, {"audio": "UklGRg==", "task": "translate"}],
    "speech": [{"prompt": "a", "lang": "en"}, {"text": "a", "speaker": "luna"}],
    "turn": [{"audio": "UklGRg==", "dtype": "uint8"}],
}


def sends_a_file(card: ModelCard, reply: Any) -> bool:
    """A success of a model of images or speech has no envelope: it is the file. Fact: `sync.binary`."""
    is_file = card.output_type != "application/json" and reply.headers["content-type"] == card.output_type
    assert not is_file or (reply.status_code == 200 and reply.content)
    return bool(is_file)


@st.composite
def mutated(draw: st.DrawFn, answers: str) -> Any:
    """A good input, alone or as items of a batch, of which some parts are replaced, dropped or added."""
    body: Any = json.loads(json.dumps(draw(st.sampled_from(VALID[answers]))))
    if draw(st.booleans()):
        body = {"requests": [body, {**body, "external_reference": draw(JSON)}]}
    for _ in range(draw(st.integers(0, 3))):
        _mutate(draw, body)
    return body


def _mutate(draw: st.DrawFn, node: Any) -> None:
    """Change one place at a random depth."""
    while True:
        keys: list[Any] = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = draw(st.sampled_from(keys))
        deeper = isinstance(node[key], (dict, list)) and len(node[key]) > 0 and draw(st.booleans())
        if not deeper:
            break
        node = node[key]
    change = draw(st.sampled_from(["replace", "drop", "add"]))
    if change == "replace":
        node[key] = draw(JSON)
    elif change == "drop":
        del node[key]
    elif isinstance(node, dict):
        node[draw(st.text(max_size=5))] = draw(JSON)
    else:
        node.append(draw(JSON))


SPELLED = st.sampled_from(
    [lambda name: name, lambda name: quote(name, safe="@/"), lambda name: quote(name, safe="@")]
)
QUERY = st.sampled_from(
    ["", "?queueRequest=true", "?queueRequest=false", "?queueRequest", "?queueRequest=true&tags=%ff", "?%"]
)
EXAMPLES = settings.default.max_examples  # as the profile has it
MANY = settings(
    max_examples=EXAMPLES * 3 // 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@MANY
@given(st.data())
def test_generated_inputs_get_an_envelope_now_and_at_every_poll(world, data):
    card = data.draw(st.sampled_from(sorted(models().values(), key=lambda card: card.name)))
    spelled = data.draw(SPELLED)(card.name)
    body = json.dumps(data.draw(mutated(card.answers) | JSON)).encode()

    reply = world.run(body, spelled, data.draw(QUERY), {"x-emulator-script": "queued:1, done"})

    if sends_a_file(card, reply):
        return
    check_envelope(reply)
    result = reply.json()["result"]
    if isinstance(result, dict) and result.get("status") == "queued":
        for _ in range(2):
            check_envelope(world.poll(result["request_id"], spelled))
    check_health(world)


ANSWERED_OTHERWISE = st.fixed_dictionaries(
    {},
    optional={fact.id: st.sampled_from(list(fact.alternatives)) for fact in assumptions().values()},
)


@MANY
@given(st.data())
def test_generated_inputs_get_an_envelope_whichever_alternatives_hold(world, data):
    card = data.draw(st.sampled_from(sorted(models().values(), key=lambda card: card.name)))
    world.control("PATCH", "settings", {"script": "done", "assumptions": data.draw(ANSWERED_OTHERWISE)})
    body = json.dumps(data.draw(mutated(card.answers) | JSON)).encode()

    reply = world.run(body, card.name, data.draw(QUERY))

    if sends_a_file(card, reply):
        world.control("POST", "reset")
        return
    check_envelope(reply)
    result = reply.json()["result"]
    if isinstance(result, dict) and result.get("status") == "queued":
        check_envelope(world.poll(result["request_id"], card.name))
    world.control("POST", "reset")


@MANY
@given(body=st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()[:-1]), query=QUERY)
def test_generated_bytes_get_an_envelope(world, body, query):
    check_envelope(world.run(body, query=query))


PIECES = st.lists(
    st.sampled_from(
        ["client", "v4", "accounts", "ai", "run", "@cf", "baai", "bge-m3", "batch", "", ".", "..", "%2F"]
    )
    | st.sampled_from(["0" * 32, "f" * 32, "me", "__emulator__", "%00", "%ff", "%", "a" * 300])
    | st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), max_size=6),
    max_size=9,
)


@MANY
@given(
    pieces=PIECES,
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]),
    query=QUERY,
    body=st.sampled_from([b"", b"{", b"{}", b'{"text":"a"}', b'{"texts":["a"]}']),
)
def test_generated_paths_get_an_envelope(world, converse, read, pieces, method, query, body):
    path = "/" + "/".join(pieces).replace(" ", "").replace("?", "").replace("#", "")
    request = (
        f"{method} {path}{query} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer t\r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()

    (answer,) = read(converse(request + body))

    told = b'"BATCH_ERROR"' in answer.body or b"is not emulated" in answer.body
    assert answer.status < 500 or told, answer
    assert answer.header("content-type") == "application/json"
    told = json.loads(answer.body)
    assert {"error", "success", "status", "name", "mode"} & set(told)


@MANY
@given(
    body=JSON
    | st.fixed_dictionaries({"texts": JSON})
    | st.fixed_dictionaries({"texts": st.lists(st.text(max_size=30), max_size=22)}),
    script=st.sampled_from(["done", "failed", "failed:3040", "lost", "queued:1, done"]),
)
def test_generated_bodies_of_the_worker_get_an_answer_of_its_own(world, body, script):
    headers = {"x-emulator-account": world.id, "x-emulator-script": script}

    reply = world.http.post("/batch", content=json.dumps(body).encode(), headers=headers)

    check_worker(reply)
    if reply.status_code == 200:
        polled = world.http.get(f"/batch/{reply.json()['request_id']}", headers=headers)
        schema = "worker/poll.reply" if polled.status_code == 200 else "worker/error.reply"
        assert mismatches(polled.json(), schema) == []


@MANY
@given(raw_id=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=140))
def test_generated_ids_of_the_worker_get_an_answer_of_its_own(world, raw_id):
    reply = world.http.get(f"/batch/{quote(raw_id, safe='')}", headers={"x-emulator-account": world.id})

    if raw_id in {".", ".."}:
        return  # which the client itself resolves
    check_worker(reply)
    assert reply.status_code in {400, 502}


CONTROL_KEYS = st.sampled_from(
    "script scripts assumptions limits worker_binding freeze advance scale jump now match effect times probability "
    "operation model text nth every error retry_after action code state payload_bytes body_bytes submit.status".split()
)
CONTROL_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["30s", "1ms", "done", "failed:5001", "queued:hold, done", "run", "poll", "capacity", "fail", "hold"]
    )
    | st.sampled_from([1, 3040, 0.5, "202", "2100-01-01T00:00:00Z", "2101-01-01", BGE_M3]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(CONTROL_KEYS, inner, max_size=4),
    max_leaves=8,
)


@settings(MANY, max_examples=EXAMPLES * 3)
@given(
    method=st.sampled_from(["GET", "POST", "PATCH", "DELETE"]),
    name=st.sampled_from(
        ["health", "settings", "clock", "batches", "batches/{id}", "rules", "rules/rule-1", "facts"]
    ),
    body=st.dictionaries(CONTROL_KEYS, CONTROL_VALUES, max_size=4),
)
def test_generated_bodies_of_the_control_plane_get_its_answers(world, method, name, body):
    listed = world.control("GET", "batches").json()["batches"]
    request_id = (
        listed[0]["request_id"] if listed else world.submit({"text": "a"}, script="queued:hold, done")
    )

    reply = world.control(method, name.replace("{id}", request_id), body)

    assert reply.status_code in {200, 204, 400, 404, 405}, reply.text
    if reply.status_code >= 400:
        assert list(reply.json()) == ["error"]
        assert len(reply.json()["error"].splitlines()) == 1
    if reply.status_code != 204:
        assert reply.headers["content-type"] == "application/json"
    world.control("POST", "reset")
    check_health(world)


@MANY
@given(
    data=st.binary(max_size=200)
    | st.binary(max_size=100).map(lambda tail: b"POST /batch HTTP/1.1\r\n" + tail)
)
def test_generated_bytes_on_the_socket_never_take_the_server_down(world, converse, data):
    received = converse(data, half_close=True)

    assert not re.match(rb"HTTP/1\.[01] 5", received)
    check_health(world)


def check_health(world: Any) -> None:
    assert world.http.get("/__emulator__/health").json()["status"] == "ok"
