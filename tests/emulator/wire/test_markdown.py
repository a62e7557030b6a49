"""`env.AI.toMarkdown()`: with the library that is an extra, whose place a fake takes here, and without it."""

from __future__ import annotations

import base64
import json
import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from workersai_contracts import validate
from workersai_emulator import markdown
from workersai_emulator.inference import estimate

if TYPE_CHECKING:
    import httpx

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


class LibraryError(Exception):
    """What the library raises for what it cannot convert."""


class Library(ModuleType):
    """Stands in for markitdown: its two classes, its exception, and what it was asked."""

    MarkItDownException = LibraryError

    def __init__(self) -> None:
        super().__init__("markitdown")
        self.asked: list[tuple[str, bytes]] = []
        self.plugins: list[bool] = []

    def StreamInfo(self, *, extension: str) -> str:
        return extension

    def MarkItDown(self, *, enable_plugins: bool) -> Any:
        self.plugins.append(enable_plugins)
        return SimpleNamespace(convert_stream=self._convert)

    def _convert(self, stream: Any, *, stream_info: str) -> Any:
        document = stream.read()
        self.asked.append((stream_info, document))
        if b"broken" in document:
            raise LibraryError("File conversion failed\nafter 3 attempts")
        return SimpleNamespace(markdown=f"# {stream_info} of {len(document)}")


@pytest.fixture
def library(monkeypatch):
    fake = Library()
    monkeypatch.setitem(sys.modules, "markitdown", fake)
    markdown._converter.cache_clear()
    yield fake
    markdown._converter.cache_clear()


@pytest.fixture
def transform(world):
    def send(*files: tuple[str, str, bytes | str], options: Any = None) -> httpx.Response:
        told = [
            {
                "name": name,
                "mimeType": kind,
                "data": data if isinstance(data, str) else base64.b64encode(data).decode(),
            }
            for name, kind, data in files
        ]
        body = {"files": told} if options is None else {"files": told, "options": options}
        return world.http.post(
            "/to-everything/markdown/transformer", json=body, headers={"x-emulator-account": world.id}
        )

    return send


def test_documents_are_converted_in_their_order(world, library, transform):
    reply = transform(("a.csv", "text/csv", b"a,b"), ("b.docx", DOCX, b"PK\x03\x04..."))

    assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json")
    validate(reply.json(), "binding/markdown.reply")
    first, second = reply.json()["result"]
    assert list(first) == ["id", "name", "mimeType", "format", "tokens", "data"]
    assert {**first, "id": ""} == {
        "id": "",
        "name": "a.csv",
        "mimeType": "text/csv",
        "format": "markdown",
        "tokens": estimate("# .csv of 3"),
        "data": "# .csv of 3",
    }
    assert second["data"] == "# .docx of 7"
    assert first["id"] != second["id"]
    assert library.asked == [(".csv", b"a,b"), (".docx", b"PK\x03\x04...")]
    (exchange,) = world.control("GET", "requests").json()["requests"]
    assert (exchange["dialect"], exchange["operation"]) == ("binding", "markdown")


def test_library_is_made_once_and_without_plugins(library, transform):
    transform(("a.csv", "text/csv", b"a"))
    transform(("a.csv", "text/csv", b"a"), ("b.csv", "text/csv", b"b"))

    assert library.plugins == [False]


@pytest.mark.parametrize(
    ("name", "kind", "taken_for"),
    [
        ("x", "text/html; charset=utf-8", ".html"),
        ("x", "TEXT/CSV", ".csv"),
        ("x", "text/xml", ".txt"),
        ("page.HTM", "", ".html"),
        ("page.xml", "application/octet-stream", ".txt"),
    ],
)
def test_kind_is_known_by_its_type_else_by_its_name(library, transform, name, kind, taken_for):
    assert transform((name, kind, b"x")).json()["result"][0]["format"] == "markdown"
    assert library.asked == [(taken_for, b"x")]


@pytest.mark.parametrize(
    ("file", "error"),
    [
        (("a.zip", "application/zip", b"x"), "workersai-emulator converts no application/zip"),
        (("a.zip", "", b"x"), "workersai-emulator converts no file of that name"),
        (("a.pdf", "application/pdf", b"not one"), "this is no application/pdf"),
        (("a.docx", DOCX, b"not one"), f"this is no {DOCX}"),
        (("a.csv", "text/csv", b"broken"), "File conversion failed"),
        (("a.csv", "text/csv", "%%"), "data is no base64: "),
    ],
)
def test_document_that_cannot_be_converted_is_told_beside_the_others(library, transform, file, error):
    reply = transform(file, ("b.csv", "text/csv", b"b"))

    assert reply.status_code == 200
    validate(reply.json(), "binding/markdown.reply")
    bad, good = reply.json()["result"]
    assert list(bad) == ["id", "name", "mimeType", "format", "error"]
    assert bad["format"] == "error"
    assert bad["error"].startswith(error)
    assert good["format"] == "markdown"


@pytest.mark.parametrize("kind", ["image/png", "image/jpeg", "image/webp", "image/svg+xml"])
def test_image_is_a_placeholder_and_needs_no_library(transform, monkeypatch, kind):
    monkeypatch.setitem(sys.modules, "markitdown", None)

    (result,) = transform(("cat", kind, b"12345")).json()["result"]

    assert result["data"] == "# cat\n\n[placeholder by workersai-emulator] an image of 5 bytes\n"


def test_without_the_library_the_refusal_names_the_extra(world, transform, monkeypatch):
    monkeypatch.setitem(sys.modules, "markitdown", None)

    reply = transform(("a.csv", "text/csv", b"a"))

    assert reply.status_code == 501
    validate(reply.json(), "binding/errors.reply")
    assert reply.json()["errors"][0]["message"] == (
        "workersai-emulator: toMarkdown() needs an extra of workersai-emulator: "
        'pip install "workersai-emulator[markdown]"'
    )
    (exchange,) = world.control("GET", "requests").json()["requests"]
    assert "needs an extra" in exchange["why"]


def test_what_the_library_itself_lacks_is_no_missing_extra(transform, monkeypatch, caplog):
    def lacking(name: str) -> Any:
        raise ModuleNotFoundError("No module named 'bs4'", name="bs4")

    monkeypatch.setattr(markdown, "import_module", lacking)
    reply = transform(("a.csv", "text/csv", b"a"))

    assert reply.status_code == 500
    assert "No module named 'bs4'" in reply.text
    caplog.clear()  # the fault is told there, as it should be


@pytest.mark.parametrize("said", ["text", "html"])
def test_other_forms_than_Markdown_are_not_given(library, transform, said):
    options = {"conversionOptions": {"output": {"format": said}}}

    (result,) = transform(("a.csv", "text/csv", b"a"), options=options).json()["result"]

    assert (result["format"], result["error"]) == ("error", "workersai-emulator gives Markdown only")
    assert library.asked == []


@pytest.mark.parametrize("options", [{"gateway": {"id": "gw"}}, {"conversionOptions": {"output": {}}}, []])
def test_options_that_change_nothing_are_taken(library, transform, options):
    (result,) = transform(("a.csv", "text/csv", b"a"), options=options).json()["result"]

    assert result["format"] == "markdown"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"files":{}}',
        b'{"files":["a"]}',
        b'{"files":[{"name":"a","mimeType":"b"}]}',
    ],
)
def test_body_that_has_no_files_is_refused_with_errors(world, body):
    reply = world.http.post("/to-everything/markdown/transformer", content=body)

    assert reply.status_code == 400
    validate(reply.json(), "binding/errors.reply")


def test_no_files_are_no_results(library, transform):
    assert transform().content == b'{"success":true,"result":[]}'


def test_supported_kinds_are_listed_with_and_without_the_library(world, monkeypatch):
    monkeypatch.setitem(sys.modules, "markitdown", None)

    reply = world.http.get("/to-everything/markdown/supported")

    validate(reply.json(), "binding/supported.reply")
    told = {one["extension"]: one["mimeType"] for one in reply.json()["result"]}
    assert told[".pdf"] == "application/pdf"
    assert set(told) >= {".docx", ".xlsx", ".html", ".csv", ".png"}
    assert reply.content == json.dumps(reply.json(), separators=(",", ":")).encode()
