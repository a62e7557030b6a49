"""`workersai-batch` as a process of its own against the emulator."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from workersai_emulator import Emulator, embed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODEL = "@cf/baai/bge-m3"
COMMAND = [sys.executable, "-m", "workersai_client.cli"]

Ran = subprocess.CompletedProcess[str]


def environment(emulator: Emulator) -> dict[str, str]:
    said = {
        "CLOUDFLARE_BASE_URL": emulator.base_url,
        "CLOUDFLARE_ACCOUNT_ID": emulator.account_id,
        "CLOUDFLARE_API_TOKEN": emulator.token,
    }
    return {name: value for name, value in os.environ.items() if not name.upper().endswith("_PROXY")} | said


@pytest.fixture
def command(emulator: Emulator) -> Callable[..., Ran]:
    """Run it; whatever happens, it says whom it talks to, and shows no traceback."""

    def run(*arguments: str, stdin: str = "", code: int = 0) -> Ran:
        ran = subprocess.run(
            [*COMMAND, *arguments],
            input=stdin,
            env=environment(emulator),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        assert ran.returncode == code, ran.stderr
        assert "Traceback" not in ran.stderr
        host = emulator.url.removeprefix("http://")
        assert ran.stderr.splitlines()[0] == f"workersai-batch: talking to {host}"
        return ran

    return run


def control(emulator: Emulator, what: str, said: dict[str, Any]) -> None:
    httpx.post(f"{emulator.url}/__emulator__/{what}", json=said).raise_for_status()


def test_a_batch_goes_from_one_process_to_the_next(command: Callable[..., Ran], tmp_path: Path) -> None:
    requests = {"requests": [{"text": "orange cloud", "external_reference": "a"}, {"text": "a llama"}]}
    submitted = command("submit", MODEL, stdin=json.dumps(requests))
    kept = tmp_path / "handle.json"
    kept.write_text(submitted.stdout, encoding="utf-8")
    pending = [command("poll", str(kept), code=3).stdout for _ in range(2)]
    assert [json.loads(line)["status"] for line in pending] == ["queued", "running"]
    done = json.loads(command("poll", stdin=pending[1]).stdout)
    assert [(item["id"], item["success"], item["external_reference"]) for item in done["items"]] == [
        (0, True, "a"),
        (1, True, None),
    ]
    vectors = embed(MODEL, ["orange cloud", "a llama"]).tolist()
    assert [item["result"]["data"][0] for item in done["items"]] == vectors


def test_wait_ends_when_the_batch_is_done(command: Callable[..., Ran]) -> None:
    handle = command("submit", MODEL, "--lines", stdin="orange cloud\na llama\n").stdout
    waited = command("wait", "--interval", "0.01", "--timeout", "30", stdin=handle)
    assert len(json.loads(waited.stdout)["items"]) == 2
    assert waited.stderr.splitlines()[1] == handle.strip()


@pytest.mark.parametrize("how", ["--batch", "--no-batch"])
def test_embed_gives_a_vector_for_each_line_in_order(command: Callable[..., Ran], how: str) -> None:
    ran = command("embed", how, "--lines", stdin="orange cloud\né\na llama")
    assert [json.loads(line) for line in ran.stdout.splitlines()] == embed(
        MODEL, ["orange cloud", "é", "a llama"]
    ).tolist()


def test_embed_goes_on_where_another_process_was_stopped(
    command: Callable[..., Ran], emulator: Emulator, tmp_path: Path
) -> None:
    httpx.patch(f"{emulator.url}/__emulator__/settings", json={"script": "queued:hold, done"})
    log = tmp_path / "log"
    stopped = command("embed", "--batch", "--lines", "--timeout", "0.2", stdin="a\nb", code=3)
    log.write_text(stopped.stderr, encoding="utf-8")
    request_id = json.loads(stopped.stderr.splitlines()[1])["request_id"]
    control(emulator, f"batches/{request_id}", {"action": "go-on", "account_id": emulator.account_id})
    ran = command("embed", "--batch", "--lines", "--resume", str(log), stdin="a\nb")
    assert [json.loads(line) for line in ran.stdout.splitlines()] == embed(MODEL, ["a", "b"]).tolist()
    batches = httpx.get(f"{emulator.url}/__emulator__/batches").json()["batches"]
    assert [batch["request_id"] for batch in batches] == [request_id]


def test_run_prints_what_the_model_says(command: Callable[..., Ran]) -> None:
    inputs = {"text": "orange cloud", "target_lang": "fr"}
    ran = command("run", "@cf/meta/m2m100-1.2b", stdin=json.dumps(inputs))
    assert "orange cloud" in json.loads(ran.stdout)["translated_text"]


def test_a_refusal_is_one_line_with_status_code_and_request(command: Callable[..., Ran]) -> None:
    ran = command("run", MODEL, stdin='{"words":"a"}', code=1)
    assert ran.stdout == ""
    line = ran.stderr.splitlines()[1]
    assert line.startswith("workersai-batch: InvalidRequest: AiError: Bad input: Error: oneOf at '/' not met")
    assert " [HTTP 400, code 5006]; request " in line


def test_no_capacity_is_worth_retrying(command: Callable[..., Ran], emulator: Emulator) -> None:
    effect = {"error": 3040, "retry_after": 3600}
    control(emulator, "rules", {"match": {"operation": "submit"}, "effect": effect})
    ran = command("submit", MODEL, "--lines", stdin="a", code=75)
    assert "RateLimited" in ran.stderr.splitlines()[1]


def test_a_failed_batch_and_a_failed_item_exit_1(command: Callable[..., Ran], emulator: Emulator) -> None:
    handle = command("submit", MODEL, stdin=json.dumps([{"text": ["a"] * 101}, {"text": "b"}])).stdout
    ran = command("wait", "--interval", "0.01", stdin=handle, code=1)
    assert [item["success"] for item in json.loads(ran.stdout)["items"]] == [False, True]
    assert "ItemFailed: 1 of 2 items failed, the first is item 0" in ran.stderr.splitlines()[-1]
    control(emulator, "rules", {"match": {"operation": "submit"}, "effect": {"script": "failed"}})
    handle = command("submit", MODEL, "--lines", stdin="a").stdout
    assert "BatchFailed" in command("poll", stdin=handle, code=1).stderr


def test_an_interrupt_while_waiting_leaves_the_handle_on_stderr(
    command: Callable[..., Ran], emulator: Emulator
) -> None:
    control(emulator, "rules", {"effect": {"script": "queued:hold, done"}})
    handle = command("submit", MODEL, "--lines", stdin="a").stdout
    arguments = [*COMMAND, "wait", "--request-id", json.loads(handle)["request_id"], "--model", MODEL]
    with subprocess.Popen(
        arguments, env=environment(emulator), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = [process.stderr.readline(), process.stderr.readline()]
        httpx.get(f"{emulator.url}/__emulator__/batches").raise_for_status()
        process.send_signal(signal.SIGINT)
        out, rest = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert json.loads(said[1])["request_id"] == json.loads(handle)["request_id"]
    assert "Traceback" not in rest


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
def test_a_full_disk_does_not_lose_the_handle(emulator: Emulator) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        ran = subprocess.run(
            [*COMMAND, "submit", MODEL, "--lines"],
            input="a",
            env=environment(emulator),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    said = ran.stderr.splitlines()
    assert ran.returncode == 1
    assert json.loads(said[1])["model"] == MODEL
    assert said[2:] == ["workersai-batch: cannot read or write: No space left on device"]


def test_a_reader_that_went_away_is_no_traceback(emulator: Emulator) -> None:
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run(
        [*COMMAND, "embed", "--lines"],
        input="a\n" * 100,
        env=environment(emulator),
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(write)
    assert ran.returncode == 1
    assert len(ran.stderr.splitlines()) == 1
