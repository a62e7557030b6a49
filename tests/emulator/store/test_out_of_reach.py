"""A state that is out of reach, or full: a clear refusal in no time, and on with it once it is back."""

from __future__ import annotations

import json
import logging
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

from redis_server import redis_server
from workersai_emulator import Emulator
from workersai_emulator.file_store import FileStore
from workersai_emulator.store import NotKept

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TARGET = f"/client/v4/accounts/{'a' * 32}/ai/run/@cf/baai/bge-m3"


def ask(emulator: Emulator, said: Any, query: str = "", path: str = TARGET) -> tuple[int, Any]:
    connection = HTTPConnection(emulator.url.removeprefix("http://"), timeout=20)
    connection.request("POST", path + query, json.dumps(said), {"Authorization": "Bearer a"})
    reply = connection.getresponse()
    told = reply.status, json.loads(reply.read())
    connection.close()
    return told


def test_a_redis_that_went_away_is_a_503_that_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with redis_server(tmp_path) as server, Emulator(state=server.url, script="instant") as emulator:
        assert ask(emulator, {"text": "a"})[0] == 200
        server.stop()
        for path in (TARGET, "/__emulator__/rules"):
            status, body = ask(emulator, {"text": "a"}, path=path)
            assert status == 503
            line = f"workersai-emulator: the state at {server.url} is out of reach: "
            assert body["success"] is False
            assert body["errors"][0]["message"].startswith(line)
        told = {record.getMessage() for record in caplog.records}
        assert any(f"POST {TARGET}: the state at {server.url} is out of reach" in line for line in told)
        assert all(record.exc_info is None for record in caplog.records)
        server.start()
        assert ask(emulator, {"text": "a"})[0] == 200


def test_a_submit_that_could_not_be_kept_is_not_answered_as_if_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    state = str(tmp_path / "state.db")
    with Emulator(state=state, script="instant", seed=1) as emulator:
        with monkeypatch.context() as patched:
            patched.setattr(FileStore, "_write_at_once", _full)
            status, body = ask(emulator, {"requests": [{"text": "a"}]}, "?queueRequest=true")
        assert (status, body["errors"][0]["message"]) == (503, "workersai-emulator: full")
        status, body = ask(emulator, {"requests": [{"text": "a"}]}, "?queueRequest=true")
        assert status == 200
    with Emulator(state=state) as again:
        status, body = ask(again, {"request_id": body["result"]["request_id"]})
        assert (status, len(body["result"]["responses"])) == (200, 1)
    assert {record.levelno for record in caplog.records} == {logging.ERROR}


def _full(store: FileStore) -> None:
    raise NotKept("full")
