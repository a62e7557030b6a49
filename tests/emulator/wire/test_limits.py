"""Rates, the day's allocation and tokens: what is refused, from where on, and every switch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from workersai_contracts import model

if TYPE_CHECKING:
    import httpx

M3, SMALL, LARGE = "@cf/baai/bge-m3", "@cf/baai/bge-small-en-v1.5", "@cf/baai/bge-large-en-v1.5"
LLAMA, SCOUT = "@cf/meta/llama-3.3-70b-instruct-fp8-fast", "@cf/meta/llama-4-scout-17b-16e-instruct"
GEMMA = "@cf/google/embeddinggemma-300m"
NOON = "2126-11-29T12:00:00Z"

RATE = (429, 3021, "AiError: rate limiting: inference request per min rate reached")
DAY = (
    429,
    4006,
    "AiError: AiError: you have used up your daily free allocation of 10,000 neurons, please upgrade to "
    "Cloudflare's Workers Paid plan if you would like to continue usage.",
)
PAID = (403, 5035, "AiError: This model requires a Workers Paid plan")


def tokens(count: int) -> str:
    """The longest text of so many estimated tokens, in which every 4.8 bytes are one."""
    return "a" * (count * 24 // 5)


def refusal(reply: httpx.Response) -> tuple[int, int, str]:
    """Status, code and message, without the request's own id."""
    told = reply.json()
    assert (told["success"], told["result"], told["messages"]) == (False, {}, [])
    (error,) = told["errors"]
    message = error["message"].removesuffix(f" ({reply.headers['cf-ai-req-id']})")
    assert "retry-after" not in reply.headers
    assert "cf-ai-neurons" not in reply.headers
    return reply.status_code, error["code"], message


def limit(world: Any, plan: str | None = None, **limits: Any) -> None:
    """Set limits of the account, whose clock stands still at noon."""
    world.control("POST", "clock", {"freeze": True, "now": NOON})
    said = {"limits": limits, **({} if plan is None else {"plan": plan})}
    reply = world.control("PATCH", "settings", said)
    assert reply.status_code == 200, reply.text


def advance(world: Any, time: str) -> None:
    assert world.control("POST", "clock", {"advance": time}).status_code == 200


def other(world: Any) -> Any:
    """Another account of the same emulator."""
    return type(world)(world.emulator, f"{int(world.id, 16) + 0xABC0000:032x}", world.http)


def statuses(world: Any, count: int, model_name: str = M3) -> list[int]:
    return [world.run({"text": "a"}, model_name).status_code for _ in range(count)]


# Requests a minute.


def test_by_default_a_minute_has_no_limit(world):
    limit(world)
    assert set(statuses(world, 20)) == {200}


def test_a_minute_has_as_many_runs_as_it_may_and_the_next_minute_again(world):
    limit(world, requests_per_minute=3)

    assert statuses(world, 3) == [200, 200, 200]
    assert refusal(world.run({"text": "a"})) == RATE
    advance(world, "59s")
    assert refusal(world.run({"text": "a"})) == RATE
    advance(world, "1s")
    assert statuses(world, 4) == [200, 200, 200, 429]


def test_a_minute_begins_where_the_clock_s_does(world):
    limit(world, requests_per_minute=1)
    advance(world, "59s")
    assert statuses(world, 2) == [200, 429]
    advance(world, "1s")
    assert statuses(world, 2) == [200, 429]


def test_submits_are_counted_with_runs_and_polls_are_not(world):
    limit(world, requests_per_minute=3)
    request_id = world.submit({"requests": [{"text": "a"}]})

    assert [world.poll(request_id).status_code for _ in range(6)] == [200] * 6
    assert statuses(world, 2) == [200, 200]
    assert refusal(world.run({"requests": [{"text": "a"}]}, query="?queueRequest=true")) == RATE
    assert world.poll(request_id).status_code == 200


def test_openai_s_routes_are_counted_too_and_listings_are_not(world):
    limit(world, requests_per_minute=1)
    url = f"/client/v4/accounts/{world.id}/ai"
    body = json.dumps({"model": M3, "input": "a"}).encode()

    listed = [world.http.get(f"{url}/models/search?per_page=1").status_code for _ in range(3)]
    replies = [world.http.post(f"{url}/v1/embeddings", content=body) for _ in range(2)]

    assert listed == [200] * 3
    assert [reply.status_code for reply in replies] == [200, 429]
    assert refusal(replies[1]) == RATE


def test_each_model_and_each_account_is_counted_apart(world):
    limit(world, requests_per_minute=1)
    neighbour = other(world)
    limit(neighbour, requests_per_minute=2)

    assert statuses(world, 2) == [200, 429]
    assert statuses(world, 2, SMALL) == [200, 429]
    assert statuses(neighbour, 3) == [200, 200, 429]


def test_what_is_refused_for_its_input_was_counted_all_the_same(world):
    limit(world, requests_per_minute=1)
    assert world.run({"text": ""}).json()["errors"][0]["code"] == 5006
    assert refusal(world.run({"text": "a"})) == RATE


def test_a_refusal_by_a_rule_counts_nothing(world):
    limit(world, requests_per_minute=1)
    world.rule({"error": 3040}, times=2)
    assert statuses(world, 4) == [429, 429, 200, 429]


def test_a_full_minute_is_told_before_the_input_s_faults(world):
    limit(world, requests_per_minute=1)
    world.run({"text": "a"})
    assert refusal(world.run({"text": ""})) == RATE


def test_documented_is_the_model_s_own_rate(world):
    limit(world, requests_per_minute="documented")
    codes = [world.run({"prompt": "a"}, LLAMA).status_code for _ in range(301)]
    assert codes == [200] * 300 + [429]


def test_a_limit_can_be_lifted_in_the_middle_of_a_minute(world):
    limit(world, requests_per_minute=1)
    assert statuses(world, 2) == [200, 429]
    limit(world, requests_per_minute=None)
    assert statuses(world, 2) == [200, 200]
    limit(world, requests_per_minute=4)
    assert statuses(world, 2) == [200, 429]


# The day's neurons.


def spend(world: Any) -> httpx.Response:
    """A run of bge-large of 512 tokens: 9.51 neurons."""
    return world.run({"text": "a" * 5000}, LARGE)


def test_by_default_a_day_has_no_limit_and_plans_refuse_nothing(world):
    limit(world)
    world.run({"text": ["a" * 3000] * 100}, LARGE)
    world.run({"text": ["a" * 3000] * 100}, LARGE)
    assert world.control("GET", "usage").json()["neurons"] > 1800
    assert world.run({"text": "a"}).status_code == 200


def test_the_run_that_crosses_the_allocation_is_answered_and_the_next_refused_until_midnight(world):
    limit(world, daily_neurons=19)
    assert [spend(world).status_code for _ in range(2)] == [200, 200]  # 19.03 neurons

    assert refusal(spend(world)) == DAY
    assert refusal(world.run({"text": "a"}, M3)) == DAY
    assert refusal(world.run({"requests": [{"text": "a"}]}, query="?queueRequest=true")) == DAY
    advance(world, "11h")
    assert refusal(world.run({"text": "a"})) == DAY
    advance(world, "1h")
    assert world.run({"text": "a"}).status_code == 200


def test_usage_says_what_is_left(world):
    limit(world, daily_neurons=19)
    spend(world)
    spent = 512 * 18582 / 1e6

    shown = world.control("GET", "usage").json()

    assert (shown["allocation"], shown["neurons"]) == (19, pytest.approx(spent))
    assert shown["left"] == pytest.approx(19 - spent)
    spend(world)
    assert world.control("GET", "usage").json()["left"] == 0


def test_a_batch_counts_when_its_result_is_read_and_polls_are_never_refused(world):
    limit(world, daily_neurons=1)
    request_id = world.submit({"requests": [{"text": "a" * 5000}]}, LARGE, "done")
    assert world.run({"text": "a"}).status_code == 200

    assert [world.poll(request_id, LARGE).status_code for _ in range(2)] == [200, 200]
    assert refusal(world.run({"text": "a"})) == DAY
    assert world.poll(request_id, LARGE).status_code == 200


def test_accounts_have_days_of_their_own(world):
    neighbour = other(world)
    for each in (world, neighbour):
        limit(each, daily_neurons=1)
    spend(world)
    assert refusal(spend(world)) == DAY
    assert spend(neighbour).status_code == 200


def test_on_the_paid_plan_the_day_has_no_end_and_is_billed(world):
    limit(world, "paid", daily_neurons=9)
    assert [spend(world).status_code for _ in range(3)] == [200] * 3
    shown = world.control("GET", "usage").json()
    beyond = 3 * 512 * 18582 / 1e6 - 9
    assert (shown["left"], shown["cost_usd"]) == (0, pytest.approx(beyond * 0.011 / 1000, abs=1e-6))


def test_documented_is_an_allocation_of_10_000(world):
    limit(world, daily_neurons="documented")
    text = {"text": ["a" * 3000] * 100}  # 512 tokens each, of which a hundred are 951.4 neurons
    assert [world.run(text, LARGE).status_code for _ in range(12)] == [200] * 11 + [429]
    assert world.control("GET", "usage").json()["allocation"] == 10_000


@pytest.fixture
def paid_only(monkeypatch):
    """A model for the paid plan alone."""
    from dataclasses import replace

    card = replace(model(GEMMA), paid_only=True)
    monkeypatch.setattr(
        "workersai_emulator.service.model", lambda name: card if name == GEMMA else model(name)
    )
    return GEMMA


@pytest.mark.parametrize(
    ("plan", "limits", "refused"),
    [
        ("free", {"daily_neurons": "documented"}, True),
        ("free", {"daily_neurons": 5}, True),
        ("free", {}, False),
        ("free", {"daily_neurons": None}, False),
        ("paid", {"daily_neurons": "documented"}, False),
    ],
    ids=str,
)
def test_a_model_of_the_paid_plan_is_refused_on_the_free_one_where_the_day_is_looked_at(
    world, paid_only, plan, limits, refused
):
    limit(world, plan, **limits)
    reply = world.run({"text": "a"}, paid_only)
    if refused:
        assert refusal(reply) == PAID
    else:
        assert reply.status_code == 200


def test_the_plan_is_looked_at_before_the_minute_and_the_minute_before_the_day(world, paid_only):
    limit(world, "free", daily_neurons=1, requests_per_minute=1)
    assert [refusal(world.run({"text": "a"}, paid_only)) for _ in range(3)] == [PAID] * 3
    spend(world)
    assert refusal(spend(world)) == RATE
    advance(world, "1m")
    assert refusal(spend(world)) == DAY


# Tokens.


def sequence(found: int, most: int) -> tuple[int, int, str]:
    return 400, 3030, f"AiError: Sequence too long: {found} > {most}"


def context(found: int, most: int) -> tuple[int, int, str]:
    told = f"AiError: AiError: Max context reached {found} tokens but model supports only {most}"
    return 400, 3030, told


def window(found: int, most: int) -> tuple[int, int, str]:
    told = f"The estimated number of input and maximum output tokens ({found}) exceeded this model context window limit"
    return 413, 5021, f"AiError: Ai: {told} ({most})."


def test_bge_m3_takes_8192_tokens_a_text(world):
    assert world.run({"text": tokens(8192)}).status_code == 200
    assert refusal(world.run({"text": tokens(8192) + "a"})) == sequence(8193, 8192)
    assert refusal(world.run({"text": ["b", tokens(9000)]})) == sequence(9000, 8192)
    assert refusal(world.run({"contexts": [{"text": "b"}, {"text": tokens(9000)}]})) == sequence(9000, 8192)
    assert refusal(world.run({"query": tokens(9000), "contexts": [{"text": "b"}]})) == sequence(9000, 8192)


@pytest.mark.parametrize("truncate", [True, False, "yes", None], ids=repr)
def test_bge_m3_cuts_a_long_text_when_it_is_told_to(world, truncate):
    reply = world.run({"text": tokens(9000), "truncate_inputs": truncate})
    assert (reply.status_code == 200) is (truncate is True)


def test_bge_m3_takes_60_000_tokens_a_call_each_text_as_long_as_the_longest(world):
    assert world.run({"text": [tokens(7500), *["b"] * 7]}).status_code == 200
    assert refusal(world.run({"text": [tokens(7500) + "a", *["b"] * 7]})) == context(8 * 7501, 60_000)
    assert refusal(world.run({"text": [tokens(7500), *["b"] * 8]})) == context(9 * 7500, 60_000)
    cut = {"text": [tokens(30_000), *["b"] * 7], "truncate_inputs": True}
    assert refusal(world.run(cut)) == context(8 * 8192, 60_000)


def test_openai_s_embeddings_have_the_same_limits(world):
    url = f"/client/v4/accounts/{world.id}/ai/v1/embeddings"

    def embed(given: Any) -> httpx.Response:
        return world.http.post(url, content=json.dumps({"model": M3, "input": given}).encode())

    assert embed([tokens(7500), *["b"] * 7]).status_code == 200
    assert refusal(embed(tokens(9000))) == sequence(9000, 8192)
    assert refusal(embed([7] * 8193)) == sequence(8193, 8192)
    assert refusal(embed([tokens(7500), *["b"] * 8])) == context(9 * 7500, 60_000)


@pytest.mark.parametrize("model_name", [SMALL, GEMMA])
def test_other_models_cut_a_long_text(world, model_name):
    most = model(model_name).max_input_tokens
    at_limit, beyond = (world.run({"text": tokens(count)}, model_name) for count in (most, 20_000))
    assert (at_limit.status_code, beyond.status_code) == (200, 200)
    counted = world.control("GET", "usage").json()["models"][model_name]["prompt_tokens"]
    assert counted == 2 * most


def test_a_text_model_s_window_holds_what_it_reads_and_may_write(world):
    def ask(prompt: str, **more: Any) -> httpx.Response:
        return world.run({"prompt": prompt, **more}, LLAMA)

    assert ask(tokens(24_000 - 256)).status_code == 200
    assert refusal(ask(tokens(24_000 - 256) + "a")) == window(24_001, 24_000)
    assert ask(tokens(20_000), max_tokens=4000).status_code == 200
    assert refusal(ask(tokens(20_000), max_tokens=4001)) == window(24_001, 24_000)
    messages = [{"role": "user", "content": tokens(12_000)}, {"role": "user", "content": tokens(12_000)}]
    assert refusal(world.run({"messages": messages}, LLAMA)) == window(24_256, 24_000)


@pytest.mark.parametrize("stream", [True, False])
def test_chat_completions_have_the_same_window(world, stream):
    messages = [{"role": "user", "content": tokens(24_000)}]
    body = {"model": LLAMA, "messages": messages, "max_completion_tokens": 10, "stream": stream}
    url = f"/client/v4/accounts/{world.id}/ai/v1/chat/completions"
    assert refusal(world.http.post(url, content=json.dumps(body).encode())) == window(24_010, 24_000)


@pytest.mark.parametrize(
    ("limits", "body", "model_name", "expected"),
    [
        ({"text_tokens": 10}, {"text": tokens(11)}, M3, sequence(11, 10)),
        ({"text_tokens": 10}, {"text": tokens(10)}, M3, None),
        ({"text_tokens": None}, {"text": tokens(9000)}, M3, None),
        ({"text_tokens": "none"}, {"text": tokens(70_000)}, M3, context(70_000, 60_000)),
        ({"text_tokens": "documented"}, {"text": tokens(9000)}, M3, sequence(9000, 8192)),
        ({"call_tokens": 10}, {"text": [tokens(4)] * 3}, M3, context(12, 10)),
        ({"call_tokens": 12}, {"text": [tokens(4)] * 3}, M3, None),
        ({"call_tokens": None}, {"text": [tokens(8000)] * 9}, M3, None),
        ({"call_tokens": "documented"}, {"text": [tokens(8000)] * 9}, M3, context(72_000, 60_000)),
        ({"context_tokens": 300}, {"prompt": tokens(45)}, LLAMA, window(301, 300)),
        ({"context_tokens": 300}, {"prompt": tokens(44)}, LLAMA, None),
        ({"context_tokens": None}, {"prompt": tokens(30_000)}, LLAMA, None),
        ({"context_tokens": "documented"}, {"prompt": tokens(24_000)}, LLAMA, window(24_256, 24_000)),
        ({"text_tokens": 1, "call_tokens": 1}, {"text": tokens(600)}, SMALL, None),
    ],
    ids=str,
)
def test_each_limit_is_a_number_or_none_or_the_documented_one(world, limits, body, model_name, expected):
    limit(world, **limits)
    reply = world.run(body, model_name)
    assert (reply.status_code, None) == (200, None) if expected is None else refusal(reply) == expected


def test_the_input_s_own_faults_are_told_before_its_tokens(world):
    reply = world.run({"text": [tokens(9000)] * 101})
    assert refusal(reply)[:2] == (400, 5006)


@pytest.mark.parametrize("query", ["?queueRequest=true", ""], ids=["queued", "at once"])
def test_an_item_of_a_batch_that_is_too_long_fails_alone_when_it_is_run(world, query):
    items = [{"text": "a"}, {"text": tokens(9000)}, {"text": [tokens(7500), *["b"] * 8]}]
    if query:
        told = world.poll(world.submit({"requests": items}, script="done")).json()["result"]
    else:
        told = world.run({"requests": items}).json()["result"]

    first, second, third = sorted(told["responses"], key=lambda item: item["id"])

    assert first["success"] is True
    assert (second["success"], second["result"]) == (False, {})
    assert second["errors"] == [{"message": "AiError: Sequence too long: 9000 > 8192", "code": 3030}]
    assert third["errors"] == [{"message": context(67_500, 60_000)[2], "code": 3030}]
    assert told["usage"] == {"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 1}


def test_items_that_look_alike_are_weighed_one_by_one(world):
    items = [{"text": tokens(count)} for count in (8192, 8193, 8192, 9000, 100)] * 10
    told = world.poll(world.submit({"requests": items}, script="done")).json()["result"]
    failed = {item["id"] for item in told["responses"] if not item["success"]}
    assert failed == {index for index in range(50) if index % 5 in {1, 3}}


def test_a_text_model_s_item_fails_alone_too(world):
    items = [{"prompt": "a"}, {"prompt": tokens(24_000)}]
    told = world.poll(world.submit({"requests": items}, LLAMA, "done"), LLAMA).json()["result"]
    good, bad = sorted(told["responses"], key=lambda item: item["id"])
    assert good["success"] is True
    assert bad["errors"] == [{"message": window(24_256, 24_000)[2], "code": 5021}]


@pytest.mark.parametrize("alternative", ["error", "status"])
def test_a_bare_body_that_is_too_long_fails_as_a_whole(world, alternative):
    world.assume(batch__failed=alternative)
    polled = world.poll(world.submit({"text": tokens(9000)}, script="done"))
    if alternative == "error":
        assert refusal(polled) == sequence(9000, 8192)
    else:
        expected = {"status": "failed", "error": "AiError: Sequence too long: 9000 > 8192"}
        assert polled.json()["result"] == expected


# The header that tells the price.


def neurons(reply: httpx.Response) -> str | None:
    assert reply.status_code == 200, reply.text
    return reply.headers.get("cf-ai-neurons")


def test_a_run_tells_its_neurons_with_two_places(world):
    assert neurons(world.run({"text": "a" * 5000}, LARGE)) == "9.51"
    assert neurons(world.run({"text": "a"})) == "0.00"
    assert neurons(world.run({"text": "a"}, GEMMA)) is None  # nobody published its rate


@pytest.mark.parametrize("count", [1, 16, 17, 300, 1000])
def test_a_batch_tells_its_neurons_once_with_its_first_finished_poll(world, count):
    request_id = world.submit({"requests": [{"text": "a" * 1000}] * count}, LARGE, "queued:1, done")

    assert neurons(world.poll(request_id, LARGE)) is None
    polled = world.poll(request_id, LARGE)

    used = polled.json()["result"]["usage"]["prompt_tokens"]
    assert used == count * 209
    assert neurons(polled) == f"{used * 18582 / 1e6:.2f}"
    assert neurons(world.poll(request_id, LARGE)) is None
    counted = world.control("GET", "usage").json()["models"][LARGE]
    assert (counted["requests"], counted["prompt_tokens"]) == (1, used)


def test_a_batch_of_more_than_a_thousand_texts_is_counted_without_telling(world):
    request_id = world.submit({"requests": [{"text": "a" * 24}] * 1001}, SMALL, "done")
    assert neurons(world.poll(request_id, SMALL)) is None
    assert world.control("GET", "usage").json()["models"][SMALL]["prompt_tokens"] == 5005


def test_failed_items_are_not_in_the_price(world):
    world.rule({"items": {"indexes": list(range(20)), "code": 5001}}, {"operation": "submit"})
    items = [{"text": "a" * 1000}] * 40
    polled = world.poll(world.submit({"requests": items}, LARGE, "done"), LARGE)
    assert neurons(polled) == f"{20 * 209 * 18582 / 1e6:.2f}"


def test_what_a_rule_answers_is_priced_by_what_was_read(world):
    world.rule({"output": {"data": []}}, {"text": "chosen"})
    items = [{"text": "chosen" + "a" * 5000}, {"text": "a" * 5000}]
    expected = 512 * 18582 / 1e6

    assert neurons(world.run(items[0], LARGE)) == f"{expected:.2f}"
    assert neurons(world.poll(world.submit(items[0], LARGE, "done"), LARGE)) == f"{expected:.2f}"
    polled = world.poll(world.submit({"requests": items * 20}, LARGE, "done"), LARGE)
    assert neurons(polled) == f"{40 * expected:.2f}"


def test_texts_are_priced_for_what_was_written_too(world):
    items = [{"prompt": "a" * 4800}] * 100
    polled = world.poll(world.submit({"requests": items}, LLAMA, "done"), LLAMA)
    usage = polled.json()["result"]["usage"]
    assert usage["completion_tokens"] > 100
    expected = (usage["prompt_tokens"] * 26668 + usage["completion_tokens"] * 204805) / 1e6
    assert neurons(polled) == f"{expected:.2f}"


def test_a_stream_and_a_refusal_tell_no_neurons(world):
    stream = world.run({"prompt": "a" * 4800, "stream": True}, LLAMA)
    assert neurons(stream) is None
    assert world.run({"text": ""}).headers.get("cf-ai-neurons") is None
