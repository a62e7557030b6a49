"""llama-index: the URL is a constant of its module."""

import asyncio

import llama_index.embeddings.cloudflare_workersai.base as module
from llama_index.embeddings.cloudflare_workersai import CloudflareEmbedding
from reporting import ACCOUNT, BASE_URL, EMBEDDING, TEXTS, TOKEN, Report

module.API_URL_TEMPLATE = f"{BASE_URL}/accounts/{{}}/ai/run/{{}}"
report = Report()


def model(account_id=ACCOUNT):
    return CloudflareEmbedding(account_id=account_id, auth_token=TOKEN, model=EMBEDDING)


report.tell("embedding", lambda: model().get_text_embedding_batch(TEXTS))
report.tell("asynchronous", lambda: asyncio.run(model().aget_text_embedding_batch(TEXTS)))
report.tell("query", lambda: model().get_query_embedding(TEXTS[0]))
report.faults(lambda account_id: len(model(account_id).get_text_embedding_batch(TEXTS)))
report.end()
