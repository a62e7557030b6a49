"""`--record` and `--target replay:DIR`: what one target did is held to the contract again, without it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lying_proxy import LyingProxy
from test_verify_command import verify

from workersai_contracts.recording import Recording
from workersai_contracts.verify import main
from workersai_emulator import Emulator

if TYPE_CHECKING:
    from lying_proxy import Passing


pytestmark = pytest.mark.differences

TOKEN, ACCOUNT = "a-secret-token-of-the-account", "feedface" * 4
Made = tuple[Path, str]


def facts_told(stdout: str) -> str:
    return next(line for line in stdout.splitlines() if line.startswith("facts: "))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A recording of a whole run, and what was told of its facts."""
    folder = tmp_path_factory.mktemp("whole") / "recording"
    with Emulator(tokens=[TOKEN]) as emulator:
        ran = verify(
            *("--target", emulator.url, "--worker", emulator.url, "--record", str(folder)),
            CLOUDFLARE_API_TOKEN=TOKEN,
            CLOUDFLARE_ACCOUNT_ID=ACCOUNT,
        )
    assert ran.returncode == 0, ran.stdout
    return folder, facts_told(ran.stdout)


def test_a_recording_of_an_emulator_replayed_passes_the_suite(made: Made) -> None:
    folder, told = made
    replayed = verify(
        "--target", f"replay:{folder}", "-n", "2"
    )  # which must be in order, and so takes one process
    assert replayed.returncode == 0, replayed.stdout
    assert "skipped" not in replayed.stdout
    assert facts_told(replayed.stdout) == told


def test_a_recording_has_a_file_for_each_exchange_in_its_order(made: Made) -> None:
    folder, _ = made
    recording = Recording.read(folder)
    assert recording.target.startswith("http://127.0.0.1:")
    assert len(recording.exchanges) > 200
    assert sum(path.stat().st_size for path in folder.iterdir()) < 5_000_000  # 47 MB were sent
    batch = [one for one in recording.exchanges if one.of == "test_lifecycle[translations]"]
    first = batch[0].number
    assert [one.name for one in batch] == [
        f"{first:04d}-submit-m2m100-1.2b.json",
        *(f"{first + poll:04d}-poll-{poll}-m2m100-1.2b.json" for poll in range(1, 5)),
    ]
    assert [one.result.get("status", "done") for one in batch] == [
        "queued",
        "queued",
        "running",
        "done",
        "done",
    ]
    assert len({one.request_id for one in batch}) == 1


def test_a_recording_holds_neither_token_nor_account(made: Made) -> None:
    told = "".join(path.read_text() for path in made[0].iterdir())
    assert len(told) > 1_000_000
    assert TOKEN not in told
    assert ACCOUNT not in told
    assert '"credentials": "malformed"' in told
    assert "Token of the wrong form" not in told


def test_a_recording_of_what_is_wrong_is_wrong_again_and_is_otherwise_again(tmp_path: Path) -> None:
    def lie(passing: Passing) -> None:
        if "content-type" in passing.headers:
            passing.headers["content-type"] = "text/plain"

    folder, chosen = tmp_path / "recording", ["-k", "poll.unknown or several or capacity"]
    with Emulator(assumptions={"poll.unknown": "not-found"}) as emulator, LyingProxy(emulator.url) as proxy:
        proxy.lie = lie
        ran = verify("--target", proxy.url, "--record", str(folder), *chosen)
    replayed = verify("--target", f"replay:{folder}", *chosen)
    assert (ran.returncode, replayed.returncode) == (1, 1)
    told = [run.stdout[run.stdout.index("facts: ") :] for run in (ran, replayed)]
    assert told[0] == told[1]
    assert "otherwise poll.unknown" in told[0]


def test_a_replay_that_has_run_out_is_told_by_the_suite_in_one_line(made: Made, tmp_path: Path) -> None:
    folder = tmp_path / "recording"
    shutil.copytree(made[0], folder)
    [last] = folder.glob("*-poll-4-m2m100-1.2b.json")
    last.unlink()
    [third] = folder.glob("*-poll-3-m2m100-1.2b.json")
    for path in folder.glob("*-run-bge-reranker-base.json"):
        path.unlink()
    ran = verify("--target", f"replay:{folder}", "-k", "translations or test_exchange[reranking]")
    assert ran.returncode == 1
    assert "the recording has run out: batch 00000000-0000-4000-8000-" in ran.stdout
    assert f"was polled 3 times, the last in {third.name} (done)" in ran.stdout
    assert (
        "the recording has no POST /client/v4/accounts/{account_id}/ai/run/@cf/baai/bge-reranker-base"
        in ran.stdout
    )
    assert "; the nearest is " in ran.stdout
    assert "Traceback" not in ran.stdout


def test_texts_can_be_left_out_of_a_recording(tmp_path: Path) -> None:
    folder = tmp_path / "recording"
    chosen = ["-k", "(embeddings and small) or translations or stream or several"]
    made = verify("--target", "emulator", "--record", str(folder), "--redact-texts", *chosen)
    replayed = verify("--target", f"replay:{folder}", *chosen)
    assert (made.returncode, replayed.returncode) == (0, 0), replayed.stdout
    told = "".join(path.read_text() for path in folder.iterdir()).lower()
    assert [
        word
        for word in ("story", 'llama"', "orange", "cloud", "say yes", "placeholder", "#3")
        if word in told
    ] == []
    assert facts_told(replayed.stdout) == facts_told(made.stdout)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--target", "emulator", "--record", "{full}"], "it is not empty; give a folder that is new"),
        (
            ["--target", "emulator", "--record", "{new}", "-n", "2"],
            "--record keeps exchanges in their order: leave out -n",
        ),
        (["--target", "emulator", "--redact-texts"], "--redact-texts goes with --record DIR"),
        (["--target", "replay:{full}"], "has no recording.json"),
        (["drift", "emulator", "replay:{full}"], "has no recording.json"),
    ],
    ids=["not empty", "in order", "nothing to redact", "no recording", "no recording to compare"],
)
def test_what_cannot_be_recorded_or_replayed_is_one_line(
    arguments: list[str],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").touch()
    folders = {"full": tmp_path / "full", "new": tmp_path / "new"}
    monkeypatch.setattr("sys.argv", ["workersai-verify", *(word.format(**folders) for word in arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert complaint in told
    assert told.count("\n") == 1
