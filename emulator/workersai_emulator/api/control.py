"""The control plane, under `/__emulator__/`: beside the dialects, for whoever drives the emulator.

| request | what it does |
|---|---|
| GET health | says that the server is up, and its version |
| POST reset | forgets an account, or everything |
| GET, PATCH settings | an account's, or the server's defaults |
| GET, POST clock | likewise: freeze, advance, scale, jump, now |
| GET batches, GET and POST batches/{id} | looks at batches; go-on, hold, lose, fail |
| GET, POST, DELETE rules, DELETE rules/{id} | the rules |
| GET scenarios, POST and DELETE scenarios/{name} | begins and ends named lists of rules |
| GET requests, DELETE requests | the journal: filters, `wait_for` so many of them with a `timeout`; forgets it |
| GET verdict | what the journal says about the client |
| GET usage | the day's neurons and tokens |
| GET facts | the ledger |
| GET openapi.json | an OpenAPI 3.1 document of the emulated routes |
| GET metrics | what Prometheus reads, also at /metrics (`metrics.py`) |

`account_id`, in the query or the body, picks the account.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from workersai_contracts import error, facts
from workersai_emulator.accounts import Account, Defaults, is_account_id
from workersai_emulator.api.body import BadBody, read_body
from workersai_emulator.api.dialects import CONTROL_PREFIX
from workersai_emulator.api.reply import Reply, json_reply, tool_refusal
from workersai_emulator.batches import ACTIONS
from workersai_emulator.clock import Clock, format_time, parse_duration, parse_time
from workersai_emulator.journal import Filter
from workersai_emulator.json_text import loads
from workersai_emulator.refusals import Refused
from workersai_emulator.scenarios import SCENARIOS, begin_scenario
from workersai_emulator.scripts import STATES
from workersai_emulator.settings import Settings
from workersai_emulator.usage import ALLOCATION, DayTotal, date_of, together
from workersai_emulator.verdict import Verdict, judge

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from aiohttp.web import BaseRequest

    from workersai_emulator.rules import Rules
    from workersai_emulator.service import Service
    from workersai_emulator.store import Batch, Told
    from workersai_emulator.verdict import Finding

BODY_LIMIT = 1_000_000
WAIT_SECONDS = 5.0
LONGEST_WAIT_SECONDS = 60.0
_FILTERS = ("operation", "model", "status", "code", "since")

Said = dict[str, Any]


class _Fault(Exception):
    """A request of the control plane that cannot be carried out, with its status and one line."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Control:
    """Answers the control plane's requests."""

    def __init__(
        self, service: Service, version: str, resets: Iterable[Callable[[str | None], None]] = ()
    ) -> None:
        self._service = service
        self._store = service.accounts.store
        self._version = version
        self._resets = tuple(resets)
        self._routes: dict[str, dict[str, Callable[[Said, str], Awaitable[Reply]]]] = {
            "health": {"GET": self._health},
            "reset": {"POST": self._reset},
            "settings": {"GET": self._settings, "PATCH": self._change_settings},
            "clock": {"GET": self._clock, "POST": self._move_clock},
            "batches": {"GET": self._batches},
            "batches/": {"GET": self._batch, "POST": self._act},
            "rules": {"GET": self._rules, "POST": self._add_rule, "DELETE": self._clear_rules},
            "rules/": {"DELETE": self._delete_rule},
            "scenarios": {"GET": self._scenarios},
            "scenarios/": {"POST": self._begin_scenario, "DELETE": self._end_scenario},
            "requests": {"GET": self._requests, "DELETE": self._clear_requests},
            "verdict": {"GET": self._verdict},
            "usage": {"GET": self._usage},
            "facts": {"GET": self._facts},
            "openapi.json": {"GET": self._openapi},
        }

    async def answer(self, request: BaseRequest, path: str, query: str) -> Reply:
        """Answer one request; what cannot be carried out is told in one line."""
        name, slash, item = path[len(CONTROL_PREFIX) :].partition("/")
        methods = self._routes.get(name + slash)
        if methods is None or (slash and not item):
            known = ", ".join(route for route in self._routes if not route.endswith("/"))
            return tool_refusal(404, f"{path} is not in the control plane; there are {known}")
        handle = methods.get(request.method)
        if handle is None:
            return tool_refusal(405, f"{path} takes {' and '.join(methods)}, not {request.method}")
        try:
            return await handle(await _said(request, query), unquote(item))
        except _Fault as fault:
            return tool_refusal(fault.status, str(fault))
        except ValueError as fault:
            return tool_refusal(400, str(fault))
        except RecursionError:
            return tool_refusal(400, "the body is nested too deep")

    async def _health(self, said: Said, item: str) -> Reply:
        return json_reply(200, {"status": "ok", "version": self._version})

    async def _reset(self, said: Said, item: str) -> Reply:
        account_id = None if (account := await self._account(said)) is None else account.id
        _only(said, ())
        await self._service.accounts.reset(account_id)
        for reset in self._resets:
            reset(account_id)
        return Reply(204, b"")

    async def _settings(self, said: Said, item: str) -> Reply:
        return self._shown_settings(await self._account(said))

    async def _change_settings(self, said: Said, item: str) -> Reply:
        account = await self._account(said)
        changed = Settings.parse(said)
        owner = self._owner(account)
        await self._store.say(owner, lambda: owner.change_settings(changed))
        return self._shown_settings(account)

    def _shown_settings(self, account: Account | None) -> Reply:
        return json_reply(200, self._owner(account).settings.as_json())

    async def _clock(self, said: Said, item: str) -> Reply:
        return _shown_clock(self._owner(await self._account(said)).clock)

    async def _move_clock(self, said: Said, item: str) -> Reply:
        owner = self._owner(await self._account(said))

        def move() -> Clock:
            clock = owner.clock.copy()
            _move(clock, said)
            owner.clock = clock
            return clock

        return _shown_clock(await self._store.say(owner, move))

    async def _batches(self, said: Said, item: str) -> Reply:
        one = await self._account(said)
        _only(said, ("state", "model"))
        shown = []
        for account in await self._meant(one):
            shown += [_shown(batch) for batch in await self._service.batches.list(account)]
        wanted = {key: said[key] for key in ("state", "model") if key in said}
        if wanted.get("state", "done") not in STATES:
            raise _Fault(400, f"state: {wanted['state']!r} is not one of {', '.join(STATES)}")
        return json_reply(200, {"batches": [row for row in shown if wanted.items() <= row.items()]})

    async def _batch(self, said: Said, item: str) -> Reply:
        _, batch = await self._find(said, item)
        payload = await self._service.batches.store.payload(batch.key)
        return json_reply(200, {**_shown(batch), "request": loads(payload or b"null")})

    async def _act(self, said: Said, item: str) -> Reply:
        account, _ = await self._find(said, item)
        _only(said, ("action", "code"))
        action, code = said.get("action"), said.get("code")
        if action not in ACTIONS:
            raise _Fault(400, f"action: {action!r} is not one of {', '.join(ACTIONS)}")
        if code is not None:
            if action != "fail":
                raise _Fault(400, "code goes with the action fail")
            code = _row_id(code)
        batch = await self._service.batches.act(account, item, action, code)
        if batch is None:
            raise _Fault(404, f"no batch {item!r}")
        return json_reply(200, _shown(batch))

    async def _rules(self, said: Said, item: str) -> Reply:
        rules = self._owner(await self._account(said)).rules
        return json_reply(200, {"rules": [rule.as_json() for rule in rules]})

    async def _add_rule(self, said: Said, item: str) -> Reply:
        rule = await self._change_rules(said, lambda rules: rules.add(said))
        return json_reply(200, rule.as_json())

    async def _clear_rules(self, said: Said, item: str) -> Reply:
        await self._change_rules(said, lambda rules: rules.clear())
        return Reply(204, b"")

    async def _delete_rule(self, said: Said, item: str) -> Reply:
        if not await self._change_rules(said, lambda rules: rules.delete(item)):
            raise _Fault(404, f"no rule {item!r}")
        return Reply(204, b"")

    async def _scenarios(self, said: Said, item: str) -> Reply:
        owner = self._owner(await self._account(said))
        _only(said, ())
        begun = {rule.scenario for rule in owner.rules}
        shown = [{**each.as_json(), "begun": name in begun} for name, each in SCENARIOS.items()]
        return json_reply(200, {"scenarios": shown})

    async def _begin_scenario(self, said: Said, item: str) -> Reply:
        owner = self._owner(await self._account(said))
        _only(said, ("times",))
        times = said.get("times")
        if times is not None and (type(times) is not int or times < 1):
            raise _Fault(400, f"times: {times!r} is not a number from 1 on")
        try:
            begun = await self._store.say(owner, lambda: begin_scenario(owner.rules, item, times))
        except LookupError as unknown:
            raise _Fault(404, unknown.args[0]) from None
        return json_reply(200, begun.as_json())

    async def _end_scenario(self, said: Said, item: str) -> Reply:
        if not await self._change_rules(said, lambda rules: rules.end_scenario(item)):
            raise _Fault(404, f"scenario {item!r} was not begun here")
        return Reply(204, b"")

    async def _requests(self, said: Said, item: str) -> Reply:
        account_id = None if (account := await self._account(said)) is None else account.id
        _only(said, (*_FILTERS, "wait_for", "timeout"))
        journal, wanted = self._service.accounts.journal, Filter.parse(said)
        if "wait_for" in said:
            count = _count(said["wait_for"])
            seconds = parse_duration(said.get("timeout", WAIT_SECONDS))
            found = await journal.wait(account_id, wanted, count, min(seconds, LONGEST_WAIT_SECONDS))
        elif "timeout" in said:
            raise _Fault(400, "timeout goes with wait_for")
        else:
            found = await journal.find(account_id, wanted)
        return json_reply(200, {"requests": [exchange.as_json() for exchange in found]})

    async def _clear_requests(self, said: Said, item: str) -> Reply:
        account_id = None if (account := await self._account(said)) is None else account.id
        _only(said, ())
        await self._service.accounts.journal.clear(account_id)
        return Reply(204, b"")

    async def _verdict(self, said: Said, item: str) -> Reply:
        one = await self._account(said)
        _only(said, ())
        found: list[Finding] = []
        for account in await self._meant(one):
            exchanges = await self._service.accounts.journal.find(account.id)
            found += judge(exchanges, await self._service.batches.list(account))
        return json_reply(200, Verdict.of(found).as_json())

    async def _usage(self, said: Said, item: str) -> Reply:
        one = await self._account(said)
        _only(said, ())
        models = together([account.usage.today for account in await self._meant(one)])
        owner = self._owner(one)
        settings = owner.settings
        allocation = settings.limit("daily_neurons", ALLOCATION) or ALLOCATION
        total = DayTotal.of(date_of(owner.clock.now()), settings.plan or "free", models, allocation)
        return json_reply(200, total.as_json())

    async def _facts(self, said: Said, item: str) -> Reply:
        ledger = facts().values()
        rows = [{"id": f.id, "level": f.level, "text": f.text, "source": f.source} for f in ledger]
        return json_reply(200, {"facts": rows})

    async def _openapi(self, said: Said, item: str) -> Reply:
        from workersai_contracts.openapi import openapi

        _only(said, ())
        document = await self._service.workbench.make(partial(openapi, self._version))  # it reads all cards
        return json_reply(200, document)

    async def _account(self, said: Said) -> Account | None:
        """The account that is meant, taken out of what was said; None for the server's defaults."""
        account_id = said.pop("account_id", None)
        if account_id is None:
            return await self._service.accounts.fresh(None)
        if not isinstance(account_id, str) or not is_account_id(account_id):
            raise _Fault(400, f"account_id: {account_id!r} is not 32 hex digits")
        return await self._service.accounts.fresh(account_id)

    def _owner(self, account: Account | None) -> Account | Defaults:
        return self._service.accounts.defaults if account is None else account

    async def _meant(self, one: Account | None) -> list[Account]:
        return await self._service.accounts.all() if one is None else [one]

    async def _change_rules(self, said: Said, change: Callable[[Rules], Told]) -> Told:
        owner = self._owner(await self._account(said))
        return await self._store.say(owner, lambda: change(owner.rules))

    async def _find(self, said: Said, wanted: str) -> tuple[Account, Batch]:
        one = await self._account(said)
        for account in await self._meant(one):
            batch = await self._service.batches.get(account, wanted)
            if batch is not None:
                return account, batch
        raise _Fault(404, f"no batch {wanted!r}")


async def _said(request: BaseRequest, query: str) -> Said:
    """The body's members and the query's; the body's go first."""
    try:
        body = await read_body(request, BODY_LIMIT)
        said = loads(body) if body.strip() else {}
    except Refused:
        raise _Fault(400, f"the body is too large: the control plane takes {BODY_LIMIT} bytes") from None
    except (BadBody, ValueError) as bad:
        raise _Fault(400, f"the body is not JSON: {bad}") from None
    if not isinstance(said, dict):
        raise _Fault(400, "the body is not a JSON object")
    return {**dict(parse_qsl(query, keep_blank_values=True)), **said}


def _move(clock: Clock, said: Said) -> None:
    """Change a clock as told. What it raises may leave the clock half moved: hand in a copy."""
    _only(said, ("freeze", "advance", "scale", "jump", "now"))
    for key in ("freeze", "jump"):
        if key in said and not isinstance(said[key], bool):
            raise _Fault(400, f"{key}: {said[key]!r} is not true or false")
    scale = said.get("scale", 1)
    if isinstance(scale, bool) or not isinstance(scale, (int, float)) or not 0 < scale <= 1e6:
        raise _Fault(400, f"scale: {scale!r} is not a number over 0, at most 1000000")
    moment = parse_time(said["now"]) if "now" in said else None
    seconds = parse_duration(said.get("advance", 0))
    # Frozen before it is moved, so that it stands where it was told to and not microseconds later.
    if "freeze" in said:
        clock.freeze(said["freeze"])
    if moment is not None:
        clock.set(moment)
    clock.advance(seconds)
    if "scale" in said:
        clock.rescale(scale)
    clock.jump = said.get("jump", clock.jump)


def _shown_clock(clock: Clock) -> Reply:
    now = format_time(clock.now())
    shown = {"now": now, "frozen": clock.frozen, "scale": clock.scale, "jump": clock.jump}
    return json_reply(200, shown)


def _shown(batch: Batch) -> Said:
    return {
        "request_id": batch.request_id,
        "account_id": batch.account_id,
        "model": batch.model,
        "state": batch.life.state,
        "script": str(batch.life.script),
        "items": batch.items,
        "bytes": batch.size,
        "polls": batch.life.polls,
        "submitted_at": format_time(batch.submitted_at),
    }


def _row_id(code: object) -> str:
    if isinstance(code, bool) or not isinstance(code, (int, str)):
        raise _Fault(400, f"code: {code!r} is not a code or a row's id")
    try:
        error(code)
    except LookupError as unknown:
        raise _Fault(400, f"code: {unknown.args[0]}") from None
    return str(code)


def _count(said: object) -> int:
    if isinstance(said, int) and not isinstance(said, bool) and said >= 0:
        return said
    if isinstance(said, str) and said.isdecimal():
        return int(said)
    raise _Fault(400, f"wait_for: {said!r} is not a number")


def _only(said: Said, keys: tuple[str, ...]) -> None:
    for key in said:
        if key not in keys:
            there = f"there are {', '.join(keys)}" if keys else "only account_id can be said"
            raise _Fault(400, f"there is no {key!r} here; {there}")
