"""What a page of another site can make a browser send: nothing that it sends gets in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from workersai_emulator import Emulator

EVIL = "https://evil.example"


def state(emulator: Emulator) -> list[str]:
    return [batch.state for batch in emulator.batches.list()]


def test_a_form_post_as_plain_text_changes_nothing(
    emulator: Emulator, http: httpx.Client, run_path: str
) -> None:
    headers = {"origin": EVIL, "content-type": "text/plain", "sec-fetch-site": "cross-site"}
    body = json.dumps({"requests": [{"text": "a"}]}).encode()

    replies = [
        http.post(f"{run_path}?queueRequest=true", content=body, headers=headers),
        http.post("/batch", content=b'{"texts":["a"]}', headers=headers),
        http.post("/__emulator__/settings", content=b'{"script":"failed"}', headers=headers),
        http.request("PATCH", "/__emulator__/settings", content=b'{"script":"failed"}', headers=headers),
    ]

    assert {reply.status_code for reply in replies} == {403}
    assert state(emulator) == []
    assert emulator.settings.get()["script"] == "done"


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE", "GET"])
def test_a_preflight_is_refused_and_no_reply_allows_another_origin(
    http: httpx.Client, run_path: str, method: str
) -> None:
    asked = {
        "origin": EVIL,
        "access-control-request-method": method,
        "access-control-request-headers": "authorization",
    }

    for path in (run_path, "/batch", "/__emulator__/settings", "/metrics", "/"):
        reply = http.options(path, headers=asked)
        assert reply.status_code == 403
        assert not [name for name in reply.headers if name.startswith("access-control")]


def test_an_own_page_is_not_told_that_others_may_read_either(http: httpx.Client, run_path: str) -> None:
    reply = http.post(run_path, json={"text": "a"}, headers={"origin": "http://localhost:3000"})

    assert reply.status_code == 200
    assert not [name for name in reply.headers if name.startswith("access-control")]


@pytest.mark.parametrize("mode", ["no-cors", "cors", "websocket"])
def test_an_image_of_another_site_polls_no_batch(emulator: Emulator, http: httpx.Client, mode: str) -> None:
    queued = http.post(
        "/batch", json={"texts": ["a"]}, headers={"x-emulator-script": "queued:1, done"}
    ).json()

    reply = http.get(
        f"/batch/{queued['request_id']}", headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": mode}
    )

    assert reply.status_code == 403
    assert [batch.polls for batch in emulator.batches.list()] == [0]


def test_a_link_that_a_person_follows_and_an_own_page_get_through(http: httpx.Client) -> None:
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    typed = {"sec-fetch-site": "none", "sec-fetch-mode": "navigate"}
    own = {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors", "origin": "http://localhost:5173"}

    assert [http.get("/", headers=headers).status_code for headers in (followed, typed, own)] == [200] * 3


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://[::ffff:203.0.113.1]",
        "http://[2001:db8::1]:8799",
        "http://127.0.0.1.",
        "http://localhost.:8799",
        "HTTPS://EVIL.EXAMPLE",
    ],
)
def test_odd_spellings_of_other_origins_are_refused(http: httpx.Client, run_path: str, origin: str) -> None:
    assert http.post(run_path, json={"text": "a"}, headers={"origin": origin}).status_code == 403


@pytest.mark.parametrize(
    "path", ["/__emulator__/health", "/__emulator__/requests", "/__emulator__/openapi.json", "/metrics"]
)
@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.nip.io:8799", "localhost.", "127.0.0.1.", "[2001:db8::1]:8799"]
)
def test_a_name_that_was_rebound_to_this_machine_opens_nothing(
    http: httpx.Client, path: str, host: str
) -> None:
    assert http.get(path, headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["LOCALHOST:1", "127.0.0.1:65535", "[::1]:8799", "app.localhost"])
def test_own_names_open_with_any_port_and_case(http: httpx.Client, host: str) -> None:
    assert http.get("/metrics", headers={"host": host}).status_code == 200


def test_a_whole_url_for_a_target_does_not_lend_its_name(
    emulator: Emulator, talk: Callable[[str, bytes], bytes]
) -> None:
    def status(target: str) -> bytes:
        asked = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        return talk(emulator.url, asked.encode())[9:12]

    assert status("http://evil.example/__emulator__/health") == b"403"
    assert status("http://localhost@evil.example/metrics") == b"403"
    assert status("http://127.0.0.1/__emulator__/health") == b"200"
