"""pydantic-ai-cloudflare: it goes through the AI Gateway, and its URL is a property of the class."""

import asyncio
import os

import pydantic_ai_cloudflare.embeddings as module
from pydantic_ai import Agent
from pydantic_ai_cloudflare.provider import CloudflareProvider
from reporting import ACCOUNT, EMBEDDING, PROMPT, TEXT, TEXTS, TOKEN, Report

ROOT = os.environ["WORKERS_AI_EMULATOR_URL"]
gateway = property(lambda self: f"{ROOT}/v1/{self._account_id}/{self._gateway_id}/workers-ai/v1")
module.CloudflareEmbeddingModel.base_url = gateway
CloudflareProvider.base_url = gateway
report = Report()


def embed(account_id=ACCOUNT, **options):
    model = module.CloudflareEmbeddingModel(EMBEDDING, account_id=account_id, api_key=TOKEN, **options)
    return asyncio.run(model.embed(TEXTS, input_type="document")).embeddings


def chat():
    model = CloudflareProvider(account_id=ACCOUNT, api_key=TOKEN).chat_model(TEXT)
    ran = Agent(model).run_sync(PROMPT)
    return {"text": ran.output}


report.tell("embedding", lambda: embed(dimensions=1024))
report.tell("of_its_dimensions", lambda: [len(vector) for vector in embed()])  # 768, whatever the model
report.tell("chat", chat)
report.faults(lambda account_id: len(embed(account_id)), status=lambda fault: fault.response.status_code)
report.end()
