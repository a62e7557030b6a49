"""Which tokens pass, for which account, and for what."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from workersai_emulator import Emulator
from workersai_emulator.api_tokens import Token, credentials

if TYPE_CHECKING:
    import httpx

MINE, YOURS = "a" * 32, "b" * 32
RUN = json.dumps({"text": "a"}).encode()
PASSED = (200, None)
UNKNOWN, FORBIDDEN = (401, 10000), (403, 10000)


def outcome(reply: httpx.Response) -> tuple[int, int | None]:
    """Status and code; a refusal must be the router's, without a word of Workers AI."""
    if reply.status_code == 200:
        return PASSED
    told = reply.json()
    assert told == {"result": None, "success": False, "errors": told["errors"], "messages": []}
    assert "cf-ai-req-id" not in reply.headers
    (error,) = told["errors"]
    if error["code"] == 10000:
        assert error["message"] == "Authentication error"
    return reply.status_code, error["code"]


def run(world: Any, token: str, account_id: str = MINE) -> tuple[int, int | None]:
    url = f"/client/v4/accounts/{account_id}/ai/run/@cf/baai/bge-m3"
    return outcome(world.http.post(url, content=RUN, headers={"authorization": f"Bearer {token}"}))


def test_a_token_of_one_account_is_forbidden_in_another_and_an_unknown_one_unknown(world_of):
    world = world_of(tokens=[f"mine@{MINE}", "everywhere"])
    assert run(world, "mine") == PASSED
    assert run(world, "mine", YOURS) == FORBIDDEN
    assert [run(world, "everywhere", account) for account in (MINE, YOURS)] == [PASSED, PASSED]
    assert [run(world, token) for token in ("yours", f"mine@{MINE}", "Mine")] == [UNKNOWN] * 3


def test_a_token_can_be_for_several_accounts(world_of):
    world = world_of(tokens=[f"ours@{MINE}", f"ours:read@{YOURS}"])
    assert [run(world, "ours", account) for account in (MINE, YOURS, "c" * 32)] == [PASSED, PASSED, FORBIDDEN]


def test_a_key_with_its_email_is_held_to_the_same(world_of):
    world = world_of(tokens=[f"mine@{MINE}"])
    del world.http.headers["authorization"]
    headers = {"x-auth-email": "a@b.c", "x-auth-key": "mine"}
    paths = [f"/client/v4/accounts/{account}/ai/run/@cf/baai/bge-m3" for account in (MINE, YOURS)]
    replies = [world.http.post(path, content=RUN, headers=headers) for path in paths]
    assert list(map(outcome, replies)) == [PASSED, FORBIDDEN]


@pytest.mark.parametrize(
    ("permission", "expected"),
    [(":read", PASSED), (":edit", PASSED), ("", PASSED), (":none", UNKNOWN)],
    ids=["read", "edit", "unsaid", "none"],
)
def test_to_read_is_to_run_submit_poll_and_list(world_of, permission, expected):
    world = world_of(tokens=[f"t{permission}"])
    headers = {"authorization": "Bearer t"}
    ai = f"/client/v4/accounts/{MINE}/ai"
    requests = json.dumps({"requests": [{"text": "a"}]}).encode()

    replies = [
        world.http.post(f"{ai}/run/@cf/baai/bge-m3", content=RUN, headers=headers),
        world.http.post(f"{ai}/run/@cf/baai/bge-m3?queueRequest=true", content=requests, headers=headers),
        world.http.get(f"{ai}/models/search?per_page=1", headers=headers),
        world.http.get(f"{ai}/finetunes", headers=headers),
        world.http.post(
            f"{ai}/v1/embeddings", content=b'{"model":"@cf/baai/bge-m3","input":"a"}', headers=headers
        ),
    ]

    assert list(map(outcome, replies)) == [expected] * 5
    if expected == PASSED:
        poll = {"request_id": replies[1].json()["result"]["request_id"]}
        polled = world.http.post(f"{ai}/run/@cf/baai/bge-m3", json=poll, headers=headers)
        assert polled.json()["result"]["status"] == "queued"


@pytest.mark.parametrize(
    ("token", "expected"),
    [("t:read", FORBIDDEN), ("t:edit", (405, 7001)), ("t", (405, 7001)), ("t:none", UNKNOWN)],
)
def test_only_who_may_edit_gets_as_far_as_creating_a_fine_tune(world_of, token, expected):
    world = world_of(tokens=[token])
    url = f"/client/v4/accounts/{MINE}/ai/finetunes"
    headers = {"authorization": "Bearer t"}
    assert outcome(world.http.post(url, content=b"{}", headers=headers)) == expected


def test_the_most_that_a_token_may_is_what_counts(world_of):
    world = world_of(tokens=["t:read", f"t:edit@{MINE}", f"t:none@{YOURS}"])
    url = "/client/v4/accounts/{}/ai/finetunes"
    headers = {"authorization": "Bearer t"}
    replies = [
        world.http.post(url.format(account), content=b"{}", headers=headers) for account in (MINE, YOURS)
    ]
    assert list(map(outcome, replies)) == [(405, 7001), FORBIDDEN]
    assert run(world, "t", YOURS) == PASSED


def test_a_forbidden_account_is_not_made_by_asking(world_of):
    world = world_of(tokens=[f"mine@{MINE}"])
    assert run(world, "mine", YOURS) == FORBIDDEN
    assert world.emulator.account(YOURS).requests.list() == []


def test_without_tokens_any_passes(world):
    assert run(world, "whatever") == PASSED


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("t", Token("t", "edit", None)),
        ("t:read", Token("t", "read", None)),
        ("t:edit", Token("t", "edit", None)),
        ("t:none", Token("t", "none", None)),
        (f"t@{MINE}", Token("t", "edit", MINE)),
        (f"t:read@{MINE}", Token("t", "read", MINE)),
        ("a:b@c:edit", Token("a:b@c", "edit", None)),
        (f"a:b@c:read@{MINE}", Token("a:b@c", "read", MINE)),
        ("t:read:edit", Token("t:read", "edit", None)),
        (f"t@{YOURS}:read@{MINE}", Token(f"t@{YOURS}", "read", MINE)),
    ],
)
def test_how_a_token_is_spelled(text, token):
    assert Token.parse(text) == token


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":x",
        "t:raed",
        "t:Read",
        "t@abc",
        f"t@{MINE.upper()}",
        "a:b",
        f"a:b@{MINE}",
        "two words",
        "č",
        "t\n",
    ],
)
def test_what_is_no_token_is_refused_without_repeating_it(text):
    with pytest.raises(ValueError, match=r"^a token ") as refused:
        Token.parse(text)
    assert "\n" not in str(refused.value)
    assert len(text) < 2 or text not in str(refused.value)


def test_a_token_is_not_shown():
    assert "sesame" not in repr(Token.parse("sesame:read"))


@pytest.mark.parametrize(
    ("spelled", "account_id", "token"),
    [
        (["b", "a"], None, "a"),
        (["a:none", "b"], None, "b"),
        ([f"a@{MINE}"], MINE, "a"),
        (["a:none"], None, "a"),
        ([], None, "emulator"),
    ],
)
def test_an_emulator_s_own_account_and_token_are_ones_that_it_takes(spelled, account_id, token):
    emulator = Emulator(tokens=spelled)
    assert emulator.token == token
    assert emulator.account_id == (account_id or Emulator().account_id)
    assert credentials(tuple(map(Token.parse, spelled))) == (emulator.account_id, token)
