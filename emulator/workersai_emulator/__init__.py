"""A local stand-in for Cloudflare Workers AI, centred on its Asynchronous Batch API.

Importing the package costs next to nothing: what it offers is loaded when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workersai_emulator.inference.vectors import embed

    __version__: str

__all__ = ["__version__", "embed"]


def __getattr__(name: str) -> Any:
    """Load what is asked for: numpy only comes in with `embed`."""
    if name == "embed":
        from workersai_emulator.inference.vectors import embed

        return embed
    if name == "__version__":
        from importlib.metadata import version

        return version("workersai-emulator")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
