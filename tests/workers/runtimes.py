"""The runtimes: what each is started by, and what is known to come out of it in another way.

python tests/workers/runtimes.py     prints the README's table of the versions that are proved
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from worker_environments import is_newest

#: Whose answers all others are compared with: nothing is between its Worker and the emulator.
REFERENCE = "workerd, newest"
GENERATED = "wrangler.emulator.jsonc"
#: The versions that are proved, by environment and package: the one list of them.
LISTED: dict[str, dict[str, str]] = json.loads((Path(__file__).parent / "versions.json").read_text())
#: The package that a runtime's name is about.
_SUBJECTS = {
    "workerd": "workerd",
    "Miniflare": "miniflare",
    "wrangler": "wrangler",
    "getPlatformProxy": "wrangler",
    "Vitest": "vitest",
}
PRELOAD = "--require workersai-emulator/preload.cjs"


@dataclass(frozen=True)
class Runtime:
    """A way to run a Worker: the program that prints its answers, in an environment.

    `config` is the user's configuration of which `worker-config` makes the emulator's; None where it needs none.
    `keeps_names` is False where an error that the binding throws comes out as a plain Error.
    """

    name: str
    environment: str
    program: tuple[str, ...]
    config: str | None = None
    node_options: str = ""
    keeps_names: bool = True

    def __str__(self) -> str:
        return f"{self.name}, {self.environment}"

    @property
    def proved(self) -> str:
        """Its name with the version that is listed as proved: what a test of it is called."""
        listed = LISTED[self.environment]
        package = next((name for word, name in _SUBJECTS.items() if word in self.name), "node")
        return f"{self.name}, {package} {'of today' if is_newest(self.environment) else listed[package]}"

    @property
    def is_short(self) -> bool:
        """Whether it is run even where time is short."""
        return not any(word in str(self) for word in _LONGER)

    @property
    def is_pages(self) -> bool:
        """Whether it is a Pages project, which is a folder of its own."""
        return "pages" in self.program


def _both_ends(name: str, *program: str, config: str | None = None, node_options: str = "") -> list[Runtime]:
    return [Runtime(name, end, program, config, node_options) for end in ("newest", "oldest")]


def _vitest(name: str, way: str, config: str | None) -> list[Runtime]:
    """Vitest's tests run inside workerd by one package now, and by another before it."""
    packages = {"vitest": "vitest-plugin", "vitest-oldest": "vitest-pool-workers"}
    return [
        Runtime(f"Vitest, {name}", environment, ("vitest.mjs", f"{package}.{way}"), config)
        for environment, package in packages.items()
    ]


_CONFIG = "wrangler.jsonc"
#: Those that are left out where time is short.
_LONGER = ("preload", "pages", "createAi", "Miniflare, remote", "getPlatformProxy, oldest", "vitest-oldest")
RUNTIMES = [
    *_both_ends("workerd", "workerd.mjs"),
    *_both_ends("Miniflare, the plugin", "miniflare.mjs", "plugin"),
    *_both_ends("Miniflare, remoteProxyConnectionString", "miniflare.mjs", "remote"),
    *_both_ends("wrangler dev", "wrangler.mjs", "dev", "-c", GENERATED, config=_CONFIG),
    *_both_ends("wrangler dev, the preload", "wrangler.mjs", "dev", "--local", node_options=PRELOAD),
    *_both_ends("wrangler pages dev", "wrangler.mjs", "pages", "dev", config="wrangler.toml"),
    Runtime("getPlatformProxy", "newest", ("platform.mjs",), _CONFIG),
    Runtime("getPlatformProxy", "oldest", ("platform.mjs",), _CONFIG, keeps_names=False),
    *_vitest("the plugin", "plugin", _CONFIG),
    *_vitest("remoteProxyConnectionString", "remote", None),
    *_both_ends("createAi", "without.mjs"),
    *_both_ends("createAi in a Worker, workerd", "miniflare.mjs", "within"),
]


def table() -> str:
    """The README's table of the versions that are proved, made of the one list of them."""
    newest, oldest = LISTED["newest"], LISTED["oldest"]
    vitest, pool = LISTED["vitest"], LISTED["vitest-oldest"]
    rows = [
        ("runtime", "newest proved", "oldest proved"),
        ("---", "---", "---"),
        ("workerd, plain", newest["workerd"], oldest["workerd"]),
        ("Miniflare", newest["miniflare"], oldest["miniflare"]),
        (
            "wrangler dev, wrangler pages dev, getPlatformProxy",
            f"{newest['wrangler']} on Node {newest['node']}",
            f"{oldest['wrangler']} on Node {oldest['node']}",
        ),
        (
            "Vitest",
            f"{vitest['vitest']} with vitest-plugin {vitest['@cloudflare/vitest-plugin']}",
            f"{pool['vitest']} with vitest-pool-workers {pool['@cloudflare/vitest-pool-workers']}",
        ),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows).replace("| --- | --- | --- |", "|---|---|---|")


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
