"""An agent that fetches, fails and finishes: for the tests of what is kept of it."""

import json

from callslip import Agent, tool
from scripted import turn_of

FINISH = '{"thought": "", "action": "FINISH", "final_answer": "done", "task_successful": true}'


def call(name, **arguments):
    return json.dumps({"thought": "", "action": name, "args": json.dumps(arguments)})


@tool
def fetch(n: int) -> list[str]:
    """Fetch."""
    return [f"line {position} of {n}" for position in range(n)]


@tool
def fail() -> None:
    """Fail."""
    raise ValueError("no")


REPLIES = [call("fetch", n=2), call("fail"), FINISH]


def model(messages):
    return REPLIES[turn_of(messages)]


def agent(store, **options):
    return Agent(model, tools=[fetch, fail], store=store, **options)
