"""Targets: what the suite can be run against, and how each is reached."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from workersai_contracts.recording import NoRecording, Recording

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Kind = Literal["emulator", "url", "live", "replay"]

REPLAY = "replay:"
LIVE = "https://api.cloudflare.com"
DEVELOPMENT_ACCOUNT = "0123456789abcdef0123456789abcdef"
DEVELOPMENT_TOKEN = "emulator"  # noqa: S105 - of the emulator, no secret
ENVIRONMENT = "WORKERSAI_VERIFY_TARGET"


class NoTarget(ValueError):
    """The target cannot be had; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server that speaks the REST dialect, and perhaps a `/batch` Worker.

    `root` is the address without a path, `worker` that of the Worker. `budget`, in neurons, bounds what a run
    may cost; None where nothing costs.
    """

    kind: Kind
    root: str
    account_id: str
    token: str = field(repr=False)
    worker: str | None = None
    budget: float | None = None

    @property
    def in_order(self) -> bool:
        """Whether its exchanges must come one after the other, in the order of the suite."""
        return self.kind in {"live", "replay"}

    @property
    def costs(self) -> bool:
        """Whether somebody pays for each exchange."""
        return self.kind == "live"

    def to_environment(self) -> dict[str, str]:
        """What hands this target on to the processes of a run; it holds the token."""
        return {ENVIRONMENT: json.dumps(asdict(self))}

    @classmethod
    def from_environment(cls) -> Target:
        """The target of the run that this process belongs to."""
        try:
            return cls(**json.loads(os.environ[ENVIRONMENT]))
        except KeyError:
            raise NoTarget("the suite has no target: run it with workersai-verify --target …") from None


@contextmanager
def reached(name: str, *, worker: str | None, budget: float, environ: Mapping[str, str]) -> Iterator[Target]:
    """Reach the target of a name: `emulator`, `live`, `replay:` and a recording's folder, or a URL. Raises NoTarget.

    `emulator` is started for the run, on a free port, and ended after it; so is what replays a recording. `live` is
    api.cloudflare.com whatever the environment says.
    """
    if name.startswith(REPLAY):
        with _replayed(Path(name.removeprefix(REPLAY)), worker) as target:
            yield target
    elif name == "emulator":
        with _emulator() as root:
            yield Target("emulator", root, DEVELOPMENT_ACCOUNT, DEVELOPMENT_TOKEN, worker or root)
    elif name == "live":
        yield _live(environ, worker, budget)
    else:
        yield _at_url(name, environ, worker)


def _live(environ: Mapping[str, str], worker: str | None, budget: float) -> Target:
    missing = [name for name in ("CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_API_TOKEN") if not environ.get(name)]
    if missing:
        raise NoTarget(f"--target live needs {' and '.join(missing)} in the environment")
    account_id, token = environ["CLOUDFLARE_ACCOUNT_ID"], environ["CLOUDFLARE_API_TOKEN"]
    return Target("live", LIVE, account_id, token, worker, budget)


def _at_url(name: str, environ: Mapping[str, str], worker: str | None) -> Target:
    address = urlsplit(name)
    if address.scheme not in {"http", "https"} or not address.hostname:
        raise NoTarget(
            f"--target {name}: give emulator, live, replay:DIR, or a URL such as http://127.0.0.1:8799"
        )
    if address.hostname == urlsplit(LIVE).hostname:
        raise NoTarget(
            "--target: the live service is only reached by --target live, which bounds what it costs"
        )
    root = name.rstrip("/").removesuffix("/client/v4")
    try:
        socket.create_connection((address.hostname, address.port or 443), timeout=10).close()
    except OSError as fault:
        raise NoTarget(f"--target {name}: cannot be reached: {fault.strerror or fault}") from None
    return Target(
        "url",
        root,
        environ.get("CLOUDFLARE_ACCOUNT_ID") or DEVELOPMENT_ACCOUNT,
        environ.get("CLOUDFLARE_API_TOKEN") or DEVELOPMENT_TOKEN,
        worker,
    )


@contextmanager
def _replayed(folder: Path, worker: str | None) -> Iterator[Target]:
    try:
        recording = Recording.read(folder)
    except NoRecording as fault:
        raise NoTarget(f"--target {REPLAY}{folder}: {fault}") from None
    with _emulator("--replay", str(folder)) as root:
        its_own = root if recording.has_worker else None
        yield Target("replay", root, DEVELOPMENT_ACCOUNT, DEVELOPMENT_TOKEN, worker or its_own)


@contextmanager
def _emulator(*options: str) -> Iterator[str]:
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    command = shutil.which("workersai-emulator", path=beside)
    if command is None:
        raise NoTarget("--target emulator: the command workersai-emulator is not installed here")
    strict = ["--api-token", DEVELOPMENT_TOKEN, "--port", "0", *options]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("WORKERSAI_EMULATOR_")}
    process = subprocess.Popen(  # noqa: S603 - our own command
        [command, "serve", *strict], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean
    )
    with process:
        assert process.stdout is not None
        root = process.stdout.readline().strip()
        if not root:
            assert process.stderr is not None
            raise NoTarget(f"--target emulator: it did not start: {process.stderr.read().strip()}")
        try:
            yield root
        finally:
            process.terminate()
