"""Measure the emulator beside its limits, and tell it as a table, as JSON and as a picture.

python emulator/bench/run.py [--short] [--json FILE] [--picture FILE.svg] [NOUN ...]
"""

from __future__ import annotations

import argparse
import json
from importlib import import_module
from pathlib import Path

from figures import document, heading, machine, picture, row

NOUNS = ("exchanges", "large_batch", "cold_start", "stored_batches", "server_per_test")
#: Only when it is named: it needs what `make bench-peers` installs.
PEERS = "peer_servers"


def main() -> None:
    """Run what is asked for, all of it unless told, and print each figure when it is there."""
    parser = argparse.ArgumentParser(description="Costs as ratios to limits measured in the same run.")
    parser.add_argument("nouns", nargs="*", metavar="NOUN", help=", ".join(NOUNS))
    parser.add_argument("--short", action="store_true", help="under a minute, and less exact")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the ratios here, as SVG")
    said = parser.parse_args()
    if unknown := set(said.nouns) - {*NOUNS, PEERS}:
        parser.error(
            f"no benchmark is named {', '.join(sorted(unknown))}; there are {', '.join((*NOUNS, PEERS))}"
        )
    facts = machine()
    under = (
        f"{facts['processor']}, {facts['cores']} cores, load {facts['load']} before, Python {facts['python']}"
        f"{', short' * said.short}"
    )
    print(f"{under}\n{heading()}", flush=True)
    figures = []
    for noun in said.nouns or NOUNS:
        for figure in import_module(noun).figures(short=said.short):
            figures.append(figure)
            print(row(figure), flush=True)
    told = {**document(figures, short=said.short), "machine": facts}
    for path, text in (
        (said.json, json.dumps(told, indent=1, ensure_ascii=False) + "\n"),
        (said.picture, picture(figures, under)),
    ):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
