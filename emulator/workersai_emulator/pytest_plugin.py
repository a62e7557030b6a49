"""The pytest plugin: an emulator for the session, and an account of its own for each test.

| fixture | what it is |
|---|---|
| `workersai` | a fresh account for this test, a `WorkersAI`: what other tests do is not seen there |
| `workersai_server` | the session's server with its development account, which all tests share |
| `workersai_env` | the environment that points every client at the test's account |

`@pytest.mark.workersai(script=…, assumptions=…, …)` gives the test's account these settings, `scenario=…` begins
one there; `verdict="clean"` and
`max_neurons=…` are asserted when the test has passed. The report of one that failed shows its last exchanges.
Loading this loads nothing heavy: the server comes in with the first test that takes a fixture.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

import pytest

from workersai_emulator.controls import WorkersAI
from workersai_emulator.environment import LIVE_URL, variables
from workersai_emulator.ids import DEVELOPMENT_ACCOUNT, DEVELOPMENT_TOKEN, fresh_account
from workersai_emulator.plane import HttpPlane

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from workersai_emulator.options import Options
    from workersai_emulator.plane import Plane

DEFAULT_SEED = 0
EXCHANGES_SHOWN = 20
_ACCOUNT = pytest.StashKey[WorkersAI]()
_SCENARIO = "scenario"
_EXPECTATIONS = ("verdict", "max_neurons")
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
        "workersai(script=…, assumptions=…, limits=…, worker_binding=…, scenario=…, verdict='clean', "
        "max_neurons=…): settings of this test's account, spelled as in the emulator's control plane, and what "
        "must hold when it passed",
    )
    target = config.getoption("--workersai-target")
    if target is None:
        return
    _check_target(target)
    if config.getoption("--workersai-config"):
        raise pytest.UsageError(
            "--workersai-config is for a server of the session, --workersai-target has its own"
        )


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse a marker that says what does not exist, whether or not its test takes a fixture."""
    _settings(item)
    _expectations(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Hold a test that passed against what its marker expects of its client."""
    result = yield
    expected = _expectations(item)
    if expected:
        account = item.stash.get(_ACCOUNT, None)
        if account is None:
            _refuse(f"{', '.join(expected)} needs the fixture workersai, which the test does not take")
        _expect(account, **expected)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the last exchanges of a test that failed."""
    report = yield
    account = item.stash.get(_ACCOUNT, None)
    if report.failed and call.when == "call" and account is not None:
        shown = _exchanges(account)
        if shown:
            report.sections.append(("Workers AI exchanges", shown))
    return report


class Uncontrolled:
    """The way to a control plane that is not there: whoever asks for it is skipped. A `Plane`."""

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason

    def ask(self, method: str, path: str, said: Mapping[str, Any]) -> NoReturn:
        """Skip the test. See `Plane`."""
        pytest.skip(f"needs the emulator's control plane ({path}): {self.reason}")


class LiveAccount(WorkersAI):
    """The account of the credentials at Cloudflare itself."""

    @property
    def worker_url(self) -> str:
        """There is none: skips the test."""
        pytest.skip("needs the /batch Worker, which the live service does not have")


@dataclass(frozen=True)
class Target:
    """What the session runs against; `account_id` None leaves a fresh account to each test."""

    plane: Plane
    token: str
    seed: int
    account_id: str | None = None

    def account(self, account_id: str) -> WorkersAI:
        """One account there, or the only one."""
        kind = WorkersAI if self.account_id is None else LiveAccount
        return kind(self.plane, self.account_id or account_id, self.token)


@pytest.fixture(scope="session")
def workersai_target(pytestconfig: pytest.Config) -> Iterator[Target]:
    """What --workersai-target names, or an emulator of the session's own (under xdist, of each worker's)."""
    named = pytestconfig.getoption("--workersai-target")
    if named == "live":
        account_id, token = (os.environ[name] for name in _CREDENTIALS)
        yield Target(Uncontrolled(LIVE_URL, "this is the live service"), token, DEFAULT_SEED, account_id)
    elif named is not None:
        yield from _elsewhere(_root(named), pytestconfig.getoption("--workersai-seed"))
    else:
        from workersai_emulator.emulator import Emulator

        with Emulator.of(_options(pytestconfig)) as emulator:
            yield Target(emulator.plane, emulator.token, emulator.seed)


@pytest.fixture(scope="session")
def workersai_server(workersai_target: Target) -> WorkersAI:
    """The session's server with its development account, which all tests share."""
    return workersai_target.account(DEVELOPMENT_ACCOUNT)


@pytest.fixture
def workersai(request: pytest.FixtureRequest, workersai_target: Target) -> Iterator[WorkersAI]:
    """A fresh account for this test, with the settings of its marker; the same test meets the same bytes again.

    After the test the server forgets it.
    """
    account = workersai_target.account(fresh_account(workersai_target.seed, request.node.nodeid))
    controlled = not isinstance(account.plane, Uncontrolled)
    if controlled:
        account.reset()
    elif _expectations(request.node):
        account.verdict()  # which skips the test before it costs anything
    request.node.stash[_ACCOUNT] = account
    settings, scenario = _settings(request.node), _marked(request.node).get(_SCENARIO)
    try:
        if settings:
            account.settings.patch(**settings)
        if scenario is not None:
            account.scenario(scenario)
    except (ValueError, LookupError) as refused:
        _refuse(str(refused))
    yield account
    if controlled:
        account.reset()


@pytest.fixture
def workersai_env(workersai: WorkersAI, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment that points every client at this test's account, for as long as it runs."""
    told = variables(workersai.url, workersai.account_id, workersai.token)
    monkeypatch.delenv("WORKERS_AI_EMULATOR_URL", raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    return told


def _settings(item: pytest.Item) -> dict[str, Any]:
    """What the item's markers say of settings."""
    others = (_SCENARIO, *_EXPECTATIONS)
    return {key: value for key, value in _marked(item).items() if key not in others}


def _expectations(item: pytest.Item) -> dict[str, Any]:
    """What the item's markers expect of the client."""
    expected = {key: value for key, value in _marked(item).items() if key in _EXPECTATIONS}
    if expected.get("verdict", "clean") != "clean":
        _refuse(f"verdict is 'clean' or left out, not {expected['verdict']!r}")
    most = expected.get("max_neurons", 0)
    if isinstance(most, bool) or not isinstance(most, (int, float)) or most < 0:
        _refuse(f"max_neurons is a number from 0 on, not {most!r}")
    return expected


def _expect(account: WorkersAI, *, verdict: str | None = None, max_neurons: float | None = None) -> None:
    if max_neurons is not None:
        used = account.usage
        if used.neurons > max_neurons:
            models = ", ".join(f"{name} {model.neurons:g}" for name, model in used.models.items())
            pytest.fail(
                f"the test used {used.neurons:g} neurons, max_neurons={max_neurons:g} ({models})",
                pytrace=False,
            )
    if verdict is not None and not (found := account.verdict()).clean:
        pytest.fail(str(found), pytrace=False)


def _exchanges(account: WorkersAI) -> str:
    """The account's last exchanges, a line each with its time on the account's clock; empty without any."""
    if isinstance(account.plane, Uncontrolled):
        return ""
    from workersai_emulator.console import described

    try:
        told = account.requests.list()
    except Exception as fault:  # noqa: BLE001 - the report of a test must not fail, whatever the test did to its HTTP client
        return f"not to be had: {type(fault).__name__}: {fault}"
    lines = [
        f"#{one.seq} {one.clock:%H:%M:%S}.{one.clock.microsecond // 1000:03} {described(one)}" for one in told
    ]
    if len(lines) > EXCHANGES_SHOWN:
        lines = [f"(the last {EXCHANGES_SHOWN} of {len(lines)})", *lines[-EXCHANGES_SHOWN:]]
    return "\n".join(lines)


def _marked(item: pytest.Item) -> dict[str, Any]:
    """What the item's markers say, the nearest last."""
    marks = list(item.iter_markers("workersai"))
    if not marks:
        return {}
    from workersai_emulator.settings import KEYS

    known = (*KEYS, _SCENARIO, *_EXPECTATIONS)
    said: dict[str, Any] = {}
    for mark in reversed(marks):
        if mark.args:
            _refuse(f"{mark.args[0]!r} has no keyword; there are {', '.join(known)}")
        for key in mark.kwargs:
            if key not in known:
                _refuse(f"there is no {key!r}; there are {', '.join(known)}")
        said.update(mark.kwargs)
    return said


def _refuse(reason: str) -> NoReturn:
    pytest.fail(f"@pytest.mark.workersai: {reason}", pytrace=False)


def _options(config: pytest.Config) -> Options:
    """The file's options, on a free port of this machine. The environment is not looked at."""
    from workersai_emulator.flags import options_in
    from workersai_emulator.options import Options

    file, seed = config.getoption("--workersai-config"), config.getoption("--workersai-seed")
    try:
        said = options_in(config.invocation_params.dir / file) if file else Options()
    except ValueError as fault:
        pytest.fail(f"--workersai-config: {fault}", pytrace=False)
    if seed is None:
        seed = DEFAULT_SEED if said.seed is None else said.seed
    return replace(said, host="127.0.0.1", port=0, seed=seed)


def _check_target(named: str) -> None:
    if named == "live":
        missing = [name for name in _CREDENTIALS if not os.environ.get(name)]
        if missing:
            raise pytest.UsageError(
                f"--workersai-target=live needs {' and '.join(missing)} in the environment"
            )
    elif urlsplit(named).scheme not in {"http", "https"} or not urlsplit(named).hostname:
        raise pytest.UsageError(f"--workersai-target: {named!r} is neither live nor an http URL")
    elif _root(named) == LIVE_URL:
        raise pytest.UsageError("--workersai-target: say live for the live service")


def _root(url: str) -> str:
    return url.rstrip("/").removesuffix("/client/v4")


def _elsewhere(url: str, seed: int | None) -> Iterator[Target]:
    """A server that runs already, with the tokens that it too reads from the environment, if it has any."""
    tokens = os.environ.get("WORKERSAI_EMULATOR_API_TOKEN") or DEVELOPMENT_TOKEN
    plane = HttpPlane(url, os.environ.get("WORKERSAI_EMULATOR_CONTROL_TOKEN"))
    try:
        yield Target(_if_there(plane), tokens.split(";")[0], DEFAULT_SEED if seed is None else seed)
    finally:
        plane.close()


def _if_there(plane: HttpPlane) -> Plane:
    try:
        plane.ask("GET", "health", {})
    except ConnectionError as fault:
        pytest.fail(f"--workersai-target: {fault}", pytrace=False)
    except PermissionError as fault:
        return Uncontrolled(plane.url, str(fault))
    except (LookupError, ValueError):
        return Uncontrolled(plane.url, f"{plane.url} has none")
    return plane
