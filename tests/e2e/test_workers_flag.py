"""`serve --workers`: several processes, one emulator."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COMMAND = [sys.executable, "-m", "workersai_emulator.cli", "serve", "--port", "0"]
ACCOUNT = "a" * 32
TARGET = f"/client/v4/accounts/{ACCOUNT}/ai/run/@cf/baai/bge-m3"


class Crew:
    """A `serve` with workers, and connections to whichever of them the system picks."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        self.address = process.stdout.readline().strip().removeprefix("http://")

    @property
    def workers(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()

    def ask(self, method: str, path: str, said: Any = None) -> tuple[int, Any]:
        """Ask over a connection of its own, so that it may be any worker that answers."""
        connection = HTTPConnection(self.address, timeout=30)
        connection.request(method, path, json.dumps(said or {}), {"Authorization": "Bearer a"})
        reply = connection.getresponse()
        body = reply.read()
        connection.close()
        return reply.status, json.loads(body) if body else None

    def metric(self, name: str) -> float:
        """What one of them tells of all: the sum of the samples of a metric."""
        with urlopen(f"http://{self.address}/metrics") as reply:
            lines = reply.read().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name + "{"))

    def line(self, part: str) -> str:
        """The next line on stderr that has this part."""
        assert self.process.stderr is not None
        return next(line.strip() for line in self.process.stderr if part in line)


@pytest.fixture
def crew(new_state: Callable[[str], str | None], clean_environment: None) -> Callable[..., Any]:
    @contextmanager
    def run(workers: int, *options: str) -> Iterator[Crew]:
        command = [*COMMAND, "--workers", str(workers), "--state", str(new_state("redis")), *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        with process:
            try:
                yield Crew(process)
            finally:
                process.terminate()

    return run


def test_any_worker_tells_the_metrics_of_all(crew: Callable[..., Any]) -> None:
    with crew(3) as run:
        for _ in range(20):
            assert run.ask("POST", TARGET, {"text": "a"})[0] == 200
        run.ask("GET", f"/__emulator__/requests?account_id={ACCOUNT}&wait_for=20&timeout=20s")
        told = [run.metric("workersai_emulator_exchanges_total") for _ in range(8)]

    assert told == [20.0] * 8


def test_a_batch_is_every_workers(crew: Any) -> None:
    with crew(3) as running:
        assert len(running.workers) == 3
        with ThreadPoolExecutor(8) as pool:
            submits = list(
                pool.map(
                    lambda _: running.ask(
                        "POST", f"{TARGET}?queueRequest=true", {"requests": [{"text": "a"}]}
                    ),
                    range(40),
                )
            )
            ids = [body["result"]["request_id"] for _, body in submits]
            assert len(set(ids)) == 40
            for expected in ("queued", "running", "done"):
                polls = list(
                    pool.map(lambda wanted: running.ask("POST", TARGET, {"request_id": wanted}), ids)
                )
                assert {body["result"].get("status", "done") for _, body in polls} == {expected}
        served = [worker.cpu_times().user for worker in running.workers]
        assert min(served) > 0


def test_a_rule_for_one_time_fires_once_and_the_journal_and_verdict_are_one(crew: Any) -> None:
    with crew(2) as running:
        said = {"account_id": ACCOUNT, "match": {"operation": "run"}, "effect": {"error": 3040}, "times": 1}
        assert running.ask("POST", "/__emulator__/rules", said)[0] == 200
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda _: running.ask("POST", TARGET, {"text": "a"}), range(30)))
        assert Counter(status for status, _ in replies) == {200: 29, 429: 1}
        asked = f"/__emulator__/requests?account_id={ACCOUNT}&wait_for=30&timeout=20s"
        seqs = [each["seq"] for each in running.ask("GET", asked)[1]["requests"]]
        assert seqs == sorted(seqs)
        assert len(set(seqs)) == 30
        for _ in range(6):
            _, verdict = running.ask("GET", f"/__emulator__/verdict?account_id={ACCOUNT}")
            assert verdict["clean"]


def test_a_worker_that_dies_is_told_and_replaced(crew: Any) -> None:
    with crew(2) as running:
        _, body = running.ask("POST", f"{TARGET}?queueRequest=true", {"requests": [{"text": "a"}]})
        request_id = body["result"]["request_id"]
        first, second = running.workers
        first.kill()
        assert "ended by SIGKILL; another takes its place" in running.line("workersai-emulator: worker 1")
        states = [
            running.ask("POST", TARGET, {"request_id": request_id})[1]["result"].get("status", "done")
            for _ in range(3)
        ]
        assert states == ["queued", "running", "done"]
        psutil.wait_procs([first], timeout=10)
        assert second in running.workers


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_with_zero(crew: Any, number: signal.Signals) -> None:
    with crew(2) as running:
        workers = running.workers
        running.process.send_signal(number)
        assert running.process.wait(20) == 0
        assert psutil.wait_procs(workers, timeout=10)[1] == []


def test_workers_do_not_outlive_the_process_that_started_them(crew: Any) -> None:
    with crew(2) as running:
        workers = running.workers
        running.process.kill()
        assert psutil.wait_procs(workers, timeout=20)[1] == []


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            [],
            "--workers: several processes need a state that they share, --state redis://…; a file has one writer",
        ),
        (
            ["--state", "state.db"],
            "--workers: several processes need a state that they share, --state redis://…; a file has one writer",
        ),
        (["--state", "redis://127.0.0.1:1"], "--state: the state at redis://127.0.0.1:1 is out of reach: "),
    ],
)
def test_what_workers_cannot_share_is_told_once_in_one_line(
    options: list[str], line: str, clean_environment: None
) -> None:
    ended = subprocess.run(
        [*COMMAND, "--workers", "2", *options], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert line in ended.stderr


def test_exec_has_one_process(clean_environment: None) -> None:
    command = [sys.executable, "-m", "workersai_emulator.cli", "exec", "--workers", "2", "true"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "--workers: exec runs its command beside one process" in ended.stderr
