"""Labels: whether a text is kind, and what is to be seen in an image, as far as placeholders can say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from workersai_emulator.inference.inputs import text_of
from workersai_emulator.inference.media import bytes_of, drawn_from, size_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workersai_contracts import ModelCard

_KIND_WORDS = """
    amazing awesome beautiful best better brilliant delicious delighted easy enjoy enjoyed excellent fantastic
    fast fine friendly fun glad good great happy helpful incredible love loved lovely nice perfect pleasant
    pleased recommend recommended superb thank thanks useful well wonderful wow
"""
_UNKIND_WORDS = """
    angry annoying awful bad boring broken bug crash damaged dirty disappointed disappointing disgusting fail
    failed fails failure hate hated horrible late lost mess nasty never poor problem rude sad scam slow sorry
    terrible ugly unhappy unusable useless waste worse worst wrong
"""
_KIND, _UNKIND = frozenset(_KIND_WORDS.split()), frozenset(_UNKIND_WORDS.split())
#: Words that turn the next ones around, and how many of them.
_TURNING: Final = frozenset("not no never isn wasn don didn doesn won can cannot".split())
_TURNED_WORDS: Final = 3
_WORDS = re.compile(r"[^\W\d_]+")
#: No more of a text is looked at, in characters.
_LOOKED_AT: Final = 1 << 16

#: Scores are whole multiples of this, so that two of them have 1 as their exact sum.
_GRAIN: Final = 4096

_IMAGE_LABELS: Final = (
    *("TABBY", "TIGER CAT", "EGYPTIAN CAT", "GOLDEN RETRIEVER", "LABRADOR RETRIEVER", "BEAGLE", "GOLDFISH"),
    *("HUMMINGBIRD", "MONARCH", "ZEBRA", "AFRICAN ELEPHANT", "LLAMA", "ESPRESSO", "PIZZA", "LEMON", "DAISY"),
    *("SEASHORE", "VOLCANO", "LIGHTHOUSE", "SUSPENSION BRIDGE", "SPORTS CAR", "MOUNTAIN BIKE", "TEAPOT"),
    *(
        "UMBRELLA",
        "ACOUSTIC GUITAR",
        "NOTEBOOK",
        "TYPEWRITER KEYBOARD",
        "BOOKCASE",
        "DOORMAT",
        "TRAFFIC LIGHT",
    ),
)
_IMAGE_SCORES: Final = (0.5, 0.25, 0.125, 0.0625, 0.03125)
_OBJECTS: Final = ("person", "bicycle", "car", "dog", "cat", "chair", "bottle", "book", "clock", "umbrella")
_MOST_OBJECTS: Final = 3


def labels(card: ModelCard, item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return labels with their scores. Fact: `models.outputs`.

    A text gets NEGATIVE and POSITIVE, in this order, by the kind and unkind words in it. An image gets five,
    best first, that its bytes decide.
    """
    if card.raw_input == "image":
        return _image_labels(bytes_of(item.get("image")))
    positive = _positive(text_of(item.get("text")))
    return [
        {"label": "NEGATIVE", "score": (_GRAIN - positive) / _GRAIN},
        {"label": "POSITIVE", "score": positive / _GRAIN},
    ]


def boxes(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return up to three objects inside the image, best first, that its bytes decide. Fact: `models.outputs`."""
    image = bytes_of(item.get("image"))
    drawn, (width, height) = drawn_from(image), size_of(image)
    found = []
    for number in range(1 + drawn[0] % _MOST_OBJECTS):
        left, top, right, bottom, kind = drawn[1 + number * 5 : 6 + number * 5]
        box = {
            "xmin": width * left // 512,
            "ymin": height * top // 512,
            "xmax": width * (256 + right) // 512,
            "ymax": height * (256 + bottom) // 512,
        }
        score = (3840 - 512 * number) / _GRAIN
        found.append({"score": score, "label": _OBJECTS[kind % len(_OBJECTS)], "box": box})
    return found


def _image_labels(image: bytes) -> list[dict[str, Any]]:
    drawn, left = drawn_from(image), list(_IMAGE_LABELS)
    picked = [left.pop(drawn[number] % len(left)) for number in range(len(_IMAGE_SCORES))]
    return [{"label": label, "score": score} for label, score in zip(picked, _IMAGE_SCORES, strict=True)]


def _positive(text: str) -> int:
    """Return how kind a text is, out of 4,096: half of it where nothing says so."""
    balance = told = turned = 0
    for word in _WORDS.findall(text[:_LOOKED_AT].lower()):
        sense = (word in _KIND) - (word in _UNKIND)
        balance += -sense if turned else sense
        told += abs(sense)
        turned = _TURNED_WORDS if word in _TURNING else max(0, turned - 1)
    return _GRAIN // 2 + balance * _GRAIN // (2 * (told + 1))
