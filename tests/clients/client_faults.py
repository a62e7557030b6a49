"""What goes wrong in the accounts that are there for it: rules, as the control plane spells them."""

from __future__ import annotations

from typing import Any

PAGE = "<html><head><title>502 Bad Gateway</title></head><body>cloudflare</body></html>"
NOT_A_SUCCESS = {
    "errors": [{"message": "AiError: AiError: Model execution failed", "code": 5001}],
    "success": False,
    "result": {},
    "messages": [],
}
RETRY_AFTER = 1

FAULTS: dict[str, dict[str, Any]] = {
    "capacity": {"effect": {"error": 3040}},
    "capacity, retry-after": {"effect": {"error": 3040, "retry_after": RETRY_AFTER}},
    "capacity, once": {"effect": {"error": 3040}, "times": 1},
    "bad input": {"effect": {"error": 5006}},
    "no such model": {"effect": {"error": 5007}},
    "failed": {"effect": {"error": 5001}},
    "bad gateway": {"effect": {"reply": {"status": 502, "body": PAGE}}},
    "success: false": {"effect": {"reply": {"status": 200, "body": NOT_A_SUCCESS}}},
    "success: false, null": {"effect": {"reply": {"status": 200, "body": {**NOT_A_SUCCESS, "result": None}}}},
}
