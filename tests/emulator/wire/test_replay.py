"""A recording answers in the emulator's place: each batch in its order, and a clear word when it has run out."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from workersai_client import Client, WorkersAIError
from workersai_contracts.passing import Reply, Request, spelled
from workersai_contracts.recording import NoRecording, Recorder, Recording
from workersai_emulator import Emulator
from workersai_emulator.cli import cli
from workersai_emulator.flags import options_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

M3, SMALL = "@cf/baai/bge-m3", "@cf/baai/bge-small-en-v1.5"
ACCOUNT, OTHER = "ab" * 16, "cd" * 16
TOKEN = "a-token-of-the-live-account-0123456789"
NOBODY_S = "00000000-0000-4000-8000-000000000000"


class Wire:
    """Talks to one server as one account; with a recorder what passes is kept."""

    def __init__(self, root: str, account_id: str = ACCOUNT, recorder: Recorder | None = None) -> None:
        self.http = httpx.Client(base_url=root, headers={"Authorization": f"Bearer {TOKEN}"})
        self._account_id = account_id
        self._recorder = recorder

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def as_account(self, account_id: str) -> Wire:
        return Wire(str(self.http.base_url).rstrip("/"), account_id)

    def post(
        self, model: str, body: Any, query: str = "", path: str | None = None, **headers: str
    ) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        url = path or f"/client/v4/accounts/{self._account_id}/ai/run/{model}{query}"
        reply = self.http.post(url, content=content, headers=headers)
        if self._recorder is not None:
            asked = Request(
                "POST", reply.request.url.raw_path.decode(), spelled(reply.request.headers), content
            )
            self._recorder.keep(asked, Reply(reply.status_code, spelled(reply.headers), reply.content))
        return reply

    def submit(self, model: str, *items: Any, **headers: str) -> str:
        return str(
            self.post(model, {"requests": list(items)}, "?queueRequest=true", **headers).json()["result"][
                "request_id"
            ]
        )

    def poll(self, model: str, request_id: str, query: str = "") -> httpx.Response:
        return self.post(model, {"request_id": request_id}, query)


@contextmanager
def recording(folder: Path, *, hide_texts: bool = False) -> Iterator[Wire]:
    recorder = Recorder("emulator", folder, account_ids=[ACCOUNT], tokens=[TOKEN], hide_texts=hide_texts)
    with (
        Emulator(seed=5, script="queued:2, running:1, done") as emulator,
        Wire(emulator.url, recorder=recorder) as wire,
    ):
        yield wire


@contextmanager
def replaying(folder: Path, account_id: str = ACCOUNT, **options: Any) -> Iterator[Wire]:
    with Emulator(replay=folder, **options) as emulator, Wire(emulator.url, account_id) as wire:
        yield wire


def states(wire: Wire, model: str, request_id: str, polls: int) -> list[str]:
    told = [wire.poll(model, request_id, "?queueRequest=true" if poll % 2 else "") for poll in range(polls)]
    return [
        reply.json()["result"].get("status", "done") if reply.status_code == 200 else str(reply.status_code)
        for reply in told
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two equal batches and another, a run, a stream, a refusal, a poll of an id that nobody was given."""
    made = tmp_path_factory.mktemp("made") / "recording"
    with recording(made) as wire:
        batches = [wire.submit(M3, {"text": "a"}) for _ in range(2)]
        other = wire.submit(SMALL, {"text": "b", "external_reference": "row 7"})
        for _ in range(4):
            for batch in batches:
                wire.poll(M3, batch)
        for _ in range(4):
            wire.poll(SMALL, other)
        wire.post(M3, {"text": ["one", "two"]})
        wire.post(
            "@cf/meta/llama-3.3-70b-instruct-fp8-fast", {"prompt": "hi", "stream": True, "max_tokens": 8}
        )
        wire.post(M3, {})
        wire.poll(M3, NOBODY_S)
        wire.post("", {"texts": ["x"]}, path="/batch")
    return made


def test_each_batch_walks_through_its_own_states(folder: Path) -> None:
    with replaying(folder) as wire:
        batches = [wire.submit(M3, {"text": "a"}) for _ in range(2)]
        assert len(set(batches)) == 2
        assert states(wire, M3, batches[1], 3) == ["queued", "queued", "running"]
        assert states(wire, M3, batches[0], 4) == ["queued", "queued", "running", "done"]
        assert states(wire, M3, batches[1], 1) == ["done"]


def test_a_reply_is_the_recorded_one_byte_for_byte_but_for_its_ids(folder: Path) -> None:
    with Emulator(seed=5) as emulator, Wire(emulator.url) as wire:
        expected = wire.post(M3, {"text": ["one", "two"]})
    with replaying(folder) as wire:
        reply = wire.post(M3, {"text": ["one", "two"]})
        stream = wire.post(
            "@cf/meta/llama-3.3-70b-instruct-fp8-fast", {"stream": True, "prompt": "hi", "max_tokens": 8}
        )
        refusal = wire.post("@cf%2Fbaai%2Fbge-m3", {})
    assert reply.content == expected.content
    assert reply.headers["content-type"] == "application/json"
    assert set(reply.headers) == set(expected.headers)
    assert stream.headers["content-type"] == "text/event-stream"
    assert stream.content.endswith(b"data: [DONE]\n\n")
    reached = refusal.headers["cf-ai-req-id"]
    assert refusal.json()["errors"][0]["message"].endswith(f"({reached})")


def test_a_batch_that_has_run_out_says_so_in_one_line(folder: Path) -> None:
    with replaying(folder) as wire:
        batch = wire.submit(SMALL, {"text": "b", "external_reference": "row 7"})
        assert states(wire, SMALL, batch, 4)[-1] == "done"
        reply = wire.poll(SMALL, batch)
        again = wire.post(
            SMALL, {"requests": [{"text": "b", "external_reference": "row 7"}]}, "?queueRequest=true"
        )
    assert reply.status_code == 501
    assert reply.json()["errors"] == [
        {
            "message": f"workersai-emulator: the recording has run out: batch {batch} was polled 4 times, "
            "the last in 0015-poll-4-bge-small-en-v1.5.json (done)",
            "code": 0,
        }
    ]
    told = again.json()["errors"][0]["message"]
    assert "the recording has run out" in told
    assert "was sent once, the last in 0003-submit-bge-small-en-v1.5.json" in told


def test_what_was_not_recorded_is_refused_with_the_nearest(folder: Path) -> None:
    with replaying(folder) as wire:
        other_text = wire.post(M3, {"text": ["one", "three"]})
        other_batch = wire.poll(M3, "11111111-1111-4111-8111-111111111111")
        second_stranger = wire.poll(M3, "22222222-2222-4222-8222-222222222222")
        control = wire.post("", {"match": {}, "effect": {"error": 3040}}, path="/__emulator__/rules")
        health = wire.http.get("/__emulator__/health")
    assert other_text.status_code == 501
    assert "the nearest is 0016-run-bge-m3.json" in other_text.json()["errors"][0]["message"]
    assert other_batch.status_code == 400  # an id that nobody was given, as the recorded one
    assert "11111111-1111-4111-8111-111111111111" not in other_batch.text
    assert second_stranger.status_code == 501
    assert control.status_code == 501
    assert "does nothing" in control.json()["error"]
    assert health.status_code == 200


def test_an_account_walks_for_itself_and_a_reset_begins_again(folder: Path) -> None:
    body = {"text": ["one", "two"]}
    with replaying(folder, OTHER) as wire, wire.as_account(ACCOUNT) as another:
        assert wire.post(M3, body).status_code == 200
        assert wire.post(M3, body).status_code == 501
        assert another.post(M3, body).status_code == 200
        assert wire.post("", {"account_id": OTHER}, path="/__emulator__/reset").status_code == 204
        assert wire.post(M3, body).status_code == 200
        assert another.post(M3, body).status_code == 501


def test_what_was_not_recorded_can_be_emulated_instead(folder: Path) -> None:
    with replaying(folder, replay_or_emulate=True, script="instant") as wire:
        recorded = wire.submit(M3, {"text": "a"})
        emulated = wire.submit(M3, {"text": "nobody recorded this"}, **{"Content-Encoding": "identity"})
        assert states(wire, M3, emulated, 2) == ["done", "done"]
        assert states(wire, M3, recorded, 4) == ["queued", "queued", "running", "done"]
        assert wire.http.get("/__emulator__/rules").status_code == 200


def test_the_credentials_count_where_the_server_knows_its_tokens(tmp_path: Path) -> None:
    made = tmp_path / "r"
    with recording(made) as wire:
        wire.post(M3, {"text": "a"})
        wire.http.headers["Authorization"] = "nonsense"
        wire.post(M3, {"text": "a"})
        del wire.http.headers["Authorization"]
        wire.post(M3, {"text": "a"})
    with replaying(made, tokens=[TOKEN]) as wire:
        wire.http.headers["Authorization"] = "nonsense"
        assert wire.post(M3, {"text": "a"}).status_code == 400
        wire.http.headers["Authorization"] = f"Bearer {TOKEN}"
        assert wire.post(M3, {"text": "a"}).status_code == 200
        wire.http.headers["Authorization"] = "Bearer another-one"
        assert wire.post(M3, {"text": "a"}).status_code == 501


def test_hidden_texts_are_found_again_and_references_come_back(tmp_path: Path) -> None:
    made = tmp_path / "r"
    items = [{"text": "my secret", "external_reference": "row seven"}, {"text": "no secret at all"}]
    with recording(made, hide_texts=True) as wire:
        batch = wire.submit(M3, *items)
        for _ in range(4):
            wire.poll(M3, batch)
    files = "".join(path.read_text() for path in made.iterdir())
    assert "secret" not in files
    assert "row seven" not in files
    with replaying(made) as wire:
        batch = wire.submit(M3, *items)
        done = [wire.poll(M3, batch) for _ in range(4)][-1].json()["result"]["responses"]
    assert {item["id"]: item["external_reference"] for item in done} == {0: "row seven", 1: None}
    assert [len(item["result"]["data"][0]) for item in done] == [1024, 1024]


def test_a_client_waits_on_a_recording_as_on_the_service_and_hears_of_its_end(folder: Path) -> None:
    with (
        Emulator(replay=folder) as emulator,
        Client(OTHER, "any", emulator.base_url, sleep=lambda seconds: None, max_retries=0) as client,
    ):
        handle = client.submit(M3, [{"text": "a"}])
        assert client.wait(handle, timeout=10).items[0].success
        with pytest.raises(WorkersAIError, match="the recording has run out"):
            client.poll(handle)
        seen = [(view.operation, view.status) for view in emulator.account(OTHER).requests.list()]
        assert seen == [("submit", 200), *[("poll", 200)] * 4, ("poll", 501)]


def test_the_files_of_a_batch_are_named_in_their_order(folder: Path) -> None:
    names = [path.name for path in sorted(folder.iterdir())]
    assert names[:5] == [
        "0001-submit-bge-m3.json",
        "0002-submit-bge-m3.json",
        "0003-submit-bge-small-en-v1.5.json",
        "0004-poll-1-bge-m3.json",
        "0005-poll-1-bge-m3.json",
    ]
    assert names[-1] == "recording.json"
    read = Recording.read(folder)
    assert read.has_worker
    assert [one.number for one in read.exchanges] == list(range(1, len(names)))
    longest = max((folder / "0016-run-bge-m3.json").read_text().splitlines(), key=len)
    assert longest.count(",") in {1023, 1024}  # a vector is one line


def test_what_is_no_recording_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(NoRecording, match=r"has no recording\.json"):
        Emulator(replay=tmp_path)
    (tmp_path / "recording.json").write_text('{"recording": 99}')
    with pytest.raises(NoRecording, match="not a recording of this version's form"):
        Emulator(replay=tmp_path)
    (tmp_path / "recording.json").write_text('{"recording": 1}')
    (tmp_path / "0001-run.json").write_text('{"number": 1}')
    with pytest.raises(NoRecording, match=r"0001-run\.json: it is no recorded exchange"):
        Emulator(replay=tmp_path)
    with pytest.raises(NoRecording, match="it is not empty"):
        Recorder("emulator", tmp_path)


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--replay-or-emulate"], "--replay-or-emulate goes with --replay DIR"),
        (
            ["--replay", "{folder}", "--workers", "2", "--state", "{folder}/state"],
            "walked through by one process",
        ),
        (["--replay", "{folder}"], r"has no recording\.json"),
    ],
)
def test_flags_that_cannot_be_are_refused(flags: list[str], complaint: str, tmp_path: Path) -> None:
    said = [flag.format(folder=tmp_path) for flag in flags]
    with pytest.raises(ValueError, match=complaint):
        cli.main(["serve", "--port", "0", *said], standalone_mode=False)


def test_a_recording_can_be_named_in_a_file_of_options(folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "emulator.toml"
    config.write_text(f'replay = "{folder}"\nreplay_or_emulate = true\n')
    options = options_in(config)
    assert (options.replay, options.replay_or_emulate) == (folder, True)
