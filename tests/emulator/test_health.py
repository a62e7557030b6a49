from __future__ import annotations

import os
import socket
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from workersai_emulator import Emulator
from workersai_emulator.health import is_up


def port_of(emulator: Emulator) -> int:
    return int(emulator.url.rpartition(":")[2])


def test_an_emulator_is_up_until_it_is_stopped() -> None:
    with Emulator() as emulator:
        port = port_of(emulator)
        assert is_up(port)
    assert not is_up(port)


@pytest.mark.parametrize("token", [None, "sesame", "wrong"], ids=["no token", "the token", "another token"])
def test_one_whose_control_plane_asks_for_a_token_is_up_too(token: str | None) -> None:
    with Emulator(host="0.0.0.0", control_token="sesame") as emulator:
        assert is_up(port_of(emulator), token)


def test_another_server_on_the_port_is_not_it() -> None:
    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Other) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        assert not is_up(server.server_port)
        thread.join()


def test_what_does_not_speak_http_is_not_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            with server.accept()[0] as connection:
                connection.sendall(b"no\r\n")

        thread = Thread(target=hang_up)
        thread.start()
        assert not is_up(server.getsockname()[1])
        thread.join()


def test_as_a_command_it_asks_the_port_of_the_environment() -> None:
    def code() -> int:
        environment = {**os.environ, "WORKERSAI_EMULATOR_PORT": str(port)}
        return subprocess.run(
            [sys.executable, "-m", "workersai_emulator.health"], env=environment, check=False
        ).returncode

    with Emulator() as emulator:
        port = port_of(emulator)
        assert code() == 0
    assert code() == 1
