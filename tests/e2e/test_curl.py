"""The two commands of the public batch documentation, as printed apart from the host."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from workersai_emulator import Emulator

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not here")

STORIES = ["an orange cloud", "a llama", "a hugging emoji"]


def curl(emulator: Emulator, body: str) -> dict[str, object]:
    url = f"{emulator.base_url}/accounts/{emulator.account_id}/ai/run/@cf/baai/bge-m3?queueRequest=true"
    headers = [
        "--header",
        f"Authorization: Bearer {emulator.token}",
        "--header",
        "Content-Type: application/json",
    ]
    ran = subprocess.run(
        ["curl", "-sS", url, *headers, "--json", body], capture_output=True, text=True, check=True
    )
    replied: dict[str, object] = json.loads(ran.stdout)
    assert replied["success"] is True
    return replied["result"]  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("item_keys", "context_keys", "echoed"),
    [({}, {"external_reference": "story"}, None), ({"external_reference": "stories"}, {}, "stories")],
    ids=["as documented in 2025", "as documented in 2026"],
)
def test_submit_and_retrieve_as_documented(
    emulator: Emulator, item_keys: dict[str, str], context_keys: dict[str, str], echoed: str | None
) -> None:
    contexts = [{"text": f"This is a story about {story}", **context_keys} for story in STORIES]
    item = {"query": "This is a story about Cloudflare", "contexts": contexts, **item_keys}
    queued = curl(emulator, json.dumps({"requests": [item]}, indent=2))
    assert list(queued) == ["status", "request_id", "model"]
    poll = json.dumps({"request_id": queued["request_id"]}, indent=2)
    assert [curl(emulator, poll).get("status") for _ in range(2)] == ["queued", "running"]
    done = curl(emulator, poll)
    assert list(done) == ["responses", "usage"]
    scores = [
        {"id": 0, "score": 0.89306640625},
        {"id": 1, "score": 0.52978515625},
        {"id": 2, "score": 0.52978515625},
    ]
    assert done["responses"] == [
        {"id": 0, "result": {"response": scores}, "success": True, "external_reference": echoed}
    ]
