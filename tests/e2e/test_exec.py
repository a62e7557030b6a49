"""`workersai-emulator exec`: a command beside an emulator of its own."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("clean_environment")

EXEC = [sys.executable, "-m", "workersai_emulator.cli", "exec"]
PYTHON = [sys.executable, "-c"]
PRINT_ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)))"
# Tells of itself, then of each signal; the second ends it.
LISTEN = """
import os, signal, sys
def say(text):
    os.write(1, text.encode() + b"\\n")  # print() must not be interrupted by itself
def told(number, frame):
    global left
    say(signal.Signals(number).name)
    left -= 1
    if not left:
        sys.exit(7)
left = int(sys.argv[1])
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, told)
say("ready")
while True:
    signal.pause()
"""

# Makes stdin the terminal of its session, as a shell's is, and becomes the command.
TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*EXEC, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=30,
        check=False,
    )


def environment_of(*options: str, **environment: str) -> dict[str, str]:
    ran = run(*options, "--", *PYTHON, PRINT_ENVIRONMENT, **environment)
    assert ran.returncode == 0, ran.stderr
    told: dict[str, str] = json.loads(ran.stdout)
    return told


def test_the_command_s_environment_points_every_client_at_the_emulator_and_is_otherwise_ours() -> None:
    told = environment_of(OPENAI_API_KEY="a-secret", OF_MINE="kept")
    url = told["WORKERS_AI_EMULATOR_URL"]
    account = "0123456789abcdef0123456789abcdef"
    assert url.startswith("http://127.0.0.1:")
    assert told["CLOUDFLARE_BASE_URL"] == told["CLOUDFLARE_API_BASE_URL"] == f"{url}/client/v4"
    assert told["CLOUDFLARE_ACCOUNT_ID"] == account
    assert told["CLOUDFLARE_API_TOKEN"] == told["OPENAI_API_KEY"] == "emulator"
    assert told["OPENAI_BASE_URL"] == f"{url}/client/v4/accounts/{account}/ai/v1"
    assert told["OF_MINE"] == "kept"


def test_a_batch_goes_through_and_the_emulator_is_gone_afterwards() -> None:
    program = (
        "import os\n"
        "from workersai_client import Client\n"
        "with Client() as client:\n"
        "    print(client.embed_batch(['orange cloud'], timeout=20).shape)\n"
        "print(os.environ['WORKERS_AI_EMULATOR_URL'])\n"
    )
    ran = run("--script", "instant", "--seed", "42", "--", *PYTHON, program)
    shape, url = ran.stdout.splitlines()
    assert (ran.returncode, shape) == (0, "(1, 1024)")
    assert ran.stderr == f"workersai-emulator: {url}, seed 42\n"
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)


def test_all_options_of_serve_are_taken(tmp_path: Path) -> None:
    (tmp_path / "emulator.toml").write_text("script = 'realistic'\n[limit]\npayload_bytes = 1000\n")
    program = (
        "import os, urllib.request\n"
        "url = os.environ['WORKERS_AI_EMULATOR_URL'] + '/__emulator__/settings'\n"
        "print(urllib.request.urlopen(url).read().decode())\n"
    )
    config = str(tmp_path / "emulator.toml")
    ran = run("--config", config, "--", *PYTHON, program, WORKERSAI_EMULATOR_ASSUME="done.shape=results")
    settings = json.loads(ran.stdout)
    assert settings["script"] == "queued:20s, running:40s, done"
    assert settings["limits"]["payload_bytes"] == 1000
    assert settings["assumptions"]["done.shape"] == "results"
    assert environment_of("--api-token", "sesame")["CLOUDFLARE_API_TOKEN"] == "sesame"
    told = environment_of("--api-token", "blind:none", "--api-token", f"sesame:read@{'a' * 32}")
    assert (told["CLOUDFLARE_API_TOKEN"], told["CLOUDFLARE_ACCOUNT_ID"]) == ("sesame", "a" * 32)


@pytest.mark.parametrize("code", [0, 1, 75, 255])
def test_the_command_s_exit_code_is_handed_on(code: int) -> None:
    assert run("--", *PYTHON, f"raise SystemExit({code})").returncode == code


FAULTY = """
import json, os, urllib.request
url = "{CLOUDFLARE_BASE_URL}/accounts/{CLOUDFLARE_ACCOUNT_ID}/ai/run/@cf/baai/bge-m3".format(**os.environ)
body = json.dumps({"text": "a", "queueRequest": True}).encode()
urllib.request.urlopen(urllib.request.Request(url, body, {"Authorization": "Bearer t"}))
"""


def test_the_verdict_is_told_and_turns_success_into_a_failure() -> None:
    ran = run("--verdict", "--", *PYTHON, FAULTY)
    assert ran.returncode == 1
    _, finding, verdict = ran.stderr.splitlines()[-3:]
    assert finding.startswith(
        "workersai-emulator: error queue-in-body: Sent queueRequest in the body. run 1 to "
    )
    assert verdict == "workersai-emulator: the verdict is not clean"


def test_a_failure_of_the_command_s_own_stays_what_it_is() -> None:
    ran = run("--verdict", "--", *PYTHON, f"{FAULTY}\nraise SystemExit(75)")
    assert ran.returncode == 75
    assert "queue-in-body" in ran.stderr


def test_a_clean_verdict_is_told_too_behind_a_control_token_as_well() -> None:
    program = "from workersai_client import Client\nwith Client() as client: client.embed(['a'])\n"
    ran = run("--verdict", "--control-token", "sesame", "--", *PYTHON, program)
    assert ran.returncode == 0
    assert ran.stderr.splitlines()[-1] == "workersai-emulator: the verdict is clean"


def test_without_being_asked_nobody_judges() -> None:
    ran = run("--", *PYTHON, FAULTY)
    assert ran.returncode == 0
    assert "verdict" not in ran.stderr


def test_a_command_that_a_signal_ended_gives_128_and_its_number() -> None:
    ran = run("--", *PYTHON, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert ran.returncode == 128 + signal.SIGKILL


def test_stdin_stdout_and_stderr_are_the_command_s_own() -> None:
    ran = subprocess.run(
        [*EXEC, "--", *PYTHON, "import sys; sys.stderr.write('told'); print(sys.stdin.read()[::-1])"],
        input="abc",
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "cba\n"
    assert ran.stderr.endswith("told")


def test_the_command_s_own_options_are_not_taken_for_ours() -> None:
    ran = run("--seed", "1", sys.executable, "-c", "import sys; print(sys.argv[1:])", "--seed", "2", "--help")
    assert ran.stdout == "['--seed', '2', '--help']\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_signals_are_passed_on_and_the_command_decides_what_they_mean(number: signal.Signals) -> None:
    with subprocess.Popen(
        [*EXEC, "--", *PYTHON, LISTEN, "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        for _ in range(2):
            process.send_signal(number)
            assert process.stdout.readline() == f"{number.name}\n"
        assert process.wait(timeout=10) == 7
        assert "Traceback" not in process.stderr.read()


def test_ctrl_c_at_a_terminal_reaches_the_command_once() -> None:
    terminal, theirs = pty.openpty()
    with subprocess.Popen(
        [*PYTHON, TAKE_TERMINAL, *EXEC, "--", *PYTHON, LISTEN, "2"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        shown = b""
        while b"ready" not in shown:
            shown += os.read(terminal, 1000)
        os.write(terminal, b"\x03")
        while b"SIGINT" not in shown:
            shown += os.read(terminal, 1000)
        process.terminate()  # arrives after whatever Ctrl-C set going
        try:
            while piece := os.read(terminal, 1000):
                shown += piece
        except OSError:  # a terminal whose other end is closed reads as an error
            os.close(terminal)
        assert process.wait(timeout=10) == 7
    assert (shown.count(b"SIGINT"), shown.count(b"SIGTERM")) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["--", "no-such-command"], 127, "exec: 'no-such-command' is no command that can be found and run"),
        (["--"], 2, "Missing argument 'COMMAND...'"),
        (["--script", "bogus", "--", "true"], 2, "--script: 'bogus' is no step"),
        (["--prot", "1", "--", "true"], 2, "No such option"),
    ],
    ids=["not found", "no command", "a wrong option", "an unknown option"],
)
def test_what_cannot_be_run_is_one_line_that_names_it(
    arguments: list[str], code: int, complaint: str
) -> None:
    ran = run(*arguments)
    assert (ran.returncode, ran.stdout) == (code, "")
    assert complaint in ran.stderr
    assert ran.stderr.startswith("workersai-emulator: ")
    assert ran.stderr.count("\n") == 1
