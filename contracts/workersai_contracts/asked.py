"""What a request asks for, whoever sends it: by that one is found again in a recording."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

from workersai_contracts.body_forms import Bodies
from workersai_contracts.hidden_texts import HiddenTexts
from workersai_contracts.redaction import Redactor
from workersai_contracts.routes import exchange_of

if TYPE_CHECKING:
    from workersai_contracts.body_forms import Body
    from workersai_contracts.passing import Request
    from workersai_contracts.recorded import Credentials, Recorded


@dataclass(frozen=True, slots=True)
class Asked:
    """A request without what differs from run to run: two that ask for the same are equal in `route` and `body`.

    `route` is the method, the path with its model written plainly, the query (a poll's does not count) and the kind
    of credentials. `body` is JSON with its keys in order, ids replaced by a mark; `ids` are those, in the order of
    their first appearance in path, query and body. Fact: `poll.request`.
    """

    route: tuple[str, ...]
    body: str
    ids: tuple[str, ...]
    operation: str
    model: str

    @property
    def line(self) -> str:
        """The request in one line, its body cut short."""
        method, path, query, _ = self.route
        shown = self.body if len(self.body) <= 100 else f"{self.body[:100]}…"
        return " ".join(filter(None, (method, path + (f"?{query}" if query else ""), shown)))


def asked_in(recorded: Recorded) -> Asked:
    """What a recorded request asked for."""
    line = recorded.method, recorded.path, recorded.query, recorded.credentials
    return _asked(line, recorded.sent, Redactor())


def asked_now(request: Request, credentials: Credentials, account_id: str, *, texts_hidden: bool) -> Asked:
    """What a request asks for that comes now, from this account, to be looked for in a recording."""
    redactor = Redactor([account_id])
    line = request.method, redactor.text(request.path), redactor.text(request.query), credentials
    body = Bodies(redactor, HiddenTexts() if texts_hidden else None).sent(request.content)
    return _asked(line, body, redactor)


def _asked(line: tuple[str, str, str, str], body: Body | None, written: Redactor) -> Asked:
    method, path, query, credentials = line
    plain = Redactor(alike=True)
    content = json.dumps(body["json"]).encode() if body is not None and "json" in body else b"{}"
    exchange = exchange_of(method, f"{path}?{query}", content)
    operation, model = (exchange.operation, exchange.model or "") if exchange is not None else ("", "")
    route = method, plain.text(unquote(path)), _counting(plain.text(query), operation), credentials
    told = "" if body is None else json.dumps(plain.value(body), sort_keys=True, ensure_ascii=False)
    return Asked(route, told, tuple(written.original(one) for one in plain.ids), operation, model)


def _counting(query: str, operation: str) -> str:
    said = sorted(parse_qsl(query, keep_blank_values=True))
    if operation == "poll":
        said = [(key, value) for key, value in said if key != "queueRequest"]
    return "&".join(f"{key}={value}" for key, value in said)
