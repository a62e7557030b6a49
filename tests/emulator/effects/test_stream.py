"""`{"stream": …}`: a text that is streamed breaks off, or turns into an error, after so many events."""

from __future__ import annotations

import json
import socket
from typing import Any

import httpx
import pytest

LLAMA = "@cf/meta/llama-3.1-8b-instruct"
PROMPT = {"prompt": "Tell me of orange clouds over the bay", "stream": True}
CHAT = {"model": LLAMA, "messages": [{"role": "user", "content": "Tell me of clouds"}], "stream": True}
CAPACITY = "AiError: AiError: Capacity temporarily exceeded, please try again."


def events_of(text: str) -> list[Any]:
    """The JSON of each event, and `[DONE]` as it stands."""
    lines = [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def read_until_it_ends(world: Any, path: str, body: Any) -> tuple[int, list[Any], bool]:
    """The status, the events, and whether the stream came to its end."""
    received = b""
    with world.http.stream("POST", path, json=body) as reply:
        try:
            for piece in reply.iter_raw():
                received += piece
        except httpx.RemoteProtocolError:
            return reply.status_code, events_of(received.decode()), False
    return reply.status_code, events_of(received.decode()), True


def chat_path(world: Any) -> str:
    return f"/client/v4/accounts/{world.id}/ai/v1/chat/completions"


def test_without_a_rule_a_stream_comes_to_its_end(world: Any) -> None:
    status, events, ended = read_until_it_ends(world, world.target(LLAMA), PROMPT)

    assert (status, ended, events[-1]) == (200, True, "[DONE]")
    assert len(events) > 5


@pytest.mark.parametrize("after", [0, 1, 3])
def test_stream_breaks_after_so_many_events(world: Any, after: int) -> None:
    _, whole, _ = read_until_it_ends(world, world.target(LLAMA), PROMPT)
    world.rule({"stream": {"after": after}}, {"operation": "run"}, times=1)

    status, events, ended = read_until_it_ends(world, world.target(LLAMA), PROMPT)

    assert (status, ended) == (200, False)
    assert events == whole[:after]
    assert world.fired() == [1]


@pytest.mark.parametrize("after", [0, 2])
def test_stream_turns_into_an_error(world: Any, after: int) -> None:
    _, whole, _ = read_until_it_ends(world, world.target(LLAMA), PROMPT)
    world.rule({"stream": {"after": after, "error": 3040}})

    status, events, ended = read_until_it_ends(world, world.target(LLAMA), PROMPT)

    assert (status, ended) == (200, True)
    assert events[:-1] == whole[:after]
    error = events[-1]
    assert (error["success"], error["result"], error["errors"][0]["code"]) == (False, {}, 3040)
    assert error["errors"][0]["message"].startswith(CAPACITY)


def test_chat_stream_turns_into_an_error_as_openai_has_it_where_that_is_assumed(world: Any) -> None:
    world.control("PATCH", "settings", assumptions={"openai.errors": "openai"})
    world.rule({"stream": {"after": 1, "error": 3040}})

    status, events, ended = read_until_it_ends(world, chat_path(world), CHAT)

    assert (status, ended, len(events)) == (200, True, 2)
    assert events[0]["choices"][0]["delta"]["role"] == "assistant"
    assert events[1]["error"]["code"] == "3040"
    assert events[1]["error"]["message"].startswith(CAPACITY)


@pytest.mark.parametrize("error", [{}, {"error": 3040}], ids=["breaks", "errs"])
def test_a_rule_past_the_end_never_lets_the_last_event_through(world: Any, error: dict[str, Any]) -> None:
    _, whole, _ = read_until_it_ends(world, world.target(LLAMA), PROMPT)
    world.rule({"stream": {"after": 1000, **error}})

    _, events, ended = read_until_it_ends(world, world.target(LLAMA), PROMPT)

    assert ended is bool(error)
    assert [event for event in events if "errors" not in event] == whole[:-2]  # without the usage and [DONE]


def test_responses_have_an_error_event_of_their_own(world: Any) -> None:
    world.rule({"stream": {"after": 2, "error": 3040}})
    path = f"/client/v4/accounts/{world.id}/ai/v1/responses"

    body = {"model": LLAMA, "input": "Tell me of clouds", "stream": True}
    lines = world.http.post(path, json=body).text.split("\n")

    named = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    assert named == ["response.created", "response.in_progress", "error"]
    error = events_of("\n".join(lines))[-1]
    assert (error["type"], error["sequence_number"], error["code"]) == ("error", 2, "3040")
    assert error["message"].startswith(CAPACITY)


def test_what_does_not_stream_is_not_met_and_the_journal_says_what_it_nearly_matched(world: Any) -> None:
    rule = world.rule({"stream": {"after": 1}})

    reply = world.send({"prompt": "Tell me of clouds"}, model=LLAMA)

    assert reply.status_code == 200
    assert "orange" not in reply.json()["result"]["response"]
    assert world.fired() == [0]
    journal = world.control("GET", f"requests?account_id={world.id}").json()["requests"]
    assert journal[-1]["nearly"] == f"{rule} is for a stream"


@pytest.mark.parametrize(
    ("effect", "complaint"),
    [
        ({"stream": 3}, 'stream: give a JSON object such as {"after":2,"error":3040}'),
        ({"stream": {"after": -1}}, "stream: after is a number of events from 0 on, not -1"),
        ({"stream": {}}, "stream: after is a number of events from 0 on, not None"),
        ({"stream": {"after": True}}, "stream: after is a number of events from 0 on, not True"),
        ({"stream": {"then": "break"}}, "stream: there is no 'then'; there are after, error"),
        ({"stream": {"after": 0, "error": 1}}, "stream: error: no error 1"),
    ],
)
def test_bad_spelling_is_refused_in_one_line(world: Any, effect: Any, complaint: str) -> None:
    reply = world.control("POST", "rules", match={}, effect=effect)

    assert reply.status_code == 400
    assert reply.json()["error"].startswith(complaint)


@pytest.mark.parametrize("path", ["run", "chat"])
def test_client_that_goes_away_in_the_middle_leaves_the_server_whole(
    world: Any, tasks: Any, path: str
) -> None:
    many = {"prompt": "cloud " * 20, "stream": True, "max_tokens": 2000}
    body = json.dumps(many if path == "run" else CHAT).encode()
    target = world.target(LLAMA) if path == "run" else chat_path(world)
    head = (
        f"POST {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    port = int(world.emulator.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(head.encode() + body)
        assert connection.recv(12) == b"HTTP/1.1 200"

    assert tasks.left() == []
    assert read_until_it_ends(world, world.target(LLAMA), PROMPT)[2]
