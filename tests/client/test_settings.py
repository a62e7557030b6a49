from __future__ import annotations

import math

import pytest

from workersai_client import AsyncClient, Client, ConfigurationError
from workersai_client.settings import Settings, api_url

ACCOUNT = "0123456789abcdef0123456789abcdef"


def resolve(
    account_id=ACCOUNT, api_token="token", base_url=None, timeout=60.0, max_retries=4, **environ: str
) -> Settings:
    return Settings.resolve(
        account_id, api_token, base_url, timeout=timeout, max_retries=max_retries, environ=environ
    )


@pytest.mark.parametrize(
    "given",
    [
        "http://127.0.0.1:8799",
        "http://127.0.0.1:8799/",
        "http://127.0.0.1:8799/client/v4",
        "http://127.0.0.1:8799/client/v4///",
    ],
)
def test_a_base_url_is_a_root_or_ends_in_the_api(given: str) -> None:
    assert api_url(given) == "http://127.0.0.1:8799/client/v4"


def test_a_root_may_have_a_path() -> None:
    assert api_url("https://proxy.example/cloudflare/") == "https://proxy.example/cloudflare/client/v4"


@pytest.mark.parametrize(
    "given",
    [
        "127.0.0.1:8799",
        "ftp://host",
        "http://",
        "http://[::1",
        "http://host:99999",
        "http://host:0",
        "http://a b",
        "http://h/\n",
    ],
)
def test_what_is_no_http_url_is_refused(given: str) -> None:
    with pytest.raises(ConfigurationError, match="CLOUDFLARE_BASE_URL"):
        api_url(given)


@pytest.mark.parametrize("given", ["http://me:secret@host", "http://host?secret=1", "http://host/#secret"])
def test_a_url_with_more_than_a_place_is_refused_without_being_repeated(given: str) -> None:
    with pytest.raises(ConfigurationError, match="must not carry") as refused:
        api_url(given)
    assert "secret" not in str(refused.value)


def test_the_live_service_is_meant_when_nothing_says_otherwise() -> None:
    assert resolve().base_url == "https://api.cloudflare.com/client/v4"


def test_the_environment_fills_what_is_not_given() -> None:
    settings = resolve(
        None,
        None,
        CLOUDFLARE_ACCOUNT_ID="f" * 32,
        CLOUDFLARE_API_TOKEN="from-there",
        CLOUDFLARE_BASE_URL="http://localhost:1/",
    )
    assert settings.account_id == "f" * 32
    assert settings.api_token == "from-there"
    assert settings.base_url == "http://localhost:1/client/v4"


def test_an_argument_beats_the_environment() -> None:
    settings = resolve(
        ACCOUNT,
        "mine",
        "http://localhost:2",
        CLOUDFLARE_ACCOUNT_ID="f" * 32,
        CLOUDFLARE_API_TOKEN="theirs",
        CLOUDFLARE_BASE_URL="http://localhost:1",
    )
    assert (settings.account_id, settings.api_token) == (ACCOUNT, "mine")
    assert settings.base_url == "http://localhost:2/client/v4"


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_clients_read_the_process_environment(client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDFLARE_ACCOUNT_ID", ACCOUNT)
    monkeypatch.setenv("CLOUDFLARE_API_TOKEN", "token")
    monkeypatch.setenv("CLOUDFLARE_BASE_URL", "http://localhost:1")
    found = client()
    assert (found.account_id, found.base_url) == (ACCOUNT, "http://localhost:1/client/v4")


@pytest.mark.parametrize("empty", [None, ""], ids=["absent", "empty"])
def test_a_missing_account_is_named_with_argument_and_variable(empty: str | None) -> None:
    with pytest.raises(ConfigurationError) as refused:
        resolve(account_id=empty, CLOUDFLARE_ACCOUNT_ID="")
    assert str(refused.value) == "no account: pass account_id or set CLOUDFLARE_ACCOUNT_ID"


def test_a_missing_token_is_named_with_argument_and_variable() -> None:
    with pytest.raises(ConfigurationError) as refused:
        resolve(api_token=None)
    assert str(refused.value) == "no token: pass api_token or set CLOUDFLARE_API_TOKEN"


@pytest.mark.parametrize("account", ["short", "g" * 32, "0" * 33, "0" * 31 + "\n", "٣" * 32])
def test_an_account_that_is_not_32_hex_digits_is_refused_without_being_repeated(account: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        resolve(account_id=account)
    assert str(refused.value) == "account_id (CLOUDFLARE_ACCOUNT_ID) is not 32 hexadecimal digits"


@pytest.mark.parametrize("token", ["secret\n", "secret word", "sécret", "\ud800secret"])
def test_a_token_that_no_header_carries_is_refused_without_being_repeated(token: str) -> None:
    with pytest.raises(ConfigurationError, match="CLOUDFLARE_API_TOKEN") as refused:
        resolve(api_token=token)
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize("timeout", [0, -1, math.nan, math.inf])
def test_a_timeout_that_never_comes_is_refused(timeout: float) -> None:
    with pytest.raises(ConfigurationError, match="timeout must be a positive number"):
        resolve(timeout=timeout)


def test_a_negative_number_of_retries_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="max_retries must not be negative"):
        resolve(max_retries=-1)


def test_settings_do_not_show_the_token() -> None:
    assert "token-value" not in repr(resolve(api_token="token-value"))
