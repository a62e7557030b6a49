from __future__ import annotations

import subprocess
import sys

from workersai_emulator.environment import LIVE_URL, variables

ACCOUNT = "ab" * 16


def test_the_variables_point_every_client_at_one_account() -> None:
    assert variables("http://127.0.0.1:8799", ACCOUNT, "t") == {
        "CLOUDFLARE_BASE_URL": "http://127.0.0.1:8799/client/v4",
        "CLOUDFLARE_API_BASE_URL": "http://127.0.0.1:8799/client/v4",
        "CLOUDFLARE_ACCOUNT_ID": ACCOUNT,
        "CLOUDFLARE_API_TOKEN": "t",
        "OPENAI_BASE_URL": f"http://127.0.0.1:8799/client/v4/accounts/{ACCOUNT}/ai/v1",
        "OPENAI_API_KEY": "t",
        "WORKERS_AI_EMULATOR_URL": "http://127.0.0.1:8799",
    }


def test_the_live_service_is_no_emulator() -> None:
    assert "WORKERS_AI_EMULATOR_URL" not in variables(LIVE_URL, ACCOUNT, "t")


def test_they_are_printed_for_a_workflow_s_environment() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "workersai_emulator.environment", "http://127.0.0.1:1"],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = ran.stdout.splitlines()
    assert lines == [f"{name}={value}" for name, value in variables("http://127.0.0.1:1").items()]
    assert "CLOUDFLARE_ACCOUNT_ID=0123456789abcdef0123456789abcdef" in lines
