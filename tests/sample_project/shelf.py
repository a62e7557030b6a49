"""A shelf of documents that can be asked for the nearest one: the kind of program that the emulator is for.

python shelf.py QUESTION < documents.txt
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from workersai_client import Client, Done, Handle

if TYPE_CHECKING:
    from collections.abc import Sequence

MODEL = "@cf/baai/bge-m3"


class Shelf:
    """Documents with their vectors, which come through the batch queue."""

    def __init__(self, client: Client, documents: Sequence[str]) -> None:
        self.client = client
        self.documents = list(documents)
        self.vectors: list[list[float]] = []

    def submit(self) -> Handle:
        """Queue all documents."""
        requests = [{"text": text, "external_reference": text[:20]} for text in self.documents]
        return self.client.submit(MODEL, requests)

    def collect(self, handle: Handle) -> bool:
        """Take the vectors if they are there."""
        reply = self.client.poll(handle)
        if not isinstance(reply, Done):
            return False
        reply.raise_for_items()
        by_id = sorted(reply.items, key=lambda item: item.id)
        self.vectors = [item.result["data"][0] for item in by_id]
        return True

    def nearest(self, question: str) -> str:
        """The document that is most like the question."""
        asked = self.client.embed([question])[0]
        likeness = [sum(a * b for a, b in zip(asked, vector, strict=True)) for vector in self.vectors]
        return self.documents[likeness.index(max(likeness))]


def main() -> None:
    """Answer the question of the command line from the documents on stdin."""
    with Client() as client:
        shelf = Shelf(client, [line.strip() for line in sys.stdin if line.strip()])
        handle = shelf.submit()
        client.wait(handle, timeout=60)
        shelf.collect(handle)
        print(shelf.nearest(sys.argv[1]))


if __name__ == "__main__":
    main()
