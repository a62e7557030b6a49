"""OpenAI's dialect, `/ai/v1/…`: no envelope around an answer, and errors in Workers AI's own or in OpenAI's form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workersai_emulator.api.envelopes import ai_error, edge_refusal, retry_after
from workersai_emulator.api.reply import Reply
from workersai_emulator.inference.event import Event
from workersai_emulator.json_text import dumps

if TYPE_CHECKING:
    from workersai_emulator.calls import Form
    from workersai_emulator.refusals import Refused


def refusal(refused: Refused, reached: str, form: Form, errors: str) -> Reply:
    """A refusal; `errors` is the alternative of `openai.errors` that holds.

    Facts: `env.ai`, `env.edge`, `openai.responses-error`, `openai.errors`, `head.req-id`.
    """
    if refused.row.envelope == "edge":
        return edge_refusal(refused)
    headers = {**retry_after(refused), "cf-ai-req-id": reached}
    return Reply(refused.row.status, error_body(refused, reached, form, errors), headers)


def error_body(refused: Refused, reached: str, form: Form, errors: str) -> bytes:
    """The JSON of a refusal, for a reply or for an event of a stream."""
    message = refused.message(reached)
    if errors == "openai":
        kind = "server_error" if refused.row.status >= 500 else "invalid_request_error"
        told = {"message": message, "type": kind, "param": None, "code": str(refused.row.code)}
        return dumps({"error": told})
    if form == "responses" and refused.row.status == 400:
        return dumps({"error": {"code": "invalid_prompt", "message": message}})
    return ai_error(refused, reached)


def error_event(refused: Refused, reached: str, form: Form, errors: str, before: int) -> Event:
    """A refusal as the last event of a stream, after so many others; Responses have a name for it.

    Facts: `head.sse`, `stream.responses`.
    """
    if form != "responses":
        return Event(error_body(refused, reached, form, errors))
    told = {
        "type": "error",
        "sequence_number": before,
        "code": str(refused.row.code),
        "message": refused.message(reached),
        "param": None,
    }
    return Event(dumps(told), "error")
