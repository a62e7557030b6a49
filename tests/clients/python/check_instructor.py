"""Instructor over OpenAI's client: by a tool, by JSON mode, by a schema."""

import instructor
from openai import OpenAI
from pydantic import BaseModel
from reporting import ACCOUNT, ANSWERED, TEXT, Report, openai_url

report = Report()


class Person(BaseModel):
    name: str
    age: int


def ask(mode, account_id=ACCOUNT):
    client = instructor.from_openai(OpenAI(base_url=openai_url(account_id)), mode=mode)
    asked = [{"role": "user", "content": "Ada is 36"}]
    person = client.chat.completions.create(model=TEXT, messages=asked, response_model=Person, max_retries=0)
    return person.model_dump()


report.tell("by_tool", lambda: ask(instructor.Mode.TOOLS))
report.tell("structured", lambda: ask(instructor.Mode.JSON, ANSWERED))
report.tell("by_schema", lambda: ask(instructor.Mode.JSON_SCHEMA))
report.faults(lambda account_id: ask(instructor.Mode.TOOLS, account_id) != {})
report.end()
