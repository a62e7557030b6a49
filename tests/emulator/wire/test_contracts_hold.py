"""Every message of the exchange, and every row of the error catalogue, is what the contracts say."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from workersai_contracts import errors, mismatches, models, validate
from workersai_emulator.validation import InputRefused, validate_input

BGE_M3 = "@cf/baai/bge-m3"

INPUTS: dict[str, list[dict[str, Any]]] = {
    "embedding": [{"text": "a"}, {"text": ["a", "b"]}],
    "reranking": [{"query": "a", "contexts": [{"text": "b"}, {"text": "a"}]}],
    "translation": [
        {"text": "a", "source_lang": "en", "target_lang": "fr"},
        {"text": "a", "target_language": "hin_Deva"},
    ],
    "response": [
        {"prompt": "a"},
        {"messages": [{"role": "user", "content": "a"}]},
        {"prompt": "a", "response_format": {"type": "json_object"}},
    ],
    "choices": [{"prompt": "a"}, {"messages": [{"role": "user", "content": "a"}]}],
    "output": [{"input": "a"}, {"input": [{"role": "user", "content": "a"}]}],
    "summary": [{"input_text": "Clouds drift. They rain."}],
    "labels": [{"text": "a good day"}, {"image": [1, 2, 3]}],
    "boxes": [{"image": [1, 2, 3]}],
    "description": [
        {"image": [1, 2, 3], "prompt": "a"},
        {"image_url": "data:image/png;base64,AAAA", "task": "caption"},
    ],
    "image": [
        {"prompt": "an orange cloud"},
        {"multipart": {"body": {}, "contentType": "multipart/form-data"}},
    ],
    "transcript": [
        {"audio": "AAAA"},
        {"audio": [1, 2, 3]},
        {"audio": {"body": {}, "contentType": "audio/wav"}},
    ],
    "speech": [{"text": "hello"}, {"prompt": "hello"}],
    "turn": [{"audio": {"body": {}, "contentType": "application/octet-stream"}, "dtype": "uint8"}],
}
OF_BGE_M3 = [
    {"contexts": [{"text": "a"}, {"text": "b"}]},
    {"query": "a", "contexts": [{"text": "a"}, {"text": "b"}]},
]


def takes(card: Any, inputs: dict[str, Any]) -> bool:
    """Whether the model takes these inputs, which another of its kind does."""
    try:
        validate_input(card, inputs)
    except InputRefused:
        return False
    return True


def runs() -> list[Any]:
    """Each model with what it takes; of those that share their schemas, the first."""
    seen: set[str] = set()
    cases = []
    for card in models().values():
        for inputs in INPUTS[card.answers] + (OF_BGE_M3 if card.name == BGE_M3 else []):
            alike = json.dumps([card.input_schema, card.output_schema, card.answers, card.queue, inputs])
            if takes(card, inputs) and alike not in seen:
                seen.add(alike)
                name = f"{card.name.rpartition('/')[2]}-{'+'.join(inputs)}"
                cases.append(pytest.param(card, inputs, id=name))
    return cases


RUNS = runs()
QUEUED = [case for case in RUNS if case.values[0].queue]


def schema_of(card: Any, inputs: dict[str, Any]) -> str:
    answers = "reranking" if "query" in inputs else card.answers
    return f"run/{answers}.reply"


#: Cards that the rest of the knowledge contradicts: JSON mode gives an object where the card has a string (Fact:
#: `poll.json-mode`), llama-4-scout is told of with the models that answer in choices (Fact: `models.choices`), and
#: moondream has null for what was not asked, which its card says in words alone (Fact: `models.outputs`).
OTHERWISE = {"@cf/meta/llama-4-scout-17b-16e-instruct", "@cf/moondream/moondream3.1-9B-A2B"}


def fits_the_card(card: Any, result: Any) -> bool:
    """Whether the result is one of the forms of the card's output schema, and has no member beyond it.

    Cards leave their forms open, so that as they stand any object fits several. A form without members is open.
    """
    forms = card.output_schema.get("oneOf", [card.output_schema])
    closed = [
        {**form, "additionalProperties": "properties" not in form}
        for form in forms
        if form.get("title") != "Queued"
    ]
    return any(Draft202012Validator(form).is_valid(result) for form in closed)


def is_told_otherwise(card: Any, inputs: dict[str, Any]) -> bool:
    as_object = card.answers == "response" and "response_format" in inputs and "guard" not in card.name
    return card.name in OTHERWISE or as_object


@pytest.mark.parametrize("result", [{"data": "x"}, {"unknown": 1}, {"request_id": "x"}], ids=str)
def test_what_is_no_output_fits_no_card_that_lists_its_members(result):
    fitting = [card.name for card in models().values() if fits_the_card(card, result)]

    open_forms = {"@cf/deepgram/flux", "@cf/openai/gpt-oss-120b", "@cf/openai/gpt-oss-20b"}
    assert set(fitting) <= open_forms


@pytest.mark.parametrize(("card", "inputs"), RUNS)
def test_run_holds_to_the_contract_and_to_the_cards_own_output_schema(world, card, inputs):
    reply = world.run(inputs, card.name)

    assert (reply.status_code, reply.headers["content-type"]) == (200, card.output_type)
    if card.output_type != "application/json":
        return
    validate(reply.json(), schema_of(card, inputs))
    assert fits_the_card(card, reply.json()["result"]) != is_told_otherwise(card, inputs)


@pytest.mark.parametrize(("card", "inputs"), QUEUED)
def test_batch_holds_to_the_contract_in_every_state_and_its_items_to_the_cards(world, card, inputs):
    body = {"requests": [inputs, {**inputs, "external_reference": "b"}]}
    validate(body, "batch/submit.request")
    submitted = world.run(body, card.name, "?queueRequest=true")
    validate(submitted.json(), "batch/submit.reply")
    request_id = submitted.json()["result"]["request_id"]
    validate({"request_id": request_id}, "batch/poll.request")

    queued, running, done = (world.poll(request_id, card.name).json() for _ in range(3))

    validate(queued, "batch/poll.pending")
    validate(running, "batch/poll.pending")
    validate(done, "batch/poll.done")
    references = {item["id"]: item["external_reference"] for item in done["result"]["responses"]}
    assert references == {0: None, 1: "b"}
    for item in done["result"]["responses"]:
        assert item["success"] is True
        validate({**done, "result": item["result"]}, schema_of(card, inputs))
        if card.output_type == "application/json":
            assert fits_the_card(card, item["result"]) != is_told_otherwise(card, inputs)


def in_a_batch(reply: Any) -> dict[str, str]:
    """What an item of a batch has in place of a file. Fact: `settled.binary-items`."""
    kind = reply.headers["content-type"].partition("/")[0]
    return {kind: base64.b64encode(reply.content).decode()}


@pytest.mark.parametrize(("card", "inputs"), RUNS)
def test_item_of_a_batch_is_the_models_synchronous_output(world, card, inputs):
    world.assume(model__queue="queued")
    reply = world.run(inputs, card.name)
    alone = reply.json()["result"] if card.output_type == "application/json" else in_a_batch(reply)

    together = world.run({"requests": [inputs]}, card.name)

    if card.queue:
        assert together.json()["result"]["responses"][0]["result"] == alone
    else:
        assert together.status_code in {200, 400}


def test_failed_items_hold_to_the_contract(world):
    requests = [{"text": "a"}, {"text": ["a"] * 101, "external_reference": 1}, {"text": ["a"] * 101}]
    request_id = world.submit({"requests": requests}, script="done")

    done = world.poll(request_id).json()

    validate(done, "batch/poll.done")
    succeeded = {item["id"]: item["success"] for item in done["result"]["responses"]}
    assert succeeded == {0: True, 1: False, 2: False}


def test_empty_and_large_batches_hold_to_the_contract(world):
    for count in (0, 1, 40):
        requests = [{"text": str(number)} for number in range(count)]
        done = world.poll(world.submit({"requests": requests}, script="done")).json()
        validate(done, "batch/poll.done")
        assert len(done["result"]["responses"]) == count


def test_alternatives_depart_from_the_contract_where_the_contract_says(world):
    world.assume(done__shape="results", done__status="completed")

    done = world.poll(world.submit({"requests": [{"text": "a"}]}, script="done")).json()

    assert {found.path for found in mismatches(done, "batch/poll.done")} == {"$.result"}


def test_messages_of_the_worker_hold_to_the_contract_live_and_demo(world):
    def ask(method: str, path: str, body: Any = None) -> Any:
        content = b"" if body is None else json.dumps(body).encode()
        return world.http.request(
            method, path, content=content, headers={"x-emulator-account": world.id}
        ).json()

    validate(ask("GET", "/"), "worker/info.reply")
    submit = {"texts": ["a", "b"]}
    validate(submit, "worker/submit.request")
    submitted = ask("POST", "/batch", submit)
    validate(submitted, "worker/submit.reply")
    for _ in range(3):
        validate(ask("GET", f"/batch/{submitted['request_id']}"), "worker/poll.reply")
    for method, path, body in (
        ("POST", "/batch", None),
        ("POST", "/batch", {}),
        ("GET", "/batch/%20", None),
        ("GET", "/batch/x", None),
    ):
        validate(ask(method, path, body), "worker/error.reply")
    world.control("PATCH", "settings", {"worker_binding": False})
    validate(ask("POST", "/batch", submit), "worker/submit.reply")
    validate(ask("GET", "/batch/x"), "worker/poll.reply")


#: What section 4 of the knowledge of the wire says of each row: status, code, and the message to the letter.
MESSAGES = {
    "route.method": (405, 7001, "GET not supported for requested URI."),
    "route.account": (
        404,
        7003,
        "Could not route to /client/v4/accounts/me/ai/run/@cf/baai/bge-m3, perhaps your object identifier is invalid?",
    ),
    "route.none": (400, 7000, "No route for that URI"),
    "auth.unknown": (401, 10000, "Authentication error"),
    "auth.forbidden": (403, 10000, "Authentication error"),
    "auth.malformed": (400, 9106, "Authentication failed (status: 400)"),
    "auth.missing": (403, 9106, "Missing X-Auth-Email header"),
    "input.text": (400, 5006, "AiError: Bad input: Error: required properties at '/' are 'text'"),
    "model.unknown": (400, 5007, "AiError: No such model: No such model @cf/baai/bge-m3 or task"),
    "model.no-queue": (400, 8007, "AiError: Ai: This model does not support request queuing"),
    "model.invalid": (400, 8001, "AiError: AiError: Invalid input"),
    "model.context": (
        400,
        3030,
        "AiError: AiError: Max context reached 135630 tokens but model supports only 60000",
    ),
    "model.sequence": (400, 3030, "AiError: Sequence too long: 30000 > 8192"),
    "batch.failed": (500, 5001, "AiError: Model execution failed"),
    "request.too-large": (413, 3006, "AiError: Request is too large"),
    "context.window": (
        413,
        5021,
        "AiError: Ai: The estimated number of input and maximum output tokens (208406) exceeded this model "
        "context window limit (65536).",
    ),
    "timeout": (408, 3046, "AiError: Request timeout"),
    "timeout.old": (408, 3007, "AiError: Request timeout"),
    "timeout.aborted": (408, 3008, "AiError: Request was aborted"),
    "quota.daily": (
        429,
        4006,
        "AiError: AiError: you have used up your daily free allocation of 10,000 neurons, please upgrade to "
        "Cloudflare's Workers Paid plan if you would like to continue usage.",
    ),
    "rate.minute": (429, 3021, "AiError: rate limiting: inference request per min rate reached"),
    "capacity": (429, 3040, "AiError: AiError: Capacity temporarily exceeded, please try again."),
    "retries": (503, 3050, "AiError: Max retries exhausted"),
    "plan.paid": (403, 5035, "AiError: This model requires a Workers Paid plan"),
    "json-mode.unmet": (400, 5024, "AiError: JSON Mode couldn't be met"),
}
STATUS_AND_CODE = {
    "model.refused": (400, 8007),
    "batch.invalid": (400, 3030),
    "data.base64": (400, 5004),
    "request.incomplete": (400, 3003),
    "quota.documented": (429, 3036),
    "account.terms": (403, 5016),
    "account.model": (403, 5018),
    "account.private": (403, 3041),
    "account.blocked": (403, 3023),
    "model.lora": (405, 5005),
    "sdk.old": (405, 5019),
    "model.name": (404, 3042),
    "finetune.files": (400, 3039),
    "model.deprecated": (410, 5028),
    "model.unprocessable": (422, 5012),
    "schema.unknown": (404, 6002),
    "poll.unknown": (400, 8007),
}
WITHOUT_THE_ID = {"rate.minute", "context.window", "model.deprecated"}
BODIES = {
    "run": ({"text": "a"}, ""),
    "submit": ({"requests": [{"text": "a"}]}, "?queueRequest=true"),
    "poll": ({"request_id": "x"}, ""),
}


def test_every_row_of_the_catalogue_is_looked_at():
    assert set(errors()) == set(MESSAGES) | set(STATUS_AND_CODE)


@pytest.mark.parametrize("operation", BODIES)
@pytest.mark.parametrize("row", errors().values(), ids=errors())
def test_every_row_fired_by_a_rule_comes_in_its_envelope(world, row, operation):
    world.rule({"error": row.id, "retry_after": 7}, {"operation": operation}, times=1)
    body, query = BODIES[operation]

    reply = world.run(body, query=query)

    status, code = MESSAGES[row.id][:2] if row.id in MESSAGES else STATUS_AND_CODE[row.id]
    told = reply.json()
    validate(told, f"envelope/{row.envelope}-error")
    assert (reply.status_code, told["errors"][0]["code"]) == (status, code)
    assert reply.headers["retry-after"] == "7"
    assert [error["code"] for error in told["errors"][1:]] == [code for code, _ in row.also]
    if row.id in MESSAGES:
        named = row.envelope == "ai" and row.id not in WITHOUT_THE_ID
        ending = f" ({reply.headers['cf-ai-req-id']})" if named else ""
        assert told["errors"][0]["message"] == MESSAGES[row.id][2] + ending


@pytest.mark.parametrize("row", errors().values(), ids=errors())
def test_every_row_can_end_a_batch(world, row):
    request_id = world.submit({"requests": [{"text": "a"}]}, script=f"failed:{row.id}")

    reply = world.poll(request_id)

    validate(reply.json(), f"envelope/{row.envelope}-error")
    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (row.status, row.code)


@pytest.mark.parametrize(
    "row", [row for row in errors().values() if row.envelope == "ai"], ids=lambda row: row.id
)
def test_every_row_comes_out_of_the_worker_as_BATCH_ERROR(world, row):
    world.rule({"error": row.id}, {"operation": "submit"})

    reply = world.http.post("/batch", content=b'{"texts":["a"]}', headers={"x-emulator-account": world.id})

    validate(reply.json(), "worker/error.reply")
    expected = {"error": f"{row.code}: {row.describe(model=BGE_M3)}", "code": "BATCH_ERROR"}
    assert (reply.status_code, reply.json()) == (502, expected)
