"""Milliseconds of each life of a peer's server in a thread: started and stopped; runs with the peers' own Python."""

import json
import sys
from time import perf_counter

from moto.server import ThreadedMotoServer
from pytest_httpserver import HTTPServer

START = {"moto": lambda: ThreadedMotoServer(port=0, verbose=False), "pytest-httpserver": HTTPServer}


def life(name: str) -> float:
    """Start one, and stop it."""
    began = perf_counter()
    server = START[name]()
    server.start()
    server.stop()
    return (perf_counter() - began) * 1000


if __name__ == "__main__":
    life(sys.argv[1])
    print(json.dumps([life(sys.argv[1]) for _ in range(int(sys.argv[2]))]))
