"""Replies that go out in one piece: byte for byte what the library's general way writes."""

from __future__ import annotations

import re

import pytest

from workersai_emulator import whole
from workersai_emulator.whole import Whole, head

#: Requests whose replies differ in status, size and headers, by how they begin and end.
REQUESTS = {
    "success": ('{"text":"a"}', ""),
    "refusal": ("{}", ""),
    "refusal of the router": ('{"text":"a"}', "Authorization: Basic x\r\n"),
    "to be closed": ('{"text":"a"}', "Connection: close\r\n"),
    "no body": ("", ""),
}
DRAWN = re.compile(rb"(?<=cf-ray: )\S+|(?<=Date: ).{29}|[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f-]{17}")


@pytest.mark.parametrize(("body", "more"), REQUESTS.values(), ids=REQUESTS)
def test_head_and_body_are_the_librarys(world, converse, monkeypatch, body, more):
    credentials = "" if "Authorization" in more else "Authorization: Bearer t\r\n"
    request = (
        f"POST {world.target()} HTTP/1.1\r\nHost: x\r\n{credentials}{more}"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    ).encode()

    heads = []
    monkeypatch.setattr(whole, "head", lambda *told, **more: heads.append(told) or head(*told, **more))
    in_one_piece = converse(request, once="close" not in more)
    assert len(heads) == 1
    monkeypatch.setattr(Whole, "takes", staticmethod(lambda request, status: False))
    by_the_library = converse(request, once="close" not in more)

    assert DRAWN.sub(b"*", in_one_piece) == DRAWN.sub(b"*", by_the_library)
    assert len(heads) == 1


def test_head_ends_with_what_every_reply_has():
    told = head(200, {"Server": "s", "cf-ray": "r"}, 12, closes=True)

    assert re.sub(rb"Date: .{29}", b"Date: *", told) == (
        b"HTTP/1.1 200 OK\r\nServer: s\r\ncf-ray: r\r\nContent-Length: 12\r\nDate: *\r\nConnection: close\r\n\r\n"
    )


def test_status_that_nobody_named_has_no_words():
    assert head(499, {}, 0, closes=False).startswith(b"HTTP/1.1 499 \r\n")


@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: b", "a\nb", "a\rb"])
@pytest.mark.parametrize("place", ["name", "value"])
def test_header_of_several_lines_is_not_written(place, value):
    headers = {value: "x"} if place == "name" else {"x": value}

    with pytest.raises(ValueError, match="more than one line"):
        head(200, headers, 0, closes=False)
