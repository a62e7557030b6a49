"""One recorded exchange: a request and its reply, redacted, as a file of its own shows them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from workersai_contracts.routes import exchange_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workersai_contracts.body_forms import Body

#: What the request carried: the target's token, another one, something that is no token, or nothing.
Credentials = Literal["good", "unknown", "malformed", "missing"]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request and its reply. Neither has a token, an account's id, or an id that the service drew.

    `of` says what it was sent for, such as a test's name; it is the `number`th of its recording. `poll` counts the
    polls of a batch. `headers` of the reply are those that mean something; of `other_headers` there are the names.
    """

    number: int
    of: str
    method: str
    path: str
    query: str
    credentials: Credentials
    content_type: str
    sent: Body | None
    status: int
    headers: Mapping[str, str]
    other_headers: tuple[str, ...]
    got: Body | None
    operation: str = ""
    model: str = ""
    request_id: str = ""
    poll: int = 0

    @property
    def name(self) -> str:
        """What its file is called: its number, what it does, and on which model."""
        model = self.model.rpartition("/")[2]
        poll = f"-{self.poll}" if self.poll else ""
        words = filter(None, (self.operation + poll if self.operation else self._place, model))
        return f"{self.number:04d}-" + "-".join(_filed(word) for word in words) + ".json"

    @property
    def result(self) -> Any:
        """The result of a reply in its envelope; None where there is none."""
        told = self.got.get("json") if self.got is not None else None
        return told.get("result") if isinstance(told, dict) else None

    def as_json(self) -> dict[str, Any]:
        """As its file shows it."""
        about = {
            "operation": self.operation,
            "model": self.model,
            "request_id": self.request_id,
            "poll": self.poll,
        }
        return {
            "number": self.number,
            "of": self.of,
            **{key: value for key, value in about.items() if value},
            "request": {
                "method": self.method,
                "path": self.path,
                "query": self.query,
                "credentials": self.credentials,
                "content_type": self.content_type,
                "body": self.sent,
            },
            "reply": {
                "status": self.status,
                "headers": dict(self.headers),
                "other_headers": list(self.other_headers),
                "body": self.got,
            },
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Recorded:
        """Read what a file shows. Raises KeyError or TypeError for what is none."""
        asked, reply = told["request"], told["reply"]
        return cls(
            number=int(told["number"]),
            of=told["of"],
            method=asked["method"],
            path=asked["path"],
            query=asked["query"],
            credentials=asked["credentials"],
            content_type=asked["content_type"],
            sent=asked["body"],
            status=reply["status"],
            headers=dict(reply["headers"]),
            other_headers=tuple(reply["other_headers"]),
            got=reply["body"],
            **{key: told[key] for key in ("operation", "model", "request_id", "poll") if key in told},
        )

    def named(self, content: bytes) -> Recorded:
        """The same with its operation, model and batch; `content` is the request's body, redacted."""
        target = self.path + (f"?{self.query}" if self.query else "")
        exchange = exchange_of(self.method, target, content)
        if exchange is None:
            return self
        about = exchange.inputs if exchange.operation == "poll" else self.result
        request_id = about.get("request_id") if isinstance(about, dict) else None
        if exchange.operation == "worker-poll":
            request_id = self.path.rpartition("/")[2]
        return replace(
            self,
            operation=exchange.operation,
            model=exchange.model or "",
            request_id=request_id if isinstance(request_id, str) else "",
        )

    @property
    def _place(self) -> str:
        return f"{self.method.lower()}-{self.path.strip('/').rpartition('/')[2] or 'root'}"


def _filed(word: str) -> str:
    return "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in ".-") else "-" for letter in word
    )[:60]
