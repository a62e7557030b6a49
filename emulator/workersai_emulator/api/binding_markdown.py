"""Documents to Markdown behind the binding: `env.AI.toMarkdown()`."""

from __future__ import annotations

import base64
import binascii
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from workersai_emulator.api.body import BadBody, read_body
from workersai_emulator.api.reply import Reply
from workersai_emulator.ids import document_id
from workersai_emulator.inference import estimate
from workersai_emulator.json_text import dumps, loads
from workersai_emulator.markdown import FORMATS, ExtraMissingError, NotConvertedError, convert
from workersai_emulator.refusals import Refused

if TYPE_CHECKING:
    from workersai_emulator.api.binding import Asked
    from workersai_emulator.workbench import Workbench

#: The most that is read at once; there is no documented limit.
DOCUMENTS_BYTES: Final = 100_000_000


class BindingMarkdown:
    """Converts what a Worker sends, in the worker thread. Facts: `markdown.convert`, `markdown.supported`."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench

    async def answer(self, asked: Asked, path: str) -> Reply:
        """Answer what stands behind `/to-everything/markdown/`. Raises Refused."""
        wanted = {"transformer": "POST", "supported": "GET"}.get(path)
        if wanted is None:
            raise Refused("route.none")
        if asked.arrival.method != wanted:
            raise Refused("route.method", method=asked.arrival.method)
        asked.exchange.operation = "markdown"
        if path == "supported":
            return _success(
                asked, [{"extension": kind.extension, "mimeType": kind.mime_type} for kind in FORMATS]
            )
        return await self._transform(asked)

    async def _transform(self, asked: Asked) -> Reply:
        try:
            body = await read_body(asked.arrival.carrier, DOCUMENTS_BYTES)
            files, options = await self._workbench.make(partial(_documents, body))
            converted = [
                await self._workbench.make(partial(_converted, asked.reached, number, file, options))
                for number, file in enumerate(files)
            ]
        except (BadBody, ValueError) as bad:
            return _refusal(asked, 400, f"what is to be converted cannot be read: {bad}")
        except ExtraMissingError as missing:
            return _refusal(asked, 501, str(missing))
        return _success(asked, converted)


def _documents(body: bytes) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    said = loads(body)
    files = said.get("files") if isinstance(said, dict) else None
    if not isinstance(files, list):
        raise ValueError("files is no list")
    for file in files:
        if not isinstance(file, dict) or not all(
            isinstance(file.get(key), str) for key in ("name", "mimeType", "data")
        ):
            raise ValueError("each of the files has name, mimeType and data, which are texts")
    options = said.get("options")
    return files, options if isinstance(options, dict) else {}


def _converted(reached: str, number: int, file: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """One result, in the key order of the documentation's samples. Fact: `markdown.convert`."""
    named = {"id": document_id(reached, number), "name": file["name"], "mimeType": file["mimeType"]}
    try:
        if _output_format(options) != "markdown":
            raise NotConvertedError("workersai-emulator gives Markdown only")
        data = convert(file["name"], file["mimeType"], base64.b64decode(file["data"], validate=True))
    except binascii.Error as fault:
        return {**named, "format": "error", "error": f"data is no base64: {fault}"}
    except NotConvertedError as fault:
        return {**named, "format": "error", "error": str(fault)}
    return {**named, "format": "markdown", "tokens": estimate(data), "data": data}


def _output_format(options: dict[str, Any]) -> Any:
    conversion = options.get("conversionOptions")
    output = conversion.get("output") if isinstance(conversion, dict) else None
    return output.get("format", "markdown") if isinstance(output, dict) else "markdown"


def _success(asked: Asked, result: list[Any]) -> Reply:
    return Reply(200, dumps({"success": True, "result": result}), asked.headers)


def _refusal(asked: Asked, status: int, why: str) -> Reply:
    """A refusal by the emulator, in the form that the binding reads. Facts: `binding.errors`, `settled.binding`."""
    asked.exchange.why = why
    body = {"success": False, "errors": [{"code": 0, "message": f"workersai-emulator: {why}"}]}
    return Reply(status, dumps(body), asked.headers)
