"""The command against a scripted service: what it reads, what it prints where, and what it exits with."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from workersai_client import Client, ConfigurationError, Handle
from workersai_client.cli import main
from workersai_client.command_input import handles_in, inputs_in, requests_in, text_lines, texts_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ACCOUNT = "0123456789abcdef0123456789abcdef"
TOKEN = "a-token-that-must-stay-secret"
MODEL = "@cf/baai/bge-m3"
ID = "11111111-2222-4333-8444-555555555555"
HANDLE = {"account_id": ACCOUNT, "model": MODEL, "request_id": ID, "items": 2}
QUEUED = {"status": "queued", "request_id": ID, "model": MODEL}
GOOD = {"id": 1, "result": {"shape": [1, 1], "data": [[0.5]]}, "success": True, "external_reference": "b"}
BAD = {
    "id": 0,
    "result": {},
    "success": False,
    "errors": [{"message": "AiError: no", "code": 3030}],
    "external_reference": None,
}

Ran = tuple[int, str, list[str]]


@pytest.fixture
def command(
    service: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """Run it in this process; stderr must start with the host when something was sent, and hide the token."""
    monkeypatch.setenv("CLOUDFLARE_ACCOUNT_ID", ACCOUNT)
    monkeypatch.setenv("CLOUDFLARE_API_TOKEN", TOKEN)
    monkeypatch.setenv("CLOUDFLARE_BASE_URL", service.url)

    def run(*arguments: str, stdin: bytes | str | Any = b"") -> Ran:
        content = stdin if isinstance(stdin, bytes) else json.dumps(stdin).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        captured = capsys.readouterr()
        said = captured.err.splitlines()
        if service.seen:
            assert said[0] == f"workersai-batch: talking to {service.url.removeprefix('http://')}"
        assert TOKEN not in captured.out + captured.err
        assert "Traceback" not in captured.err
        code = ended.value.code
        assert isinstance(code, int)
        return code, captured.out, said[1:] if service.seen else said

    return run


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (b'{"requests":[{"text":"a"},{"text":"b"}]}', []),
        (b'[{"text":"a"},{"text":"b"}]', []),
        (b'{"text":"a"}\n\n{"text":"b"}\n', []),
        (b'\xef\xbb\xbf[\n {"text":"a"},\n {"text":"b"}]\n', []),
        (b"a\nb\n", ["--lines"]),
        (b"a\r\nb", ["--lines"]),
    ],
    ids=["requests", "list", "json lines", "bom", "lines", "crlf"],
)
def test_submit_takes_every_form_and_prints_the_handle(
    command: Callable[..., Ran], service: Any, content: bytes, options: list[str]
) -> None:
    service.answers(QUEUED)
    code, out, said = command("submit", MODEL, *options, stdin=content)
    assert (code, json.loads(out), said) == (0, HANDLE, [])
    assert service.seen[0].json == {"requests": [{"text": "a"}, {"text": "b"}]}
    assert service.seen[0].path.endswith(f"/ai/run/{MODEL}?queueRequest=true")


def test_submit_reads_a_file(command: Callable[..., Ran], service: Any, tmp_path: Path) -> None:
    (tmp_path / "texts").write_text('{"text":"one"}', encoding="utf-8")
    service.answers(QUEUED)
    code, out, _ = command("submit", MODEL, str(tmp_path / "texts"))
    assert (code, json.loads(out)["items"]) == (0, 1)


def test_poll_of_a_pending_batch_exits_3_and_prints_a_handle_again(
    command: Callable[..., Ran], service: Any
) -> None:
    service.answers({"status": "running", "request_id": ID})
    code, out, said = command("poll", stdin=HANDLE)
    assert (code, json.loads(out), said) == (3, {"status": "running", **HANDLE}, [])
    assert Handle.from_json(out).items == 2


def test_poll_of_a_finished_batch_prints_its_items_in_order(
    command: Callable[..., Ran], service: Any
) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 3}
    service.answers({"responses": [GOOD, {**GOOD, "id": 0}], "usage": usage})
    code, out, said = command("poll", "--request-id", ID, "--model", MODEL)
    assert (code, said) == (0, [])
    assert json.loads(out) == {
        "status": "done",
        "items": [{**GOOD, "id": 0, "error": None}, {**GOOD, "error": None}],
        "usage": usage,
    }


@pytest.mark.parametrize("verb", ["poll", "wait"])
def test_a_failed_item_exits_1_with_all_items_printed(
    command: Callable[..., Ran], service: Any, verb: str
) -> None:
    service.answers({"responses": [GOOD, BAD]})
    code, out, said = command(verb, stdin=HANDLE)
    items = json.loads(out)["items"]
    assert code == 1
    assert [item["success"] for item in items] == [False, True]
    assert items[0]["error"] == {"message": "AiError: no", "code": 3030}
    assert said[-1] == (
        "workersai-batch: ItemFailed: 1 of 2 items failed, the first is item 0: AiError: no [code 3030]"
    )


def test_wait_keeps_the_handle_on_stderr_and_prints_the_items(
    command: Callable[..., Ran], service: Any
) -> None:
    service.answers({"status": "queued", "request_id": ID})
    service.answers({"responses": [GOOD, {**GOOD, "id": 0}]})
    code, out, said = command("wait", "--interval", "0.01", stdin=HANDLE)
    assert (code, json.loads(out)["status"]) == (0, "done")
    assert [json.loads(line) for line in said] == [HANDLE]


def test_a_wait_whose_time_is_up_exits_3_with_the_handle(
    command: Callable[..., Ran], service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    timeless = partial(Client, sleep=slept.append, monotonic=lambda: 0.0, jitter=lambda: 1.0)
    monkeypatch.setattr("workersai_client.cli.Client", timeless)
    for _ in range(7):
        service.answers({"status": "queued", "request_id": ID})
    code, out, said = command("wait", "--timeout", "30", stdin=HANDLE)
    assert slept == [0.5, 1.0, 2.0, 4.0, 8.0, 13.5]
    assert (code, json.loads(out)) == (3, {"status": "queued", **HANDLE})
    assert json.loads(said[0]) == HANDLE
    assert said[1].startswith(f"workersai-batch: WaitTimeout: batch {ID} is still queued after 29.0 s")


def test_run_prints_the_result(command: Callable[..., Ran], service: Any) -> None:
    service.answers({"response": "é", "score": 0.25})
    code, out, said = command("run", MODEL, stdin={"prompt": "a"})
    assert (code, out, said) == (0, '{"response":"é","score":0.25}\n', [])
    assert service.seen[0].json == {"prompt": "a"}


@pytest.mark.parametrize(
    ("content", "options"),
    [(b'["a","b"]', []), (b'"a"\n"b"\n', []), (b"a\nb\n", ["--lines"])],
    ids=["list", "json lines", "lines"],
)
def test_embed_prints_a_vector_a_line(
    command: Callable[..., Ran], service: Any, content: bytes, options: list[str]
) -> None:
    service.answers({"shape": [2, 2], "data": [[0.73974609375, -0.5], [1, 2]]})
    code, out, _ = command("embed", "--model", "@cf/new/model", *options, stdin=content)
    assert (code, out) == (0, "[0.73974609375,-0.5]\n[1.0,2.0]\n")
    assert service.seen[0].json == {"text": ["a", "b"]}


def test_embed_through_the_queue_says_each_handle(command: Callable[..., Ran], service: Any) -> None:
    service.answers({**QUEUED, "model": "@cf/new/model"})
    service.answers({"responses": [{**GOOD, "id": 1}, {**GOOD, "id": 0}]})
    code, out, said = command("embed", "--batch", "--model", "@cf/new/model", stdin=["a", "b"])
    assert (code, out) == (0, "[0.5]\n[0.5]\n")
    assert [json.loads(line) for line in said] == [{**HANDLE, "model": "@cf/new/model"}]


def test_embed_goes_on_with_what_an_earlier_run_said(
    command: Callable[..., Ran], service: Any, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    handle = {**HANDLE, "model": "@cf/new/model"}
    log.write_text(f"workersai-batch: talking to x\n{json.dumps(handle)}\n", encoding="utf-8")
    service.answers({"responses": [GOOD, {**GOOD, "id": 0}]})
    arguments = ["embed", "--batch", "--model", "@cf/new/model", "--resume", str(log)]
    code, out, said = command(*arguments, stdin=["a", "b"])
    assert (code, out.count("\n"), json.loads(said[0])) == (0, 2, handle)
    assert service.seen[0].json == {"request_id": ID}


@pytest.mark.parametrize("texts", [["a"], ["a", "b", "c"]], ids=["fewer", "more"])
def test_handles_of_other_texts_are_refused_before_anything_is_sent(
    command: Callable[..., Ran], service: Any, tmp_path: Path, texts: list[str]
) -> None:
    (tmp_path / "log").write_text(json.dumps(HANDLE), encoding="utf-8")
    code, out, said = command("embed", "--batch", "--resume", str(tmp_path / "log"), stdin=texts)
    assert (code, out, service.seen) == (2, "", [])
    assert said[-1] == f"workersai-batch: --resume: batch {ID} is not of these texts and {MODEL}"


@pytest.mark.parametrize(
    ("answer", "code", "line"),
    [
        (
            lambda service: service.refuses(
                429, 3040, "AiError: later", {"retry-after": "3600", "cf-ai-req-id": "quoted"}
            ),
            75,
            "RateLimited: AiError: later [HTTP 429, code 3040]; request quoted; asks to wait 3600 s",
        ),
        (
            lambda service: service.refuses(429, 4006, "AiError: used\nup"),
            1,
            "QuotaExceeded: AiError: used up [HTTP 429, code 4006]",
        ),
        (
            lambda service: service.refuses(401, 10000, "Authentication error", {"cf-ray": "ray"}),
            1,
            "AuthenticationError: Authentication error [HTTP 401, code 10000]; request ray",
        ),
        (
            lambda service: service.answers({"status": "done"}),
            1,
            "UnexpectedReply: the batch is neither pending nor done [HTTP 200]; at /result/status",
        ),
        (
            lambda service: service.refuses(500, 5001, "AiError: \x1b[31mfailed"),
            1,
            "BatchFailed: AiError: [31mfailed [HTTP 500, code 5001]",
        ),
    ],
    ids=["rate", "quota", "token", "unexpected", "failed"],
)
def test_an_error_is_one_line_and_its_exit_code_says_whether_to_retry(
    command: Callable[..., Ran], service: Any, answer: Callable[[Any], None], code: int, line: str
) -> None:
    answer(service)
    assert command("poll", stdin=HANDLE) == (code, "", [f"workersai-batch: {line}"])


def test_a_submit_in_doubt_is_not_worth_retrying_and_says_why(
    command: Callable[..., Ran], service: Any
) -> None:
    service.resets_after_reading()
    code, out, said = command("submit", MODEL, stdin=[{"text": "a"}])
    assert (code, out) == (1, "")
    assert said[0].endswith("; it may have taken effect all the same: a repetition may do it twice")


@pytest.mark.parametrize(
    ("arguments", "stdin", "line"),
    [
        (["submit", MODEL], b"", "the input is empty"),
        (["submit", MODEL, "--lines"], b"", "the input is empty"),
        (["submit", MODEL, "--lines"], b"a\n \nb", "line 2 is blank, and a blank text cannot be asked for"),
        (["submit", MODEL, "--lines"], b"\xff", "the input is not UTF-8: byte 0"),
        (["submit", MODEL], b'["a"]', "request 0 is not an object; with --lines each line is a text"),
        (["submit", MODEL], b'{"requests":[],"model":1}', 'beside "requests", a list, there can be nothing'),
        (["submit", MODEL], b'{"requests":{}}', 'beside "requests", a list, there can be nothing'),
        (["submit", MODEL], b'{"text":"a"}\n{"text"', "the input is not JSON (line 2: Expecting ':'"),
        (["submit", MODEL], b"one\ntwo", "the input is not JSON (Expecting value: line 1 column 1"),
        (["submit", MODEL], b"[" * 100_000, "the input is not JSON (maximum recursion depth"),
        (["submit", MODEL], b'[{"text":NaN}]', "the request is no JSON: Out of range float values"),
        (["submit", "../x"], b'[{"text":"a"}]', "model '../x' is not a model's name"),
        (["submit", MODEL, "no/such/file"], b"", "Invalid value for '[FILE]': 'no/such/file': No such file"),
        (["submit"], b"", "Missing argument 'MODEL'."),
        (["run", MODEL], b"[]", "the input of a run is one JSON object"),
        (["embed"], b'["a",1]', "text 1 is not a string; with --lines each line is a text"),
        (["embed", "--timeout", "nan"], b'["a"]', "timeout must be a number of seconds, not nan"),
        (["embed", "--resume", __file__], b'["a"]', "--resume goes with --batch"),
        (["poll"], b"", "not a handle: the text is not JSON"),
        (["poll"], b"\xff", "not a handle: the text is not JSON"),
        (["poll"], b"{}", "not a handle: account_id must be a string"),
        (["poll", "--request-id", ID], b"", "give a handle, or --request-id and --model"),
        (["wait", "--timeout", "nan"], HANDLE, "timeout must be a number of seconds, not nan"),
        (["wait", "--interval", "0"], HANDLE, "interval must be a positive number of seconds, not 0"),
        (["wait", "--timeout", "x"], HANDLE, "Invalid value for '--timeout': 'x' is not a valid float"),
        (["collect"], b"", "No such command 'collect'."),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    command: Callable[..., Ran], service: Any, arguments: list[str], stdin: Any, line: str
) -> None:
    code, out, said = command(*arguments, stdin=stdin)
    assert (code, out, service.seen) == (2, "", [])
    assert said[-1].startswith(f"workersai-batch: {line}")


@pytest.mark.parametrize("missing", ["CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_API_TOKEN"])
def test_a_missing_variable_is_named(
    command: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.delenv(missing)
    code, _, said = command("run", MODEL, stdin={})
    assert code == 2
    assert len(said) == 1
    assert said[0].endswith(f"set {missing}")


def test_a_handle_needs_no_account_in_the_environment(
    command: Callable[..., Ran], service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLOUDFLARE_ACCOUNT_ID")
    service.answers({"status": "queued", "request_id": ID})
    assert command("poll", stdin=HANDLE)[0] == 3


def test_an_interrupt_exits_130(command: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("workersai_client.client.Client.wait", interrupted)
    code, out, said = command("wait", stdin=HANDLE)
    assert (code, out) == (130, "")
    assert json.loads(said[1]) == HANDLE


def test_a_handle_that_stdout_does_not_take_is_on_stderr(
    command: Callable[..., Ran], service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.answers(QUEUED)

    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    code, _, said = command("submit", MODEL, stdin=[{"text": "a"}, {"text": "b"}])
    assert code == 1
    assert json.loads(said[0]) == HANDLE
    assert said[1] == "workersai-batch: cannot read or write: No space left on device"


def test_help_is_asked_for_by_saying_nothing(command: Callable[..., Ran]) -> None:
    code, out, said = command()
    assert (code, out) == (2, "")
    assert said[0].startswith("Usage: workersai-batch ")


def test_importing_the_command_loads_nothing_heavy() -> None:
    script = "import sys, workersai_client.cli; print({'aiohttp', 'numpy', 'jsonschema'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


def test_a_line_is_what_a_line_feed_ends_and_nothing_else() -> None:
    assert text_lines("a\u2028b\vc\n d \n".encode()) == ["a\u2028b\vc", " d "]


def test_a_single_object_is_a_batch_of_one() -> None:
    assert requests_in(b'{"text":"a"}', lines=False) == [{"text": "a"}]
    assert requests_in(b'{"requests":[]}', lines=False) == []


def test_numbers_of_any_size_are_read_as_they_are() -> None:
    assert inputs_in(b'{"seed":1234567890123456789012345}') == {"seed": 1234567890123456789012345}


def test_texts_may_look_like_json_when_lines_are_asked_for() -> None:
    assert texts_in(b'["a"]\n{}', lines=True) == ['["a"]', "{}"]


def test_handles_are_found_between_other_lines() -> None:
    text = f"workersai-batch: talking to x\n{json.dumps(HANDLE)}\nworkersai-batch: WaitTimeout\n"
    assert [handle.request_id for handle in handles_in(text.encode())] == [ID]
    with pytest.raises(ConfigurationError, match="not a handle"):
        handles_in(b"{}\n")
