"""LiteLLM: `api_base`, for the cloudflare provider up to `…/ai/v1`, and for embeddings the openai provider."""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the internet for one,
os.environ["HF_HUB_OFFLINE"] = "1"  # and for a tokenizer

import litellm
from reporting import ACCOUNT, EMBEDDING, PROMPT, QUESTION, TEXT, TEXTS, TOKEN, WEATHER, Report, openai_url

report = Report()


def ask(content=PROMPT, account_id=ACCOUNT, **options):
    return litellm.completion(
        f"cloudflare/{TEXT}",
        messages=[{"role": "user", "content": content}],
        api_base=openai_url(account_id),
        api_key=TOKEN,
        num_retries=0,
        **options,
    )


def chat():
    made = ask()
    choice = made.choices[0]
    usage = {"prompt_tokens": made.usage.prompt_tokens, "completion_tokens": made.usage.completion_tokens}
    return {"text": choice.message.content, "finish": choice.finish_reason, "usage": usage}


def stream():
    pieces, finish = [], None
    for chunk in ask(stream=True):
        pieces.append(chunk.choices[0].delta.content or "")
        finish = chunk.choices[0].finish_reason or finish
    return {"pieces": pieces, "finish": finish}


def tools():
    made = litellm.completion(
        f"openai/{TEXT}",
        messages=[{"role": "user", "content": QUESTION}],
        tools=[{"type": "function", "function": WEATHER}],
        tool_choice="required",
        api_base=openai_url(ACCOUNT),
        api_key=TOKEN,
    )
    choice = made.choices[0]
    calls = [call.function for call in choice.message.tool_calls]
    return {
        "calls": [{"name": call.name, "arguments": call.arguments} for call in calls],
        "finish": choice.finish_reason,
    }


def embed():
    made = litellm.embedding(f"openai/{EMBEDDING}", input=TEXTS, api_base=openai_url(ACCOUNT), api_key=TOKEN)
    return [item["embedding"] for item in made.data]


report.tell("embedding", embed)
report.tell("chat", chat)
report.tell("stream", stream)
report.tell("tools", tools)
report.faults(
    lambda account_id: ask(account_id=account_id).choices[0].message.content,
    status=lambda fault: fault.status_code,
)
report.end()
