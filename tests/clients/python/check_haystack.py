"""Haystack's components for OpenAI; its documents go in batches of 32."""

from haystack import Document
from haystack.components.embedders import OpenAIDocumentEmbedder, OpenAITextEmbedder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret
from reporting import ACCOUNT, EMBEDDING, PROMPT, TEXT, TEXTS, TOKEN, Report, openai_url

report = Report()
key = Secret.from_token(TOKEN)


def documents(texts):
    embedder = OpenAIDocumentEmbedder(
        api_key=key, model=EMBEDDING, api_base_url=openai_url(ACCOUNT), progress_bar=False
    )
    return [
        found.embedding for found in embedder.run([Document(content=text) for text in texts])["documents"]
    ]


def query(account_id=ACCOUNT):
    embedder = OpenAITextEmbedder(
        api_key=key, model=EMBEDDING, api_base_url=openai_url(account_id), max_retries=1
    )
    return embedder.run(TEXTS[0])["embedding"]


def ask(callback=None):
    generator = OpenAIChatGenerator(
        api_key=key, model=TEXT, api_base_url=openai_url(ACCOUNT), streaming_callback=callback
    )
    return generator.run([ChatMessage.from_user(PROMPT)])["replies"][0]


def chat():
    said = ask()
    usage = {name: said.meta["usage"][name] for name in ("prompt_tokens", "completion_tokens")}
    return {"text": said.text, "finish": said.meta["finish_reason"], "usage": usage}


def stream():
    pieces = []
    said = ask(lambda chunk: pieces.append(chunk.content))
    return {"pieces": pieces, "finish": said.meta["finish_reason"]}


report.tell("embedding", lambda: documents(TEXTS))
report.tell("query", query)
report.tell("many", lambda: len([v for v in documents([f"text {n}" for n in range(70)]) if len(v) == 1024]))
report.tell("chat", chat)
report.tell("stream", stream)
report.faults(lambda account_id: len(query(account_id)), status=lambda fault: fault.status_code)
report.end()
