"""What the command reads: requests, inputs, texts and handles, from a file or from stdin.

Input is JSON, unless `--lines` says that each line is a text. Whatever cannot be used is a ConfigurationError, in
one line that says where.
"""

from __future__ import annotations

import json
from typing import Any

from workersai_client.batches import Handle
from workersai_client.errors import ConfigurationError


def requests_in(content: bytes, *, lines: bool) -> list[dict[str, Any]]:
    """The requests of a batch.

    With `lines` each line is a text, and its request is `{"text": line}`. Otherwise the content is one JSON
    document, `{"requests": […]}` or a list of requests, or JSON lines: a request a line. A single object
    without `requests` is one line of those, so a batch of one.
    """
    if lines:
        return [{"text": line} for line in text_lines(content)]
    documents = _documents(content)
    first = documents[0]
    if len(documents) == 1 and isinstance(first, list):
        documents = first
    elif len(documents) == 1 and isinstance(first, dict) and "requests" in first:
        if list(first) != ["requests"] or not isinstance(first["requests"], list):
            raise ConfigurationError('beside "requests", a list, there can be nothing in the input')
        documents = first["requests"]
    for number, request in enumerate(documents):
        if not isinstance(request, dict):
            raise ConfigurationError(f"request {number} is not an object; with --lines each line is a text")
    return documents


def inputs_in(content: bytes) -> dict[str, Any]:
    """The inputs of one run, a JSON object."""
    documents = _documents(content)
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise ConfigurationError("the input of a run is one JSON object")
    return documents[0]


def texts_in(content: bytes, *, lines: bool) -> list[str]:
    """Texts to embed: with `lines` one a line, otherwise a JSON list of strings, or a JSON string a line."""
    if lines:
        return text_lines(content)
    documents = _documents(content)
    texts = documents[0] if len(documents) == 1 and isinstance(documents[0], list) else documents
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ConfigurationError(f"text {number} is not a string; with --lines each line is a text")
    return texts


def handles_in(content: bytes) -> list[Handle]:
    """The handles among the lines of a log: those that start with a brace; other lines are passed over."""
    return [Handle.from_json(line) for line in _text(content).split("\n") if line.startswith("{")]


def text_lines(content: bytes) -> list[str]:
    """Lines, without their ends, none of them blank: a line passed over would shift the answers."""
    lines = [line.removesuffix("\r") for line in _text(content).removesuffix("\n").split("\n")]
    if lines == [""]:
        raise ConfigurationError("the input is empty")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise ConfigurationError(f"line {number} is blank, and a blank text cannot be asked for")
    return lines


def _documents(content: bytes) -> list[Any]:
    """One JSON document, or one a line; never none."""
    text = _text(content)
    if not text.strip():
        raise ConfigurationError("the input is empty")
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError) as fault:
        whole = str(fault)
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    documents = []
    for number, line in lines:
        try:
            documents.append(json.loads(line))
        except (ValueError, RecursionError) as fault:
            reason = whole if number == lines[0][0] else f"line {number}: {fault}"
            hint = "with --lines each line is a text"
            raise ConfigurationError(f"the input is not JSON ({reason}); {hint}") from None
    return documents


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise ConfigurationError(f"the input is not UTF-8: byte {fault.start}") from None
