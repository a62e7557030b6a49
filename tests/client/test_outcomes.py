from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workersai_client import (
    AuthenticationError,
    BatchFailed,
    Done,
    Handle,
    InvalidRequest,
    Item,
    ItemError,
    Pending,
    QuotaExceeded,
    RateLimited,
    ServerError,
    UnexpectedReply,
    Usage,
    WorkersAIError,
)
from workersai_client.outcomes import looked_at, submitted
from workersai_client.wire import Reply

HANDLE = Handle("0" * 32, "@cf/baai/bge-m3", "an-id")


def success(result: Any, status: int = 200) -> Reply:
    body = {"result": result, "success": True, "errors": [], "messages": []}
    return Reply(status, {"cf-ai-req-id": "quoted"}, json.dumps(body).encode())


def refusal(status: int, code: int | None) -> Reply:
    errors = [{"message": "the text", "code": code}]
    body = {"errors": errors, "success": False, "result": {}, "messages": []}
    return Reply(status, {"cf-ai-req-id": "quoted"}, json.dumps(body).encode())


def item(number: Any, **more: Any) -> dict[str, Any]:
    return {"id": number, "result": {"n": number}, "success": True, "external_reference": None} | more


def unexpected(result: Any, handle: Handle = HANDLE) -> UnexpectedReply:
    with pytest.raises(UnexpectedReply) as raised:
        looked_at(success(result), handle)
    assert raised.value.body == result
    assert raised.value.cf_request_id == "quoted"
    return raised.value


@pytest.mark.parametrize("status", [200, 202])
def test_a_submit_gives_a_handle_that_knows_its_items(status: int) -> None:
    result = {"status": "queued", "request_id": "an-id", "model": "@cf/baai/bge-m3"}
    handle = submitted(success(result, status), "0" * 32, "@cf/baai/bge-m3", 3)
    assert handle == HANDLE
    assert handle.items == 3


@pytest.mark.parametrize(
    ("result", "path"),
    [
        ({"responses": [], "usage": {}}, "/result/request_id"),
        ({"status": "queued", "request_id": ""}, "/result/request_id"),
        ({"status": "queued", "request_id": 7}, "/result/request_id"),
        ("queued", "/result"),
    ],
    ids=["ran at once", "empty id", "number", "no object"],
)
def test_a_submit_that_queued_nothing_is_noticed(result: Any, path: str) -> None:
    with pytest.raises(UnexpectedReply, match="nothing was queued") as raised:
        submitted(success(result), "0" * 32, "@cf/baai/bge-m3", 3)
    assert raised.value.path == path


@pytest.mark.parametrize("status", ["queued", "running"])
@pytest.mark.parametrize(
    "more", [{"request_id": "an-id"}, {}, {"responses": None}], ids=["id", "bare", "null"]
)
def test_a_batch_is_pending_when_it_says_so(status: str, more: dict[str, Any]) -> None:
    assert looked_at(success({"status": status, **more}), HANDLE) == Pending(status)


@pytest.mark.parametrize(
    "status", ["completed", "done", "processing", "Queued", "", None, 1, [], {"queued": 1}]
)
def test_a_status_that_is_not_known_is_never_waited_on(status: Any) -> None:
    assert unexpected({"status": status, "request_id": "an-id"}).path == "/result/status"


@pytest.mark.parametrize(
    "result", [{}, {"shape": [1, 2], "data": [[1, 2]]}, {"responses": None}], ids=["empty", "bare", "null"]
)
def test_neither_pending_nor_done_is_unexpected(result: Any) -> None:
    assert unexpected(result).path == "/result"


@pytest.mark.parametrize("result", [None, [], "queued", 3])
def test_a_poll_s_result_is_an_object(result: Any) -> None:
    assert unexpected(result).path == "/result"


def test_a_pending_reply_about_another_batch_is_unexpected() -> None:
    assert unexpected({"status": "queued", "request_id": "other"}).path == "/result/request_id"


def test_a_pending_batch_has_no_answers() -> None:
    assert unexpected({"status": "running", "responses": [item(0)]}).path == "/result/status"


def test_items_are_sorted_by_id_whatever_their_order() -> None:
    usage = {"prompt_tokens": 12, "completion_tokens": 0, "total_tokens": 12}
    done = looked_at(success({"responses": [item(2), item(0), item(1)], "usage": usage}), HANDLE)
    assert done == Done(
        (Item(0, True, {"n": 0}), Item(1, True, {"n": 1}), Item(2, True, {"n": 2})), Usage(12, 0, 12)
    )


@given(st.permutations(range(12)))
def test_every_item_keeps_its_own_answer(order: list[int]) -> None:
    done = looked_at(success({"responses": [item(number) for number in order]}), HANDLE)
    assert isinstance(done, Done)
    assert [(answer.id, answer.result) for answer in done.items] == [(n, {"n": n}) for n in range(12)]


def test_the_other_shape_of_a_finished_batch_is_read_too() -> None:
    entries = [{"index": 1, "result": "b", "success": True}, {"index": 0, "result": "a", "success": True}]
    done = looked_at(success({"results": entries, "status": "completed"}), HANDLE)
    assert done == Done((Item(0, True, "a"), Item(1, True, "b")))


def test_an_empty_batch_is_done() -> None:
    assert looked_at(success({"responses": []}), HANDLE) == Done(())


@pytest.mark.parametrize("reference", [None, 0, "ref", ["a", {"b": 1.5}], {"deep": [None]}])
def test_an_external_reference_of_any_kind_comes_back(reference: Any) -> None:
    done = looked_at(success({"responses": [item(0, external_reference=reference)]}), HANDLE)
    assert isinstance(done, Done)
    assert done.items[0].external_reference == reference


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        (
            {"success": False, "errors": [{"message": "AiError: no", "code": 3030}]},
            ItemError("AiError: no", 3030),
        ),
        ({"success": False, "error": "AiError: no"}, ItemError("AiError: no")),
        ({"success": False, "error": {"message": "no", "code": 3040}}, ItemError("no", 3040)),
        ({"error": "AiError: no"}, ItemError("AiError: no")),
        ({"success": False}, ItemError("no reason given")),
    ],
    ids=["errors", "error", "object", "no success", "no reason"],
)
def test_a_failed_item_is_an_item(entry: dict[str, Any], error: ItemError) -> None:
    entries = [item(1), {"id": 0, "result": {}, "external_reference": "mine", **entry}]
    done = looked_at(success({"responses": entries}), HANDLE)
    assert isinstance(done, Done)
    assert done.items[0] == Item(0, False, {}, "mine", error)
    assert done.items[1] == Item(1, True, {"n": 1})


@pytest.mark.parametrize(
    ("entries", "path"),
    [
        ([item(0), item(0)], "/result/responses/1"),
        ([item(-1)], "/result/responses/0/id"),
        ([item("0")], "/result/responses/0/id"),
        ([item(1.0)], "/result/responses/0/id"),
        ([item(True)], "/result/responses/0/id"),
        ([item(None)], "/result/responses/0/id"),
        ([{"index": -1, "result": {}}], "/result/responses/0/index"),
        ([{"result": {}, "success": True}], "/result/responses/0/index"),
        ([item(0), "text"], "/result/responses/1"),
        ([item(0, success="yes")], "/result/responses/0/success"),
        ([{"id": 0, "success": True}], "/result/responses/0/result"),
        ([item(0), item(2)], "/result/responses"),
        ([item(1)], "/result/responses"),
        ({}, "/result/responses"),
        ("text", "/result/responses"),
    ],
)
def test_a_finished_batch_that_cannot_be_trusted_says_where_it_is_wrong(entries: Any, path: str) -> None:
    assert unexpected({"responses": entries}).path == path


def test_lost_items_are_noticed_by_the_number_submitted() -> None:
    handle = Handle("0" * 32, "@cf/baai/bge-m3", "an-id", 4)
    error = unexpected({"responses": [item(0), item(2)]}, handle)
    assert error.message == "2 of 4 items are missing, the first is item 1"


def test_items_that_nobody_submitted_are_noticed() -> None:
    handle = Handle("0" * 32, "@cf/baai/bge-m3", "an-id", 1)
    error = unexpected({"responses": [item(0), item(1)]}, handle)
    assert error.message == "item 1 answers nothing: 1 were submitted"


@pytest.mark.parametrize(
    ("usage", "path"),
    [
        ([], "/result/usage"),
        ({"prompt_tokens": "12"}, "/result/usage/prompt_tokens"),
        ({"total_tokens": 1.5}, "/result/usage/total_tokens"),
    ],
)
def test_a_usage_that_is_no_count_is_unexpected(usage: Any, path: str) -> None:
    assert unexpected({"responses": [], "usage": usage}).path == path


@pytest.mark.parametrize("usage", [{}, {"usage": None}], ids=["absent", "null"])
def test_usage_is_optional(usage: dict[str, Any]) -> None:
    assert looked_at(success({"responses": [], **usage}), HANDLE) == Done((), None)


@pytest.mark.parametrize(
    ("status", "code"),
    [(500, 5001), (400, 3030), (400, 8007), (404, 8007), (413, 5021), (400, 5006), (200, 5001), (200, 3030)],
)
def test_a_final_refusal_of_a_poll_is_the_end_of_its_batch(status: int, code: int) -> None:
    with pytest.raises(BatchFailed) as raised:
        looked_at(refusal(status, code), HANDLE)
    error = raised.value
    assert error.handle == HANDLE
    assert (error.status, error.code, error.message) == (status, code, "the text")
    assert error.cf_request_id == "quoted"
    assert error.retryable is False


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (429, 3040, RateLimited),
        (429, 3021, RateLimited),
        (429, 4006, QuotaExceeded),
        (401, 10000, AuthenticationError),
        (400, 9106, AuthenticationError),
        (500, None, ServerError),
        (503, 3050, ServerError),
        (408, 3046, InvalidRequest),
        (400, 7000, InvalidRequest),
        (404, 7003, InvalidRequest),
        (405, 7001, InvalidRequest),
        (404, None, InvalidRequest),
    ],
)
def test_a_refusal_that_is_not_the_batch_s_leaves_it_alive(
    status: int, code: int | None, kind: type[WorkersAIError]
) -> None:
    with pytest.raises(kind):
        looked_at(refusal(status, code), HANDLE)


@pytest.mark.parametrize(
    ("reason", "message", "code"),
    [
        ({"error": "out of memory"}, "out of memory", None),
        ({"errors": [{"code": 5001, "message": "Model execution failed"}]}, "Model execution failed", 5001),
        ({}, "the batch failed without a reason", None),
    ],
)
def test_a_failed_status_is_the_end_of_its_batch(
    reason: dict[str, Any], message: str, code: int | None
) -> None:
    with pytest.raises(BatchFailed) as raised:
        looked_at(success({"status": "failed", **reason}), HANDLE)
    assert (raised.value.message, raised.value.code, raised.value.handle) == (message, code, HANDLE)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
ANY_JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


def nearly(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object of which any key may be missing or hold anything, but mostly doesn't."""
    spoiled = {name: value | ANY_JSON for name, value in fields.items()}
    return st.fixed_dictionaries({}, optional=fields) | st.fixed_dictionaries({}, optional=spoiled)


ERRORS = nearly(
    code=st.sampled_from([3021, 3040, 4006, 5001, 5006, 8007, "5006"]), message=st.text(max_size=8)
)
ITEMS = nearly(
    id=st.integers(-1, 4),
    index=st.integers(-1, 4),
    success=st.booleans(),
    result=ANY_JSON,
    error=st.text(max_size=4),
    errors=st.lists(ERRORS, max_size=2),
)
RESULTS = nearly(
    status=st.sampled_from(["queued", "running", "failed", "completed"]),
    request_id=st.just("an-id"),
    responses=st.lists(ITEMS, max_size=4),
    results=st.lists(ITEMS, max_size=4),
    usage=nearly(prompt_tokens=st.integers(), total_tokens=st.integers()),
    error=ERRORS,
)
BODIES = nearly(result=RESULTS, success=st.booleans(), errors=st.lists(ERRORS, max_size=2))
STATUSES = st.sampled_from([200, 202, 301, 400, 401, 404, 408, 413, 429, 500, 502])


def outcome(status: int, content: bytes) -> Pending | Done | WorkersAIError:
    try:
        return looked_at(Reply(status, {}, content), HANDLE)
    except WorkersAIError as error:
        return error


def assert_rightly_read(found: Pending | Done | WorkersAIError, body: Any) -> None:
    """What the interface promises of any reply: pending and done only when it says so, in full."""
    if isinstance(found, Pending):
        assert body["result"]["status"] == found.status
    elif isinstance(found, Done):
        entries = body["result"].get("responses")
        entries = body["result"]["results"] if entries is None else entries
        assert [item.id for item in found.items] == list(range(len(entries)))
        assert all((item.error is None) is item.success for item in found.items)
    else:
        assert found.message


@given(STATUSES, ANY_JSON)
def test_any_json_is_pending_done_or_an_error_of_ours(status: int, body: Any) -> None:
    assert_rightly_read(outcome(status, json.dumps(body).encode()), body)


@given(STATUSES, BODIES)
def test_nearly_right_replies_are_pending_done_or_an_error_of_ours(status: int, body: Any) -> None:
    assert_rightly_read(outcome(status, json.dumps(body).encode()), body)


@given(RESULTS)
def test_nearly_right_results_are_pending_done_or_an_error_of_ours(result: Any) -> None:
    assert_rightly_read(outcome(200, success(result).content), {"result": result})


@given(STATUSES, st.binary(max_size=64))
def test_any_bytes_are_an_error_of_ours(status: int, content: bytes) -> None:
    assert isinstance(outcome(status, content), WorkersAIError)


@given(STATUSES, BODIES)
def test_a_submit_gives_a_handle_or_an_error_of_ours(status: int, body: Any) -> None:
    try:
        handle = submitted(Reply(status, {}, json.dumps(body).encode()), "0" * 32, "m", 1)
    except WorkersAIError:
        return
    assert handle.request_id == body["result"]["request_id"]
