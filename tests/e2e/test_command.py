from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
from time import monotonic
from typing import TYPE_CHECKING

import httpx
import pytest

import workersai_emulator

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    Serve = Callable[..., AbstractContextManager[subprocess.Popen[str]]]

pytestmark = pytest.mark.usefixtures("clean_environment")

COMMAND = [sys.executable, "-m", "workersai_emulator.cli"]
RUN = "/client/v4/accounts/0123456789abcdef0123456789abcdef/ai/run/@cf/baai/bge-m3"


def refused(*arguments: str, **environment: str) -> str:
    """What the command says on stderr when it refuses to start."""
    ran = subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=30,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    return ran.stderr


def settings(url: str) -> dict[str, object]:
    found: dict[str, object] = httpx.get(f"{url}/__emulator__/settings").json()
    return found


def test_version_is_the_distribution_s() -> None:
    ran = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout == f"workersai-emulator {workersai_emulator.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--port", "x"], "Invalid value for '--port'"),
        (["--port", "70000"], "Invalid value for '--port'"),
        (["--prot", "1"], "No such option '--prot'"),
        (["--script", "bogus"], "--script: 'bogus' is no step"),
        (["--script", "@cf/baai/bge-m3=done:1"], "--script: 'done:1': done takes no amount"),
        (["--script", "@cf/no/model=done"], "--script: '@cf/no/model' is no model"),
        (["--script", "done", "--script", "instant"], "--script: there can be one for all models"),
        (["--assume", "poll.unknown"], "--assume: 'poll.unknown' is not NAME=VALUE"),
        (["--assume", "a=b"], "--assume: 'a' is no open fact"),
        (["--assume", "poll.unknown=x"], "--assume: poll.unknown is one of refused, not-found, queued"),
        (
            ["--limit", "payload_bytes=ten"],
            "--limit: payload_bytes is a number from 1 on, none (null in JSON) or",
        ),
        (["--limit", "text_tokens=0"], "--limit: text_tokens is a number from 1 on"),
        (["--limit", "speed=1"], "--limit: there is no 'speed'"),
        (["--api-token", "sesame:reed"], "--api-token: a token ends in none of :read, :edit, :none and @"),
        (["--api-token", "two words"], "--api-token: a token is one word"),
        (["--worker-model", "gpt"], "--worker-model: 'gpt' is no model"),
        (["--seed", "x"], "Invalid value for '--seed'"),
        (["--store-bytes", "0"], "Invalid value for '--store-bytes'"),
        (["--config", "nowhere.toml"], "nowhere.toml: No such file"),
        (["--host", "300.1.1.1"], "--host, --port: cannot listen on 300.1.1.1"),
        (["more"], "unexpected extra argument (more)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_flag_is_one_line_that_names_it(arguments: list[str], complaint: str) -> None:
    said = refused("serve", "--port", "0", *arguments)
    assert complaint in said
    assert said.startswith("workersai-emulator: ")
    assert said.count("\n") == 1


def test_a_port_in_use_is_one_line_that_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused("serve", "--port", str(port))
    assert said == f"workersai-emulator: --port: {port} is in use on 127.0.0.1; 0 takes a free one\n"


def test_a_wrong_variable_is_one_line_that_names_it() -> None:
    said = refused("serve", WORKERSAI_EMULATOR_PORT="x")
    assert "WORKERSAI_EMULATOR_PORT" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("toml", "complaint"),
    [
        ("bogus = 1", "there is no 'bogus'"),
        ("port = ", "emulator.toml: Invalid value ("),
        ("port = 'x'", "Invalid value for '--port'"),
        ("[assume]\n'poll.unknown' = 'x'", "--assume: poll.unknown is one of"),
    ],
    ids=["unknown key", "not TOML", "wrong type", "wrong alternative"],
)
def test_a_wrong_configuration_is_one_line_that_names_it(toml: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "emulator.toml").write_text(toml)
    said = refused("serve", "--config", str(tmp_path / "emulator.toml"))
    assert complaint in said
    assert said.count("\n") == 1


def test_without_a_command_the_help_is_shown() -> None:
    assert refused().startswith("Usage: workersai-emulator")


def test_serve_prints_its_url_alone_on_stdout_and_what_to_export_on_stderr(serve: Serve) -> None:
    with serve("--seed", "42") as process:
        url: str = process.url  # type: ignore[attr-defined]
        assert httpx.get(f"{url}/__emulator__/health").json()["status"] == "ok"
        process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate()
    assert url.startswith("http://127.0.0.1:")
    assert stdout == ""
    for told in (
        f"export CLOUDFLARE_BASE_URL={url}/client/v4",
        "export CLOUDFLARE_ACCOUNT_ID=0123456789abcdef0123456789abcdef",
        "export CLOUDFLARE_API_TOKEN=emulator",
        "--seed 42",
    ):
        assert told in stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_serve_ends_within_a_second_with_an_idle_connection_open(
    serve: Serve, number: signal.Signals
) -> None:
    with serve() as process, httpx.Client() as client:
        client.get(f"{process.url}/__emulator__/health")  # type: ignore[attr-defined]
        began = monotonic()
        process.send_signal(number)
        assert process.wait(timeout=5) == 0
        assert monotonic() - began < 1
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_flags_a_file_and_the_environment_are_one_configuration(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "emulator.toml").write_text(
        "script = 'realistic'\nworker_binding = false\n[assume]\n'poll.unknown' = 'queued'\n"
        "[limit]\npayload_bytes = 1000\nbody_bytes = 'none'\ntext_tokens = 'none'\n"
        "requests_per_minute = 'documented'\ndaily_neurons = 500\n"
    )
    monkeypatch.setenv("WORKERSAI_EMULATOR_ASSUME", "poll.unknown=not-found;done.shape=results")
    monkeypatch.setenv("WORKERSAI_EMULATOR_SEED", "5")
    config = str(tmp_path / "emulator.toml")
    with serve(
        "--config", config, "--script", "done", "--script", "@cf/baai/bge-m3=queued:3, lost"
    ) as process:
        found = settings(process.url)  # type: ignore[attr-defined]
    assert found["script"] == "done", "a flag goes before the file"
    assert found["scripts"] == {"@cf/baai/bge-m3": "queued:3, lost"}
    assert found["limits"] == {
        "payload_bytes": 1000,
        "body_bytes": None,
        "requests_per_minute": "documented",
        "daily_neurons": 500,
        "text_tokens": None,
        "call_tokens": "documented",
        "context_tokens": "documented",
    }
    assert found["worker_binding"] is False
    assumed = found["assumptions"]
    assert isinstance(assumed, dict)
    assert assumed["poll.unknown"] == "not-found", "the environment goes before the file"
    assert assumed["done.shape"] == "results"


@pytest.mark.parametrize("way", ["flags", "file", "environment"])
def test_tokens_are_taken_each_way_and_never_told(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    account = "a" * 32
    spelled = [f"sesame:read@{account}", "thyme"]
    arguments: list[str] = []
    if way == "flags":
        arguments = ["--api-token", spelled[0], "--api-token", spelled[1]]
    elif way == "file":
        (tmp_path / "emulator.toml").write_text(f"api_token = {spelled}\n")
        arguments = ["--config", str(tmp_path / "emulator.toml")]
    else:
        monkeypatch.setenv("WORKERSAI_EMULATOR_API_TOKEN", ";".join(spelled))
    with serve(*arguments) as process:
        seen = [
            httpx.post(
                f"{process.url}/client/v4/accounts/{whose}/ai/run/@cf/baai/bge-m3",  # type: ignore[attr-defined]
                json={"text": "a"},
                headers={"authorization": f"Bearer {token}"},
            ).status_code
            for token, whose in (
                ("sesame", account),
                ("sesame", "b" * 32),
                ("thyme", "b" * 32),
                ("sage", account),
            )
        ]
        process.terminate()
        told = "".join(process.communicate(timeout=5))
    assert seen == [200, 403, 200, 401]
    assert "sesame" not in told
    assert "thyme" not in told


def test_the_worker_s_model_is_that_of_the_flag_or_of_the_worker_s_own_variable(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL", "@cf/baai/bge-small-en-v1.5")
    for options, model in (
        ((), "@cf/baai/bge-small-en-v1.5"),
        (("--worker-model", "@cf/baai/bge-m3"), "@cf/baai/bge-m3"),
    ):
        with serve(*options) as process:
            reply = httpx.post(f"{process.url}/batch", json={"texts": ["a"]})  # type: ignore[attr-defined]
        assert reply.json()["model"] == model


def test_off_a_terminal_a_newcomer_s_mistake_is_told_once(serve: Serve) -> None:
    with serve() as process:
        url: str = process.url  # type: ignore[attr-defined]
        for _ in range(3):
            assert httpx.post(url + RUN, json={"text": "a"}).status_code == 403
        process.terminate()
        _, stderr = process.communicate()
    assert stderr.count("send 'Authorization: Bearer emulator'") == 1


def test_on_a_terminal_each_request_is_a_readable_line(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=theirs, text=True
    )
    with process:
        os.close(theirs)
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        headers = {"Authorization": "Bearer secret-token"}
        httpx.post(f"{url}{RUN}?queueRequest=true", json={"requests": [{"text": "a"}]}, headers=headers)
        httpx.post(url + RUN, json={"text": "a", "queueRequest": True}, headers=headers)
        httpx.post(url + RUN, json={}, headers=headers)
        process.terminate()
        process.wait()
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:  # a terminal whose other end is closed reads as an error
            os.close(ours)
    lines = shown.decode().splitlines()
    assert any("POST submit @cf/baai/bge-m3 queued  200" in line for line in lines)
    assert any("queueRequest is in the body" in line for line in lines)
    assert any("400/5006" in line and "required properties at '/' are 'text'" in line for line in lines)
    assert "secret-token" not in shown.decode()
