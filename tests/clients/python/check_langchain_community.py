"""langchain-community: its embeddings never look at the HTTP status, and its LLM neither."""

from langchain_community.embeddings.cloudflare_workersai import CloudflareWorkersAIEmbeddings
from langchain_community.llms.cloudflare_workersai import CloudflareWorkersAI
from reporting import ACCOUNT, BASE_URL, EMBEDDING, PROMPT, TEXT, TEXTS, TOKEN, Report

report = Report()
where = f"{BASE_URL}/accounts"
model = CloudflareWorkersAI(base_url=where, account_id=ACCOUNT, api_token=TOKEN, model=TEXT)
streaming = CloudflareWorkersAI(
    base_url=where, account_id=ACCOUNT, api_token=TOKEN, model=TEXT, streaming=True
)


def embeddings(account_id=ACCOUNT):
    return CloudflareWorkersAIEmbeddings(
        api_base_url=where, account_id=account_id, api_token=TOKEN, model_name=EMBEDDING
    )


report.tell("embedding", lambda: embeddings().embed_documents(TEXTS))
report.tell("chat", lambda: {"text": model.invoke(PROMPT)})
report.tell("stream", lambda: {"pieces": list(streaming.stream(PROMPT))})
report.faults(lambda account_id: len(embeddings(account_id).embed_documents(TEXTS)))
report.end()
