"""Mixed traffic with moving clocks against one `serve`: every reply valid, memory flat, no task or descriptor left.

    python emulator/bench/soak.py [SECONDS]

The first third fills the store, which is bounded, and the allocator's own reserves. From then on what the server
holds while nobody is connected and the journal is empty may not grow. Exits 1 on a breach.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep

from traffic import Breach, Traffic
from wire import ServerProcess

AT_ONCE = 4
#: What is kept is bounded so low that the bounds are reached soon.
KEPT = ("--store-bytes", "20000000", "--store-batches", "500", "--script", "default")
COMMAND = [sys.executable, str(Path(__file__).with_name("soak_server.py")), "serve", "--port", "0", *KEPT]
#: How many megabytes more may be held in the end: what an allocator wavers by.
GROWTH_MEGABYTES = 10
#: So many looks at what is held are taken after the first.
LOOKS = 4


class Soak:
    """The traffic, and what was held between its parts."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process, self._server = process, ServerProcess(process)
        self.seen: Counter[str] = Counter()
        self.breaches: list[str] = []

    def run(self, seconds: float) -> None:
        """A third to fill what is bounded, then the rest in parts, with a look after each."""
        print(
            f"{'after':>7}{'replies':>9}{'memory':>11}{'tasks':>7}{'descriptors':>13}{'threads':>9}",
            flush=True,
        )
        began = monotonic()
        self._drive(seconds / 3)
        first = last = self._look(monotonic() - began)
        for _ in range(LOOKS):
            self._drive(seconds * 2 / 3 / LOOKS)
            last = self._look(monotonic() - began)
        for name, bound in (("memory", GROWTH_MEGABYTES), ("tasks", 0), ("descriptors", 0), ("threads", 0)):
            if last[name] - first[name] > bound:
                self.breaches.append(f"{name}: {first[name]:.0f} at first, {last[name]:.0f} in the end")

    def _drive(self, seconds: float) -> None:
        until = monotonic() + seconds
        with ThreadPoolExecutor(AT_ONCE) as programs:
            for seen, breach in programs.map(lambda number: self._one(number, until), range(AT_ONCE)):
                self.seen += seen
                self.breaches += breach

    def _one(self, number: int, until: float) -> tuple[Counter[str], list[str]]:
        traffic, turn = Traffic(self._server.url, f"{number + 1:032x}"), 0
        try:
            while monotonic() < until:
                traffic.turn(turn)
                turn += 1
        except Breach as breach:
            return traffic.seen, [str(breach)]
        finally:
            traffic.close()
        return traffic.seen, []

    def _look(self, after: float) -> dict[str, float]:
        traffic = Traffic(self._server.url, f"{0:032x}")
        traffic.forget_journal()
        traffic.close()
        sleep(0.5)  # the server sees the connections end
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        tasks = int(self._process.stdout.readline())
        held = {"memory": self._server.megabytes(), "tasks": tasks, **self._server.held()}
        print(
            f"{after:>6.0f}s{self.seen.total():>9}{held['memory']:>8.1f} MB{tasks:>7}"
            f"{held['descriptors']:>13}{held['threads']:>9}",
            flush=True,
        )
        return held


def main() -> int:
    """Soak for so many seconds, and tell what was seen."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 180.0
    pipe = subprocess.PIPE
    with subprocess.Popen(COMMAND, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            soak = Soak(process)
            soak.run(seconds)
        finally:
            process.terminate()
    print(", ".join(f"{kind}: {count}" for kind, count in sorted(soak.seen.items())))
    print("\n".join(soak.breaches) or "every reply valid, and nothing grew")
    return 1 if soak.breaches else 0


if __name__ == "__main__":
    sys.exit(main())
