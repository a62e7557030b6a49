"""A server that the network reaches: its control plane is closed without the token, whatever is tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from workersai_emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

PATHS = ["health", "settings", "requests", "facts", "openapi.json", "metrics"]


@pytest.fixture(scope="module")
def exposed() -> Iterator[httpx.Client]:
    with (
        Emulator(host="0.0.0.0", seed=7) as running,
        httpx.Client(base_url=running.url, timeout=30) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def guarded() -> Iterator[httpx.Client]:
    with (
        Emulator(host="0.0.0.0", seed=7, control_token="sesame") as running,
        httpx.Client(base_url=running.url, timeout=30) as client,
    ):
        yield client


@pytest.mark.parametrize("path", [*(f"/__emulator__/{path}" for path in PATHS), "/metrics"])
@pytest.mark.parametrize("authorization", [None, "Bearer", "Bearer sesame", "Basic c2VzYW1l"])
def test_without_a_token_to_know_none_opens(
    exposed: httpx.Client, path: str, authorization: str | None
) -> None:
    headers = {} if authorization is None else {"authorization": authorization}

    reply = exposed.get(path, headers=headers)

    assert (reply.status_code, reply.json()) == (
        403,
        {"error": "beyond loopback the control plane needs --control-token"},
    )


@pytest.mark.parametrize("path", [*(f"/__emulator__/{path}" for path in PATHS), "/metrics"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer sesam"},
        {"authorization": "bearer sesame"},
        {"authorization": "sesame, sesame"},
        {"x-forwarded-for": "127.0.0.1", "forwarded": "for=127.0.0.1", "x-real-ip": "127.0.0.1"},
        {"cookie": "token=sesame", "x-auth-key": "sesame", "x-auth-email": "a@example.com"},
    ],
    ids=["nothing", "too short", "another case", "twice", "as from this machine", "elsewhere"],
)
def test_only_the_token_in_its_place_opens(guarded: httpx.Client, path: str, headers: dict[str, str]) -> None:
    assert guarded.get(path, headers=headers).status_code == 403
    assert guarded.get(f"{path}?token=sesame&control_token=sesame", headers=headers).status_code == 403
    assert guarded.get(path, headers={"authorization": "Bearer sesame"}).status_code == 200


def test_the_token_is_not_one_for_the_service_nor_the_other_way_around() -> None:
    with (
        Emulator(seed=7, control_token="sesame", tokens=["service"]) as running,
        httpx.Client(base_url=running.url, timeout=30) as client,
    ):
        run = f"/client/v4/accounts/{running.account_id}/ai/run/@cf/baai/bge-m3"

        def status(method: str, path: str, token: str) -> int:
            headers = {"authorization": f"Bearer {token}"}
            return client.request(method, path, json={"text": "a"}, headers=headers).status_code

        assert status("POST", run, "service") == 200
        assert status("POST", run, "sesame") == 401
        assert status("POST", "/__emulator__/reset", "service") == 403
        assert (
            client.get("/__emulator__/health", headers={"authorization": "Bearer service"}).status_code == 403
        )
