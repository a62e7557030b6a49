"""Chroma's embedding function: the URL is a constant of its module."""

import chromadb.utils.embedding_functions.cloudflare_workers_ai_embedding_function as module
from reporting import ACCOUNT, BASE_URL, EMBEDDING, TEXTS, TOKEN, Report

module.BASE_URL = f"{BASE_URL}/accounts"
report = Report()


def embed(account_id=ACCOUNT):
    function = module.CloudflareWorkersAIEmbeddingFunction(EMBEDDING, account_id, TOKEN)
    return [[float(number) for number in vector] for vector in function(TEXTS)]


report.tell("embedding", embed)
report.faults(lambda account_id: len(embed(account_id)))
report.end()
