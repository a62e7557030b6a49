"""The pytest plugin: an emulator for the session, and an account of its own for each test.

| fixture | what it is |
|---|---|
| `workersai` | a fresh account for this test, a `WorkersAI`: what other tests do is not seen there |
| `workersai_server` | the session's server with its development account, which all tests share |
| `workersai_env` | the environment that points every client at the test's account |

`@pytest.mark.workersai(script=…, assumptions=…, …)` gives the test's account these settings. Loading this loads
nothing heavy: the server comes in with the first test that takes a fixture.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

import pytest

from workersai_emulator.controls import WorkersAI
from workersai_emulator.environment import LIVE_URL, variables
from workersai_emulator.ids import DEVELOPMENT_ACCOUNT, DEVELOPMENT_TOKEN, fresh_account
from workersai_emulator.plane import HttpPlane

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from workersai_emulator.options import Options
    from workersai_emulator.plane import Plane

DEFAULT_SEED = 0
_CREDENTIALS = ("CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_API_TOKEN")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("workersai", "workersai-emulator")
    group.addoption(
        "--workersai-config",
        metavar="FILE",
        help="A TOML file as `workersai-emulator serve --config` reads it; host and port stay the fixture's.",
    )
    group.addoption(
        "--workersai-seed",
        type=int,
        metavar="N",
        help=f"What ids and orders are drawn from; else the file's, else {DEFAULT_SEED}.",
    )
    group.addoption(
        "--workersai-target",
        metavar="live|URL",
        help="Use an emulator that runs elsewhere, or (live) Cloudflare itself with CLOUDFLARE_ACCOUNT_ID and "
        "CLOUDFLARE_API_TOKEN; what needs a control plane that is not there is skipped.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and refuse options that cannot be before anything runs."""
    config.addinivalue_line(
        "markers",
        "workersai(script=…, assumptions=…, limits=…, worker_binding=…): settings of this test's account, "
        "spelled as in the emulator's control plane",
    )
    target = config.getoption("--workersai-target")
    if target is None:
        return
    _check_target(target)
    if config.getoption("--workersai-config"):
        raise pytest.UsageError("--workersai-config is for a server of the session, --workersai-target has its own")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse a marker that says what does not exist, whether or not its test takes a fixture."""
    _settings(item)


class Uncontrolled:
    """The way to a control plane that is not there: whoever asks for it is skipped. A `Plane`."""

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason

    def ask(self, method: str, path: str, said: Mapping[str, Any]) -> NoReturn:
        """Skip the test. See `Plane`."""
        pytest.skip(f"needs the emulator's control plane ({path}): {self.reason}")


@dataclass(frozen=True)
class Target:
    """What the session runs against; `account_id` None leaves a fresh account to each test."""

    plane: Plane
    token: str
    seed: int
    account_id: str | None = None

    def account(self, account_id: str) -> WorkersAI:
        """One account there, or the only one."""
        return WorkersAI(self.plane, self.account_id or account_id, self.token)


@pytest.fixture(scope="session")
def _workersai_target(pytestconfig: pytest.Config) -> Iterator[Target]:
    named = pytestconfig.getoption("--workersai-target")
    if named == "live":
        account_id, token = (os.environ[name] for name in _CREDENTIALS)
        yield Target(Uncontrolled(LIVE_URL, "this is the live service"), token, 0, account_id)
        return
    if named is not None:
        plane = _plane_of(_root(named))
        seed = pytestconfig.getoption("--workersai-seed")
        yield Target(plane, _first_token(), DEFAULT_SEED if seed is None else seed)
        if isinstance(plane, HttpPlane):
            plane.close()
        return
    from workersai_emulator.emulator import Emulator

    with Emulator.of(_options(pytestconfig)) as emulator:
        plane = HttpPlane(emulator.url, emulator.control_token)
        yield Target(plane, emulator.token, emulator.seed)
        plane.close()
