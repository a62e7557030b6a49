"""Put real documents through the queue, ask questions of their vectors, and meet two refusals.

The documents are docstrings of the standard library of the Python that runs this: real text that every machine
has. Nothing leaves the machine. Run it with `make demo`.
"""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import httpx
import numpy as np

from workersai_client import Client, Done, Handle, RequestTooLarge
from workersai_emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

MODEL = "@cf/baai/bge-m3"
BATCH = 100
MODULES = (
    "argparse bisect calendar collections contextlib csv difflib fileinput fnmatch fractions functools getpass "
    "glob gzip heapq html imaplib inspect ipaddress json keyword linecache mimetypes pathlib pprint queue random "
    "sched secrets shelve shlex shutil smtplib socketserver statistics string tempfile textwrap threading timeit "
    "tokenize trace uuid wave webbrowser zipfile"
).split()
QUESTIONS = {
    "How do I recursively delete a directory tree?": "shutil.rmtree",
    "Which function returns the median, the middle value of my data?": "statistics.median",
    "How do I fill a single paragraph of text to a width?": "textwrap.fill",
}


@dataclass(frozen=True)
class Document:
    """The first paragraph of a docstring, and whose it is."""

    name: str
    text: str


def documents() -> list[Document]:
    """What the docstrings of some modules' functions and classes begin with: a few hundred, in order."""
    return [document for module in MODULES for document in _docstrings(module)]


def _docstrings(module: str) -> Iterator[Document]:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            text = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
            if len(text) >= 20:
                yield Document(f"{module}.{node.name}", text)


def main() -> None:
    """Run the demonstration."""
    with Emulator() as emulator, _client(emulator) as client:
        print(f"An emulated Workers AI is at {emulator.url}; no account, no network.\n")
        found = documents()
        vectors = embed_through_the_queue(client, found)
        answer_questions(client, found, vectors)
        meet_the_payload_limit(client)
        meet_a_batch_error(emulator)
    print("\nTry it yourself: make serve, then the curl lines of README.md.")


def _client(emulator: Emulator) -> Client:
    return Client(emulator.account_id, emulator.token, emulator.base_url)


def embed_through_the_queue(client: Client, found: list[Document]) -> np.ndarray:
    """Submit the documents in batches and poll each until it is done; the vectors in the documents' order."""
    kilobytes = sum(len(document.text.encode()) for document in found) / 1e3
    print(f"{len(found)} docstrings of {len(MODULES)} modules, {kilobytes:.0f} kB, in batches of {BATCH}:")
    began = perf_counter()
    parts = [found[start : start + BATCH] for start in range(0, len(found), BATCH)]
    handles = [client.submit(MODEL, [{"text": document.text} for document in part]) for part in parts]
    finished = [_follow(client, handle) for handle in handles]
    rows = [item.result["data"][0] for done in finished for item in done.items]
    tokens = sum(done.usage.total_tokens for done in finished if done.usage is not None)
    vectors = np.array(rows, dtype=np.float32)
    print(
        f"  {vectors.shape[0]} vectors of {vectors.shape[1]} numbers, about {tokens} tokens, "
        f"in {perf_counter() - began:.2f} s\n"
    )
    return vectors


def _follow(client: Client, handle: Handle) -> Done:
    states = ["queued"]
    while not isinstance(look := client.poll(handle), Done):
        if look.status != states[-1]:
            states.append(look.status)
    print(f"  batch {handle.request_id}  {' → '.join([*states, 'done'])}, {len(look.items)} items")
    return look.raise_for_items()


def answer_questions(client: Client, found: list[Document], vectors: np.ndarray) -> None:
    """Show the nearest document of each question."""
    asked = client.embed(QUESTIONS, model=MODEL)
    print("Questions, answered by the nearest vector:")
    for question, scores in zip(QUESTIONS, asked @ vectors.T, strict=True):
        best = int(scores.argmax())
        text = found[best].text
        shown = text if len(text) <= 60 else text[:59].rstrip() + "…"
        print(f"  {question}\n    {found[best].name} ({scores[best]:.2f})  {shown}")


def meet_the_payload_limit(client: Client) -> None:
    """Send more than the queue takes."""
    requests = [{"text": "word " * 200}] * 10_000
    print("\nA payload of over 10 MB:")
    try:
        client.submit(MODEL, requests)
    except RequestTooLarge as refused:
        print(f"  refused with HTTP {refused.status}, code {refused.code}: {refused.message}")


def meet_a_batch_error(emulator: Emulator) -> None:
    """Let the queue be out of capacity once, and submit through the /batch Worker."""
    rule = {"match": {"operation": "submit"}, "times": 1, "effect": {"error": 3040}}
    httpx.post(f"{emulator.url}/__emulator__/rules", json=rule).raise_for_status()
    reply = httpx.post(f"{emulator.worker_url}/batch", json={"texts": ["one more document"]})
    print(
        f"\nThe /batch Worker while the queue is out of capacity:\n  HTTP {reply.status_code}  {reply.text}"
    )


if __name__ == "__main__":
    main()
