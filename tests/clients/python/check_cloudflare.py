"""The official Python SDK: it reads CLOUDFLARE_BASE_URL and CLOUDFLARE_API_TOKEN by itself."""

import asyncio
import base64
import json
from itertools import islice

from cloudflare import AsyncCloudflare, Cloudflare
from reporting import ACCOUNT, EMBEDDING, PROMPT, QUESTION, TEXT, TEXTS, WEATHER, Report, raised

#: The SDK goes on for as long as there are pages.
ENOUGH = 1000
client = Cloudflare()
report = Report()


def embed(account_id=ACCOUNT):
    result = client.ai.run(EMBEDDING, account_id=account_id, text=TEXTS)
    return result and result["data"]


def embed_asynchronously():
    async def ask():
        async with AsyncCloudflare() as other:
            return await other.ai.run(EMBEDDING, account_id=ACCOUNT, text=TEXTS)

    return asyncio.run(ask())["data"]


def embed_by_path():
    """The path as it is written, where `run` has %2F in it."""
    path = f"/accounts/{ACCOUNT}/ai/run/{EMBEDDING}"
    return client.post(path, body={"text": TEXTS}, cast_to=dict[str, object])["result"]["data"]


def images():
    named = client.ai.run("@cf/black-forest-labs/flux-1-schnell", account_id=ACCOUNT, prompt=PROMPT)["image"]
    reply = client.ai.with_raw_response.run(
        "@cf/bytedance/stable-diffusion-xl-lightning", account_id=ACCOUNT, prompt=PROMPT
    )
    return {
        "in_json": base64.b64decode(named)[:3].hex(),
        "content_type": reply.headers["content-type"],
        "bytes": reply.read()[:8].hex(),
    }


def chat():
    result = client.ai.run(TEXT, account_id=ACCOUNT, messages=[{"role": "user", "content": PROMPT}])
    return {"text": result["response"], "usage": result["usage"]}


def stream():
    pieces, usage, done = [], None, False
    asked = client.ai.with_streaming_response.run(
        TEXT, account_id=ACCOUNT, messages=[{"role": "user", "content": PROMPT}], stream=True
    )
    with asked as response:
        kind = response.headers["content-type"]
        for line in response.iter_lines():
            if line == "data: [DONE]":
                done = True
            elif line:
                event = json.loads(line.removeprefix("data: "))
                pieces.append(event.get("response") or "")
                usage = event.get("usage") or usage
    return {"pieces": pieces, "usage": usage, "done": done, "content_type": kind}


def tools():
    result = client.ai.run(
        TEXT,
        account_id=ACCOUNT,
        messages=[{"role": "user", "content": QUESTION}],
        tools=[{"type": "function", "function": WEATHER}],
    )
    return {
        "calls": [{"name": call["name"], "arguments": call["arguments"]} for call in result["tool_calls"]]
    }


def batch():
    requests = [{"text": [text], "external_reference": f"ref-{n}"} for n, text in enumerate(TEXTS)]
    queued = client.ai.run(
        EMBEDDING,
        account_id=ACCOUNT,
        extra_query={"queueRequest": "true"},
        extra_body={"requests": requests},
    )
    states = [queued["status"]]
    while "responses" not in (polled := _poll(queued["request_id"])):
        states.append(polled["status"])
    return {"states": states, "responses": polled["responses"], "usage": polled["usage"]}


def _poll(request_id):
    return client.ai.run(EMBEDDING, account_id=ACCOUNT, extra_body={"request_id": request_id})


def models():
    listed = islice(client.ai.models.list(account_id=ACCOUNT), ENOUGH)
    few = islice(client.ai.models.list(account_id=ACCOUNT, per_page=2, search="bge"), ENOUGH)
    schema = client.ai.models.schema.get(account_id=ACCOUNT, model=EMBEDDING)
    tasks = list(client.ai.tasks.list(account_id=ACCOUNT))
    finetunes = client.ai.finetunes.list(account_id=ACCOUNT)
    return {
        "names": [model["name"] for model in listed],
        "found": [model["name"] for model in few],
        "schema": sorted(schema.to_dict()),
        "tasks": [task["name"] for task in tasks],
        "finetunes": finetunes,
    }


report.tell("embedding", embed)
report.tell("asynchronous", embed_asynchronously)
report.tell("by_path", embed_by_path)
report.tell("images", images)
report.tell("chat", chat)
report.tell("stream", stream)
report.tell(
    "stream_in_run", lambda: raised(lambda: client.ai.run(TEXT, account_id=ACCOUNT, prompt="a", stream=True))
)
report.tell("tools", tools)
report.tell("batch", batch)
report.tell("models", models)
report.faults(
    lambda account_id: (vectors := embed(account_id)) and len(vectors),
    status=lambda fault: fault.status_code,
    codes=lambda fault: [error.code for error in fault.errors],
)
report.end()
