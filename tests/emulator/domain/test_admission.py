from __future__ import annotations

from typing import Any

import pytest

from workersai_contracts import ModelCard, model, models
from workersai_emulator.admission import Admitted, admit, check_input
from workersai_emulator.refusals import Refused
from workersai_emulator.settings import Settings

M3 = "@cf/baai/bge-m3"
SMALL = "@cf/baai/bge-small-en-v1.5"
SCOUT = "@cf/meta/llama-4-scout-17b-16e-instruct"
GPT_OSS = "@cf/openai/gpt-oss-120b"
QWEN_EMBEDDING = "@cf/qwen/qwen3-embedding-0.6b"
M2M = "@cf/meta/m2m100-1.2b"


def card(name: str) -> ModelCard:
    found = model(name)
    assert found is not None
    return found


def admitted(name: str, inputs: object, **assumed: str) -> Admitted:
    return admit(card(name), inputs, Settings().assume(assumed))


def refusal(name: str, inputs: object, **assumed: str) -> tuple[int, str]:
    with pytest.raises(Refused) as refused:
        admitted(name, inputs, **assumed)
    return refused.value.row.code, refused.value.description


@pytest.mark.parametrize(
    ("name", "item"),
    [
        (M3, {"text": "a"}),
        (M3, {"query": "a", "contexts": [{"text": "b"}]}),
        (SMALL, {"text": ["a", "b"], "pooling": "cls"}),
        (M2M, {"text": "a", "target_lang": "fr"}),
        (SCOUT, {"prompt": "a"}),
        (SCOUT, {"messages": [{"role": "user", "content": "a"}]}),
        (GPT_OSS, {"input": "a"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "+".join(value),
)
@pytest.mark.parametrize("moment", ["by-task", "submit", "run"])
def test_good_items_get_in_whenever_they_are_validated(name: str, item: dict[str, Any], moment: str) -> None:
    inputs = {"requests": [item, {**item, "external_reference": "r"}]}
    assert admitted(name, inputs, **{"submit.validation": moment}) == Admitted("requests", 2)


def test_bad_item_of_an_embedding_model_is_refused_at_submit_and_named() -> None:
    code, words = refusal(SMALL, {"requests": [{"text": "a"}, {}]})
    assert code == 5006
    assert words.startswith("Error: oneOf at '/' not met, 0 matches: ")
    assert "required properties at '/requests/1' are 'text'" in words


def test_bad_item_of_a_text_model_gets_in_and_its_run_fails() -> None:
    assert admitted(SCOUT, {"requests": [{"prompt": "a"}, {"prompt": 5}]}) == Admitted(
        "requests", 2, runs=False
    )


def test_messages_for_gpt_oss_are_refused_at_submit() -> None:
    code, words = refusal(GPT_OSS, {"requests": [{"messages": [{"role": "user", "content": "a"}]}]})
    assert code == 5006
    assert "oneOf" in words


@pytest.mark.parametrize(
    ("moment", "name", "runs"),
    [
        ("by-task", SMALL, None),
        ("by-task", SCOUT, False),
        ("submit", SMALL, None),
        ("submit", SCOUT, None),
        ("run", SMALL, False),
        ("run", SCOUT, False),
    ],
)
def test_moment_of_validation_is_a_choice(moment: str, name: str, runs: bool | None) -> None:
    inputs = {"requests": [{"prompt": 5}]}
    if runs is None:
        assert refusal(name, inputs, **{"submit.validation": moment})[0] == 5006
    else:
        assert admitted(name, inputs, **{"submit.validation": moment}) == Admitted("requests", 1, runs=runs)


def test_model_whose_queue_is_open_is_validated_item_by_item_once_it_queues() -> None:
    gemma, good = "@cf/google/embeddinggemma-300m", {"text": "a"}
    assert admitted(gemma, {"requests": [good, good]}, **{"model.queue": "queued"}) == Admitted("requests", 2)
    code, words = refusal(gemma, {"requests": [good, {}]}, **{"model.queue": "queued"})
    assert (code, words) == (5006, "Error: required properties at '/' are 'text'")
    assert refusal(gemma, {"requests": [good]})[0] == 5006


@pytest.mark.parametrize("name", [M3, SMALL, SCOUT, GPT_OSS])
def test_empty_list_is_accepted_and_has_no_items(name: str) -> None:
    assert admitted(name, {"requests": []}) == Admitted("requests", 0)


@pytest.mark.parametrize("name", [M3, SMALL, SCOUT, GPT_OSS])
@pytest.mark.parametrize("moment", ["by-task", "submit", "run"])
def test_empty_list_can_be_refused(name: str, moment: str) -> None:
    assumed = {"submit.empty": "refused", "submit.validation": moment}
    assert refusal(name, {"requests": []}, **assumed) == (
        5006,
        "Error: Length of '/requests' must be >= 1 not met",
    )


@pytest.mark.parametrize(
    ("name", "inputs", "runs"),
    [
        (M3, {"text": "a"}, True),
        (M2M, {"text": "a", "target_lang": "fr"}, True),
        (SCOUT, {"prompt": "a"}, False),
        (SCOUT, {"prompt": 5}, False),
        (GPT_OSS, {"input": "a"}, False),
    ],
)
def test_bare_body_is_queued_and_runs_except_on_text_models(name: str, inputs: Any, runs: bool) -> None:
    assert admitted(name, inputs) == Admitted("bare", 1, runs=runs)


@pytest.mark.parametrize(("name", "inputs"), [(M3, {"text": ""}), (M3, {}), (GPT_OSS, {"foo": 1})], ids=str)
def test_bad_bare_body_is_refused_where_items_are_validated_at_submit(name: str, inputs: Any) -> None:
    assert refusal(name, inputs)[0] == 5006
    assert admitted(name, inputs, **{"submit.validation": "run"}) == Admitted("bare", 1, runs=False)


#: A model of each input schema, since cards of one form share theirs, and of each answer to whether it queues.
OF_EACH_SCHEMA = sorted(
    {(id(card.input_schema), card.queue): name for name, card in models().items()}.values()
)


@pytest.mark.parametrize("name", OF_EACH_SCHEMA)
@pytest.mark.parametrize("inputs", [None, 5, "a", [], [1], True], ids=repr)
def test_what_is_no_object_is_refused_by_every_model(name: str, inputs: object) -> None:
    code, words = refusal(name, inputs)
    assert code == 5006
    assert words.startswith("Error: ")
    assert len(words) > len("Error: ")


@pytest.mark.parametrize("name", [name for name in OF_EACH_SCHEMA if models()[name].queue is not False])
@pytest.mark.parametrize("requests", [None, 5, "ab", {}, {"0": {"text": "a"}}, True], ids=repr)
@pytest.mark.parametrize("moment", ["by-task", "submit", "run"])
def test_requests_that_are_no_list_never_run(name: str, requests: object, moment: str) -> None:
    try:
        result = admitted(name, {"requests": requests}, **{"submit.validation": moment})
    except Refused as refused:
        runs, code = False, refused.row.code
    else:
        runs, code = result.runs, 5006
    assert (runs, code) == (False, 5006)


@pytest.mark.parametrize(
    ("name", "key", "most"),
    [
        (M3, "text", 100),
        (SMALL, "text", 100),
        (QWEN_EMBEDDING, "documents", 32),
        (QWEN_EMBEDDING, "queries", 32),
    ],
)
def test_one_call_takes_so_many_texts_and_no_more(name: str, key: str, most: int) -> None:
    check_input(card(name), {key: ["a"] * most}, Settings())
    too_many = {key: ["a"] * (most + 1)}
    with pytest.raises(Refused) as refused:
        check_input(card(name), too_many, Settings())
    assert refused.value.row.id == "input.text"
    assert refused.value.description == f"Error: Length of '/{key}' must be <= {most} not met"
    check_input(card(name), too_many, Settings().assume({"texts.over-100": "accepted"}))


def test_bare_body_is_one_call_and_takes_no_more_texts_than_one() -> None:
    assert refusal(M3, {"text": ["a"] * 101})[0] == 5006
    assert admitted(M3, {"text": ["a"] * 101}, **{"texts.over-100": "accepted"}).runs


def test_batch_has_as_many_items_as_one_likes() -> None:
    assert admitted(M3, {"requests": [{"text": "a"}] * 5000}) == Admitted("requests", 5000)
