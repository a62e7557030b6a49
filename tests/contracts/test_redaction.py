"""What is hidden stays hidden, wherever and however it is written."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import uuid
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workersai_contracts.body_forms import Bodies, content_of, shortened
from workersai_contracts.hidden_texts import HiddenTexts, placeholder
from workersai_contracts.passing import Reply, Request
from workersai_contracts.recording import Recorder
from workersai_contracts.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable

#: Drawn once and then hashed: any of them is as long and as mixed as those of the service, whatever it shrinks to.
DRAWN = st.integers(0, 2**64).map(lambda number: hashlib.sha256(str(number).encode()))
TOKENS = DRAWN.map(lambda drawn: base64.urlsafe_b64encode(drawn.digest()).decode()[:40])
ACCOUNTS = DRAWN.map(lambda drawn: drawn.hexdigest()[:32])
UUIDS = DRAWN.map(lambda drawn: str(uuid.UUID(bytes=drawn.digest()[:16], version=4)))
RAYS = DRAWN.map(lambda drawn: f"{drawn.hexdigest()[:16]}-SJC")
OPAQUE = DRAWN.map(lambda drawn: f"chatcmpl-{drawn.hexdigest()[:23]}Z")

#: Ways in which a secret gets into a text.
WRITTEN: dict[str, Callable[[str], str]] = {
    "plainly": lambda secret: secret,
    "in a sentence": lambda secret: f"AiError: no such thing ({secret})",
    "in upper case": str.upper,
    "in percent": lambda secret: quote(f"a b{secret}", safe=""),
    "in a URL": lambda secret: f"https://example.test/accounts/{secret}/ai?token={secret}&a=b",
    "in JSON within a text": lambda secret: json.dumps({"a": [secret]}),
    "in base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "in base64 that begins before it": lambda secret: base64.b64encode(f"x:{secret}:y".encode()).decode(),
    "in base64 for URLs": lambda secret: (
        base64.urlsafe_b64encode(f"??>{secret}".encode()).decode().rstrip("=")
    ),
    "in base64 after a slash": lambda secret: "a/" + base64.b64encode(secret.encode()).decode(),
    "in base64 of base64": lambda secret: base64.b64encode(base64.b64encode(secret.encode())).decode(),
}


def exchange(secrets: dict[str, str], written: Callable[[str], str]) -> tuple[Request, Reply]:
    """An exchange that has every secret in every place."""
    all_of_them = [written(secret) for secret in secrets.values()]
    said = {written(secret): {"deep": [written(secret), 1]} for secret in secrets.values()}
    request = Request(
        "POST",
        f"/client/v4/accounts/{secrets['account']}/ai/run/@cf/baai/bge-m3?a={quote(' '.join(all_of_them))}",
        [
            ("Authorization", f"Bearer {secrets['token']}"),
            ("X-Note", all_of_them[0]),
            ("Content-Type", "application/json"),
        ],
        json.dumps(
            {"text": all_of_them, "request_id": secrets["request"], "user": secrets["token"], **said}
        ).encode(),
    )
    message = (
        f"AiError: Could not route to /client/v4/accounts/{secrets['account']}/ai ({secrets['request']})"
    )
    headers = [
        ("Content-Type", "application/json"),
        ("CF-RAY", secrets["ray"]),
        ("cf-ai-req-id", secrets["request"]),
        ("cf-ai-note", " ".join(all_of_them)),
        ("Set-Cookie", f"__cf_bm={secrets['token']}"),
        (f"x-{secrets['account']}", "1"),
    ]
    told: dict[str, Any] = {
        "errors": [{"message": message, "code": 1}],
        "result": {"id": secrets["opaque"], **said},
    }
    return request, Reply(400, headers, json.dumps(told).encode())


def found_in(folder: Path, secret: str) -> list[str]:
    """Where a secret still is: as it is, in another case, or in base64 at any offset."""
    packed = [
        base64.b64encode(b"x" * shift + secret.encode())[4 if shift else 0 : -4].decode()
        for shift in range(3)
    ]
    places = []
    for path in folder.iterdir():
        text = path.read_text("utf-8")
        if secret.lower() in (path.name + text).lower() or any(one in text for one in packed):
            places.append(path.name)
    return places


@pytest.mark.parametrize("way", WRITTEN)
@settings(max_examples=settings().max_examples // 10)
@given(
    token=TOKENS,
    account=ACCOUNTS,
    request_id=UUIDS,
    ray=RAYS,
    opaque=OPAQUE,
)
def test_no_secret_is_left_in_the_files(
    way: str, token: str, account: str, request_id: str, ray: str, opaque: str
) -> None:
    secrets = {"token": token, "account": account, "request": request_id, "ray": ray}
    with TemporaryDirectory() as folder:
        recorder = Recorder(
            f"https://{account}.example.test", Path(folder), account_ids=[account], tokens=[token]
        )
        recorder.keep(*exchange({**secrets, "opaque": opaque}, WRITTEN[way]))
        left = {name: found_in(Path(folder), secret) for name, secret in secrets.items()}
        whole = "".join(path.read_text("utf-8") for path in Path(folder).iterdir())
    assert left == {"token": [], "account": [], "request": [], "ray": []}
    assert f'"id": "{opaque}"' not in whole


def test_the_same_id_has_the_same_stable_form_everywhere_and_another_another() -> None:
    redactor = Redactor()
    one, other = "6f9619ff-8b86-4d11-b42d-00c04fc964ff", "7f9619ff-8b86-4d11-b42d-00c04fc964ff"
    shown = redactor.value({"request_id": one, "message": f"gone ({one.upper()})", "other": other})
    assert shown == {
        "request_id": "00000000-0000-4000-8000-000000000001",
        "message": "gone (00000000-0000-4000-8000-000000000001)",
        "other": "00000000-0000-4000-8000-000000000002",
    }
    assert redactor.ids == [one, other]
    assert redactor.original("00000000-0000-4000-8000-000000000002") == other


def test_ids_that_everybody_has_stay() -> None:
    task = "0137cdcf-162a-4108-94f2-1ca59e8c65ee"  # text embeddings
    assert Redactor().value({"task": {"id": task}}) == {"task": {"id": task}}


def test_numbers_and_words_stay_as_they_are() -> None:
    said = {
        "shape": [1, 3],
        "data": [[0.1234567890123456, 1e-7, 3]],
        "id": 7,
        "name": "@cf/baai/bge-m3",
        "d": "added",
    }
    assert Redactor(["f" * 32], ["emulator"]).value(said) == said
    assert Redactor(tokens=["emulator"]).text("workersai-emulator") == "workersai-emulator"


def test_a_packed_request_is_unpacked_before_it_is_looked_at(tmp_path: Path) -> None:
    token = "a1" * 20
    headers = [("Content-Encoding", "gzip"), ("Authorization", f"Bearer {token}")]
    recorder = Recorder("url", tmp_path / "r")
    recorded = recorder.keep(
        Request("POST", "/x", headers, gzip.compress(f'{{"text":"{token}"}}'.encode())), Reply(200, [], b"")
    )
    assert recorded.sent == {"json": {"text": "{token}"}}
    broken = recorder.keep(Request("POST", "/x", headers, token.encode()), Reply(200, [], b""))
    assert token not in json.dumps(broken.as_json())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(
    JSON,
    st.sampled_from(
        [
            {},
            {"separators": (",", ":")},
            {"ensure_ascii": False},
            {"indent": 2},
            {"ensure_ascii": False, "separators": (",", ":")},
        ]
    ),
)
def test_a_reply_without_ids_is_told_again_byte_for_byte(said: Any, spelling: dict[str, Any]) -> None:
    content = json.dumps(said, **spelling).encode("utf-8", "surrogatepass")
    assert content_of(Bodies(Redactor()).got(content, "application/json")) == content


@given(st.binary())
def test_bytes_are_told_again(content: bytes) -> None:
    assert content_of(Bodies(Redactor()).got(content, "image/png")) == content


def test_a_stream_is_told_by_its_events_and_again_byte_for_byte() -> None:
    content = b'data: {"response":"a"}\n\nevent: x\ndata: {"type":"x"}\n\ndata: [DONE]\n\n'
    body = Bodies(Redactor()).got(content, "text/event-stream")
    assert body == {
        "events": [{"data": {"response": "a"}}, {"event": "x", "data": {"type": "x"}}, {"data": "[DONE]"}]
    }
    assert content_of(body) == content
    odd = b"data: {}\r\n\r\n"
    assert content_of(Bodies(Redactor()).got(odd, "text/event-stream")) == odd


@given(st.text())
def test_a_hidden_text_is_as_long_as_it_was_and_says_nothing(text: str) -> None:
    shown = placeholder(text)
    assert [len(shown), len(shown.encode())] == [len(text), len(text.encode())]
    assert not set(shown) - set("xé文\U0001d431")


def test_texts_are_hidden_on_both_sides_and_words_of_the_wire_stay() -> None:
    bodies = Bodies(Redactor(), HiddenTexts())
    sent = {
        "model": "@cf/a/b",
        "messages": [{"role": "user", "content": "My name is Ada"}],
        "tools": [{"function": {"description": "secret tool"}}],
        "requests": [{"text": ["one", " "], "external_reference": "row 7"}],
    }
    assert bodies.sent(json.dumps(sent).encode()) == {
        "json": {
            "model": "@cf/a/b",
            "messages": [{"role": "user", "content": "x" * 14}],
            "tools": [{"function": {"description": "x" * 11}}],
            "requests": [{"text": ["xxx", " "], "external_reference": "x" * 5}],
        }
    }
    got = {
        "errors": [{"message": "AiError: cannot read My name is Ada", "code": 3030}],
        "result": {"response": "Hello", "description": "a cat", "shape": [1], "status": "queued"},
    }
    assert bodies.got(json.dumps(got, separators=(",", ":")).encode(), "application/json") == {
        "json": {
            "errors": [{"message": f"AiError: cannot read {'x' * 14}", "code": 3030}],
            "result": {"response": "xxxxx", "description": "xxxxx", "shape": [1], "status": "queued"},
        }
    }
    assert bodies.got(b"\xff\xd8secret", "image/jpeg") == {"base64": base64.b64encode(bytes(8)).decode()}
    assert bodies.sent(b'{"text": "cut') == {"text": "x" * 13}
    stream = bodies.got(b'data: {"response":"abc"}\n\ndata: [DONE]\n\n', "text/event-stream")
    assert stream == {"events": [{"data": {"response": "xxx"}}, {"data": "[DONE]"}]}


def test_what_is_long_in_a_request_is_told_by_length_and_digest() -> None:
    told = shortened({"a": "x" * 20_000, "b": [0.5] * 100, "c": "short"})
    assert (told["a"]["characters"], told["a"]["first"]) == (20_000, "x" * 20)
    assert (told["b"]["numbers"], told["b"]["first"]) == (100, [0.5] * 4)
    assert told["c"] == "short"
    assert shortened("y" * 20_000) != shortened("y" * 19_999 + "z")
