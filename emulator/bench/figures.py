"""A figure: what the emulator costs beside the limit that was measured in the same run; as a table, as JSON, drawn."""

from __future__ import annotations

import math
import os
import platform
from dataclasses import asdict, dataclass
from html import escape
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_ROW, _LEFT, _WIDTH = 26, 330, 860
_LIBRARIES = ("workersai-emulator", "aiohttp", "uvloop", "orjson")


@dataclass(frozen=True)
class Figure:
    """A cost of the emulator and of its limit, in `unit`; less is better, and a ratio of 1 is the limit itself.

    `most` is what we want the cost to stay within, `most_ratio` the same of the ratio.
    """

    name: str
    unit: str
    ours: float
    limit: float
    ratio: float
    limit_is: str
    most: float | None = None
    most_ratio: float | None = None

    @classmethod
    def of(
        cls,
        name: str,
        unit: str,
        ours: Sequence[float],
        limit: Sequence[float],
        limit_is: str,
        *,
        most: float | None = None,
        most_ratio: float | None = None,
    ) -> Self:
        """The medians of rounds; the ratio is the median of each round's own, since a machine's speed drifts."""
        ratio = median(a / b for a, b in zip(ours, limit, strict=True))
        return cls(name, unit, median(ours), median(limit), ratio, limit_is, most, most_ratio)

    @property
    def aim(self) -> str:
        """What it is to stay within, and whether it does not; empty where nothing is said."""
        if self.most_ratio is not None:
            return f"{self.most_ratio:g} x{' missed' * (self.ratio > self.most_ratio)}"
        if self.most is not None:
            return f"{self.most:g} {self.unit}{' missed' * (self.ours > self.most)}"
        return ""


def in_turns(
    ours: Callable[[], float], limit: Callable[[], float], rounds: int
) -> tuple[list[float], list[float]]:
    """Measure both so many times, one after the other."""
    pairs = [(ours(), limit()) for _ in range(rounds)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def heading() -> str:
    """The first line of the table."""
    return f"{'what it costs':<45}{'emulator':>12}{'limit':>12}{'ratio':>8}  {'aim':<14}the limit"


def row(figure: Figure) -> str:
    """One line of the table."""
    ours, limit = (f"{_short(cost)} {figure.unit}" for cost in (figure.ours, figure.limit))
    return f"{figure.name:<45}{ours:>12}{limit:>12}{_ratio(figure):>8}  {figure.aim:<14}{figure.limit_is}"


def _ratio(figure: Figure) -> str:
    return f"{figure.ratio:.2f}" if figure.ratio >= 0.1 else f"{figure.ratio:.1g}"


def _short(cost: float) -> str:
    return f"{cost:.0f}" if cost >= 100 else f"{cost:.3g}"


def document(figures: Iterable[Figure], *, short: bool) -> dict[str, Any]:
    """The figures as JSON, with what they were measured on."""
    return {"machine": machine(), "short": short, "figures": [asdict(figure) for figure in figures]}


def machine() -> dict[str, Any]:
    """What a figure depends on. The load is that of the last minute, the benchmark's own included."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
        **{name: version(name) for name in _LIBRARIES},
    }


def _processor() -> str:
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def picture(figures: Sequence[Figure], under: str) -> str:
    """The ratios as bars in SVG, on a scale of powers of two around the limit."""
    high = max([1, *(math.ceil(math.log2(figure.ratio)) for figure in figures)])
    low = min([0, *(math.floor(math.log2(figure.ratio)) for figure in figures)])
    step = (_WIDTH - _LEFT - 70) / (high - low)
    bottom = 44 + _ROW * len(figures)

    def across(power: float) -> float:
        return _LEFT + (power - low) * step

    drawn = [
        _text(10, 20, "Times its limit, measured in the same run: 1 is the limit, less is better", "start")
    ]
    for power in range(low, high + 1):
        colour, x = ("#333" if power == 0 else "#ddd"), across(power)
        drawn.append(f'<path d="M{x:.1f} 30V{bottom}" stroke="{colour}"/>')
        drawn.append(_text(x, bottom + 16, f"{2.0**power:g}", "middle"))
    for position, figure in enumerate(figures):
        y, end = 38 + _ROW * position, across(math.log2(figure.ratio))
        left, width = min(end, across(0)), abs(end - across(0))
        drawn.append(_text(_LEFT - 10, y + 13, figure.name, "end"))
        drawn.append(f'<rect x="{left:.1f}" y="{y}" width="{width:.1f}" height="16" fill="#4477aa"/>')
        drawn.append(_text(max(end, across(0)) + 6, y + 13, _ratio(figure), "start"))
    drawn.append(_text(10, bottom + 38, under, "start"))
    size = f'width="{_WIDTH}" height="{bottom + 50}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="#fff"/>', *drawn, "</svg>", ""])


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'
