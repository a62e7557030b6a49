"""The container image: what its file says, and the image itself where a Docker daemon answers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

REPO = Path(__file__).parents[2]
LINES = (REPO / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()


def docker(*arguments: str) -> str:
    ran = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def unavailable() -> str:
    """Why no image can be built here, or nothing."""
    if shutil.which("docker") is None:
        return "docker is not here"
    ran = subprocess.run(["docker", "info"], capture_output=True, text=True, check=False)
    return "" if ran.returncode == 0 else "no Docker daemon answers here"


@pytest.fixture(scope="module")
def container() -> Iterator[str]:
    """The name of a container that runs as the image has it."""
    if reason := unavailable():
        pytest.skip(reason)
    image = docker("build", "--quiet", str(REPO))
    name = docker("run", "--detach", "--rm", "--publish", "127.0.0.1:0:8799", image)
    try:
        yield name
    finally:
        docker("stop", name)


def instruction(name: str) -> list[str]:
    return [line.removeprefix(name).strip() for line in LINES if line.startswith(f"{name} ")]


def test_it_runs_the_command_as_nobody_in_particular_and_says_whether_it_is_well() -> None:
    assert instruction("USER") == ["10001"]
    assert instruction("ENTRYPOINT") == ['["workersai-emulator"]']
    assert instruction("CMD") == ['["serve"]']
    assert instruction("EXPOSE") == ["8799"]
    (check,) = instruction("HEALTHCHECK")
    assert check.endswith('CMD ["python", "-m", "workersai_emulator.health"]')
    assert LINES.index("USER 10001") < LINES.index('ENTRYPOINT ["workersai-emulator"]')


def test_only_what_the_wheel_is_built_from_gets_into_the_build() -> None:
    lines = (REPO / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert lines[1] == "*"
    let_in = [line[1:] for line in lines if line.startswith("!")]
    assert let_in == ["pyproject.toml", "README.md", "LICENSE", "emulator", "client", "contracts"]
    assert all((REPO / name).exists() for name in let_in)


def test_the_image_serves_beyond_its_own_loopback(container: str) -> None:
    address = docker("port", container, "8799").splitlines()[0]
    transport = httpx.HTTPTransport(retries=5)
    with httpx.Client(base_url=f"http://{address}", transport=transport) as http:
        reply = http.get("/__emulator__/health")
        assert (reply.status_code, "--control-token" in reply.text) == (403, True)
        submitted = http.post("/batch", json={"texts": ["orange cloud"]})
        assert submitted.json()["status"] == "queued"
    assert docker("exec", container, "python", "-m", "workersai_emulator.health") == ""
    assert docker("exec", container, "id", "-u") == "10001"
