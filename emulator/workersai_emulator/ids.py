"""The one door through which randomness and ids enter.

Everything is a hash of the seed and of what it is for, so that the same seed and the same requests give the same
bytes again. Only the seed itself is ever drawn.
"""

from __future__ import annotations

import hashlib
import random
import secrets
from functools import lru_cache

DEVELOPMENT_ACCOUNT = "0123456789abcdef0123456789abcdef"
DEVELOPMENT_TOKEN = "emulator"  # noqa: S105 - printed by `serve`, no secret
_VARIANTS = {f"{digit:x}": "89ab"[digit & 3] for digit in range(16)}
#: An odd number, by the golden ratio: steps of it come to every number once, and look like nothing.
_STEP = 0x9E3779B97F4A7C15F39CC0605CEDC835
_MOST = 2**128 - 1
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_seed() -> int:
    """A seed for a server that was given none; small enough to read out and type again."""
    return secrets.randbelow(10**9)


def fresh_account(seed: int, name: str) -> str:
    """An account of its own for a test of that name."""
    return _digest(f"account {seed} {name}").hex()


def request_id(seed: int, account_id: str, number: int) -> str:
    """The `request_id` of an account's submit of that number: a lowercase uuid4. Fact: `batch.submit`."""
    return _uuid4(_numbered("batch", seed, account_id, number))


def demo_request_id(seed: int, account_id: str, number: int) -> str:
    """The id of a batch that the `/batch` Worker only pretends to queue, for want of a binding."""
    return "demo-" + _uuid4(_numbered("demo", seed, account_id, number))


def exchange_id(seed: int, account_id: str, number: int) -> str:
    """The `cf-ai-req-id` of an account's exchange of that number. Fact: `head.req-id`."""
    return _uuid4(_numbered("exchange", seed, account_id, number))


def gateway_log_id(seed: int, account_id: str, number: int) -> str:
    """The `cf-aig-log-id` of an account's exchange of that number: 26 signs, as of a ULID. Fact: `binding.log-id`."""
    drawn = _drawn(f"gateway log {seed} {account_id} {number}")
    signs = (_CROCKFORD[drawn >> 5 * place & 31] for place in range(24))
    return "01" + "".join(signs)


def document_id(reached: str, number: int) -> str:
    """The id of a converted document: its place in the exchange of that id. Fact: `markdown.convert`."""
    return _uuid4(_drawn(f"document {reached} {number}"))


def ray(seed: int, number: int) -> str:
    """The `cf-ray` of the server's exchange of that number: 16 hex digits and a place. Fact: `head.req-id`."""
    spread = (seed + number) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    return f"{spread:016x}-EMU"


def chance(seed: int, *what: object) -> float:
    """A number in [0, 1) that the seed decides for this occasion."""
    return int.from_bytes(_digest(f"chance {seed} {what!r}")[:7], "big") / 2**56


def completion_order(drawn_from: str | bytes, count: int) -> list[int]:
    """The order in which a batch's items get done: near to the order of the request, and never quite that order.

    Each item is late by up to four places, which looks like the one run on record. Fact: `poll.order`.
    """
    draw = random.Random(drawn_from).random  # noqa: S311 - not for secrets
    due = [place + 4 * draw() for place in range(count)]
    order = sorted(range(count), key=due.__getitem__)
    if count > 1 and order == list(range(count)):
        order[:2] = 1, 0
    return order


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _drawn(text: str) -> int:
    return int.from_bytes(_digest(text), "big")


def _numbered(kind: str, seed: int, account_id: str, number: int) -> int:
    """Where an account's ids of a kind begin, and so many long steps on: a hash for each would cost more."""
    return _start(kind, seed, account_id) + number * _STEP & _MOST


@lru_cache(maxsize=1024)
def _start(kind: str, seed: int, account_id: str) -> int:
    return _drawn(f"{kind} {seed} {account_id}")


def _uuid4(drawn: int) -> str:
    digits = f"{drawn:032x}"
    return (
        f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANTS[digits[16]]}{digits[17:20]}-{digits[20:]}"
    )
