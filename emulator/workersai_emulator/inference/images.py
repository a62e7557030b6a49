"""Placeholder images: the prompt drawn on colours of its own, as PNG or JPEG that any program opens."""

from __future__ import annotations

import base64
import hashlib
import io
import textwrap
from typing import TYPE_CHECKING, Any, Final

from workersai_emulator.inference.answer import Answer
from workersai_emulator.inference.inputs import text_of, whole_number
from workersai_emulator.inference.text import placeholder
from workersai_emulator.inference.tokens import Usage, estimate
from workersai_emulator.json_text import dumps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PIL.Image import Image as Picture

    from workersai_contracts import ModelCard

#: A side of an image, in pixels: at least, at most, and where nothing is said.
SHORTEST_SIDE: Final = 64
LONGEST_SIDE: Final = 2048
USUAL_SIDE: Final = 1024

#: The image is drawn so small, in pixels along its longer side, and then made larger.
_DRAWN_SIDE = 256
_MARGIN = 8
_LINE_PIXELS = 12
_CHARACTER_PIXELS = 6
_STRIPES = 8


def image(card: ModelCard, item: Mapping[str, Any]) -> Answer:
    """Return an image for a prompt: PNG or JPEG as the card says, or base64 JPEG in JSON. Fact: `models.outputs`.

    `width` and `height` hold between 64 and 2048. The same prompt and seed give the same image; for one
    version of Pillow it is the same bytes.
    """
    item = {**item, **_form_fields(item.get("multipart"))}
    prompt = text_of(item.get("prompt"))
    size = _side(item.get("width")), _side(item.get("height"))
    drawn = _drawn(placeholder(card, prompt), f"{prompt}\0{text_of(item.get('seed'))}", size)
    usage = Usage(estimate(prompt))
    if card.output_type == "image/png":
        return Answer(_file(drawn, "PNG"), usage, "image/png")
    picture = _file(drawn, "JPEG")
    if card.output_type == "application/json":
        return Answer(dumps({"image": base64.b64encode(picture).decode()}), usage)
    return Answer(picture, usage, card.output_type)


def _form_fields(form: Any) -> dict[str, Any]:
    """Return the fields of a form in `multipart`, by their names; whole numbers as numbers."""
    if not isinstance(form, dict) or not isinstance(form.get("body"), str | bytes):
        return {}
    from email import message_from_bytes

    body = form["body"] if isinstance(form["body"], bytes) else form["body"].encode("utf-8", "replace")
    head = f"Content-Type: {text_of(form.get('contentType'))}".splitlines()[0]
    message = message_from_bytes(head.encode("ascii", "replace") + b"\r\n\r\n" + body)
    fields: dict[str, Any] = {}
    for part in message.walk():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(content, bytes):
            text = content.decode("utf-8", "replace")
            fields[name] = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else text
    return fields


def _side(asked: Any) -> int:
    return min(max(whole_number(asked) or USUAL_SIDE, SHORTEST_SIDE), LONGEST_SIDE)


def _drawn(text: str, decides: str, size: tuple[int, int]) -> Picture:
    """Draw a text on stripes whose colours another text decides.

    The font has Latin letters only; whatever else is in a prompt shows in the colours.
    """
    from PIL import Image, ImageDraw, ImageFont

    width, height = (max(side * _DRAWN_SIDE // max(size), 1) for side in size)
    drawn = hashlib.sha256(decides.encode("utf-8", "surrogatepass")).digest()
    small = Image.new("RGB", (width, height))
    pen = ImageDraw.Draw(small)
    for stripe in range(_STRIPES):
        red, green, blue = (160 + value % 96 for value in drawn[stripe * 3 : stripe * 3 + 3])
        box = (0, height * stripe // _STRIPES, width, height * (stripe + 1) // _STRIPES)
        pen.rectangle(box, fill=(red, green, blue))
    shown = text.encode("latin-1", "replace").decode("latin-1")
    lines = textwrap.wrap(shown, max((width - 2 * _MARGIN) // _CHARACTER_PIXELS, 8))
    for number, line in enumerate(lines):
        at = (_MARGIN, _MARGIN + number * _LINE_PIXELS)
        pen.text(at, line, fill=(0, 0, 0), font=ImageFont.load_default_imagefont())
    return small.resize(size, Image.Resampling.NEAREST)


def _file(picture: Picture, kind: str) -> bytes:
    written = io.BytesIO()
    picture.save(written, kind)
    return written.getvalue()
