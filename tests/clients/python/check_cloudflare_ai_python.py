"""cloudflare-ai-python: its URL is an attribute, to be set after construction."""

from cloudflare_ai_python import CloudflareAI
from reporting import ACCOUNT, BASE_URL, PROMPT, TEXT, TOKEN, Report

report = Report()


def ask(account_id=ACCOUNT):
    client = CloudflareAI(account_id, TOKEN)
    client.base_url = f"{BASE_URL}/accounts/{account_id}/ai"
    return client.run_model(TEXT, PROMPT)["result"]


def chat():
    result = ask()
    return {"text": result["response"], "usage": result["usage"]}


report.tell("chat", chat)
report.faults(lambda account_id: ask(account_id)["response"], status=lambda fault: fault.response.status_code)
report.end()
