"""A local stand-in for Cloudflare Workers AI, centred on its Asynchronous Batch API.

    with Emulator(script="instant") as emulator:
        ...  # point any client at emulator.base_url

Importing the package costs next to nothing: what it offers is loaded when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workersai_emulator.controls import WorkersAI
    from workersai_emulator.emulator import Emulator
    from workersai_emulator.inference.vectors import embed

__version__ = "0.1.0"
__all__ = ["Emulator", "WorkersAI", "__version__", "embed"]


def __getattr__(name: str) -> Any:
    """Load what is asked for: aiohttp comes in with `Emulator`, numpy with `embed`."""
    match name:
        case "Emulator":
            from workersai_emulator.emulator import Emulator

            return Emulator
        case "WorkersAI":
            from workersai_emulator.controls import WorkersAI

            return WorkersAI
        case "embed":
            from workersai_emulator.inference.vectors import embed

            return embed
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
