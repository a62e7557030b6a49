"""A remote binding's requests, as Miniflare and wrangler carry them to another address."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from workersai_emulator.api_tokens import Token

BGE_M3 = "@cf/baai/bge-m3"
LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
RUN = "https://workers-binding.ai/run?version=3"
RPC = "the AI binding is served over HTTP here; calls over RPC, such as aiSearch(), are not emulated"


@pytest.fixture
def carry(world):
    """Send what a binding would send to `url` in the way of Miniflare 4 and 5."""

    def send(
        inputs: Any = None,
        options: dict[str, Any] | None = None,
        url: str = RUN,
        method: str = "POST",
        path: str = "/",
        **headers: str,
    ) -> httpx.Response:
        carried = {
            "MF-Binding": "AI",
            "MF-URL": url,
            "MF-Header-cf-consn-model-id": BGE_M3,
            "MF-Header-content-type": "application/json",
            "MF-Header-x-emulator-account": world.id,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        body = None if inputs is None else json.dumps({"inputs": inputs, "options": options or {}}).encode()
        return world.http.request(method, path, content=body, headers=carried)

    return send


def test_submit_and_polls_are_the_binding_s(world, carry):
    submitted = carry({"requests": [{"text": "a"}]}, {"queueRequest": True})
    request_id = submitted.json()["request_id"]
    polls = [carry({"request_id": request_id}) for _ in range(3)]

    assert submitted.json() == {"status": "queued", "model": BGE_M3, "request_id": request_id}
    assert [poll.json().get("status") for poll in polls] == ["queued", "running", None]
    assert list(polls[2].json()) == ["responses", "usage"]
    assert {reply.headers["content-type"] for reply in (submitted, *polls)} == {"application/json"}
    told = world.control("GET", "requests").json()["requests"]
    assert [(one["dialect"], one["operation"], one["path"]) for one in told] == [
        ("binding", "submit", "/run"),
        *[("binding", "poll", "/run")] * 3,
    ]


def test_headers_of_the_binding_go_before_those_of_the_carrier(world, other_world, carry):
    carry({"text": "a"}, x_emulator_account=other_world.id, cf_consn_model_id="@cf/no/model")

    (exchange,) = world.control("GET", "requests").json()["requests"]
    assert (exchange["status"], exchange["model"]) == (200, BGE_M3)
    assert other_world.control("GET", "requests").json() == {"requests": []}


@pytest.mark.parametrize("prefix", ["MF-Header-", "mf-header-", ""])
def test_scripts_and_scenarios_work_from_either(carry, prefix):
    reply = carry({"text": "a"}, **{f"{prefix}x-emulator-scenario": "daily-limit"})

    assert reply.json()["internalCode"] == 4006


def test_error_and_stream_are_the_binding_s(carry):
    refused = carry({})
    streamed = carry({"prompt": "hi", "stream": True}, **{"MF-Header-cf-consn-model-id": LLAMA})

    assert list(refused.json())[:3] == ["name", "internalCode", "httpCode"]
    assert refused.headers["cf-ai-req-id"] == refused.json()["requestId"]
    assert streamed.headers["content-type"] == "text/event-stream"
    assert streamed.text.endswith("data: [DONE]\n\n")


def test_connection_string_may_have_a_path(carry):
    assert carry({"text": "a"}, path="/some/where").status_code == 200


def test_models_gateway_and_markdown_come_the_same_way(world, carry):
    models = carry(url="https://workers-binding.ai/ai-api/models/search?per_page=2", method="GET")
    run = carry(
        {"text": "a"}, {"gateway": {"id": "gw"}}, "https://workers-binding.ai/ai-gateway/run?version=3"
    )
    log = carry(
        url=f"https://workers-binding.ai/ai-gateway/gateways/gw/logs/{run.headers['cf-aig-log-id']}",
        method="GET",
    )
    supported = carry(url="https://workers-binding.ai/to-everything/markdown/supported", method="GET")

    assert len(models.json()["result"]) == 2
    assert log.json()["result"]["model"] == BGE_M3
    assert supported.json()["success"] is True


@pytest.mark.parametrize(
    "url",
    [
        "https://workers-binding.ai/__emulator__/reset",
        "https://workers-binding.ai/client/v4/x",
        "/",
        "",
        "http://[",
    ],
)
def test_nothing_but_the_binding_s_paths_can_be_carried(world, carry, url):
    before = world.control("GET", "settings").content

    reply = carry({"text": "a"}, url=url)

    assert reply.status_code == 400
    assert world.control("GET", "settings").content == before


def test_socket_for_rpc_is_refused_at_once(world, converse, read):
    asked = (
        "GET /?MF-Binding=AI HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )

    (answer,) = read(converse(asked.encode(), once=True))

    assert answer.status == 501
    assert json.loads(answer.body) == {"error": RPC}


def test_root_without_a_socket_is_the_worker_s(world):
    assert world.http.get("/?MF-Binding=AI").json()["name"] == "ai-batch-infer"


def test_other_site_s_page_carries_nothing(carry):
    assert carry({"text": "a"}, Origin="https://evil.example").status_code == 403


@pytest.fixture
def carry_old(world):
    """The same in the way of wrangler up to 4.44."""

    def send(world: Any = world, account: str | None = None, **more: Any) -> httpx.Response:
        headers = {
            "X-Forwarded": RUN,
            "cf-consn-model-id": BGE_M3,
            "content-type": "application/json",
            "authorization": "Bearer dummy",
            **more.pop("headers", {}),
        }
        path = f"/client/v4/accounts/{account or world.id}/ai/run/proxy"
        body = json.dumps({"inputs": {"text": "a"}, "options": {}}).encode()
        headers = {name: value for name, value in headers.items() if value is not None}
        return httpx.request(
            more.pop("method", "POST"), world.emulator.url + path, content=body, headers=headers
        )

    return send


def test_old_way_takes_the_account_from_the_path(world, carry_old):
    reply = carry_old()

    assert (reply.status_code, list(reply.json())) == (200, ["shape", "data", "pooling"])
    (exchange,) = world.control("GET", "requests").json()["requests"]
    assert (exchange["dialect"], exchange["path"]) == ("binding", "/run")


def test_old_way_may_name_another_account(world, other_world, carry_old):
    carry_old(headers={"x-emulator-account": other_world.id})

    assert len(other_world.control("GET", "requests").json()["requests"]) == 1


def test_old_way_lists_models_too(carry_old):
    headers = {"X-Forwarded": "https://workers-binding.ai/ai-api/models/search?per_page=1"}

    assert len(carry_old(headers=headers, method="GET").json()["result"]) == 1


@pytest.mark.parametrize(
    ("authorization", "status", "code"),
    [(None, 403, 9106), ("Basic x", 400, 9106), ("Bearer other", 401, 10000), ("Bearer known", 200, None)],
)
def test_old_way_asks_for_credentials_as_REST_does(world_of, carry_old, authorization, status, code):
    world = world_of(tokens=frozenset({Token.parse("known")}))

    reply = carry_old(world, headers={"authorization": authorization})

    assert reply.status_code == status
    if code is not None:
        assert reply.json()["errors"][0]["code"] == code


def test_old_way_wants_an_account(carry_old):
    reply = carry_old(account="mine")

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (404, 7003)


def test_without_X_Forwarded_the_old_path_is_REST_s(carry_old):
    reply = carry_old(headers={"X-Forwarded": None})

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (400, 7000)
