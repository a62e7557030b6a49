"""The plugin as a project's tests meet it: found by its entry point, in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from workersai_client import Handle
from workersai_emulator import Emulator
from workersai_emulator.ids import request_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest_plugins = "pytester"

ACCOUNT = "ab" * 16
SUBMIT = """
from pathlib import Path
from workersai_client import Client

def client_of(account):
    return Client(account.account_id, account.token, account.base_url, max_retries=0)

def submit(account):
    with client_of(account) as client:
        return client.submit("@cf/baai/bge-m3", [{"text": "orange cloud"}])
"""


@pytest.fixture(autouse=True)
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An empty project that takes warnings for errors, on a machine without settings."""
    for name in list(os.environ):
        if name.startswith(("WORKERSAI_EMULATOR_", "CLOUDFLARE_", "OPENAI_")) or name == "MODEL":
            monkeypatch.delenv(name)
    pytester.makeini(
        "[pytest]\naddopts = -p no:asyncio -p no:aiohttp -p no:cacheprovider --strict-markers\nfilterwarnings = error\n"
    )
    return pytester


@pytest.fixture
def bare_url() -> Iterator[str]:
    """A web server that is no emulator."""

    class NotFound(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), NotFound) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_each_test_has_an_account_in_which_others_are_not_seen(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""{SUBMIT}
import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_alone(workersai, number):
    workersai.fail("poll", 3040)
    workersai.clock.freeze()
    handle = submit(workersai)
    assert [batch.request_id for batch in workersai.batches.list()] == [handle.request_id]

def test_nothing_is_left(workersai):
    assert (workersai.batches.list(), workersai.rules.list()) == ([], [])

def test_the_server_is_one_and_its_account_another(workersai, workersai_server):
    assert workersai.url == workersai_server.url
    assert workersai_server.account_id == "0123456789abcdef0123456789abcdef"
    submit(workersai)
    assert workersai_server.batches.list() == []
"""
    )
    pytester.runpytest().assert_outcomes(passed=4)


def drawn(pytester: pytest.Pytester, *options: str) -> str:
    """What a test's account and its first batch are called."""
    result = pytester.runpytest(*options)
    result.assert_outcomes(passed=1)
    return (pytester.path / "drawn").read_text(encoding="utf-8")


def test_the_same_test_meets_the_same_bytes_until_the_seed_is_another(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"{SUBMIT}\ndef test_it(workersai):\n    Path('drawn').write_text(submit(workersai).to_json())\n"
    )
    first = drawn(pytester)
    assert drawn(pytester) == first
    assert drawn(pytester, "--workersai-seed", "0") == first
    assert drawn(pytester, "--workersai-seed", "5") != first


def test_the_nearest_marker_says_the_settings(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""{SUBMIT}
import pytest
pytestmark = pytest.mark.workersai(script="queued:hold, done", limits={{"payload_bytes": 500}})

def test_of_the_module(workersai):
    assert workersai.script == "queued:hold, done"

@pytest.mark.workersai(script="instant", assumptions={{"done.shape": "results"}}, worker_binding=False)
def test_of_its_own(workersai):
    settings = workersai.settings.get()
    assert settings["script"] == "done"
    assert settings["limits"]["payload_bytes"] == 500
    assert settings["assumptions"]["done.shape"] == "results"
    assert settings["worker_binding"] is False
    with client_of(workersai) as client:
        assert client.poll(submit(workersai)).items[0].id == 0
"""
    )
    pytester.runpytest().assert_outcomes(passed=2)


@pytest.mark.parametrize("fixture", ["workersai", ""], ids=["with the fixture", "without a fixture"])
@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("scirpt='done'", "there is no 'scirpt'; there are script, scripts, assumptions"),
        ("seed=3", "there is no 'seed'"),
        ("'done'", "'done' has no keyword"),
    ],
    ids=["misspelt", "not a setting", "positional"],
)
def test_a_marker_that_says_what_does_not_exist_is_an_error_that_names_it(
    pytester: pytest.Pytester, fixture: str, said: str, complaint: str
) -> None:
    pytester.makepyfile(f"import pytest\n@pytest.mark.workersai({said})\ndef test_it({fixture}):\n    pass\n")
    result = pytester.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*@pytest.mark.workersai: {complaint}*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_marker_s_wrong_value_is_an_error_in_the_server_s_words(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import pytest\n@pytest.mark.workersai(script='bogus')\ndef test_it(workersai):\n    pass\n"
    )
    result = pytester.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["@pytest.mark.workersai: script: 'bogus' is no step*"])


def test_the_configuration_of_serve_is_the_session_s_and_the_environment_is_not(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKERSAI_EMULATOR_SCRIPT", "queued:9, lost")
    monkeypatch.setenv("WORKERSAI_EMULATOR_PORT", "1")
    monkeypatch.setenv("MODEL", "gpt-4")
    pytester.makefile(
        ".toml",
        emulator="host = '0.0.0.0'\nport = 8799\nseed = 5\nscript = 'realistic'\napi_token = 'sesame'\n"
        "control_token = 'open'\n[assume]\n'done.order' = 'request'\n",
    )
    pytester.makepyfile(
        f"""{SUBMIT}
def test_it(workersai):
    assert workersai.script == "queued:20s, running:40s, done"
    assert workersai.settings.get()["assumptions"]["done.order"] == "request"
    assert workersai.url.startswith("http://127.0.0.1:")
    assert not workersai.url.endswith(":8799")
    assert workersai.token == "sesame"
    Path("drawn").write_text(submit(workersai).to_json())
"""
    )
    of_the_file = drawn(pytester, "--workersai-config", "emulator.toml")
    assert drawn(pytester, "--workersai-config", "emulator.toml", "--workersai-seed", "5") == of_the_file
    assert drawn(pytester, "--workersai-config", "emulator.toml", "--workersai-seed", "0") != of_the_file


@pytest.mark.parametrize(
    ("toml", "complaint"),
    [
        ("bogus = 1", "*emulator.toml: there is no 'bogus'; there are *"),
        ("script = 'bogus'", "*--workersai-config: --script: 'bogus' is no step*"),
        ("port = 'x'", "*--workersai-config: Invalid value for '--port'*"),
    ],
    ids=["unknown key", "wrong value", "wrong type"],
)
def test_a_wrong_configuration_is_an_error_that_names_it(
    pytester: pytest.Pytester, toml: str, complaint: str
) -> None:
    pytester.makefile(".toml", emulator=toml)
    pytester.makepyfile("def test_it(workersai):\n    pass\n")
    result = pytester.runpytest("--workersai-config", "emulator.toml")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([complaint])


SHARED = f"""{SUBMIT}
import pytest

@pytest.mark.parametrize("number", range(8))
def test_it(workersai, number):
    handle = submit(workersai)
    workersai.batches.go_on(handle.request_id)
    assert [batch.state for batch in workersai.batches.list()] == ["running"]
    Path(f"drawn-{{number}}").write_text(handle.to_json())
"""


def handles_drawn(pytester: pytest.Pytester, seed: int) -> list[Handle]:
    """The handles that the tests were given, each by a server of that seed."""
    handles = [Handle.from_json(path.read_text(encoding="utf-8")) for path in pytester.path.glob("drawn-*")]
    assert all(handle.request_id == request_id(seed, handle.account_id, 1) for handle in handles)
    return handles


@pytest.mark.parametrize("suffix", ["", "/client/v4/"], ids=["root", "base url"])
def test_against_a_url_each_test_has_a_fresh_account_there_again_and_again(
    pytester: pytest.Pytester, suffix: str
) -> None:
    pytester.makepyfile(SHARED)
    with Emulator(seed=3) as emulator:
        for _ in range(2):
            result = pytester.runpytest(f"--workersai-target={emulator.url}{suffix}")
            result.assert_outcomes(passed=8)
            assert len({handle.account_id for handle in handles_drawn(pytester, seed=3)}) == 8
            assert emulator.batches.list() == [], "after a test the server forgets its account"


def test_parallel_workers_have_servers_of_their_own_and_the_same_bytes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SHARED)
    pytester.runpytest().assert_outcomes(passed=8)
    alone = {path.name: path.read_text(encoding="utf-8") for path in pytester.path.glob("drawn-*")}
    pytester.runpytest("-n", "2").assert_outcomes(passed=8)
    parallel = {path.name: path.read_text(encoding="utf-8") for path in pytester.path.glob("drawn-*")}
    assert len(alone) == 8
    assert parallel == alone


def test_parallel_workers_can_share_a_server(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SHARED)
    with Emulator(seed=3) as emulator:
        pytester.runpytest("-n", "2", f"--workersai-target={emulator.url}").assert_outcomes(passed=8)
    assert len({handle.account_id for handle in handles_drawn(pytester, seed=3)}) == 8


CONTROLLED = """
import pytest

def test_only_the_wire(workersai, workersai_env):
    assert workersai_env["CLOUDFLARE_BASE_URL"] == workersai.base_url

def test_of_time(workersai):
    workersai.clock.freeze()

@pytest.mark.workersai(script="instant")
def test_with_settings(workersai):
    pass
"""


def test_without_a_control_plane_what_needs_one_is_skipped_with_a_reason(
    pytester: pytest.Pytester, bare_url: str
) -> None:
    pytester.makepyfile(CONTROLLED)
    result = pytester.runpytest("-rs", f"--workersai-target={bare_url}")
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(
        [f"SKIPPED*needs the emulator's control plane (clock): {bare_url} has none", "SKIPPED*(settings)*"]
    )


def test_a_control_plane_behind_a_token_is_skipped_until_the_token_is_in_the_environment(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(CONTROLLED)
    with Emulator(control_token="sesame", tokens=frozenset({"one"})) as emulator:
        result = pytester.runpytest("-rs", f"--workersai-target={emulator.url}")
        result.assert_outcomes(passed=1, skipped=2)
        result.stdout.fnmatch_lines(["SKIPPED*token of --control-token*"])
        monkeypatch.setenv("WORKERSAI_EMULATOR_CONTROL_TOKEN", "sesame")
        monkeypatch.setenv("WORKERSAI_EMULATOR_API_TOKEN", "one;two")
        pytester.makepyfile(f"{SUBMIT}\ndef test_it(workersai):\n    submit(workersai)\n")
        pytester.runpytest(f"--workersai-target={emulator.url}").assert_outcomes(passed=1)


def test_a_target_that_does_not_answer_is_an_error_that_names_it(pytester: pytest.Pytester) -> None:
    with Emulator() as emulator:
        gone = emulator.url
    pytester.makepyfile("def test_it(workersai):\n    pass\n")
    # In a process of its own: in this one, httpx may have been loaded twice, with errors that are not the same.
    result = pytester.runpytest_subprocess(f"--workersai-target={gone}")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"--workersai-target: no answer from {gone}/__emulator__/health: *"])


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--workersai-target=staging"], "--workersai-target: 'staging' is neither live nor an http URL"),
        (["--workersai-target=ftp://a"], "--workersai-target: 'ftp://a' is neither live nor an http URL"),
        (
            ["--workersai-target=https://api.cloudflare.com/client/v4"],
            "--workersai-target: say live for the live service",
        ),
        (
            ["--workersai-target=live"],
            "--workersai-target=live needs CLOUDFLARE_ACCOUNT_ID and CLOUDFLARE_API_TOKEN in the environment",
        ),
        (
            ["--workersai-target=http://a", "--workersai-config=a.toml"],
            "--workersai-config is for a server of the session, --workersai-target has its own",
        ),
    ],
    ids=["a word", "another scheme", "live by its URL", "no credentials", "a configuration too"],
)
def test_a_wrong_option_is_one_line_before_anything_runs(
    pytester: pytest.Pytester, options: list[str], complaint: str
) -> None:
    result = pytester.runpytest(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {complaint}"])


def test_live_is_cloudflare_with_the_environment_s_credentials(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUDFLARE_ACCOUNT_ID", ACCOUNT)
    monkeypatch.setenv("CLOUDFLARE_API_TOKEN", "a-secret")
    monkeypatch.setenv("CLOUDFLARE_BASE_URL", "http://127.0.0.1:1/client/v4")
    monkeypatch.setenv("WORKERS_AI_EMULATOR_URL", "http://127.0.0.1:1")
    pytester.makepyfile(
        f"""{CONTROLLED}
import os

def test_where(workersai, workersai_server, workersai_env):
    assert workersai.base_url == workersai_server.base_url == "https://api.cloudflare.com/client/v4"
    assert workersai.account_id == workersai_server.account_id == "{ACCOUNT}"
    assert workersai.token == os.environ["CLOUDFLARE_API_TOKEN"]
    assert os.environ["CLOUDFLARE_BASE_URL"] == workersai.base_url
    assert "WORKERS_AI_EMULATOR_URL" not in os.environ
    assert workersai.token not in repr(workersai)

def test_the_worker(workersai):
    workersai.worker_url
"""
    )
    result = pytester.runpytest("-rs", "--workersai-target=live")
    result.assert_outcomes(passed=2, skipped=3)
    result.stdout.fnmatch_lines(["SKIPPED*this is the live service*", "SKIPPED*the /batch Worker*"])


def test_the_environment_points_every_client_at_the_test_s_account_while_it_runs(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "before")
    pytester.makepyfile(
        """
import os
from workersai_client import Client

def test_during(workersai, workersai_env):
    with Client() as client:
        handle = client.submit("@cf/baai/bge-m3", [{"text": "a"}])
    assert [batch.request_id for batch in workersai.batches.list()] == [handle.request_id]
    assert {name: os.environ[name] for name in workersai_env} == {
        "CLOUDFLARE_BASE_URL": workersai.base_url,
        "CLOUDFLARE_API_BASE_URL": workersai.base_url,
        "CLOUDFLARE_ACCOUNT_ID": workersai.account_id,
        "CLOUDFLARE_API_TOKEN": workersai.token,
        "OPENAI_BASE_URL": f"{workersai.base_url}/accounts/{workersai.account_id}/ai/v1",
        "OPENAI_API_KEY": workersai.token,
        "WORKERS_AI_EMULATOR_URL": workersai.url,
    }

def test_after():
    assert "CLOUDFLARE_BASE_URL" not in os.environ
    assert os.environ["OPENAI_API_KEY"] == "before"
"""
    )
    pytester.runpytest().assert_outcomes(passed=2)


VERDICT = f"""{SUBMIT}
import pytest

@pytest.mark.workersai(verdict="clean", max_neurons=1)
def test_clean(workersai):
    with client_of(workersai) as client:
        client.run("@cf/baai/bge-m3", {{"text": "orange cloud"}})

@pytest.mark.workersai(verdict="clean")
def test_faulty(workersai):
    submit(workersai)
    submit(workersai)

@pytest.mark.workersai(max_neurons=0.001)
def test_dear(workersai):
    with client_of(workersai) as client:
        client.run("@cf/baai/bge-m3", {{"text": "orange cloud"}})

def test_nothing_is_expected(workersai):
    submit(workersai)
    submit(workersai)

@pytest.mark.workersai(verdict="clean", max_neurons=0)
def test_its_own_failure_goes_first(workersai):
    submit(workersai)
    submit(workersai)
    assert "own" == "failure"
"""


def test_what_a_marker_expects_of_the_client_fails_a_test_that_passed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(VERDICT)
    result = pytester.runpytest()
    result.assert_outcomes(passed=2, failed=3)
    result.stdout.fnmatch_lines(
        [
            "*_ test_faulty _*",
            "the verdict on the client is not clean:",
            "  error resubmitted: Submitted the same payload again instead of polling. submit * repeats submit *",
            "*_ test_dear _*",
            "the test used 0.003225 neurons, max_neurons=0.001 (@cf/baai/bge-m3 0.003225)",
            "*_ test_its_own_failure_goes_first _*",
            "E *own*failure*",
        ]
    )
    told = [line for line in result.outlines if line.startswith("the verdict on the client is not clean:")]
    assert len(told) == 1, "once at the failure; a summary that is not cut, as in CI, has it behind a name"


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("verdict='spotless'", "verdict is 'clean' or left out, not 'spotless'"),
        ("max_neurons='few'", "max_neurons is a number from 0 on, not 'few'"),
    ],
    ids=["verdict", "max_neurons"],
)
def test_an_expectation_that_cannot_be_is_an_error_that_names_it(
    pytester: pytest.Pytester, said: str, complaint: str
) -> None:
    pytester.makepyfile(f"import pytest\n@pytest.mark.workersai({said})\ndef test_it(workersai):\n    pass\n")
    result = pytester.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"@pytest.mark.workersai: {complaint}"])


def test_an_expectation_without_an_account_fails_instead_of_passing_unseen(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.workersai(verdict='clean')\ndef test_it():\n    pass\n")
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["@pytest.mark.workersai: verdict needs the fixture workersai, *"])


def test_an_expectation_is_skipped_before_it_costs_anything_where_there_is_no_control_plane(
    pytester: pytest.Pytester, bare_url: str
) -> None:
    pytester.makepyfile(VERDICT.replace("{SUBMIT}", ""))
    result = pytester.runpytest("-rs", "-k", "clean", f"--workersai-target={bare_url}")
    result.assert_outcomes(skipped=1, deselected=4)
    result.stdout.fnmatch_lines(["SKIPPED*needs the emulator's control plane (verdict)*"])


def test_the_report_of_a_failure_shows_the_last_exchanges_of_its_account(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""{SUBMIT}
from datetime import UTC, datetime

def test_before(workersai):
    submit(workersai)

def test_short(workersai):
    workersai.clock.freeze()
    workersai.clock.set(datetime(2126, 11, 29, 12, 30, tzinfo=UTC))
    workersai.fail("poll", 3040)
    handle = submit(workersai)
    with client_of(workersai) as client:
        client.poll(handle)

def test_long(workersai):
    workersai.script = "queued:hold, done"
    handle = submit(workersai)
    with client_of(workersai) as client:
        for _ in range(30):
            client.poll(handle)
    assert False

def test_silent(workersai):
    assert False
"""
    )
    result = pytester.runpytest()
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(
        [
            "*_ test_short _*",
            "*- Workers AI exchanges -*",
            "#* 12:30:00.000 POST submit @cf/baai/bge-m3 queued  200  * ms  ?rule-1 is for operation poll, not submit?",
            "#* 12:30:00.000 POST poll @cf/baai/bge-m3  429/3040  * ms  ?rule-1?  Capacity temporarily exceeded*",
            "*_ test_long _*",
            "(the last 20 of 31)",
            "#* POST poll @cf/baai/bge-m3 queued  200  * ms",
            "*_ test_silent _*",
        ]
    )
    text = result.stdout.str()
    assert text.count("Workers AI exchanges") == 2
    assert len([line for line in text.splitlines() if line.startswith("#")]) == 22


def test_the_report_of_a_failure_stands_whatever_the_test_did_to_http(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
import httpx

def test_it(workersai, monkeypatch):
    monkeypatch.setattr(httpx.Client, "request", None)
    workersai.clock.now()
"""
    )
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*- Workers AI exchanges -*", "not to be had: TypeError: *"])


def test_the_marker_is_documented(pytester: pytest.Pytester) -> None:
    pytester.runpytest("--markers").stdout.fnmatch_lines(["@pytest.mark.workersai(script=…, *"])


def test_a_session_without_its_fixtures_loads_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import sys\n"
        "def pytest_sessionfinish():\n"
        "    heavy = {'aiohttp', 'numpy', 'jsonschema', 'httpx', 'click', 'workersai_contracts', 'asyncio'}\n"
        "    print('LOADED', sorted(heavy & sys.modules.keys()))\n"
    )
    (tmp_path / "test_it.py").write_text("def test_it():\n    pass\n")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "workersai_emulator.pytest_plugin", "-s", "-q"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "LOADED []" in ran.stdout


def test_the_marker_begins_a_scenario(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import httpx
        import pytest

        @pytest.mark.workersai(scenario="rate-limited", script="instant")
        def test_it(workersai):
            url = f"{workersai.base_url}/accounts/{workersai.account_id}/ai/run/@cf/baai/bge-m3"
            reply = httpx.post(url, json={"text": "a"}, headers={"Authorization": "Bearer t"})
            assert reply.json()["errors"][0]["code"] == 3021
            assert workersai.script == "done"

        @pytest.mark.workersai(scenario="storm")
        def test_no_such(workersai):
            pass
        """
    )
    ran = pytester.runpytest_subprocess()
    ran.assert_outcomes(passed=1, errors=1)
    ran.stdout.fnmatch_lines(["*@pytest.mark.workersai: no scenario 'storm'; there are *"])
