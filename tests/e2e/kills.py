"""Clients that submit and poll while the emulator is killed again and again, and hold it to what it had answered."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any

from workersai_emulator.ids import DEVELOPMENT_ACCOUNT, chance

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TARGET = f"/client/v4/accounts/{DEVELOPMENT_ACCOUNT}/ai/run/@cf/baai/bge-small-en-v1.5"
CLIENTS = 4
#: Requests that are answered between two kills, at most.
MOST_ANSWERS = 60
_RANKS = {"queued": 0, "running": 1, "done": 2}


class Server:
    """`serve` on a port that stays the same, killed and started again."""

    def __init__(self, state: str) -> None:
        self._state = state
        self._process: subprocess.Popen[str] | None = None
        self.port = 0
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "workersai_emulator.cli", "serve", "--port", str(self.port)]
        self._process = subprocess.Popen(
            [*command, "--state", self._state, "--seed", "7"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        url = self._process.stdout.readline().strip()
        assert url, "the emulator did not start again"
        self.port = int(url.rpartition(":")[2])

    def kill(self) -> None:
        assert self._process is not None
        with self._process as process:
            process.kill()

    def stop(self) -> None:
        assert self._process is not None
        with self._process as process:
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0


@dataclass
class Batch:
    """What a client was told of a batch: the furthest state, and how it ended."""

    request_id: str
    texts: int
    rank: int = 0
    result: bytes | None = None


@dataclass
class Told:
    """All that was answered."""

    batches: dict[str, Batch] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    answers: int = 0
    finished: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class Client(threading.Thread):
    """Submits and polls until told to stop; the server goes away under it."""

    def __init__(self, port: int, told: Told, number: int, enough: threading.Event, most: int) -> None:
        super().__init__(name=f"client {number}")
        self._connection = HTTPConnection("127.0.0.1", port, timeout=30)
        self._told = told
        self._number = number
        self._enough = enough
        self._most = most
        self._own: deque[Batch] = deque()

    def run(self) -> None:
        try:
            while not self._enough.is_set():
                if len(self._own) < 3:
                    self._submit()
                else:
                    self._poll(self._own.popleft())
        except (OSError, HTTPException):
            pass  # the server was killed: what was not answered is nobody's
        finally:
            self._connection.close()

    def _submit(self) -> None:
        number = len(self._told.batches)
        texts = 1 + number % 7
        # Some requests are so large that they are written in parts.
        text = "x" * (400_000 if chance(1, number) < 0.05 else 50)
        reply = self._ask("?queueRequest=true", {"requests": [{"text": text}] * texts})
        request_id = reply["request_id"]
        with self._told.lock:
            if request_id in self._told.batches:
                self._told.faults.append(f"{request_id} was given twice")
            self._told.batches[request_id] = batch = Batch(request_id, texts)
            self._answered()
        self._own.append(batch)

    def _poll(self, batch: Batch) -> None:
        poll(self._connection, self._told, batch)
        with self._told.lock:
            self._answered()
        if batch.result is None:
            self._own.append(batch)

    def _answered(self) -> None:
        self._told.answers += 1
        if self._told.answers >= self._most:
            self._enough.set()

    def _ask(self, query: str, said: Any) -> Any:
        return json.loads(ask(self._connection, query, said))["result"]


def ask(connection: HTTPConnection, query: str, said: Any) -> bytes:
    connection.request("POST", TARGET + query, json.dumps(said), {"Authorization": "Bearer a"})
    return connection.getresponse().read()


def poll(connection: HTTPConnection, told: Told, batch: Batch) -> None:
    """Poll a batch, and write down whatever is not as it was told before."""
    body = ask(connection, "", {"request_id": batch.request_id})
    reply = json.loads(body)
    if not reply["success"]:
        told.faults.append(f"{batch.request_id}, told as {batch.rank}, is refused: {reply['errors']}")
        return
    result = reply["result"]
    rank = _RANKS[result.get("status", "done")]
    if rank < batch.rank or (batch.rank == 1 and rank < 2):
        told.faults.append(f"{batch.request_id} was at {batch.rank} and is at {rank}")
    if rank == 2:
        if len(result["responses"]) != batch.texts:
            told.faults.append(f"{batch.request_id} has {len(result['responses'])} items")
        if batch.result not in {None, body}:
            told.faults.append(f"{batch.request_id} was finished and has another reply")
        if batch.result is None:
            with told.lock:
                told.finished += 1
        batch.result = body
    batch.rank = rank


def killed(state: str, kills: int) -> Told:
    """Kill the emulator so many times under load, and look each time whether it knows what it had answered."""
    told = Told()
    server = Server(state)
    looked_at: set[str] = set()
    for number in range(kills):
        enough = threading.Event()
        most = told.answers + 1 + int(MOST_ANSWERS * chance(2, number))
        clients = [Client(server.port, told, each, enough, most) for each in range(CLIENTS)]
        for client in clients:
            client.start()
        enough.wait(60)
        server.kill()
        for client in clients:
            client.join()
        server.start()
        connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
        for batch in _to_look_at(told, looked_at, number):
            poll(connection, told, batch)
        connection.close()
    connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
    for batch in told.batches.values():
        poll(connection, told, batch)
    connection.close()
    server.stop()
    return told


def _to_look_at(told: Told, looked_at: set[str], number: int) -> Iterator[Batch]:
    """The batches of this round, and some of the earlier ones."""
    for batch in list(told.batches.values()):
        if batch.request_id not in looked_at or chance(3, number, batch.request_id) < 0.02:
            looked_at.add(batch.request_id)
            yield batch


def main(arguments: Sequence[str]) -> None:
    """Kill as often as told: `kills.py STATE KILLS`."""
    told = killed(arguments[0], int(arguments[1]))
    print(
        f"{arguments[1]} kills: {told.answers} answers, {len(told.batches)} batches, {told.finished} finished, "
        f"{len(told.faults)} faults"
    )
    for fault in told.faults:
        print(fault)
    sys.exit(bool(told.faults))


if __name__ == "__main__":
    os.environ.pop("WORKERSAI_EMULATOR_STATE", None)
    main(sys.argv[1:])
