"""The emulator's own `serve`, that also says on request how many tasks it has: a line in, a number out."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading

from workersai_emulator.cli import main


def tell_tasks() -> None:
    """Answer each line on stdin with the number of tasks that are not over."""
    for _ in sys.stdin:
        gc.collect()
        print(
            sum(isinstance(each, asyncio.Task) and not each.done() for each in gc.get_objects()), flush=True
        )


if __name__ == "__main__":
    threading.Thread(target=tell_tasks, daemon=True).start()
    main()
