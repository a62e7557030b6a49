"""Real clients, unmodified and pinned, as their users have them, against a running emulator.

`make test-clients` runs those that most programs use, `make test-clients-all` every one that is known.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest
from client_faults import FAULTS, RETRY_AFTER
from client_roster import CLIENTS, Client
from client_run import ANSWER, EMBEDDING, PROMPT, TEXT, TEXTS, TOOL

from workersai_contracts import models
from workersai_emulator import embed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from client_run import Ran

    from workersai_emulator.plane import HttpPlane

    Run = Callable[[Client], Ran]


def each(clients: Iterable[Client]) -> pytest.MarkDecorator:
    """A test for each of these clients, in the group that it is of."""
    return pytest.mark.parametrize("client", [pytest.param(c, marks=_group(c), id=c.name) for c in clients])


def who(part: str) -> list[Client]:
    return [client for client in CLIENTS if part in client.can.split()]


def named(*names: str) -> list[Client]:
    return [client for client in CLIENTS if client.name in names]


def _group(client: Client) -> pytest.MarkDecorator:
    return pytest.mark.clients if client.in_ci else pytest.mark.clients_all


@pytest.fixture(scope="session")
def said(plane: HttpPlane) -> dict[str, Any]:
    """What the model answers to the prompt, as a plain request has it."""
    asked = {"messages": [{"role": "user", "content": PROMPT}]}
    result: dict[str, Any] = ask(plane, "POST", f"run/{TEXT}", json=asked)["result"]
    assert PROMPT in result["response"]
    return result


def ask(plane: HttpPlane, method: str, path: str, **options: Any) -> dict[str, Any]:
    """What an account of nobody's is answered."""
    where = f"{plane.url}/client/v4/accounts/{'a' * 32}/ai/{path}"
    reply = httpx.request(method, where, headers={"Authorization": "Bearer emulator"}, **options)
    told: dict[str, Any] = reply.raise_for_status().json()
    return told


def assert_vectors(got: list[list[float]], texts: int = len(TEXTS)) -> None:
    """They are the model's, bit for bit: a base64 one too, since half-precision values are float32 values."""
    vectors = np.array(got, np.float32)
    assert vectors.shape == (texts, 1024)
    assert np.array_equal(vectors, embed(EMBEDDING, TEXTS[:texts]))
    assert np.count_nonzero(vectors, axis=1).min() > 100


def assert_usage(got: dict[str, Any], said: dict[str, Any]) -> None:
    for name in ("prompt_tokens", "completion_tokens"):
        assert got[name] == said["usage"][name], name


@each([client for client in who("embedding") if not client.name.startswith("openai-")])
def test_its_vectors_are_those_of_the_model(client: Client, run: Run) -> None:
    assert_vectors(run(client).part("embedding"))


@each([client for client in who("embedding") if client.name.startswith("openai-")])
def test_its_vectors_are_those_of_the_model_by_base64_and_by_numbers(client: Client, run: Run) -> None:
    told = run(client).part("embedding")
    assert_vectors(told["base64"])
    assert_vectors(told["float"])
    assert_vectors(told["one"], 1)
    assert told["usage"]["prompt_tokens"] == told["usage"]["total_tokens"] > 0


@each(who("query"))
def test_its_query_s_vector_is_that_of_the_text(client: Client, run: Run) -> None:
    assert_vectors([run(client).part("query")], 1)


@each(who("asynchronous"))
def test_its_asynchronous_vectors_are_the_same(client: Client, run: Run) -> None:
    assert_vectors(run(client).part("asynchronous"))


@each(who("by_path"))
def test_its_vectors_are_the_same_where_it_writes_the_path_as_it_is(client: Client, run: Run) -> None:
    assert_vectors(run(client).part("by_path"))


@each(who("chat"))
def test_it_gets_the_model_s_text_with_what_it_took(client: Client, run: Run, said: dict[str, Any]) -> None:
    told = run(client).part("chat")
    assert told["text"] == said["response"]
    assert told.get("finish") in {None, "stop"}
    if "usage" in told:
        assert_usage(told["usage"], said)


@each(who("stream"))
def test_its_stream_comes_in_pieces_that_make_the_same_text(
    client: Client, run: Run, said: dict[str, Any]
) -> None:
    told = run(client).part("stream")
    assert "".join(told["pieces"]) == said["response"]
    assert len([piece for piece in told["pieces"] if piece]) > 1
    assert told.get("finish") in {None, "stop"}
    assert told.get("done") in {None, True}
    assert told.get("content_type", "text/event-stream").startswith("text/event-stream")
    if told.get("usage"):
        assert_usage(told["usage"], said)


@each([client for client in who("stream") if client.name.startswith(("cloudflare-", "openai-"))])
def test_its_stream_ends_with_what_it_took(client: Client, run: Run, said: dict[str, Any]) -> None:
    assert_usage(run(client).part("stream")["usage"], said)


@each(
    [client for client in who("stream") if client.name.startswith("openai-") or client.name == "tanstack-ai"]
)
def test_its_stream_says_why_it_ended(client: Client, run: Run) -> None:
    assert run(client).part("stream")["finish"] == "stop"


@each(who("tools"))
def test_it_is_told_to_call_the_tool(client: Client, run: Run) -> None:
    assert_called(run(client).part("tools"))


@each(who("tools_streamed"))
def test_it_is_told_to_call_the_tool_in_a_stream(client: Client, run: Run) -> None:
    told = run(client).part("tools_streamed")
    assert_called(told)
    assert told["finish"] == ("stop" if client.name == "workers-ai-provider" else "tool_calls")


def assert_called(told: dict[str, Any]) -> None:
    """One call of the tool, with arguments that its schema takes."""
    [call] = told["calls"]
    assert call["name"] == TOOL["name"]
    given = json.loads(call["arguments"]) if isinstance(call["arguments"], str) else call["arguments"]
    assert isinstance(given["city"], str)
    assert given["city"]
    assert set(given) <= {"city", "days"}


@each(who("images"))
def test_it_gets_images_in_json_and_as_they_are(client: Client, run: Run) -> None:
    told = run(client).part("images")
    assert told["in_json"] == "ffd8ff"  # a JPEG's first bytes
    if "bytes" in told:
        assert (told["content_type"], told["bytes"]) == ("image/png", "89504e470d0a1a0a")


@each(who("reranked"))
def test_it_gets_the_documents_in_the_order_of_their_scores(client: Client, run: Run) -> None:
    documents = run(client).part("reranked")
    assert documents[0] == "a llama"
    assert sorted(documents) == sorted(TEXTS)


@each(who("transcribed"))
def test_it_gets_what_was_heard(client: Client, run: Run) -> None:
    assert "heard 44 bytes" in run(client).part("transcribed")


@each(who("model_in_body"))
def test_it_runs_a_model_that_it_names_in_the_body(client: Client, run: Run) -> None:
    result = run(client).part("model_in_body")
    assert "@hf/nousresearch/hermes-2-pro-mistral-7b" in result["response"]
    assert PROMPT in result["response"]


@each(who("responses"))
def test_it_gets_a_response_whole_and_in_pieces(client: Client, run: Run) -> None:
    whole, streamed = run(client).part("responses"), run(client).part("responses_streamed")
    assert PROMPT in whole["text"]
    assert whole["finish"] == streamed["finish"] == "completed"
    assert whole["usage"]["input_tokens"] > 0
    assert "".join(streamed["pieces"]) == whole["text"]
    assert len(streamed["pieces"]) > 1


@each(who("batch"))
def test_it_queues_a_batch_by_a_raw_call_and_polls_it_to_its_end(client: Client, run: Run) -> None:
    told = run(client).part("batch")
    assert told["states"] == ["queued", "queued", "running"]
    items = {item["id"]: item for item in told["responses"]}
    assert sorted(items) == [0, 1, 2]
    assert_vectors([items[number]["result"]["data"][0] for number in range(3)])
    assert [items[number]["external_reference"] for number in range(3)] == ["ref-0", "ref-1", "ref-2"]
    assert told["usage"]["prompt_tokens"] > 0


@each(named("cloudflare-npm"))
def test_npm_queues_nothing_where_the_query_is_among_the_parameters(client: Client, run: Run) -> None:
    assert "request_id" not in run(client).part("batch_in_params")


@each(who("models"))
def test_its_list_of_models_ends_and_has_every_model_once(client: Client, run: Run, plane: HttpPlane) -> None:
    told = run(client).part("models")
    whole = ask(plane, "GET", "models/search?per_page=1000")
    assert told["names"] == [model["name"] for model in whole["result"]]
    assert len(told["names"]) == len(set(told["names"])) == whole["result_info"]["total_count"]
    assert set(told["names"]) <= set(models())
    assert {name for name, card in models().items() if card.deprecated_on is None} <= set(told["names"])
    assert EMBEDDING in told["found"]
    assert told["found"] == [name for name in told["names"] if "bge" in name]
    assert told["schema"] == ["input", "output"]
    assert "Text Embeddings" in told["tasks"]
    assert told["finetunes"] in ([], None)


@each([client for client in who("responses") if client.name.startswith("openai-")])
def test_openai_s_list_of_models_is_refused_as_the_service_does(client: Client, run: Run) -> None:
    told = run(client).part("models")
    assert (told["kind"], told["status"]) == (
        "APIStatusError" if "python" in client.name else "APIError",
        405,
    )


@each(named("cloudflare-python"))
def test_python_s_run_cannot_stream_by_itself(client: Client, run: Run) -> None:
    told = run(client).part("stream_in_run")
    assert told["kind"] == "AttributeError"
    assert "'str' object has no attribute 'result'" in told["says"]


@each(named("cloudflare-npm"))
def test_npm_s_run_of_a_stream_returns_nothing(client: Client, run: Run) -> None:
    assert run(client).part("stream_in_run") == {"returned": None}


@each(who("by_tool"))
def test_it_gets_an_object_of_its_schema_by_a_tool(client: Client, run: Run) -> None:
    told = run(client).part("by_tool")
    assert isinstance(told["name"], str)
    assert isinstance(told["age"], int)


@each(who("by_schema"))
def test_it_gets_an_object_of_its_schema_by_the_response_s_format(client: Client, run: Run) -> None:
    told = run(client).part("by_schema")
    assert "Ada is 36" in told["name"]
    assert isinstance(told["age"], int)


@each(who("structured"))
def test_it_reads_what_a_rule_lets_the_model_say(client: Client, run: Run) -> None:
    assert run(client).part("structured") == ANSWER


@each(named("llm-cloudflare"))
def test_llm_trips_over_the_last_chunk_which_has_no_text(
    client: Client, run: Run, said: dict[str, Any]
) -> None:
    told = run(client).part("stream")
    assert "".join(told["pieces"]) == said["response"]
    assert told["kind"] == "AssertionError"


@each(named("haystack"))
def test_its_documents_go_in_batches(client: Client, run: Run) -> None:
    assert run(client).part("many") == 70


@each(named("langchain-cloudflare-python"))
def test_it_embeds_more_texts_than_go_into_one_request(client: Client, run: Run) -> None:
    assert run(client).part("many") == 120


@each([client for client in CLIENTS if client.requests])
def test_it_asks_for_nothing_twice(client: Client, run: Run) -> None:
    ran = run(client)
    ran.part("stream")
    assert len(ran.account.requests.list(operation="run")) == client.requests


@pytest.mark.parametrize("fault", FAULTS)
@each([client for client in CLIENTS if client.errors])
def test_what_it_makes_of_what_goes_wrong(client: Client, fault: str, run: Run) -> None:
    ran, expected = run(client), client.errors[fault]
    met = ran.part("errors")[fault]
    assert met.get("kind") == expected.kind, met
    assert len(ran.sent(fault)) == expected.requests
    if expected.kind is None:
        assert met["returned"] == expected.returned
        return
    assert expected.says in met["says"]
    if expected.status is not None:
        assert met["status"] == expected.status
    if expected.codes is not None:
        assert met.get("codes", []) == expected.codes


def _retries(client: Client, fault: str) -> bool:
    return fault in client.errors and client.errors[fault].requests > 1


@each([client for client in CLIENTS if _retries(client, "capacity, retry-after")])
def test_it_waits_as_long_as_it_is_told_to(client: Client, run: Run) -> None:
    assert all(
        RETRY_AFTER - 0.01 < pause < RETRY_AFTER + 0.9
        for pause in pauses(run(client), "capacity, retry-after")
    )


@each([client for client in CLIENTS if _retries(client, "capacity")])
def test_it_waits_by_its_own_measure_where_it_is_not_told(client: Client, run: Run) -> None:
    first, *later = pauses(run(client), "capacity")
    assert abs(first - RETRY_AFTER) > 0.2
    assert all(second > 1.3 * first for second in later)


def pauses(ran: Ran, fault: str) -> list[float]:
    """The seconds before each of a client's two retries."""
    return [(later.time - earlier.time).total_seconds() for earlier, later in pairwise(ran.sent(fault)[:3])]
