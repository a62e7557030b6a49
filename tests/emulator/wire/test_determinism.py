"""Same seed, same requests: the same bytes, headers included. The date is the machine's."""

from __future__ import annotations

import json
from typing import Any

from workersai_emulator.emulator import Emulator

ACCOUNT = "0123456789abcdef0123456789abcdef"
OTHER = "f" * 32
LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
BGE_M3 = "@cf/baai/bge-m3"
POLLS = "{request_id}"

Reply = tuple[int, list[tuple[bytes, bytes]], bytes]


def target(model: str = BGE_M3, query: str = "", account: str = ACCOUNT) -> str:
    return f"/client/v4/accounts/{account}/ai/run/{model}{query}"


def batch(count: int) -> dict[str, Any]:
    return {"requests": [{"text": f"text {place}", "external_reference": place} for place in range(count)]}


FROZEN = {"now": "2100-01-01T00:00:00Z", "freeze": True}
REQUESTS: list[tuple[str, str, Any]] = [
    ("POST", "/__emulator__/clock", FROZEN),
    ("GET", "/__emulator__/health", None),
    ("POST", target(), {"text": ["a", "b"]}),
    ("POST", target(), {}),
    ("POST", target(LLAMA), {"prompt": "tell me a story", "max_tokens": 40}),
    ("POST", target(LLAMA), {"prompt": "a", "response_format": {"type": "json_object"}}),
    ("POST", target("@cf/meta/m2m100-1.2b"), {"text": "good day", "target_lang": "fr"}),
    ("GET", target(), None),
    ("POST", "/nowhere", None),
    ("POST", target(query="?queueRequest=true"), batch(12)),
    *[("POST", target(), {"request_id": POLLS})] * 4,
    ("POST", target(query="?queueRequest=true"), batch(100)),
    *[("POST", target(), {"request_id": POLLS})] * 4,
    ("POST", target(), batch(30)),
    ("POST", target(query="?queueRequest=true", account=OTHER), batch(3)),
    ("POST", target(account=OTHER), {"request_id": POLLS}),
    (
        "POST",
        "/__emulator__/rules",
        {"match": {"operation": "run"}, "effect": {"error": 3040}, "probability": 0.5},
    ),
    *[("POST", target(), {"text": str(number)}) for number in range(30)],
    ("POST", "/batch", {"texts": ["a", "b"]}),
    ("PATCH", "/__emulator__/settings", {"worker_binding": False}),
    ("POST", "/batch", {"texts": ["a", "b"]}),
    ("POST", "/batch", {"texts": ["a", "b"]}),
    ("GET", "/batch/x", None),
    ("GET", "/__emulator__/batches", None),
    ("GET", "/__emulator__/rules", None),
]


def transcript(world_of: Any, seed: int) -> list[Reply]:
    """What a new emulator replies to the requests, polls with the id of the last submit."""
    http = world_of(seed=seed).http
    http.headers["authorization"] = "Bearer t"
    replies, request_id = [], ""
    for method, path, body in REQUESTS:
        content = (
            b"" if body is None else json.dumps(body).encode().replace(POLLS.encode(), request_id.encode())
        )
        reply = http.request(method, path, content=content)
        if "queueRequest" in path:
            request_id = reply.json()["result"]["request_id"]
        headers = [(name, value) for name, value in reply.headers.raw if name.lower() != b"date"]
        replies.append((reply.status_code, headers, reply.content))
    return replies


def test_same_seed_and_requests_give_the_same_bytes_on_two_runs(world_of):
    first, second = transcript(world_of, 7), transcript(world_of, 7)

    for one, other, asked in zip(first, second, REQUESTS, strict=True):
        assert one == other, asked
    assert {status for status, _, _ in first} == {200, 400, 405, 429}


def test_another_seed_gives_other_ids_orders_and_chances_but_the_same_vectors(world_of):
    first, second = transcript(world_of, 7), transcript(world_of, 8)

    place = [asked[1] for asked in REQUESTS].index(target(query="?queueRequest=true"))
    one, other = json.loads(first[place][2]), json.loads(second[place][2])
    assert one["result"]["request_id"] != other["result"]["request_id"]
    one, other = json.loads(first[place + 3][2])["result"], json.loads(second[place + 3][2])["result"]
    order, other_order = ([item["id"] for item in result["responses"]] for result in (one, other))
    assert order != other_order
    by_id, other_by_id = (
        {item["id"]: item["result"] for item in result["responses"]} for result in (one, other)
    )
    assert by_id == other_by_id
    assert [status for status, _, _ in first] != [status for status, _, _ in second]
    assert dict(first[2][1])[b"cf-ai-req-id"] != dict(second[2][1])[b"cf-ai-req-id"]
    assert first[2][2] == second[2][2]


def test_accounts_do_not_change_each_others_replies(world_of):
    """Whatever others do in between, an account's own replies are the same, `cf-ray` apart."""
    quiet, busy = world_of(seed=7), world_of(seed=7)

    def own(world: Any, noise: bool) -> list[bytes]:
        bodies = []
        for demo in (False, True):
            world.http.patch(
                f"/__emulator__/settings?account_id={OTHER}", content=json.dumps({"worker_binding": not demo})
            )
            for _ in range(3):
                if noise:
                    world.http.post(
                        "/batch", content=b'{"texts":["z"]}', headers={"x-emulator-account": ACCOUNT}
                    )
                    world.http.post(target(query="?queueRequest=true"), content=b'{"text":"z"}')
                headers = {"x-emulator-account": OTHER}
                bodies.append(world.http.post("/batch", content=b'{"texts":["a"]}', headers=headers).content)
                reply = world.http.post(target(account=OTHER), content=b"{}")
                bodies += [reply.content, reply.headers["cf-ai-req-id"].encode()]
        return bodies

    assert own(quiet, noise=False) == own(busy, noise=True)


def test_account_that_is_reset_starts_over(world_of):
    world = world_of(seed=7)

    def once() -> list[bytes]:
        run = world.http.post(target(), content=b"{}").content
        submit = world.http.post(target(query="?queueRequest=true"), content=b'{"text":"a"}').content
        world.http.post(f"/__emulator__/reset?account_id={ACCOUNT}")
        return [run, submit]

    assert once() == once()


def test_emulator_without_a_seed_draws_one():
    assert Emulator().seed != Emulator().seed
