"""Every request that real clients were recorded to send is answered as the contract says.

The recordings are not part of this repository: they are looked for in the folder that `CLIENT_REQUESTS` names, else
in `shared/wire/client-requests` beside the repository, and without them these tests are skipped.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from workersai_contracts import validate
from workersai_contracts.routes import exchange_of
from workersai_emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

BESIDE = Path(__file__).parents[3] / "shared" / "wire" / "client-requests"
FOLDER = Path(os.environ.get("CLIENT_REQUESTS") or BESIDE)
FILES = sorted(FOLDER.glob("*.json"))
#: The account that nearly all recorded requests name.
ACCOUNT = "acc0000000000000000000000000000a"
OF_THE_CONNECTION = {"host", "connection", "content-length", "transfer-encoding", "authorization", "te"}

#: How each client's requests are answered: HTTP status, and the code of a refusal.
ANSWERS: dict[str, dict[str, int]] = {
    "chroma-npm": {"200": 16},
    "chromadb": {"200": 16},
    "cloudflare-ai-binding": {"200": 3},
    "cloudflare-ai-python": {"200": 1, "400/7000": 1},
    "cloudflare-npm": {"200": 35, "400/8007": 3, "404/7003": 3},
    "cloudflare-python": {"200": 53, "400/8007": 3, "400/7000": 1, "400/5006": 1},
    "haystack": {"200": 14},
    "instructor": {"200": 3, "400/5007": 3},
    "langchain-cloudflare-npm": {"200": 14},
    "langchain-cloudflare-python": {"200": 29},
    "langchain-community-python": {"200": 21},
    "litellm": {"200": 20},
    "llama-index-embeddings-cloudflare-workersai": {"200": 23},
    "llm-cloudflare": {"200": 4},
    "openai-npm": {"200": 27, "400/5007": 1, "405/7001": 1},
    "openai-npm-7": {"200": 27, "400/5007": 1, "405/7001": 1},
    "openai-python": {"200": 37, "400/5007": 1, "400/7000": 1, "405/7001": 1, "404/7003": 2},
    "pydantic-ai": {"200": 13},
    "pydantic-ai-cloudflare": {"200": 4},
    "pydantic-ai-cloudflare-ai": {"200": 7, "400/5007": 1},
    "tanstack-ai": {"200": 1},
    "workers-ai-provider": {"200": 24, "400/7000": 2},
}
#: What is wrong with requests that are answered with success all the same.
SLIPS = {"cloudflare-npm": {"$.queueRequest"}, "workers-ai-provider": {"$"}}

pytestmark = pytest.mark.skipif(not FILES, reason=f"no recordings of clients in {FOLDER}")
each_client = pytest.mark.parametrize("client", ANSWERS)


class Answer(NamedTuple):
    """One reply as it came."""

    status: int
    content_type: str
    content: bytes

    @property
    def told(self) -> str:
        """The status, and the code of a refusal."""
        if self.status == 200:
            return "200"
        body = json.loads(self.content)
        return f"{self.status}/{body['errors'][0]['code']}"


class Recorded(NamedTuple):
    """One request of a client."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes


@pytest.fixture(scope="module")
def connection() -> Iterator[HTTPConnection]:
    with Emulator(seed=7) as emulator:
        host, _, port = emulator.url.removeprefix("http://").partition(":")
        connection = HTTPConnection(host, int(port), timeout=30)
        yield connection
        connection.close()


def requests_of(client: str) -> list[Recorded]:
    return [_recorded(each) for each in json.loads((FOLDER / f"{client}.json").read_bytes())["requests"]]


def _recorded(told: dict[str, Any]) -> Recorded:
    assert told["body_kind"] in {"json", "empty"}
    body = b"" if told["body_kind"] == "empty" else json.dumps(told["body"]).encode()
    query = f"?{told['query']}" if told["query"] else ""
    headers = [(name, value) for name, value in told["headers"] if name.lower() not in OF_THE_CONNECTION]
    return Recorded(told["method"], told["path"] + query, headers, body)


def send(connection: HTTPConnection, request: Recorded) -> Answer:
    """Send a request with the target and the headers that the client gave it."""
    connection.putrequest(request.method, request.target, skip_accept_encoding=True)
    for name, value in request.headers:
        connection.putheader(name, value)
    connection.putheader("Authorization", "Bearer emulator")
    if request.body:
        connection.putheader("Content-Length", str(len(request.body)))
    connection.endheaders(request.body or None)
    response = connection.getresponse()
    return Answer(response.status, response.headers.get("content-type", ""), response.read())


def test_there_is_a_recording_of_each_client() -> None:
    assert {path.stem for path in FILES} == set(ANSWERS)


@each_client
def test_each_request_has_the_answer_that_the_contract_says(client: str, connection: HTTPConnection) -> None:
    answers: Counter[str] = Counter()
    slips = set()
    for request in requests_of(client):
        answer = send(connection, request)
        answers[answer.told] += 1
        exchange = exchange_of(request.method, request.target, request.body)
        if exchange is None:
            assert answer.told == "400/7000", request.target
            validate(json.loads(answer.content), "envelope/edge-error")
            continue
        assert exchange.check_reply(*answer) is None, request.target
        breach = exchange.check_request()
        if breach is not None and answer.status == 200:
            slips |= {found.path for found in breach.mismatches}
    assert answers == ANSWERS[client]
    assert slips == SLIPS.get(client, set())


@each_client
def test_the_same_requests_lead_nowhere_without_a_real_account(
    client: str, connection: HTTPConnection
) -> None:
    sent = 0
    for recorded in requests_of(client):
        request = recorded._replace(target=recorded.target.replace(ACCOUNT, "ACCOUNT_ID"))
        if request == recorded:
            continue
        answer = send(connection, request)
        path = request.target.partition("?")[0]
        message = f"Could not route to {path}, perhaps your object identifier is invalid?"
        assert (answer.status, answer.content_type) == (404, "application/json")
        assert json.loads(answer.content) == {
            "result": None,
            "success": False,
            "errors": [{"code": 7003, "message": message}],
            "messages": [],
        }
        sent += 1
    assert sent >= ANSWERS[client]["200"]
