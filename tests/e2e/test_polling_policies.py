"""How public programs that poll end, on the documented reply and on each reply that they may meet instead.

A policy is a program of the field: `polling_policies.py` has its row. The table below has a line for each
condition; its words are

done      every request has its own answer
partly    failed items are told apart, the others have their own answers
wrong     it is content, with an answer that is none, or another request's
fails     it says that the batch failed
crashes   it meets what it did not foresee
gives up  its own deadline passes
for ever  it knows no deadline, and waits still
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from polling_policies import BOUND, POLICIES, TEXT, Ending, Failed, Outcome, Policy, Rest, follow

from workersai_emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

ACCOUNT = "0123456789abcdef0123456789abcdef"
ID = "3f0c1f9e-7b1a-4c55-9d0e-2a6b8f4c1d23"
#: More texts than one item may have: the item fails when it is run. Fact: `texts.over-100`.
TOO_MANY = ["a"] * 101
UNANSWERABLE = object()

CONDITIONS: dict[str, dict[str, Any]] = {
    "documented": {},
    "completed": {"assumptions": {"done.status": "completed"}},
    "results": {"assumptions": {"done.shape": "results"}},
    "failed": {"script": "queued:1, failed"},
    "failed status": {"script": "queued:1, failed", "assumptions": {"batch.failed": "status"}},
    "lost": {"script": "queued:1, lost"},
}

ENDS = """
             |A       |B       |C      |D       |E       |F       |G     |H       |I    |J       |K
documented   |gives up|done    |done   |done    |gives up|done    |done  |for ever|done |for ever|done
completed    |gives up|done    |done   |done    |gives up|done    |done  |wrong   |done |done    |done
results      |gives up|done    |done   |for ever|done    |for ever|fails |for ever|done |for ever|crashes
failed       |gives up|gives up|fails  |for ever|gives up|for ever|fails |fails   |fails|fails   |fails
failed status|gives up|gives up|fails  |for ever|gives up|for ever|fails |crashes |fails|for ever|crashes
lost         |gives up|gives up|fails  |for ever|gives up|for ever|fails |fails   |fails|fails   |fails
failed item  |gives up|partly  |wrong  |wrong   |gives up|fails   |partly|for ever|fails|for ever|fails
html         |crashes |crashes |crashes|crashes |crashes |crashes |fails |fails   |fails|fails   |fails
"""


def table() -> dict[tuple[str, str], str]:
    head, *lines = [[cell.strip() for cell in line.split("|")] for line in ENDS.strip("\n").split("\n")]
    return {
        (line[0], policy): cell for line in lines for policy, cell in zip(head[1:], line[1:], strict=True)
    }


EXPECTED = table()


def impatient(name: str) -> Policy:
    """The policy with a tenth of its minutes, so that the table is quick; a test of its own has them all."""
    policy = POLICIES[name]
    if policy.deadline is None or policy.deadline < 100:
        return policy
    return replace(policy, deadline=policy.deadline / 10)


def requests_of(policy: Policy) -> list[dict[str, Any]]:
    name = "prompt" if policy.model == TEXT else "text"
    texts = ["orange cloud", "a llama", "three words here"][: policy.requests]
    return [{name: text, "external_reference": f"r-{number}"} for number, text in enumerate(texts)]


def wire_of(policy: Policy, base_url: str, **more: Any) -> Rest:
    return policy.wire(base_url, ACCOUNT, policy.model, **more)


def kind_of(ending: Ending, answers: list[Any]) -> Outcome:
    """The ending in a word of the table, given what each request should have got."""
    if ending.kind != "done":
        return ending.kind
    got = [answer if isinstance(answer, Failed) else essence(answer) for answer in ending.answers]
    if all(isinstance(answer, Failed) for answer in got):
        return "fails"
    pairs = [pair for pair in zip(got, answers, strict=True) if not isinstance(pair[0], Failed)]
    if any(one != other for one, other in pairs):
        return "wrong"
    return "done" if len(pairs) == len(answers) else "partly"


def essence(output: Any) -> Any:
    """The vector or the text of an output, or what a program took for one."""
    if not isinstance(output, dict):
        return output
    if "data" in output:
        return output["data"][0]
    return output.get("response")


def own_answers(policy: Policy, base_url: str, requests: list[dict[str, Any]]) -> list[Any]:
    """What a run of each request alone gives; UNANSWERABLE where it is refused."""
    alone = Rest(base_url, ACCOUNT, policy.model)
    return [essence(output) if (output := alone.run(request)) else UNANSWERABLE for request in requests]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_ends_as_it_should(name: str, condition: str) -> None:
    policy = impatient(name)
    requests = requests_of(policy)
    with Emulator(seed=7, **CONDITIONS[condition]) as emulator:
        ending = follow(policy, wire_of(policy, emulator.base_url), requests)
        assert kind_of(ending, own_answers(policy, emulator.base_url, requests)) == EXPECTED[condition, name]


@pytest.mark.parametrize("name", [name for name in POLICIES if POLICIES[name].model != TEXT])
def test_a_policy_meets_a_failed_item(name: str) -> None:
    """The second of three fails, or the only one; the emulator runs it. Fact: `item.failed`."""
    policy = impatient(name)
    requests = requests_of(policy)
    if name == "H":  # the Worker takes plain texts only, and H is never done anyway
        policy = replace(policy, wire=POLICIES["K"].wire)
    requests[len(requests) // 2]["text"] = TOO_MANY
    with Emulator(seed=7) as emulator:
        ending = follow(policy, wire_of(policy, emulator.base_url), requests)
        answers = own_answers(policy, emulator.base_url, requests)
    assert kind_of(ending, answers) == EXPECTED["failed item", name]


TEXT_ITEMS = [
    {"id": 1, "result": {}, "success": False, "errors": [{"message": "AiError: no", "code": 3030}]},
    {"id": 0, "result": {"response": "yes"}, "success": True},
    {"id": 2, "result": {"response": "and yes"}, "success": True},
]


@pytest.mark.parametrize("name", [name for name in POLICIES if POLICIES[name].model == TEXT])
def test_a_policy_for_texts_meets_a_failed_item(name: str) -> None:
    """No item of a text model fails alone in the emulator, so a scripted service says it."""
    policy = impatient(name)
    items = TEXT_ITEMS if policy.requests == 3 else [{**TEXT_ITEMS[0], "id": 0}]
    with scripted([(200, JSON, enveloped({"responses": items}))]) as base_url:
        ending = follow(policy, wire_of(policy, base_url), requests_of(policy))
    assert (
        kind_of(ending, ["yes", UNANSWERABLE, "and yes"][: policy.requests]) == EXPECTED["failed item", name]
    )


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_meets_a_page_of_html(name: str) -> None:
    """One 502 from something on the way, while the batch goes on: only G has words for it."""
    policy = impatient(name)
    page = (502, "text/html", b"<html><title>502 Bad gateway</title></html>")
    with scripted([page, (200, JSON, enveloped({"responses": []}))]) as base_url:
        ending = follow(policy, wire_of(policy, base_url), requests_of(policy))
    assert (ending.kind, ending.reason) == (EXPECTED["html", name], "the reply is not JSON")
    assert ending.polls == 1


@pytest.mark.parametrize(
    ("name", "polls", "waited"),
    [("A", 240, 1200), ("B", 240, 3600), ("E", 150, 1500), ("I", 6, 76)],
)
def test_a_policy_with_a_deadline_keeps_it(name: str, polls: int, waited: float) -> None:
    """On a batch that is held; what is waited is what the program sleeps, and nobody does."""
    policy = POLICIES[name]
    with Emulator(seed=7, script="running:hold, done") as emulator:
        ending = follow(policy, wire_of(policy, emulator.base_url), requests_of(policy))
    assert (ending.kind, ending.polls, ending.waited) == ("gives up", polls, waited)


@pytest.mark.parametrize("name", [name for name in POLICIES if POLICIES[name].deadline is None])
def test_a_policy_without_a_deadline_has_none(name: str) -> None:
    policy = POLICIES[name]
    with Emulator(seed=7, script="running:hold, done") as emulator:
        ending = follow(policy, wire_of(policy, emulator.base_url), requests_of(policy))
    assert (ending.kind, ending.polls) == ("for ever", BOUND)


@pytest.mark.parametrize("name", ["B", "C", "D", "F", "G", "I", "K"])
def test_a_policy_that_ends_on_the_documented_reply_polls_no_more_than_it_must(name: str) -> None:
    """Queued once, running once, done: three polls by every one of them."""
    policy = POLICIES[name]
    with Emulator(seed=7) as emulator:
        assert follow(policy, wire_of(policy, emulator.base_url), requests_of(policy)).polls == 3


def test_a_is_done_with_a_list_that_no_service_gives() -> None:
    """What A waits for: an array in place of the object."""
    policy = POLICIES["A"]
    with scripted([(200, JSON, enveloped([{"data": ["a vector"]}]))]) as base_url:
        ending = follow(policy, wire_of(policy, base_url), requests_of(policy))
    assert (ending.kind, ending.answers) == ("done", ["a vector"])


def test_h_takes_items_by_position_and_is_right_only_where_they_keep_their_order() -> None:
    """Fact: `poll.order`."""
    policy = POLICIES["H"]
    requests = requests_of(policy)
    settings = {"done.status": "completed", "done.order": "request"}
    with Emulator(seed=7, assumptions=settings) as emulator:
        ending = follow(policy, wire_of(policy, emulator.base_url), requests)
        assert kind_of(ending, own_answers(policy, emulator.base_url, requests)) == "done"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"errors": [{"message": "AiError: no", "code": 3030}]}, None),
        ({"error": "AiError: no"}, "AiError: no"),
    ],
    ids=["errors", "error"],
)
def test_k_knows_why_an_item_failed_only_from_a_string(said: dict[str, Any], reason: str | None) -> None:
    """Fact: `item.failed`."""
    policy = POLICIES["K"]
    item = {"id": 0, "result": {}, "success": False, **said}
    with scripted([(200, JSON, enveloped({"responses": [item]}))]) as base_url:
        assert follow(policy, wire_of(policy, base_url), requests_of(policy)).answers == [Failed(reason)]


@pytest.mark.parametrize(
    "model",
    [TEXT, "@cf/qwen/qwen3-30b-a3b-fp8", "@cf/openai/gpt-oss-120b"],
    ids=["response", "choices", "output"],
)
def test_b_reads_every_shape_of_text(model: str) -> None:
    """Facts: `models.choices`, `batch.gpt-oss`."""
    name = "input" if model.endswith("120b") else "prompt"
    requests = [{name: "orange cloud", "external_reference": "r-0"}]
    policy = replace(POLICIES["B"], model=model)
    with Emulator(seed=7) as emulator:
        [answer] = follow(policy, wire_of(policy, emulator.base_url), requests).answers
    assert "orange cloud" in answer


@pytest.mark.parametrize(("fresh", "kind"), [("good", "done"), ("stale too", "fails"), (None, "fails")])
def test_c_fetches_a_new_token_once(fresh: str | None, kind: Outcome) -> None:
    """Fact: `auth.unknown`."""
    policy = POLICIES["C"]
    with Emulator(seed=7, tokens=frozenset({"good"})) as emulator:
        wire = wire_of(policy, emulator.base_url, token="stale", fresh=fresh)
        ending = follow(policy, wire, requests_of(policy))
    assert ending.kind == kind
    assert len(wire.sent) == {"good": 5, "stale too": 2, None: 1}[fresh]


@pytest.mark.parametrize("name", [name for name in POLICIES if POLICIES[name].wire is Rest])
def test_a_submit_with_202_is_good_for_every_policy_of_rest(name: str) -> None:
    """Fact: `submit.status`."""
    policy = POLICIES[name]
    with Emulator(seed=7, assumptions={"submit.status": "202"}) as emulator:
        assert follow(policy, wire_of(policy, emulator.base_url), requests_of(policy)).polls > 0


@pytest.mark.parametrize("name", [name for name in POLICIES if POLICIES[name].wire is Rest])
def test_a_refused_submit_is_good_for_no_policy(name: str) -> None:
    policy = POLICIES[name]
    with Emulator(seed=7, tokens=frozenset({"good"})) as emulator:
        ending = follow(policy, wire_of(policy, emulator.base_url), requests_of(policy))
    assert (ending.kind, ending.polls, ending.reason) == ("fails", 0, "the submit was not good")


JSON = "application/json"


def enveloped(result: Any) -> bytes:
    return json.dumps({"result": result, "success": True, "errors": [], "messages": []}).encode()


@contextmanager
def scripted(replies: list[tuple[int, str, bytes]]) -> Iterator[str]:
    """A service that queues what it gets and answers polls with these replies, the last again and again."""
    queued = {"status": "queued", "request_id": ID, "model": TEXT}
    waiting = list(replies)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # head and body in one piece

        def do_GET(self) -> None:
            self._answer(*(waiting.pop(0) if len(waiting) > 1 else waiting[0]))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if "request_id" in body:
                self.do_GET()
            elif self.path == "/batch":
                self._answer(200, JSON, json.dumps({**queued, "mode": "live"}).encode())
            else:
                self._answer(200, JSON, enveloped(queued))

        def _answer(self, status: int, content_type: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", content_type)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/client/v4"
        server.shutdown()
        thread.join()
