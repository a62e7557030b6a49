"""The one door through which time enters: the system's clock, and the accounts' own.

Everything that follows time in the emulator (a batch's life, retention) follows an account's `Clock`, which a
test may freeze, advance, scale, set forward, or let jump. It never goes back.
"""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)?")
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_FARTHEST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


def system_now() -> float:
    """Seconds since 1970 by the machine's own clock."""
    return time.time()


def stopwatch() -> float:
    """Seconds on a clock that only measures: for durations of exchanges."""
    return time.perf_counter()


def local_time_of_day() -> str:
    """The time of day where the machine is, for a log that a person reads."""
    return time.strftime("%H:%M:%S")


async def pause(seconds: float) -> None:
    """Let so much of the machine's time pass."""
    await asyncio.sleep(seconds)


def parse_duration(value: object) -> float:
    """Seconds meant by a number, or by a text such as `500ms`, `30s`, `5m`, `2h`.

    Raises ValueError, in one line, for anything else.
    """
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is not None:
        seconds = float(match[1]) * _UNIT_SECONDS[match[2] or "s"]
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
        seconds = min(value, _FARTHEST * 2.0)
    else:
        raise ValueError(f"{value!r} is not a duration: give seconds, or a text such as 500ms, 30s, 5m, 2h")
    if seconds > _FARTHEST:
        raise ValueError(f"{value!r} is longer than the calendar")
    return seconds


def format_duration(seconds: float) -> str:
    """A short text that `parse_duration` reads back as exactly these seconds."""
    for unit, length in reversed(_UNIT_SECONDS.items()):
        amount = round(seconds / length)
        if amount and amount * length == seconds:
            return f"{amount}{unit}"
    if not seconds:
        return "0s"
    return f"{Decimal(repr(seconds)):f}s"


def parse_time(value: object) -> float:
    """Seconds since 1970 of an RFC 3339 time; one without an offset is UTC. Raises ValueError in one line."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a time: give RFC 3339, such as 2026-11-29T12:00:00Z")
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(f"{value!r} is not a time: give RFC 3339, such as 2026-11-29T12:00:00Z") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def format_time(seconds: float) -> str:
    """RFC 3339 in UTC, with milliseconds."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(slots=True)
class Clock:
    """One account's own time.

    It runs `scale` times as fast as the system's clock from the moment it was last touched, stands still while
    `frozen`, and while `jump` is on, each poll of a waiting batch moves it to that batch's next change.
    """

    frozen: bool = False
    scale: float = 1.0
    jump: bool = False
    _at: float | None = None
    _since: float = 0.0

    def now(self) -> float:
        """Seconds since 1970 on this clock."""
        if self._at is None:
            return system_now()
        if self.frozen:
            return self._at
        return min(_FARTHEST, self._at + (system_now() - self._since) * self.scale)

    def said(self) -> dict[str, Any]:
        """All that decides what it shows, as JSON that `of` reads."""
        return {
            "frozen": self.frozen,
            "scale": self.scale,
            "jump": self.jump,
            "at": self._at,
            "since": self._since,
        }

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Clock:
        """The clock that was said so: it has gone on since as if it had been looked at all the time."""
        return cls(said["frozen"], said["scale"], said["jump"], said["at"], said["since"])

    def copy(self) -> Clock:
        """A clock of its own that shows the same time and goes on in the same way."""
        twin = Clock(self.frozen, self.scale, self.jump)
        twin._set(self.now())
        return twin

    def freeze(self, on: bool = True) -> None:
        """Stand still from now on, or go on from where it stands."""
        self._set(self.now())
        self.frozen = on

    def advance(self, seconds: float) -> None:
        """Move forward. Raises ValueError when it would leave the calendar."""
        self._within(self.now() + seconds)

    def set(self, moment: float) -> None:
        """Move forward to a moment. Raises ValueError when that is in the past, or beyond the calendar.

        The moment that the clock shows, in milliseconds, is not in the past.
        """
        now = self.now()
        if moment <= now - 0.001:
            raise ValueError(
                f"now: {format_time(moment)} is before {format_time(now)}; a clock never goes back"
            )
        self._within(moment)

    def reach(self, moment: float) -> None:
        """Move forward to a moment unless it has passed, as far as the calendar goes."""
        self._set(max(min(moment, _FARTHEST), self.now()))

    def rescale(self, factor: float) -> None:
        """Run `factor` times as fast as the system's clock from now on."""
        self._set(self.now())
        self.scale = factor

    def _within(self, moment: float) -> None:
        if moment > _FARTHEST:
            raise ValueError("the clock cannot go beyond the calendar")
        self.reach(moment)

    def _set(self, moment: float) -> None:
        self._at, self._since = moment, system_now()
