"""How often a small local model recovers from a broken reply, as Markdown.

    python benches/recover.py MODEL.gguf

Each of some thirty broken replies stands as the model's first reply of a run. The model then writes
the next one, without a grammar, and has recovered if that is carried out and is what the broken one
meant: the same tool, or the answer. Run it with two versions to compare their words.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from callslip import Agent, Limits, tool
from callslip.errors import CallslipError
from callslip.models.local import LocalModel

Messages = Sequence[Mapping[str, str]]
made: list[str] = []


@tool
def weather(city: str, unit: str = "celsius") -> str:
    """Tell the weather in a city."""
    made.append("weather")
    return f"14 degrees in {city}"


@tool
def run_code(code: str) -> str:
    """Run Python code and return what it prints."""
    made.append("run_code")
    return "done"


@tool
def list_files() -> list[str]:
    """List the files of this folder."""
    made.append("list_files")
    return ["notes.txt", "plan.md"]


TOOLS = [weather, run_code, list_files]


@dataclass(frozen=True)
class Case:
    """A broken reply: what is wrong with it, its task, and the tool it meant (or `FINISH`)."""

    kind: str
    protocol: Literal["react", "chatty", "ticket"]
    task: str
    reply: str
    meant: str


OSLO = "What is the weather in Oslo?"
PRINT = 'Run the code print("hello") and tell what it prints.'
FILES = "Which files are in this folder?"
SUM = "What is 2 + 2? Answer at once, without a tool."


def react(action: object, **fields: object) -> str:
    return json.dumps({"thought": "I see.", "action": action, **fields})


def ticket(**fields: object) -> str:
    return f"<thoughts>I see.</thoughts>\n<output>{json.dumps(fields)}</output>"


def chatty(*calls: Mapping[str, object]) -> str:
    return f"<tool>{json.dumps(calls)}</tool>"


CITY = {"city": "Oslo"}
WEATHER = react("weather", args=json.dumps(CITY))
CALL = {"call_id": "a", "tool_name": "weather", "arguments": CITY}
CASES = [
    Case("foreign keys", "react", OSLO, react("weather", args="{}", params=CITY), "weather"),
    Case("foreign keys", "react", OSLO, react("weather", action_input=CITY), "weather"),
    Case("foreign keys", "react", OSLO, react("weather", city="Oslo"), "weather"),
    Case(
        "quotes in code",
        "react",
        PRINT,
        WEATHER[:22] + r' "action": "run_code", "args": "{\"code\": \"print(\"hello\")\"}"}',
        "run_code",
    ),
    Case(
        "quotes in code",
        "react",
        PRINT,
        '{"thought": "t", "action": "run_code", "args": {"code": "print("hello")"}}',
        "run_code",
    ),
    Case(
        "quotes",
        "react",
        OSLO,
        "{'thought': 'it's Oslo', 'action': 'weather', 'args': {'city': 'Oslo'}}",
        "weather",
    ),
    Case(
        "call and answer",
        "react",
        OSLO,
        react("weather", args=json.dumps(CITY), final_answer="mild"),
        "weather",
    ),
    Case("answer by another name", "react", SUM, react("final_answer", args="4"), "FINISH"),
    Case(
        "answer by another name",
        "react",
        SUM,
        react(None, final_answer="4", task_successful=True),
        "FINISH",
    ),
    Case(
        "answer by another name",
        "react",
        SUM,
        react("", final_answer="4", task_successful=True),
        "FINISH",
    ),
    Case("answer not whole", "react", SUM, react("FINISH", final_answer="4"), "FINISH"),
    Case("two moves", "react", OSLO, WEATHER + "\n" + react("list_files", args="{}"), "weather"),
    Case("in quotes", "react", OSLO, f"print('{react('weather', args=CITY)}')", "weather"),
    Case("cut", "react", OSLO, WEATHER[:-12], "weather"),
    Case(
        "left out",
        "react",
        OSLO,
        '{"thought": "t", "action": "weather", "args": {"city": ...}}',
        "weather",
    ),
    Case("prose", "react", OSLO, "I will look up the weather in Oslo.", "weather"),
    Case(
        "foreign keys",
        "ticket",
        OSLO,
        ticket(type="CALL", route="POST /weather", body=CITY, description="d"),
        "weather",
    ),
    Case(
        "foreign keys",
        "ticket",
        OSLO,
        ticket(type="CALL", route="POST /weather", payload={}, query=CITY, description="d"),
        "weather",
    ),
    Case(
        "unknown type",
        "ticket",
        OSLO,
        ticket(type="TOOL", route="POST /weather", payload=CITY),
        "weather",
    ),
    Case(
        "no type",
        "ticket",
        OSLO,
        ticket(route="POST /weather", payload=CITY, description="d"),
        "weather",
    ),
    Case(
        "two moves",
        "ticket",
        OSLO,
        ticket(type="CALL", route="POST /weather", payload=CITY, description="d")
        + ticket(type="RETURN", value="mild"),
        "weather",
    ),
    Case("answer not whole", "ticket", SUM, ticket(type="RETURN", result="4"), "FINISH"),
    Case(
        "cut",
        "ticket",
        OSLO,
        ticket(type="CALL", route="POST /weather", payload=CITY)[:-20],
        "weather",
    ),
    Case(
        "in quotes",
        "ticket",
        FILES,
        "<thoughts>t</thoughts><output>'"
        + json.dumps({"type": "CALL", "route": "POST /list_files", "payload": {}})
        + "'</output>",
        "list_files",
    ),
    Case("no tags", "chatty", OSLO, json.dumps([CALL]), "weather"),
    Case("in a fence", "chatty", OSLO, f"I look.\n```json\n{json.dumps([CALL])}\n```", "weather"),
    Case(
        "other tags",
        "chatty",
        OSLO,
        f"<tool_call>{json.dumps({'name': 'weather', 'arguments': CITY})}</tool_call>",
        "weather",
    ),
    Case(
        "foreign keys", "chatty", OSLO, chatty({"name": "weather", "parameters": CITY}), "weather"
    ),
    Case(
        "foreign keys",
        "chatty",
        OSLO,
        chatty({"call_id": "a", "tool_name": "weather", "arguments": {}, "query": CITY}),
        "weather",
    ),
    Case(
        "quotes in code",
        "chatty",
        PRINT,
        '<tool>[{"call_id": "a", "tool_name": "run_code", '
        '"arguments": {"code": "print("hello")"}}]</tool>',
        "run_code",
    ),
    Case("cut", "chatty", OSLO, chatty(CALL)[:-25], "weather"),
]


def recovers(case: Case, local: LocalModel) -> bool:
    """Whether the model's reply to the feedback does what the broken one meant."""
    made.clear()
    replies = 0

    def model(messages: Messages) -> Iterable[object]:
        nonlocal replies
        replies += 1
        if replies == 1:
            return [case.reply]
        return local(messages, max_tokens=160) if replies == 2 else ["-"]

    limits = Limits(turns=2, max_violations=1)
    agent = Agent(model, tools=TOOLS, protocol=case.protocol, limits=limits, on_limit="raise")
    try:
        result = agent.run_sync(case.task)
    except CallslipError:
        return case.meant in made
    return case.meant in made or (case.meant == "FINISH" and not made and "4" in str(result.value))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("gguf", help="the model's file")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads that compute")
    options = parser.parse_args()
    local = LocalModel(options.gguf, threads=options.threads, context=4096)
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for case in CASES:
        total[case.kind] += 1
        right[case.kind] += recovers(case, local)
    print("| broken reply | recovered |\n|---|---|")
    for kind, count in total.items():
        print(f"| {kind} | {right[kind]} of {count} |")
    print(f"| all | {right.total()} of {total.total()} |")


if __name__ == "__main__":
    main()
