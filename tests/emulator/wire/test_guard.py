"""Who gets in: Host on the control plane, Origin everywhere, a token beyond loopback."""

from __future__ import annotations

import json

import pytest

EVERYWHERE = {
    "control plane": ("GET", "/__emulator__/health"),
    "REST": ("POST", "{run}"),
    "router": ("GET", "/client/v4/x"),
    "worker": ("GET", "/"),
    "worker submit": ("POST", "/batch"),
}

FOREIGN_ORIGINS = [
    "https://evil.example",
    "http://evil.example:8799",
    "http://127.0.0.1.evil.example",
    "http://localhost.evil.example",
    "http://evil.example/localhost",
    "http://localhost@evil.example",
    "http://128.0.0.1",
    "http://0.0.0.0",
    "file://",
    "null",
    "",
    "garbage",
    "http://",
    "http://[",
    "http://[::1",
    "http://[v1.x]",
    "http://\u2100.example",
    "//",
    "\u00ff\u00fe",
]

OWN_ORIGINS = [
    "http://127.0.0.1:3000",
    "http://127.8.9.10",
    "https://localhost",
    "http://LOCALHOST:5173",
    "http://app.localhost:5173",
    "http://[::1]:8080",
]

FOREIGN_HOSTS = [
    "evil.example",
    "evil.example:8799",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "localhost@evil.example",
    "workers-binding.ai",
    "api.cloudflare.com",
    "",
    "[",
    "[::1",
    "]",
    "a b",
    "@",
    "\u2100",
]


def ask(world, method: str, path: str, **headers: str):
    encoded = {name.replace("_", "-"): value.encode("utf-8") for name, value in headers.items()}
    body = b"" if method == "GET" else b'{"text":"a","texts":["a"]}'
    return world.http.request(method, path.replace("{run}", world.target()), content=body, headers=encoded)


@pytest.mark.parametrize("where", EVERYWHERE.values(), ids=EVERYWHERE)
@pytest.mark.parametrize("origin", FOREIGN_ORIGINS, ids=ascii)
def test_another_sites_origin_is_refused_everywhere(world, where, origin):
    reply = ask(world, *where, origin=origin, x_emulator_account=world.id)

    assert reply.status_code == 403
    assert list(reply.json()) == ["error"]
    assert "\n" not in reply.json()["error"]
    assert "--allow-host" in reply.json()["error"]


@pytest.mark.parametrize("where", EVERYWHERE.values(), ids=EVERYWHERE)
@pytest.mark.parametrize("origin", OWN_ORIGINS)
def test_an_origin_of_this_machine_passes(world, where, origin):
    reply = ask(world, *where, origin=origin, x_emulator_account=world.id)

    assert reply.status_code == (200 if where != EVERYWHERE["router"] else 400)


@pytest.mark.parametrize("host", FOREIGN_HOSTS, ids=ascii)
def test_control_plane_refuses_foreign_hosts(world, host):
    reply = ask(world, "GET", "/__emulator__/health", host=host)

    assert (reply.status_code, list(reply.json())) == (403, ["error"])


@pytest.mark.parametrize("host", [host for host in FOREIGN_HOSTS if host])
def test_every_other_route_takes_any_host(world, host):
    for where in ("REST", "worker", "worker submit"):
        reply = ask(world, *EVERYWHERE[where], host=host, x_emulator_account=world.id)
        assert reply.status_code == 200


def test_control_plane_does_not_change_anything_for_a_foreign_host(world):
    body = json.dumps({"account_id": world.id, "script": "failed"}).encode()

    reply = world.http.patch("/__emulator__/settings", content=body, headers={"host": "evil.example"})

    assert reply.status_code == 403
    assert world.control("GET", "settings").json()["script"] == "queued:1, running:1, done"


@pytest.mark.parametrize("path", ["/__emulator__/facts", "/__emulator__/", "/__emulator__/x"])
def test_host_is_checked_before_anything_else_of_the_control_plane(world, path):
    assert ask(world, "POST", path, host="evil.example").status_code == 403


@pytest.mark.parametrize(
    "path", ["/__emulator__", "/__EMULATOR__/health", "/%5F_emulator__/health", "//__emulator__/health"]
)
def test_other_spellings_do_not_lead_to_the_control_plane(world, path):
    reply = ask(world, "GET", path, host="evil.example")

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (400, 7000)


def test_http_1_0_without_a_host_does_not_reach_the_control_plane(converse, read):
    (answer,) = read(converse(b"GET /__emulator__/health HTTP/1.0\r\n\r\n"))

    assert answer.status == 403


def test_allowed_host_names_pass_as_host_and_as_origin(world_of):
    open_world = world_of(allowed_hosts=frozenset({"emulator", "CI.example"}))

    def status(**headers: str) -> int:
        return int(ask(open_world, "GET", "/__emulator__/health", **headers).status_code)

    assert status(host="emulator:8799") == 200
    assert status(host="ci.example") == 200
    assert status(host="CI.Example:80") == 200
    assert status(origin="http://emulator") == 200
    assert status(host="emulator.evil.example") == 403
    assert status(host="emulators") == 403
    assert status(origin="https://x.ci.example") == 403


def test_beyond_loopback_the_control_plane_is_closed_without_a_token(world_of):
    exposed = world_of(host="0.0.0.0")

    reply = ask(exposed, "GET", "/__emulator__/health")

    assert reply.status_code == 403
    assert reply.json() == {"error": "beyond loopback the control plane needs --control-token"}
    assert exposed.run({"text": "a"}).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"], ids=["exposed", "loopback"])
@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        ("Bearer sesame", 200),
        ("Bearer Sesame", 403),
        ("Bearer sesam", 403),
        ("Bearer", 403),
        ("Basic sesame", 403),
        ("Bearer \u010daj", 403),
        (None, 403),
    ],
)
def test_control_token_is_asked_for_where_there_is_one(world_of, host, authorization, status):
    exposed = world_of(host=host, control_token="sesame")
    del exposed.http.headers["authorization"]
    headers = {} if authorization is None else {"authorization": authorization}

    assert ask(exposed, "GET", "/__emulator__/health", **headers).status_code == status


def test_control_token_does_not_open_the_door_to_other_sites_or_hosts(world_of):
    exposed = world_of(host="0.0.0.0", control_token="sesame")
    token = "Bearer sesame"

    def status(**headers: str) -> int:
        return int(ask(exposed, "GET", "/__emulator__/health", authorization=token, **headers).status_code)

    assert status(host="evil.example") == 403
    assert status(origin="https://evil.example") == 403
