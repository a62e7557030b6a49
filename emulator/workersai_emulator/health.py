"""Whether the emulator on this machine is up: the health check of its container.

    python -m workersai_emulator.health     exits 0 when it is, 1 when it is not

The port is the one that `serve` takes from the environment.
"""

from __future__ import annotations

import os
import sys
from http.client import HTTPConnection, HTTPException

from workersai_emulator.options import DEFAULT_PORT

TIMEOUT_SECONDS = 2.0


def is_up(port: int, control_token: str | None = None) -> bool:
    """Whether an emulator answers on this port; one whose control plane is closed to us is up as well."""
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    headers = {} if control_token is None else {"Authorization": f"Bearer {control_token}"}
    try:
        connection.request("GET", "/__emulator__/health", headers=headers)
        reply = connection.getresponse()
        ours = reply.getheader("Server", "").startswith("workersai-emulator/")
        return ours and reply.status in {200, 403}
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def main() -> int:
    """Ask as the environment says, and give the exit code."""
    port = int(os.environ.get("WORKERSAI_EMULATOR_PORT") or DEFAULT_PORT)
    return 0 if is_up(port, os.environ.get("WORKERSAI_EMULATOR_CONTROL_TOKEN")) else 1


if __name__ == "__main__":
    sys.exit(main())
