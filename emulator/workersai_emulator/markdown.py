"""Documents to Markdown, by a library that is an extra; images, which a model would describe, by a placeholder.

The library, markitdown, is imported when a document is first converted. Nothing is fetched from anywhere.
Facts: `markdown.convert`, `markdown.supported`, `settled.binding`.
"""

from __future__ import annotations

import io
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple

#: What the parts of a packed document may come to.
LARGEST_UNPACKED: Final = 100_000_000
EXTRA: Final = 'pip install "workersai-emulator[markdown]"'


class Format(NamedTuple):
    """A kind of document: how its files end, its content type, what the library takes it for, and its mark.

    The library takes a broken file for plain text; without its `mark` a file is not what it is said to be.
    """

    extension: str
    mime_type: str
    taken_for: str
    mark: bytes = b""


_ZIP, _OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_OFFICE = "application/vnd.openxmlformats-officedocument."
_IMAGE: Final = "image"
#: What is converted, of what the service lists. Fact: `markdown.supported`.
FORMATS: Final = (
    Format(".pdf", "application/pdf", ".pdf", b"%PDF-"),
    Format(".jpeg", "image/jpeg", _IMAGE),
    Format(".jpg", "image/jpeg", _IMAGE),
    Format(".png", "image/png", _IMAGE),
    Format(".webp", "image/webp", _IMAGE),
    Format(".svg", "image/svg+xml", _IMAGE),
    Format(".html", "text/html", ".html"),
    Format(".htm", "text/html", ".html"),
    Format(".xml", "application/xml", ".txt"),
    Format(".xlsx", f"{_OFFICE}spreadsheetml.sheet", ".xlsx", _ZIP),
    Format(".xlsm", "application/vnd.ms-excel.sheet.macroenabled.12", ".xlsx", _ZIP),
    Format(".xls", "application/vnd.ms-excel", ".xls", _OLE),
    Format(".docx", f"{_OFFICE}wordprocessingml.document", ".docx", _ZIP),
    Format(".csv", "text/csv", ".csv"),
)


class ExtraMissingError(Exception):
    """The library that converts is not installed; the message says how to get it."""


class NotConvertedError(Exception):
    """This document cannot be converted; the message says why."""


def convert(name: str, mime_type: str, document: bytes) -> str:
    """Return a document as Markdown; the content type says what it is, else the end of its name.

    Raises NotConvertedError, or ExtraMissingError.
    """
    kind = _format(name, mime_type)
    if kind is None:
        raise NotConvertedError(f"workersai-emulator converts no {mime_type or 'file of that name'}")
    if kind.taken_for == _IMAGE:
        return f"# {name}\n\n[placeholder by workersai-emulator] an image of {len(document)} bytes\n"
    if kind.mark not in document[:1024]:
        raise NotConvertedError(f"this is no {kind.mime_type}")
    if kind.mark == _ZIP:
        _check_unpacked(document)
    library = _library()
    about = library.StreamInfo(extension=kind.taken_for)
    try:
        converted = _converter().convert_stream(io.BytesIO(document), stream_info=about)
    except library.MarkItDownException as fault:
        why = str(fault).strip().partition("\n")[0]
        raise NotConvertedError(why or type(fault).__name__) from fault
    return str(converted.markdown)


def _format(name: str, mime_type: str) -> Format | None:
    plain = mime_type.partition(";")[0].strip().lower()
    for kind in FORMATS:
        if plain == kind.mime_type or (plain == "text/xml" and kind.extension == ".xml"):
            return kind
    if plain not in {"", "application/octet-stream"}:
        return None
    return next((kind for kind in FORMATS if name.lower().endswith(kind.extension)), None)


def _check_unpacked(document: bytes) -> None:
    """Pass an archive that does not unpack to more than anybody wants; it says how much itself, and is held to it."""
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(document)) as archive:
            size = sum(part.file_size for part in archive.infolist())
    except (zipfile.BadZipFile, ValueError, OSError):
        return  # which the converter says in its own words
    if size > LARGEST_UNPACKED:
        raise NotConvertedError(f"it unpacks to {size} bytes, over {LARGEST_UNPACKED}")


@cache
def _converter() -> Any:
    return _library().MarkItDown(enable_plugins=False)


def _library() -> Any:
    try:
        return import_module("markitdown")
    except ModuleNotFoundError as missing:
        if missing.name != "markitdown":
            raise
        raise ExtraMissingError(f"toMarkdown() needs an extra of workersai-emulator: {EXTRA}") from None
