"""The plugin of the llm command: the URL is an attribute of its model."""

import llm
from llm_cloudflare import WorkersAI
from reporting import ACCOUNT, PROMPT, TEXT, TOKEN, Report, openai_url, raised

report = Report()


def ask(account_id=ACCOUNT, stream=False):
    model = WorkersAI(TEXT)
    model.api_base_url = openai_url(account_id)
    model.key = TOKEN
    return model.prompt(PROMPT, stream=stream, options={"stream": stream})


def stream():
    pieces = []
    ended = raised(lambda: pieces.extend(iter(ask(stream=True))))
    return {"pieces": pieces, "kind": ended.get("kind")}


report.tell("registered", lambda: llm.get_model(TEXT).model_id)
report.tell("chat", lambda: {"text": ask().text()})
report.tell("stream", stream)
report.faults(lambda account_id: ask(account_id).text() != "")
report.end()
