"""The binding's dialect, as workerd's own AI module sends and reads it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from workersai_contracts import errors, validate
from workersai_emulator.api_tokens import Token

BGE_M3 = "@cf/baai/bge-m3"
LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
WHISPER = "@cf/openai/whisper"
TURN = "@cf/pipecat-ai/smart-turn-v2"
FLUX = "@cf/black-forest-labs/flux-2-klein-4b"


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


@dataclass(frozen=True)
class Binding:
    """What `env.AI` of one account's Worker sends."""

    world: Any

    @property
    def headers(self) -> dict[str, str]:
        return {
            "host": "workers-binding.ai",
            "content-type": "application/json",
            "cf-consn-sdk-version": "2.0.0",
            "cf-consn-model-id": BGE_M3,
            "x-emulator-account": self.world.id,
        }

    def run(
        self, inputs: Any, options: dict[str, Any] | None = None, model: str = BGE_M3, **headers: str
    ) -> httpx.Response:
        """`env.AI.run(model, inputs, options)`, with `extraHeaders` spelled with _ for -."""
        options = options or {}
        path = "/ai-gateway/run?version=3" if "gateway" in options else "/run?version=3"
        extra = {name.replace("_", "-"): value for name, value in headers.items()}
        body = {"inputs": inputs, "options": options}
        return self.world.http.post(
            path, content=compact(body), headers={**self.headers, "cf-consn-model-id": model, **extra}
        )

    def queued(self, *texts: str, script: str | None = None) -> str:
        extra = {} if script is None else {"x_emulator_script": script}
        reply = self.run({"requests": [{"text": text} for text in texts]}, {"queueRequest": True}, **extra)
        assert reply.status_code == 200, reply.text
        return reply.json()["request_id"]

    def poll(self, request_id: str, options: dict[str, Any] | None = None) -> httpx.Response:
        return self.run({"request_id": request_id}, options)

    def stream(self, model: str, body: bytes, kind: str, others: Any, **options: str) -> httpx.Response:
        """A run one of whose inputs is a stream: options and the other inputs are in the query."""
        query = urlencode({**options, "version": "3", "userInputs": json.dumps(others)})
        headers = {**self.headers, "cf-consn-model-id": model, "content-type": kind}
        return self.world.http.post(f"/run?{query}", content=body, headers=headers)

    def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """Anything but a run, which has no model."""
        headers = {"host": "workers-binding.ai", "x-emulator-account": self.world.id}
        content = None if body is None else compact(body)
        return self.world.http.request(method, path, content=content, headers=headers)

    def journal(self) -> list[dict[str, Any]]:
        return self.world.control("GET", "requests").json()["requests"]


@pytest.fixture
def binding(world):
    return Binding(world)


def thrown(reply: httpx.Response) -> tuple[int, str, str]:
    """What the module of workerd makes of a refusal: the status, the error's name and its message."""
    assert not reply.is_success
    assert reply.headers["content-type"] == "application/json"
    told = reply.json()
    assert list(told) == ["name", "internalCode", "httpCode", "message", "description", "requestId"]
    assert told["httpCode"] == reply.status_code
    assert told["requestId"] == reply.headers["cf-ai-req-id"]
    validate(told, "binding/error")
    return reply.status_code, told["name"], f"{told['internalCode']}: {told['description']}"


def test_submit_is_the_bare_object_of_status_model_and_request_id(world, converse, read):
    body = compact({"inputs": {"requests": [{"text": "a"}]}, "options": {"queueRequest": True}})
    head = (
        "POST /run?version=3 HTTP/1.1\r\nHost: workers-binding.ai\r\nContent-Type: application/json\r\n"
        f"cf-consn-sdk-version: 2.0.0\r\ncf-consn-model-id: {BGE_M3}\r\nx-emulator-account: {world.id}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    (answer,) = read(converse(head.encode() + body, once=True))

    request_id = json.loads(answer.body)["request_id"]
    assert answer.status == 200
    assert answer.body == compact({"status": "queued", "model": BGE_M3, "request_id": request_id})
    assert ("Content-Type", "application/json") in answer.headers
    assert "cf-ai-req-id" in [name for name, _ in answer.headers]
    validate(json.loads(answer.body), "binding/submit.reply")


@pytest.mark.parametrize("options", [{}, {"queueRequest": True}])
def test_polls_see_queued_then_running_then_done_without_an_envelope(binding, options):
    request_id = binding.queued("a", script="queued:1, running:1, done")

    polls = [binding.poll(request_id, options) for _ in range(4)]

    assert [poll.status_code for poll in polls] == [200] * 4
    assert [poll.headers["content-type"] for poll in polls] == ["application/json"] * 4
    assert polls[0].content == compact({"status": "queued", "request_id": request_id})
    assert polls[1].content == compact({"status": "running", "request_id": request_id})
    done = polls[2].json()
    assert list(done) == ["responses", "usage"]
    assert [item["id"] for item in done["responses"]] == [0]
    assert polls[3].content == polls[2].content
    assert ["cf-ai-neurons" in poll.headers for poll in polls] == [False, False, True, False]


def test_done_batch_is_what_REST_has_inside_its_result(world, binding):
    request_id = binding.queued(*(f"text {number}" for number in range(40)), script="done")

    reply = binding.poll(request_id)

    rest = world.poll(request_id)
    assert rest.content == b'{"result":' + reply.content + b',"success":true,"errors":[],"messages":[]}'
    assert "content-length" not in reply.headers  # it comes in pieces


def test_run_is_what_REST_has_inside_its_result(world, binding):
    reply = binding.run({"text": ["a", "b"]})

    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/json"
    assert reply.json() == world.run({"text": ["a", "b"]}).json()["result"]
    assert float(reply.headers["cf-ai-neurons"]) >= 0


@pytest.mark.parametrize("named", [BGE_M3, f"pfx:{BGE_M3}", f"a:b:{BGE_M3}"])
def test_model_is_read_behind_a_prefix(binding, named):
    reply = binding.run({"requests": [{"text": "a"}]}, {"queueRequest": True}, model=named)

    assert reply.json()["model"] == BGE_M3
    assert binding.journal()[-1]["model"] == BGE_M3


def test_unknown_model_is_5007(binding):
    assert thrown(binding.run({}, model="@cf/no/model")) == (
        400,
        "AiError",
        "5007: No such model @cf/no/model or task",
    )


def test_run_that_names_no_model_is_3003(binding):
    assert thrown(binding.run({"text": "a"}, model="")) == (
        400,
        "AiError",
        "3003: Request is missing headers or body: cf-consn-model-id",
    )


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"", "body"),
        (b"{", "body"),
        (b"[]", "body"),
        (b'{"inputs":{"text":NaN}}', "body"),
        (b"{}", "inputs"),
        (b'{"options":{"queueRequest":true}}', "inputs"),
    ],
)
def test_body_without_inputs_is_3003(world, binding, body, what):
    reply = world.http.post("/run?version=3", content=body, headers=binding.headers)

    assert thrown(reply) == (400, "AiError", f"3003: Request is missing headers or body: {what}")


def test_body_that_is_not_JSON_can_be_5006(world, binding):
    world.assume(body__not_json="5006")

    reply = world.http.post("/run?version=3", content=b"{", headers=binding.headers)

    status, _, message = thrown(reply)
    assert (status, message[:39]) == (400, "5006: Error: the body is not JSON: Expe")


def test_refused_input_has_the_validators_words_after_the_code(binding):
    reply = binding.run({"contexts": [{"no": 1}]})

    status, name, message = thrown(reply)
    assert (status, name) == (400, "AiError")
    assert message.startswith("5006: Error: oneOf at '/' not met, 0 matches: ")
    assert reply.json()["message"] == f"AiError: Bad input: {message[6:]} ({reply.headers['cf-ai-req-id']})"


@pytest.mark.parametrize("row", errors().values(), ids=errors().keys())
def test_every_error_is_thrown_with_its_code_and_description(world, binding, row):
    world.rule({"error": row.id})

    status, name, message = thrown(binding.run({"text": "a"}))

    described = row.describe(model=BGE_M3)
    assert (status, name, message) == (row.status, "AiError", f"{row.code}: {described}")


def test_retry_after_comes_where_a_rule_asks_for_it(world, binding):
    world.rule({"error": 3040, "retry_after": 7})

    reply = binding.run({"text": "a"})

    assert thrown(reply)[0] == 429
    assert reply.headers["retry-after"] == "7"


@pytest.mark.parametrize("options", [{"queueRequest": "true"}, {"queueRequest": 1}, {}])
def test_only_the_option_queueRequest_queues(binding, options):
    reply = binding.run({"text": "a", "queueRequest": True}, options)

    assert list(reply.json()) == ["shape", "data", "pooling"]
    exchange = binding.journal()[-1]
    assert exchange["slips"] == ["queue-in-body"]
    assert exchange["why"].startswith("queueRequest is in the inputs")


def test_rejectIfBusy_is_told_at_once_that_there_is_no_capacity(world, binding):
    world.rule({"busy": 0.2})

    refused = binding.run({"text": "a"}, {"rejectIfBusy": True})
    waited = binding.run({"text": "a"})

    assert thrown(refused) == (429, "AiError", "3040: Capacity temporarily exceeded, please try again.")
    assert waited.status_code == 200


def test_stream_comes_in_events_and_ends_with_DONE(binding):
    reply = binding.run({"prompt": "hi", "stream": True}, model=LLAMA)

    assert (reply.status_code, reply.headers["content-type"]) == (200, "text/event-stream")
    events = reply.text.split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    texts = [json.loads(event.removeprefix("data: "))["response"] for event in events[:-2]]
    assert "".join(texts).startswith("[placeholder")


def test_error_as_the_first_event_of_a_stream_is_as_on_REST(world, binding):
    world.rule({"stream": {"after": 0, "error": 3040}})

    reply = binding.run({"prompt": "hi", "stream": True}, model=LLAMA)

    first, *rest = reply.text.split("\n\n")
    told = json.loads(first.removeprefix("data: "))
    assert reply.status_code == 200
    assert told["errors"][0]["code"] == 3040
    assert rest == [""]


def test_image_comes_as_its_bytes(binding):
    reply = binding.run({"prompt": "a cloud"}, model="@cf/bytedance/stable-diffusion-xl-lightning")

    assert reply.headers["content-type"] in {"image/png", "image/jpeg"}
    assert reply.content[:4] in {b"\x89PNG", b"\xff\xd8\xff\xe0"}


def test_stream_input_is_the_model_s_recording(binding):
    reply = binding.stream(WHISPER, b"\x00" * 16_000, "audio/wav", {})

    assert reply.status_code == 200
    assert "heard 16000 bytes, about 1.00 seconds" in reply.json()["text"]


def test_stream_input_goes_to_the_member_that_has_a_body_and_the_others_stay(binding):
    replies = [
        binding.stream(TURN, body, "application/octet-stream", {"dtype": "uint8"}) for body in (b"a", b"b")
    ]

    assert [reply.status_code for reply in replies] == [200, 200]
    assert [list(reply.json()) for reply in replies] == [["is_complete", "probability"]] * 2
    assert replies[0].json() != replies[1].json()


def test_form_as_an_input_gives_its_fields(binding):
    def form(prompt: str) -> bytes:
        return (
            b'--b\r\nContent-Disposition: form-data; name="prompt"\r\n\r\n'
            + prompt.encode()
            + b'\r\n--b\r\nContent-Disposition: form-data; name="width"\r\n\r\n64\r\n--b--\r\n'
        )

    kind = "multipart/form-data; boundary=b"
    first, second = (binding.stream(FLUX, form(prompt), kind, {}).json() for prompt in ("one", "two"))

    assert first["image"] != second["image"]


@pytest.mark.parametrize(
    ("model", "body", "others", "options"),
    [
        (BGE_M3, b"a", "{}", {}),
        (WHISPER, b"", "{}", {}),
        (WHISPER, b"a", "{", {}),
        (WHISPER, b"a", "[]", {}),
        (WHISPER, b"a", "{}", {"queueRequest": "true"}),
    ],
    ids=["model-takes-none", "empty", "inputs-not-JSON", "inputs-no-object", "queued"],
)
def test_stream_input_that_cannot_be_read_is_3003(world, binding, model, body, others, options):
    query = urlencode({**options, "version": "3", "userInputs": others})
    headers = {**binding.headers, "cf-consn-model-id": model, "content-type": "audio/wav"}

    reply = world.http.post(f"/run?{query}", content=body, headers=headers)

    assert thrown(reply) == (400, "AiError", "3003: Request is missing headers or body: body")


def test_stream_input_of_an_unknown_model_is_5007(binding):
    assert thrown(binding.stream("@cf/no/model", b"a", "audio/wav", {}))[2].startswith("5007: ")


def test_payload_of_a_submit_is_refused_from_the_limit_on(world, binding):
    fitting = {"requests": [{"text": "a"}]}
    size = len(compact(fitting))
    reply = world.control("PATCH", "settings", {"limits": {"payload_bytes": size + 1}})
    assert reply.status_code == 200

    taken = binding.run(fitting, {"queueRequest": True})
    refused = binding.run({"requests": [{"text": "aa"}]}, {"queueRequest": True})

    assert taken.status_code == 200
    assert thrown(refused) == (413, "AiError", "3006: Request is too large")


def test_run_is_refused_from_its_own_limit_on(world, binding):
    world.control("PATCH", "settings", {"limits": {"body_bytes": 20}})

    assert binding.run({"text": "a"}).status_code == 200
    assert thrown(binding.run({"text": "a" * 20})) == (413, "AiError", "3006: Request is too large")


def test_body_far_beyond_both_limits_is_refused_before_it_is_read(world, binding, converse, read):
    world.control("PATCH", "settings", {"limits": {"body_bytes": 20, "payload_bytes": 20}})
    head = (
        f"POST /run?version=3 HTTP/1.1\r\nHost: workers-binding.ai\r\ncf-consn-model-id: {BGE_M3}\r\n"
        f"x-emulator-account: {world.id}\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n"
    )

    (answer,) = read(converse(head.encode(), once=True))

    assert answer.status == 413
    assert json.loads(answer.body)["internalCode"] == 3006


def test_batch_of_the_binding_is_the_account_s_and_polled_over_REST(world, other_world, binding):
    request_id = binding.queued("a", script="done")

    assert world.poll(request_id).json()["result"]["responses"][0]["id"] == 0
    assert thrown(Binding(other_world).poll(request_id))[2] == "8007: Request not found"


def test_submit_status_can_be_202(world, binding):
    world.assume(submit__status="202")

    assert binding.run({"requests": [{"text": "a"}]}, {"queueRequest": True}).status_code == 202


def test_without_an_account_the_development_account_is_meant(world, binding):
    headers = {key: value for key, value in binding.headers.items() if key != "x-emulator-account"}

    world.http.post("/run?version=3", content=b'{"inputs":{"text":"a"},"options":{}}', headers=headers)

    last = world.http.get("/__emulator__/requests").json()["requests"][-1]
    assert last["account_id"] == "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("header", "value", "told"),
    [
        ("x_emulator_account", "mine", "x-emulator-account: 'mine' is not 32 hex digits"),
        ("x_emulator_script", "soon", "x-emulator-script: "),
        ("x_emulator_scenario", "no-such", "x-emulator-scenario: "),
    ],
)
def test_emulator_header_that_makes_no_sense_is_refused_by_the_tool(binding, header, value, told):
    reply = binding.run({"text": "a"}, **{header: value})

    assert reply.status_code == 400
    validate(reply.json(), "binding/errors.reply")
    assert reply.json()["error"] == reply.json()["errors"][0]["message"]
    assert reply.json()["error"].startswith(told)


def test_scenario_of_a_request_is_for_it_alone(binding):
    refused = binding.run({"text": "a"}, x_emulator_scenario="daily-limit")

    assert thrown(refused)[2].startswith("4006: ")
    assert binding.run({"text": "a"}).status_code == 200


def test_rule_may_answer_anything_and_its_headers_are_all(world, binding):
    world.rule({"reply": {"status": 502, "body": "<html>", "headers": {"content-type": "text/html"}}})

    reply = binding.run({"text": "a"}, {"gateway": {"id": "gw"}})

    assert (reply.status_code, reply.text, reply.headers["content-type"]) == (502, "<html>", "text/html")
    assert not {"cf-ai-req-id", "cf-aig-log-id"} & set(reply.headers)


def test_rule_may_break_the_connection(world, binding):
    world.rule({"transport": "reset-before"})

    with pytest.raises(httpx.TransportError):
        binding.run({"text": "a"})


def test_failed_batch_throws_on_poll(binding):
    request_id = binding.queued("a", script="failed")

    assert thrown(binding.poll(request_id)) == (500, "AiError", "5001: Model execution failed")


def test_journal_tells_submits_polls_and_runs_of_the_binding(binding):
    request_id = binding.queued("a", script="done")
    binding.poll(request_id)
    binding.run({"text": "a"})
    binding.run({})

    told = [
        (one["dialect"], one["operation"], one["path"], one["status"], one["code"], one["state"])
        for one in binding.journal()
    ]
    assert told == [
        ("binding", "submit", "/run", 200, None, "queued"),
        ("binding", "poll", "/run", 200, None, "done"),
        ("binding", "run", "/run", 200, None, ""),
        ("binding", "run", "/run", 400, 5006, ""),
    ]
    assert [one["request_id"] for one in binding.journal()[:2]] == [request_id] * 2


@pytest.mark.parametrize("upgrade", [True, False])
def test_websocket_is_refused_and_the_connection_stays_usable(world, converse, read, upgrade):
    body = quote(json.dumps({"inputs": {}, "options": {"websocket": True}}))
    asked = f"GET /run?version=3&body={body} HTTP/1.1\r\nHost: workers-binding.ai\r\n" + (
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        if upgrade
        else "\r\n"
    )

    (answer,) = read(converse(asked.encode(), once=True))

    told = json.loads(answer.body)
    assert answer.status == told["httpCode"] == 501
    assert told["name"] == "AiError"
    assert "WebSocket is not emulated" in told["description"]
    assert answer.header("content-type") == "application/json"


def test_models_are_those_of_the_search(world, binding):
    query = "?task=Text%20Embeddings&per_page=3&hide_experimental=true"

    reply = binding.ask("GET", f"/ai-api/models/search{query}")

    rest = world.http.get(f"/client/v4/accounts/{world.id}/ai/models/search{query}").json()
    assert reply.content == compact({"success": True, "result": rest["result"]})
    assert len(rest["result"]) == 3
    assert reply.headers["content-type"] == "application/json"
    assert binding.journal()[0]["operation"] == "models"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("POST", "/ai-api/models/search", 405, 7001),
        ("POST", "/ai-gateway/gateways/gw/logs/x", 405, 7001),
        ("POST", "/ai-gateway/gateways/gw/url/openai", 405, 7001),
        ("GET", "/ai-gateway/gateways/gw", 400, 7000),
        ("GET", "/ai-gateway/gateways/gw/logs/", 400, 7000),
        ("GET", "/to-everything/markdown/transformer", 405, 7001),
        ("GET", "/to-everything/markdown/other", 400, 7000),
    ],
)
def test_what_the_binding_never_asks_is_refused_with_errors(binding, method, path, status, code):
    reply = binding.ask(method, path, {} if method == "POST" else None)

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (status, code)
    validate(reply.json(), "binding/errors.reply")


def test_rule_for_models_refuses_with_errors(world, binding):
    world.rule({"error": 3040}, {"operation": "models"})

    reply = binding.ask("GET", "/ai-api/models/search")

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (429, 3040)
    validate(reply.json(), "binding/errors.reply")


@pytest.fixture
def logged(binding) -> str:
    """The log id of a run through the gateway `gw`."""
    reply = binding.run({"text": "a"}, {"gateway": {"id": "gw", "metadata": {"user": "123", "paid": True}}})
    assert reply.status_code == 200
    return reply.headers["cf-aig-log-id"]


def test_log_of_a_run_through_a_gateway(world, binding, logged):
    world.control("POST", "clock", {"now": "2027-01-02T03:04:05Z", "freeze": True})
    options = {"gateway": {"id": "gw", "metadata": {"user": "1"}}}
    log_id = binding.run({"text": "b"}, options).headers["cf-aig-log-id"]

    reply = binding.ask("GET", f"/ai-gateway/gateways/gw/logs/{log_id}")

    validate(reply.json(), "binding/log.reply")
    told = reply.json()["result"]
    sent = binding.run({"text": "b"}).content
    assert told.pop("duration") >= 0
    assert told == {
        "id": log_id,
        "provider": "workers-ai",
        "model": BGE_M3,
        "path": f"run/{BGE_M3}",
        "request_content_type": "application/json",
        "status_code": 200,
        "response_content_type": "application/json",
        "success": True,
        "cached": False,
        "metadata": {"user": "1"},
        "request_size": len(compact({"inputs": {"text": "b"}, "options": options})),
        "request_head_complete": False,
        "response_size": len(sent),
        "response_head_complete": False,
        "created_at": "2027-01-02T03:04:05.000Z",
    }


def test_log_ids_look_like_the_documented_one_and_differ(binding):
    runs = [binding.run({"text": "a"}, {"gateway": {"id": "gw"}}) for _ in range(3)]

    ids = [run.headers["cf-aig-log-id"] for run in runs]
    assert len(set(ids)) == 3
    assert all(len(one) == 26 and one.isalnum() and one.isupper() for one in ids)


def test_refused_run_has_a_log_too(binding):
    reply = binding.run({}, {"gateway": {"id": "gw"}})

    log = binding.ask("GET", f"/ai-gateway/gateways/gw/logs/{reply.headers['cf-aig-log-id']}").json()[
        "result"
    ]

    assert thrown(reply)[0] == 400
    assert (log["success"], log["status_code"], log["response_size"]) == (False, 400, len(reply.content))


def test_run_that_asks_for_no_log_has_none(binding):
    reply = binding.run({"text": "a"}, {"gateway": {"id": "gw", "collectLog": False}})

    assert reply.status_code == 200
    assert "cf-aig-log-id" not in reply.headers


def test_run_without_a_gateway_has_no_log(binding):
    assert "cf-aig-log-id" not in binding.run({"text": "a"}).headers


@pytest.mark.parametrize("where", ["other gateway", "other account", "unknown"])
def test_log_that_is_not_there_is_404(binding, other_world, logged, where):
    log_id = "01JADMCQQQBWH3NXZ5GCRN98DP" if where == "unknown" else logged
    gateway = "other" if where == "other gateway" else "gw"
    asking = Binding(other_world) if where == "other account" else binding

    replies = [
        asking.ask("GET", f"/ai-gateway/gateways/{gateway}/logs/{log_id}"),
        asking.ask("PATCH", f"/ai-gateway/gateways/{gateway}/logs/{log_id}", {"score": 1}),
    ]

    assert [(reply.status_code, reply.json()["errors"][0]["message"]) for reply in replies] == [
        (404, "Log Not Found")
    ] * 2
    validate(replies[0].json(), "binding/errors.reply")


def test_patch_of_a_log_shows_in_it(binding, logged):
    path = f"/ai-gateway/gateways/gw/logs/{logged}"

    patched = binding.ask("PATCH", path, {"feedback": -1, "score": 99.5, "metadata": {"user": "456"}})

    assert (patched.status_code, patched.json()) == (200, {"success": True, "result": {}})
    log = binding.ask("GET", path).json()["result"]
    assert (log["feedback"], log["score"], log["metadata"]) == (-1, 99.5, {"user": "456"})


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        ({"feedback": 2}, "feedback is -1, 0, 1 or null"),
        ({"feedback": "1"}, "feedback is -1, 0, 1 or null"),
        ({"feedback": True}, "feedback is -1, 0, 1 or null"),
        ({"score": 101}, "score is a number from 0 to 100, or null"),
        ({"score": "9"}, "score is a number from 0 to 100, or null"),
        ({"metadata": {"a": {}}}, "metadata is no object of texts, numbers and truths"),
        ({"score": 5, "metadata": []}, "metadata is no object of texts, numbers and truths"),
        ([], "a patch is an object"),
    ],
)
def test_patch_that_makes_no_sense_is_refused_and_changes_nothing(binding, logged, patch, told):
    path = f"/ai-gateway/gateways/gw/logs/{logged}"

    reply = binding.ask("PATCH", path, patch)

    assert reply.status_code == 400
    assert reply.json()["errors"][0]["message"] == f"Input Validation Error: {told}"
    log = binding.ask("GET", path).json()["result"]
    assert log["metadata"] == {"user": "123", "paid": True}
    assert not {"feedback", "score"} & set(log)


def test_log_keeps_five_marks_and_cuts_long_ones(binding):
    metadata = {f"m{number}": "x" * 5_000 for number in range(9)}

    run = binding.run({"text": "a"}, {"gateway": {"id": "gw", "metadata": metadata}})

    log = binding.ask("GET", f"/ai-gateway/gateways/gw/logs/{run.headers['cf-aig-log-id']}").json()["result"]
    assert log["metadata"] == {f"m{number}": "x" * 200 for number in range(5)}


def test_logs_go_with_the_account_s_journal(world, binding, logged):
    assert world.control("POST", "reset").status_code == 204

    assert binding.ask("GET", f"/ai-gateway/gateways/gw/logs/{logged}").status_code == 404


@pytest.mark.parametrize(("provider", "end"), [("openai", "openai"), ("universal", "")])
def test_address_of_a_gateway_is_the_emulator_s_own(world, binding, provider, end):
    reply = binding.ask("GET", f"/ai-gateway/gateways/gw/url/{provider}")

    expected = {"url": f"{world.emulator.url}/v1/{world.id}/gw/{end}"}
    assert reply.content == compact({"success": True, "result": expected})


def test_address_of_a_gateway_leads_to_the_models(world, binding):
    url = binding.ask("GET", "/ai-gateway/gateways/gw/url/workers-ai").json()["result"]["url"]

    reply = httpx.post(f"{url}/{BGE_M3}", json={"text": "a"}, headers={"authorization": "Bearer x"})

    assert reply.json()["success"] is True


def test_gateway_s_path_to_workers_ai_needs_no_credentials(world_of):
    world = world_of(tokens=frozenset({Token.parse("secret")}))
    headers = {"x-emulator-account": world.id, "content-type": "application/json"}
    base = f"{world.emulator.url}/ai-gateway/gateways/gw/workers-ai"

    run = httpx.post(f"{base}/{BGE_M3}", json={"text": "a"}, headers=headers)
    embedded = httpx.post(f"{base}/v1/embeddings", json={"model": BGE_M3, "input": "a"}, headers=headers)
    refused = httpx.post(f"{world.emulator.url}/v1/{world.id}/gw/workers-ai/{BGE_M3}", json={"text": "a"})

    assert run.json()["result"]["shape"] == [1, 1024]
    assert embedded.json()["object"] == "list"
    assert refused.status_code == 403
    told = Binding(world).journal()
    assert [(one["dialect"], one["status"], one["account_id"]) for one in told] == [
        ("binding", 200, world.id)
    ] * 2


@pytest.mark.parametrize(
    "path",
    [
        "/ai-gateway/universal/run/gw",
        "/ai-gateway/gateways/gw/openai/chat/completions",
        "/ai-gateway/gateways/gw/compat/chat/completions",
    ],
)
def test_other_providers_of_a_gateway_are_refused_at_once(binding, path):
    reply = binding.ask("POST", path, [])

    assert reply.status_code == 501
    validate(reply.json(), "binding/errors.reply")
    assert "only workers-ai is emulated" in reply.json()["errors"][0]["message"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
INPUTS = JSON | st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("text", "requests", "request_id", "contexts", "stream", "audio"), JSON)
)
OPTIONS = JSON | st.fixed_dictionaries(
    {}, optional={"queueRequest": st.booleans() | JSON, "gateway": JSON, "rejectIfBusy": JSON}
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(
        [
            "/run?version=3",
            "/ai-gateway/run?version=3",
            "/run?version=3&userInputs=%7B%7D",
            "/run?version=3&userInputs=%5B",
            "/to-everything/markdown/transformer",
        ]
    ),
    model=st.sampled_from([BGE_M3, LLAMA, WHISPER, TURN, "", ":", "p:", "@cf/no/model"]),
    body=st.binary(max_size=30)
    | st.fixed_dictionaries({}, optional={"inputs": INPUTS, "options": OPTIONS, "files": JSON}).map(
        lambda value: json.dumps(value).encode()
    ),
)
@example(path="/run?version=3", model=BGE_M3, body=b"[" * 100_000)
@example(
    path="/ai-gateway/run", model=BGE_M3, body=b'{"inputs":{"text":"a"},"options":{"gateway":{"metadata":7}}}'
)
def test_whatever_comes_is_answered_as_documented(binding, path, model, body):
    headers = {**binding.headers, "cf-consn-model-id": model}

    reply = binding.world.http.post(path, content=body, headers=headers)

    assert reply.status_code in {200, 400, 413}, reply.text
    if reply.is_success:
        assert reply.headers["content-type"] in {"application/json", "text/event-stream"}
    elif path.startswith("/to-"):
        validate(reply.json(), "binding/errors.reply")
    else:
        thrown(reply)
