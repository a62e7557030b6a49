"""pydantic-ai-cloudflare-ai: `api_url` ends in `/accounts`."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai_cloudflare_ai import WorkersAI
from reporting import ACCOUNT, BASE_URL, EMBEDDING, PROMPT, TEXT, TEXTS, TOKEN, Report

report = Report()


def workers_ai(account_id=ACCOUNT):
    return WorkersAI(account_id, api_token=TOKEN, api_url=f"{BASE_URL}/accounts")


def run(account_id=ACCOUNT):
    return asyncio.run(workers_ai(account_id).run(EMBEDDING, {"text": TEXTS}))["data"]


def chat():
    ran = Agent(workers_ai().model(TEXT)).run_sync(PROMPT)
    return {"text": ran.output}


def model_in_body():
    """A model that is not `@cf/…` goes into the body, to `/ai/run`."""
    return asyncio.run(workers_ai().run("@hf/nousresearch/hermes-2-pro-mistral-7b", {"prompt": PROMPT}))


report.tell("embedding", run)
report.tell("chat", chat)
report.tell("model_in_body", model_in_body)
report.faults(lambda account_id: len(run(account_id)), status=lambda fault: fault.response.status_code)
report.end()
