"""Pydantic AI with its provider for OpenAI."""

from pydantic import BaseModel
from pydantic_ai import Agent, Embedder
from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from reporting import ACCOUNT, EMBEDDING, PROMPT, TEXT, TEXTS, TOKEN, Report, openai_url

report = Report()


class Person(BaseModel):
    name: str
    age: int


def provider(account_id=ACCOUNT):
    return OpenAIProvider(base_url=openai_url(account_id), api_key=TOKEN)


def chat():
    ran = Agent(OpenAIChatModel(TEXT, provider=provider())).run_sync(PROMPT)
    usage = {"prompt_tokens": ran.usage.input_tokens, "completion_tokens": ran.usage.output_tokens}
    return {"text": ran.output, "usage": usage}


def stream():
    import asyncio

    async def pieces():
        agent = Agent(OpenAIChatModel(TEXT, provider=provider()))
        async with agent.run_stream(PROMPT) as ran:
            return [piece async for piece in ran.stream_text(delta=True, debounce_by=None)]

    return {"pieces": asyncio.run(pieces())}


def structured():
    ran = Agent(OpenAIChatModel(TEXT, provider=provider()), output_type=Person).run_sync("Ada is 36")
    return ran.output.model_dump()


def embed():
    model = OpenAIEmbeddingModel(EMBEDDING, provider=provider())
    return [list(vector) for vector in Embedder(model).embed_documents_sync(TEXTS).embeddings]


report.tell("embedding", embed)
report.tell("chat", chat)
report.tell("stream", stream)
report.tell("by_tool", structured)
report.faults(
    lambda account_id: (
        Agent(OpenAIChatModel(TEXT, provider=provider(account_id))).run_sync(PROMPT).output != ""
    ),
    status=lambda fault: fault.status_code,
)
report.end()
