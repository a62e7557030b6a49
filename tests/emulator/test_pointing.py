"""`workersai-emulator env`: what points each client at a server."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from workersai_emulator.environment import variables
from workersai_emulator.pointing import exports, pointers

URL, ACCOUNT, TOKEN = "http://127.0.0.1:4711", "f" * 32, "secret"


def env(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "workersai_emulator.cli", "env", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_shell_takes_the_variables_of_every_client() -> None:
    shell = (
        f'eval "$({sys.executable} -m workersai_emulator.cli env --url {URL}/ --account-id {ACCOUNT})"; env'
    )
    told = subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, check=True, env={**os.environ}
    )

    for name, value in variables(URL, ACCOUNT).items():
        assert f"{name}={value}\n" in told.stdout


def test_one_clients_variables_come_alone() -> None:
    assert env("--for", "openai-npm").stdout.splitlines() == [
        "export OPENAI_BASE_URL=http://127.0.0.1:8799/client/v4/accounts/0123456789abcdef0123456789abcdef/ai/v1",
        "export OPENAI_API_KEY=emulator",
    ]


def test_one_clients_code_has_everything_filled_in() -> None:
    told = exports(URL, ACCOUNT, TOKEN, "pydantic-ai-cloudflare-ai")

    assert told == f'WorkersAI("{ACCOUNT}", api_token="secret", api_url="{URL}/client/v4/accounts")'


@pytest.mark.parametrize("name", list(pointers()))
def test_every_client_is_pointed_and_nothing_is_left_to_fill_in(name: str) -> None:
    told = exports(URL, ACCOUNT, TOKEN, name)

    assert URL in told or "secret" in told
    assert re.findall(r"<\w+>", told) == []


def test_an_unknown_client_is_refused_with_those_that_are_known() -> None:
    refused = env("--for", "curl")

    assert refused.returncode == 2
    assert refused.stderr.startswith(
        "workersai-emulator: --for: no client 'curl' is known. There are workersai-client, "
    )
    assert refused.stderr.count("\n") == 1


def test_a_name_that_is_nearly_one_is_told_what_it_may_have_meant() -> None:
    told = env("--for", "openai").stderr

    assert "no client 'openai' is known; did you mean openai-npm or openai-python" in told
