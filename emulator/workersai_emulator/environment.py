"""The environment variables that point each client at a Workers AI: the one list of them.

python -m workersai_emulator.environment http://127.0.0.1:8799     prints them as NAME=VALUE
"""

from __future__ import annotations

import sys

from workersai_emulator.ids import DEVELOPMENT_ACCOUNT, DEVELOPMENT_TOKEN

LIVE_URL = "https://api.cloudflare.com"


def variables(
    url: str, account_id: str = DEVELOPMENT_ACCOUNT, token: str = DEVELOPMENT_TOKEN
) -> dict[str, str]:
    """What the official SDKs, wrangler, the OpenAI SDKs and our client read, for the server at this root.

    The live service has no `WORKERS_AI_EMULATOR_URL`, by which a program can tell that it talks to an emulator.
    """
    base_url = f"{url}/client/v4"
    told = {
        "CLOUDFLARE_BASE_URL": base_url,
        "CLOUDFLARE_API_BASE_URL": base_url,
        "CLOUDFLARE_ACCOUNT_ID": account_id,
        "CLOUDFLARE_API_TOKEN": token,
        "OPENAI_BASE_URL": f"{base_url}/accounts/{account_id}/ai/v1",
        "OPENAI_API_KEY": token,
    }
    return told if url == LIVE_URL else {**told, "WORKERS_AI_EMULATOR_URL": url}


def main(arguments: list[str]) -> None:
    """Print the variables for the server's root, and for an account and a token where they are given."""
    for name, value in variables(*arguments).items():
        sys.stdout.write(f"{name}={value}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
