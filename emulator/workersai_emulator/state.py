"""Where `--state` says that state is kept: in memory, in a file, or in a Redis that several emulators share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from workersai_emulator.memory_store import MemoryStore

if TYPE_CHECKING:
    from workersai_emulator.options import Options
    from workersai_emulator.store import Store

_SHARED = ("redis://", "rediss://", "unix://")


def is_shared(state: str | None) -> TypeGuard[str]:
    """Whether several processes can have this state at once."""
    return state is not None and state.startswith(_SHARED)


def store_of(options: Options) -> Store:
    """The store that the options name, not opened yet. Raises ValueError for what names none."""
    state = options.state
    if state is None:
        return MemoryStore(max_bytes=options.store_bytes, max_batches=options.store_batches)
    if is_shared(state):
        from workersai_emulator.shared_store import SharedStore

        return SharedStore(state, max_bytes=options.store_bytes, max_batches=options.store_batches)
    if "://" in state:
        raise ValueError(f"--state: {state.partition('://')[0]}:// is not known; give a file, or redis://…")
    from workersai_emulator.file_store import FileStore

    return FileStore(Path(state), max_bytes=options.store_bytes, max_batches=options.store_batches)
