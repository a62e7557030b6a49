"""OpenAI's Python SDK: it reads OPENAI_BASE_URL and OPENAI_API_KEY by itself."""

import asyncio

from openai import AsyncOpenAI, OpenAI
from reporting import EMBEDDING, PROMPT, QUESTION, TEXT, TEXTS, WEATHER, Report, openai_url, raised

client = OpenAI()
report = Report()
MESSAGES = [{"role": "user", "content": PROMPT}]
TOOL = {"type": "function", "function": WEATHER}


def embed(client=client, **options):
    return [item.embedding for item in client.embeddings.create(model=EMBEDDING, input=TEXTS, **options).data]


def embedding():
    one = client.embeddings.create(model=EMBEDDING, input=TEXTS[0])
    return {
        "base64": embed(),
        "float": embed(encoding_format="float"),
        "one": [item.embedding for item in one.data],
        "usage": one.usage.model_dump(),
    }


def embed_asynchronously():
    async def ask():
        async with AsyncOpenAI() as other:
            return await other.embeddings.create(model=EMBEDDING, input=TEXTS)

    return [item.embedding for item in asyncio.run(ask()).data]


def chat():
    made = client.chat.completions.create(model=TEXT, messages=MESSAGES)
    choice = made.choices[0]
    return {"text": choice.message.content, "finish": choice.finish_reason, "usage": made.usage.model_dump()}


def stream():
    pieces, finish, usage = [], None, None
    for chunk in client.chat.completions.create(
        model=TEXT, messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    ):
        for choice in chunk.choices:
            pieces.append(choice.delta.content or "")
            finish = choice.finish_reason or finish
        usage = chunk.usage.model_dump() if chunk.usage else usage
    return {"pieces": pieces, "finish": finish, "usage": usage}


def tools():
    asked = {"messages": [{"role": "user", "content": QUESTION}], "tools": [TOOL], "tool_choice": "required"}
    choice = client.chat.completions.create(model=TEXT, **asked).choices[0]
    called = [_call(call.function) for call in choice.message.tool_calls]
    return {"calls": called, "finish": choice.finish_reason}


def tools_streamed():
    asked = {"messages": [{"role": "user", "content": QUESTION}], "tools": [TOOL], "tool_choice": "required"}
    with client.chat.completions.stream(model=TEXT, **asked) as events:
        choice = events.get_final_completion().choices[0]
    called = [_call(call.function) for call in choice.message.tool_calls]
    return {"calls": called, "finish": choice.finish_reason}


def _call(function):
    return {"name": function.name, "arguments": function.arguments}


def responses():
    made = client.responses.create(model="@cf/openai/gpt-oss-120b", input=PROMPT)
    return {"text": made.output_text, "finish": made.status, "usage": made.usage.model_dump()}


def responses_streamed():
    pieces, finish = [], None
    for event in client.responses.create(model="@cf/openai/gpt-oss-120b", input=PROMPT, stream=True):
        if event.type == "response.output_text.delta":
            pieces.append(event.delta)
        elif event.type == "response.completed":
            finish = event.response.status
    return {"pieces": pieces, "finish": finish}


report.tell("embedding", embedding)
report.tell("asynchronous", embed_asynchronously)
report.tell("chat", chat)
report.tell("stream", stream)
report.tell("tools", tools)
report.tell("tools_streamed", tools_streamed)
report.tell("responses", responses)
report.tell("responses_streamed", responses_streamed)
report.tell("models", lambda: raised(lambda: list(client.models.list()), status=lambda e: e.status_code))
report.faults(
    lambda account_id: len(embed(client.with_options(base_url=openai_url(account_id)))),
    status=lambda fault: fault.status_code,
    codes=lambda fault: [error["code"] for error in fault.body["errors"]],
)
report.end()
