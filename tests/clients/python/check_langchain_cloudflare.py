"""LangChain's integration for Python: each class takes another part of the URL."""

from langchain_cloudflare import ChatCloudflareWorkersAI, CloudflareWorkersAIEmbeddings
from langchain_core.messages import HumanMessage
from reporting import ACCOUNT, BASE_URL, EMBEDDING, PROMPT, QUESTION, TEXT, TEXTS, TOKEN, WEATHER, Report

report = Report()


def embeddings(account_id=ACCOUNT):
    return CloudflareWorkersAIEmbeddings(
        api_base_url=f"{BASE_URL}/accounts", account_id=account_id, api_token=TOKEN, model_name=EMBEDDING
    )


model = ChatCloudflareWorkersAI(cloudflare_api_base=BASE_URL, account_id=ACCOUNT, api_token=TOKEN, model=TEXT)


def chat():
    said = model.invoke([HumanMessage(PROMPT)])
    usage = said.usage_metadata
    told = {"prompt_tokens": usage["input_tokens"], "completion_tokens": usage["output_tokens"]}
    return {"text": said.content, "usage": told}


def stream():
    chunks = list(model.stream([HumanMessage(PROMPT)]))
    return {"pieces": [chunk.content for chunk in chunks]}


def tools():
    tool = {"type": "function", "function": WEATHER}
    said = model.bind_tools([tool]).invoke([HumanMessage(QUESTION)])
    return {"calls": [{"name": call["name"], "arguments": call["args"]} for call in said.tool_calls]}


report.tell("embedding", lambda: embeddings().embed_documents(TEXTS))
report.tell("query", lambda: embeddings().embed_query(TEXTS[0]))
report.tell("many", lambda: len(embeddings().embed_documents([f"text {n}" for n in range(120)])))
report.tell("chat", chat)
report.tell("stream", stream)
report.tell("tools", tools)
report.faults(
    lambda account_id: len(embeddings(account_id).embed_documents(TEXTS)),
    status=lambda fault: fault.response.status_code,
)
report.end()
