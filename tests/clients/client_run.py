"""A client's program beside the emulator: its accounts, its environment variables, what it told, what it sent."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from client_environments import node_folder_of, python_of
from client_faults import FAULTS

from workersai_emulator.controls import WorkersAI
from workersai_emulator.environment import variables
from workersai_emulator.ids import DEVELOPMENT_TOKEN, fresh_account

if TYPE_CHECKING:
    from client_roster import Client

    from workersai_emulator.controls import RequestViews
    from workersai_emulator.plane import HttpPlane

HERE = Path(__file__).parent
EMBEDDING = "@cf/baai/bge-m3"
TEXT = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
TEXTS = ["orange cloud", "a llama", "wörld 🌍"]
PROMPT = "Name three things that are orange."
QUESTION = "What is the weather in Lisbon?"
TOOL = {
    "name": "get_weather",
    "description": "The weather of a city, now",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
}
#: What the model of one more account says, whatever it is asked.
ANSWER = {"name": "Ada", "age": 36}
LONGEST_RUN = 120
_NOT_INHERITED = ("WORKERSAI_EMULATOR_", "CLOUDFLARE_", "OPENAI_", "CF_", "PYTHON")


class Failed(Exception):
    """A program ended without telling anything; the text has what it said instead."""


@dataclass(frozen=True)
class Ran:
    """What a client's program told, and the accounts it had: its own, and one for each fault."""

    told: dict[str, Any]
    account: WorkersAI
    faulty: dict[str, WorkersAI]

    def part(self, name: str) -> Any:
        """One part of it. Fails with the client's own traceback where it did not get that far."""
        part = self.told[name]
        assert not (isinstance(part, dict) and "fault" in part), f"{name}: {part['fault']}"
        return part

    def sent(self, fault: str) -> RequestViews:
        """The requests that a client sent where this went wrong."""
        return self.faulty[fault].requests.list()


def run_client(plane: HttpPlane, seed: int, client: Client) -> Ran:
    """Run a client's program against the emulator.

    Raises Failed, and what its environment's installation does: Unavailable, NotInstalled.
    """
    command, folder = _command(client)
    own = WorkersAI(plane, fresh_account(seed, client.name), DEVELOPMENT_TOKEN)
    faulty = {}
    for name, fault in FAULTS.items():
        faulty[name] = WorkersAI(plane, fresh_account(seed, f"{client.name} {name}"), DEVELOPMENT_TOKEN)
        faulty[name].rules.add(**fault)
    answered = WorkersAI(plane, fresh_account(seed, f"{client.name} answered"), DEVELOPMENT_TOKEN)
    answered.answer({"response": json.dumps(ANSWER)})
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=folder,
        env=_environment(plane.url, own, answered, faulty),
        timeout=LONGEST_RUN,
        check=False,
    )
    if ran.returncode:
        raise Failed(f"{client}: {' '.join(command)} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return Ran(json.loads(ran.stdout.splitlines()[-1]), own, faulty)


def _command(client: Client) -> tuple[list[str], Path]:
    if client.environment is None:
        return ["node", "check.mjs"], node_folder_of(client.program)
    folder = HERE / "python"
    return [str(python_of(client.environment)), f"check_{client.program}.py"], folder


def _environment(
    url: str, own: WorkersAI, answered: WorkersAI, faulty: dict[str, WorkersAI]
) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
    return {
        **kept,
        **variables(url, own.account_id, own.token),
        "CLIENT_ANSWERED_ACCOUNT": answered.account_id,
        "CLIENT_EMBEDDING_MODEL": EMBEDDING,
        "CLIENT_TEXT_MODEL": TEXT,
        "CLIENT_TEXTS": json.dumps(TEXTS),
        "CLIENT_PROMPT": PROMPT,
        "CLIENT_QUESTION": QUESTION,
        "CLIENT_TOOL": json.dumps(TOOL),
        "CLIENT_FAULTS": json.dumps({name: account.account_id for name, account in faulty.items()}),
    }
