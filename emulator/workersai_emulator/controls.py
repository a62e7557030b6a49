"""An emulated Workers AI as a test holds it: where it is, and everything that makes things happen there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import quote

from workersai_emulator.usage import DayTotal
from workersai_emulator.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workersai_emulator.plane import Plane

Duration = float | str | timedelta
#: How long one request of the control plane may wait.
LONGEST_TURN_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class BatchView:
    """A queued batch as it was when it was looked at; `request` is its body, None in lists.

    `items` and `bytes` count what was submitted, `polls` what came since. `script` is how its life goes.
    """

    request_id: str
    account_id: str
    model: str
    state: Literal["queued", "running", "done", "failed", "lost"]
    script: str
    items: int
    bytes: int
    polls: int
    submitted_at: datetime
    request: Any = None

    @classmethod
    def read(cls, shown: Mapping[str, Any]) -> BatchView:
        """Read what the control plane shows."""
        return cls(**{**shown, "submitted_at": datetime.fromisoformat(shown["submitted_at"])})


@dataclass(frozen=True, slots=True)
class RuleView:
    """A rule as it was when it was looked at; `fired` counts how often it made its effect happen."""

    id: str
    match: Mapping[str, Any]
    effect: Mapping[str, Any]
    times: int | None = None
    probability: float | None = None
    scenario: str | None = None
    fired: int = 0


@dataclass(frozen=True, slots=True)
class RequestView:
    """One exchange of the journal: what was asked, and what came of it.

    `clock` is when it came by the account's clock, `time` by the machine's; `client` is guessed from the user
    agent. `why` says what a refusal was about, `rule` which rule decided the request, `nearly` what it nearly
    matched. `digest` is equal for equal payloads.
    """

    seq: int
    time: datetime
    clock: datetime
    account_id: str
    dialect: str
    operation: str
    model: str
    method: str
    path: str
    status: int
    code: int | None
    duration_ms: float
    client: str
    request_id: str
    state: str
    why: str
    rule: str
    nearly: str
    retry_after: float | None
    body_bytes: int
    limit_share: float
    digest: str
    slips: tuple[str, ...]
    spoiled: bool

    @classmethod
    def read(cls, shown: Mapping[str, Any]) -> RequestView:
        """Read what the control plane shows."""
        times = {key: datetime.fromisoformat(shown[key]) for key in ("time", "clock")}
        return cls(**{**shown, **times, "slips": tuple(shown["slips"])})


RequestViews = list[RequestView]
BatchViews = list[BatchView]
RuleViews = list[RuleView]


@dataclass(frozen=True, slots=True)
class Scope:
    """What of a server is meant: one account, or with None its defaults and all accounts."""

    plane: Plane
    account_id: str | None

    def ask(self, method: str, path: str, **said: Any) -> Any:
        """Send one request for the account that is meant; raises as `Plane.ask` does."""
        meant = {} if self.account_id is None else {"account_id": self.account_id}
        return self.plane.ask(method, path, {**said, **meant})


class ClockControl:
    """Time, as batches, their retention and everything else go by it. It never goes back.

    Each change returns the time after it.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def now(self) -> datetime:
        """The time on this clock, in UTC."""
        return _moment(self._scope.ask("GET", "clock"))

    def freeze(self) -> datetime:
        """Stand still until told otherwise."""
        return self._move(freeze=True)

    def unfreeze(self) -> datetime:
        """Go on from where it stands."""
        return self._move(freeze=False)

    def advance(self, duration: Duration) -> datetime:
        """Move forward by seconds, a text such as `500ms`, `30s`, `5m`, `2h`, or a timedelta."""
        if isinstance(duration, timedelta):
            duration = duration.total_seconds()
        return self._move(advance=duration)

    def scale(self, factor: float) -> datetime:
        """Run so many times as fast as the machine's clock."""
        return self._move(scale=factor)

    def jump(self, on: bool = True) -> datetime:
        """Let each poll of a waiting batch move the clock to that batch's next change."""
        return self._move(jump=on)

    def set(self, moment: datetime) -> datetime:
        """Move forward to a moment. Raises ValueError for one in the past, or without a time zone."""
        if moment.tzinfo is None:
            raise ValueError(f"{moment!r} has no time zone; give one, such as tzinfo=UTC")
        return self._move(now=moment.isoformat())

    def _move(self, **said: Any) -> datetime:
        return _moment(self._scope.ask("POST", "clock", **said))


class BatchControl:
    """What was queued, and the hands that decide its life. An unknown id raises LookupError."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def list(self, *, state: str | None = None, model: str | None = None) -> BatchViews:
        """All batches, or those in this state or of this model, in the order of their submits."""
        wanted = {"state": state, "model": model}
        said = {key: value for key, value in wanted.items() if value is not None}
        return [BatchView.read(shown) for shown in self._scope.ask("GET", "batches", **said)["batches"]]

    def get(self, request_id: str) -> BatchView:
        """One batch, with its request."""
        return BatchView.read(self._scope.ask("GET", _batch(request_id)))

    def go_on(self, request_id: str) -> BatchView:
        """Move a waiting batch to its next state now."""
        return self._act(request_id, action="go-on")

    def hold(self, request_id: str) -> BatchView:
        """Keep a waiting batch in its state until told to go on."""
        return self._act(request_id, action="hold")

    def fail(self, request_id: str, code: int | str = 5001) -> BatchView:
        """End a batch in failure with a code, or a row's id, of the error catalogue."""
        return self._act(request_id, action="fail", code=code)

    def lose(self, request_id: str) -> BatchView:
        """Make a batch's id unknown."""
        return self._act(request_id, action="lose")

    def _act(self, request_id: str, **said: Any) -> BatchView:
        return BatchView.read(self._scope.ask("POST", _batch(request_id), **said))


class RuleControl:
    """Match → effect, spelled as in the control plane."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def add(
        self,
        *,
        effect: Mapping[str, Any],
        match: Mapping[str, Any] | None = None,
        times: int | None = None,
        probability: float | None = None,
    ) -> RuleView:
        """Make an effect happen to what matches: `times` times, with a probability, or until it is cleared."""
        said = {"match": match, "effect": effect, "times": times, "probability": probability}
        spoken = {key: value for key, value in said.items() if value is not None}
        return RuleView(**self._scope.ask("POST", "rules", **spoken))

    def list(self) -> RuleViews:
        """The rules, in the order in which they came."""
        return [RuleView(**shown) for shown in self._scope.ask("GET", "rules")["rules"]]

    def delete(self, rule_id: str) -> None:
        """Forget one rule. Raises LookupError where there is none of that id."""
        self._scope.ask("DELETE", f"rules/{quote(rule_id, safe='')}")

    def clear(self) -> None:
        """Forget all of them."""
        self._scope.ask("DELETE", "rules")


class RequestControl:
    """The journal: what clients asked for and were answered, in the order in which it ended.

    Filters are `operation` (`submit`, `poll`, `run`), `model`, `status`, `code`, and `since`, the `seq` after
    which, or the time from which on.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def list(self, **filters: Any) -> RequestViews:
        """The exchanges that all filters take."""
        return self._asked(filters)

    def wait_for(self, count: int, *, timeout: float = 5.0, **filters: Any) -> RequestViews:
        """The exchanges as soon as there are `count`; TimeoutError when there aren't within `timeout` seconds."""
        left = timeout
        while True:
            turn = min(left, LONGEST_TURN_SECONDS)
            found = self._asked({**filters, "wait_for": count, "timeout": turn})
            left -= turn
            if len(found) >= count:
                return found
            if left <= 0:
                wanted = ", ".join(f"{key}={value}" for key, value in filters.items()) or "of any kind"
                raise TimeoutError(f"{len(found)} of {count} requests ({wanted}) within {timeout:g} s")

    def clear(self) -> None:
        """Forget them, so that a verdict is about what comes from now on."""
        self._scope.ask("DELETE", "requests")

    def _asked(self, said: Mapping[str, Any]) -> RequestViews:
        spoken = {key: _spoken(value) for key, value in said.items() if value is not None}
        return [RequestView.read(shown) for shown in self._scope.ask("GET", "requests", **spoken)["requests"]]


class SettingsControl:
    """What holds where no rule says otherwise, spelled as in the control plane."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def get(self) -> dict[str, Any]:
        """Every setting with what it is now."""
        shown: dict[str, Any] = self._scope.ask("GET", "settings")
        return shown

    def patch(self, **changes: Any) -> dict[str, Any]:
        """Change some: `script`, `scripts`, `assumptions`, `limits`, `plan`, `worker_binding`. Returns all."""
        shown: dict[str, Any] = self._scope.ask("PATCH", "settings", **changes)
        return shown


class ScenarioControl:
    """A scenario that was begun."""

    def __init__(self, scope: Scope, name: str) -> None:
        self._scope = scope
        self.name = name

    def end(self) -> None:
        """Forget its rules. Raises LookupError when it has ended already."""
        self._scope.ask("DELETE", f"scenarios/{quote(self.name, safe='')}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class WorkersAI:
    """One account of a Workers AI: where it is, and what makes things happen there.

    The pytest fixtures `workersai` and `workersai_server` are of this kind. `/batch` takes an account from the
    header `x-emulator-account`. Where the control plane refuses, ValueError, LookupError or PermissionError has
    its own line; ConnectionError means that it could not be reached. What has no method here goes through
    `plane.ask("GET", "facts", {})`.
    """

    def __init__(self, plane: Plane, account_id: str, token: str, *, everywhere: bool = False) -> None:
        self.plane = plane
        self._scope = Scope(plane, None if everywhere else account_id)
        self.account_id = account_id
        self.token = token
        self.clock = ClockControl(self._scope)
        self.batches = BatchControl(self._scope)
        self.rules = RuleControl(self._scope)
        self.requests = RequestControl(self._scope)
        self.settings = SettingsControl(self._scope)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url} account {self.account_id}>"

    @property
    def url(self) -> str:
        """The server's root, where the `/batch` Worker and the control plane are."""
        return self.plane.url

    @property
    def base_url(self) -> str:
        """What clients of the REST API take for their base URL."""
        return f"{self.url}/client/v4"

    @property
    def worker_url(self) -> str:
        """Where the `/batch` Worker is."""
        return self.url

    @property
    def script(self) -> str:
        """How batches live; assign another to those that are submitted from now on."""
        told: str = self.settings.get()["script"]
        return told

    @script.setter
    def script(self, script: str) -> None:
        self.settings.patch(script=script)

    @property
    def usage(self) -> DayTotal:
        """The neurons, tokens and requests of the day, a UTC day on the account's clock."""
        return DayTotal.read(self._scope.ask("GET", "usage"))

    def verdict(self) -> Verdict:
        """What the journal says about the client: `findings`, `clean`, `assert_clean()`."""
        return Verdict.read(self._scope.ask("GET", "verdict"))

    def fail(
        self,
        operation: Literal["submit", "poll", "run"],
        error: int | str,
        *,
        times: int | None = 1,
        retry_after: Duration | None = None,
    ) -> RuleView:
        """Refuse the next `times` requests of this kind, or with None all, with a code or row of the catalogue.

        `retry_after` adds the header, which the service itself was never seen to send.
        """
        if isinstance(retry_after, timedelta):
            retry_after = retry_after.total_seconds()
        effect = {"error": error} if retry_after is None else {"error": error, "retry_after": retry_after}
        return self.rules.add(match={"operation": operation}, effect=effect, times=times)

    def answer(
        self, output: Any, *, text: str | None = None, model: str | None = None, times: int | None = None
    ) -> RuleView:
        """Let the model answer this: a run, and each item of a batch, of this model and with this text in it."""
        said = {"text": text, "model": model}
        match = {key: value for key, value in said.items() if value is not None}
        return self.rules.add(match=match, effect={"output": output}, times=times)

    def scenario(self, name: str, *, times: int | None = None) -> ScenarioControl:
        """Begin a scenario; in a `with`, it ends with it. Raises LookupError for one that does not exist."""
        self._scope.ask(
            "POST", f"scenarios/{quote(name, safe='')}", **({} if times is None else {"times": times})
        )
        return ScenarioControl(self._scope, name)

    def sleep(self, seconds: float) -> None:
        """Advance the clock instead of waiting: for what takes its `sleep` as a parameter."""
        self.clock.advance(seconds)

    async def asleep(self, seconds: float) -> None:
        """The same for asynchronous code."""
        import asyncio

        await asyncio.to_thread(self.clock.advance, seconds)

    def reset(self) -> None:
        """Forget batches, rules, settings, clock, journal and counters."""
        self._scope.ask("POST", "reset")

    def account(self, account_id: str) -> WorkersAI:
        """Another account of the same server, 32 hex digits: a world of its own."""
        return WorkersAI(self.plane, account_id, self.token)


def _moment(shown: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(shown["now"])


def _spoken(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def _batch(request_id: str) -> str:
    return f"batches/{quote(request_id, safe='')}"
