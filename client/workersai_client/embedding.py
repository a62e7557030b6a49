"""Texts to vectors: how many go together, and what their answers must look like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workersai_client.errors import ConfigurationError, UnexpectedReply
from workersai_client.wire import json_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

DEFAULT_MODEL = "@cf/baai/bge-m3"
TEXTS_PER_CALL = 100
TEXTS_PER_BATCH = 2000
#: A body of this many bytes is refused. Fact: `batch.limit`
PAYLOAD_BYTES = 10_000_000

_ENVELOPE_BYTES = len(b'{"requests":[]}')
_ITEM_BYTES = len(b'{"text":},')


def checked_texts(texts: Iterable[str]) -> list[str]:
    """List the texts. Raises ConfigurationError for one string, or for what is no string."""
    if isinstance(texts, str):
        raise ConfigurationError("texts is one string; pass a list of them")
    found = list(texts)
    for position, text in enumerate(found):
        if not isinstance(text, str):
            raise ConfigurationError(f"text {position} is not a string but {type(text).__name__}")
    return found


def known_dimensions(model: str) -> int | None:
    """How long the vectors of a model are, where its card says so."""
    from workersai_contracts import model as card_of

    card = card_of(model)
    return card.dimensions if card else None


def texts_per_call(model: str) -> int:
    """How many texts one synchronous call of a model takes."""
    from workersai_contracts import model as card_of

    card = card_of(model)
    return (card.texts_per_call if card else None) or TEXTS_PER_CALL


def batches_of(texts: Sequence[str], limit: int = PAYLOAD_BYTES) -> list[range]:
    """Cut texts into batches, each under both limits: texts, and bytes of its body.

    The cut depends on nothing but the texts, so that a resumed run finds the same batches. A text that is too
    large by itself gets a batch of its own, which the service refuses. Fact: `batch.limit`.
    """
    cuts = [0]
    size = _ENVELOPE_BYTES
    for position, text in enumerate(texts):
        added = len(json_bytes(text)) + _ITEM_BYTES
        full = position - cuts[-1] == TEXTS_PER_BATCH or size + added > limit
        if full and position > cuts[-1]:
            cuts.append(position)
            size = _ENVELOPE_BYTES
        size += added
    return [
        range(start, stop) for start, stop in zip(cuts, [*cuts[1:], len(texts)], strict=True) if start < stop
    ]


class Vectors:
    """The vectors of a run, filled in as they arrive and checked on the way.

    `array` is float32 of shape (texts, dimensions), in the order of the texts; without any text it has no
    row, and as many columns as the model is known to give.
    """

    def __init__(self, model: str, texts: int) -> None:
        self._texts = texts
        self._dimensions = known_dimensions(model)
        self._array: NDArray[np.float32] | None = None

    @property
    def array(self) -> NDArray[np.float32]:
        """All vectors; rows that were never put are zeros."""
        if self._array is None:
            import numpy as np

            self._array = np.zeros((self._texts, self._dimensions or 0), dtype=np.float32)
        return self._array

    def put(self, start: int, count: int, output: Any, where: str) -> None:
        """Take the vectors of `count` texts from a model's output `{"shape":[n,d],"data":[[…]]}`.

        Raises UnexpectedReply when there are fewer or more, or when one has not as many finite numbers as the
        others and as the model's card says.
        """
        data = output.get("data") if isinstance(output, dict) else None
        if not isinstance(data, list):
            raise UnexpectedReply("an embedding has no list of vectors", path=f"{where}/data", body=output)
        if len(data) != count:
            message = f"{count} texts have {len(data)} vectors"
            raise UnexpectedReply(message, path=f"{where}/data", body=output)
        for position, vector in enumerate(data):
            self._check(vector, f"{where}/data/{position}", output)
        if output.get("shape", [count, self._dimensions]) != [count, self._dimensions]:
            message = f"the shape is not [{count},{self._dimensions}] as the vectors are"
            raise UnexpectedReply(message, path=f"{where}/shape", body=output)
        self._fill(start, data, where)

    def _check(self, vector: Any, path: str, output: Any) -> None:
        # By type, since numpy would take null, true and "1.5" for numbers.
        if not isinstance(vector, list) or not {float, int}.issuperset(map(type, vector)):
            raise UnexpectedReply("a vector is not a list of numbers", path=path, body=output)
        if self._dimensions is None and vector:
            self._dimensions = len(vector)
        if len(vector) != self._dimensions:
            message = f"a vector has {len(vector)} dimensions instead of {self._dimensions}"
            raise UnexpectedReply(message, path=path, body=output)

    def _fill(self, start: int, data: list[list[float]], where: str) -> None:
        import numpy as np

        with np.errstate(over="ignore"):
            rows = np.array(data, dtype=np.float32)
        if not np.isfinite(rows).all():
            raise UnexpectedReply("a number is beyond float32", path=f"{where}/data", body=data)
        self.array[start : start + len(data)] = rows
