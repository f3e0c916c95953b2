"""Jobs: what a model wants next, told from its messages alone, so that it outlives any process.

A job is a number of steps. Each is done by one tool call and is worth some points; the answer is
their sum. When the model is told that a call's outcome is in doubt it looks up what happened: the
step is done then, or is tried again as a new attempt.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crash.ledger import points

Message = dict[str, str]
RESULT = re.compile(r"^Result of ticket T(\d+):\n(.*)$", re.MULTILINE)
TOOLS = ("charge", "ship", "put", "look")
"""Of effect once, once with reconcile, idempotent, pure."""


@dataclass(frozen=True)
class Job:
    name: str
    protocol: str
    steps: int

    @property
    def task(self) -> str:
        return f"job {self.name} {self.protocol} {self.steps}"

    @staticmethod
    def of_task(task: str) -> Job:
        _, name, protocol, steps = task.splitlines()[0].split()
        return Job(name, protocol, int(steps))

    def tool(self, step: int) -> str:
        return random.Random(f"{self.name}/{step}").choice(TOOLS)

    @property
    def right(self) -> int:
        return sum(points(self.name, step) for step in range(self.steps))


@dataclass(frozen=True)
class Call:
    tool: str
    step: int
    attempt: int

    def arguments(self, job: Job) -> dict[str, Any]:
        return {"job": job.name, "step": self.step, "attempt": self.attempt}


@dataclass
class Progress:
    """What is done, folded from the outcomes that the model has been told."""

    job: Job

    def __post_init__(self) -> None:
        self.done: dict[int, int] = {}
        self.next: dict[int, Call] = {
            step: Call(self.job.tool(step), step, 0) for step in range(self.job.steps)
        }

    def told(self, call: Call, outcome: Any) -> None:
        """Take a number for the points, `None` for an audit that found nothing, else a doubt."""
        if isinstance(outcome, int):
            self.done[call.step] = outcome
            self.next.pop(call.step, None)
        elif outcome is None and call.tool == "audit":
            tool = self.job.tool(call.step)
            self.next[call.step] = Call(tool, call.step, call.attempt + 1)
        else:
            self.next[call.step] = Call("audit", call.step, call.attempt)

    @property
    def total(self) -> int:
        return sum(self.done.values())


def react(job: Job, messages: Sequence[Message]) -> str:
    progress = Progress(job)
    for reply, told in zip(messages[2::2], messages[3::2], strict=False):
        args = json.loads(json.loads(reply["content"])["args"])
        tool = json.loads(reply["content"])["action"]
        text = told["content"].removeprefix("Observation: ").splitlines()[0]
        progress.told(Call(tool, args["step"], args["attempt"]), value_of(text))
    if not progress.next:
        finish = {"action": "FINISH", "final_answer": str(progress.total), "task_successful": True}
        return json.dumps({"thought": "done", **finish})
    call = min(progress.next.values(), key=lambda call: call.step)
    return json.dumps(
        {"thought": "next", "action": call.tool, "args": json.dumps(call.arguments(job))}
    )


def value_of(text: str) -> Any:
    """A JSON value, or the text of what went wrong."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def chatty(job: Job, messages: Sequence[Message]) -> str:
    """Do up to three steps side by side, and add two of them up by reference."""
    progress = Progress(job)
    for reply, told in zip(messages[2::2], messages[3::2], strict=False):
        block = reply["content"].partition("<tool>\n")[2].partition("\n</tool>")[0]
        calls = {row["call_id"]: row for row in json.loads(block)}
        results = json.loads(told["content"].partition("\n")[2].split("\n\n")[0])
        values = {}
        for row in results:
            value = row["result"] if row["status"] == "ok" else row["error"]
            values[row["call_id"]] = value
            arguments = calls[row["call_id"]]["arguments"]
            if row["tool_name"] != "add":
                call = Call(row["tool_name"], arguments["step"], arguments["attempt"])
                progress.told(call, value)
            elif isinstance(value, int) and value != values["c0"] + values["c1"]:
                return f"wrong: {values}"
    if not progress.next:
        return f"It is {progress.total}."
    chosen = sorted(progress.next.values(), key=lambda call: call.step)[:3]
    rows = [
        {"call_id": f"c{at}", "tool_name": call.tool, "arguments": call.arguments(job)}
        for at, call in enumerate(chosen)
    ]
    if len(chosen) > 1 and all(call.tool != "audit" for call in chosen[:2]):
        added = {"job": job.name, "turn": len(messages), "a": "$c0", "b": "$c1"}
        rows.append({"call_id": "sum", "tool_name": "add", "arguments": added})
    return f"On we go.\n<tool>\n{json.dumps(rows)}\n</tool>"


def ticket(job: Job, messages: Sequence[Message]) -> str:
    """Keep two calls in the background; await and load the older one."""
    progress = Progress(job)
    opened: list[Call] = []
    loaded: set[int] = set()
    for message in messages[2:]:
        if message["role"] == "assistant":
            move = json.loads(message["content"].partition("<output>")[2].partition("</output>")[0])
            if move["type"] == "CALL":
                payload = move["payload"]
                call = Call(move["route"][1:], payload["step"], payload["attempt"])
                opened.append(call)
                progress.next.pop(call.step)
        elif found := re.search(
            r"^Result of ticket T(\d+):\n(.*)$", message["content"], re.MULTILINE
        ):
            number = int(found[1])
            loaded.add(number)
            progress.told(opened[number - 1], value_of(found[2]))
    waiting = [number for number in range(1, len(opened) + 1) if number not in loaded]
    if progress.next and len(waiting) < 2:
        call = min(progress.next.values(), key=lambda call: call.step)
        said = f"{call.tool} {call.step}"
        return output(
            type="CALL", route=f"/{call.tool}", payload=call.arguments(job), description=said
        )
    if not waiting:
        return output(type="RETURN", value=progress.total)
    rows = json.loads(messages[-1]["content"].rpartition("Tickets:\n")[2])
    first = f"T{waiting[0]}"
    complete = any(row["id"] == first and row["status"] == "COMPLETED" for row in rows)
    return output(type="LOAD_TICKET" if complete else "AWAIT", ticket_id=first)


def output(**move: Any) -> str:
    return f"<thoughts>\nplan\n</thoughts>\n<output>\n{json.dumps(move)}\n</output>"


MODELS = {"react": react, "chatty": chatty, "ticket": ticket}


def reply(messages: Sequence[Message]) -> tuple[Job, int, str]:
    """Whose turn it is, which, and what the model says."""
    job = Job.of_task(messages[1]["content"])
    turn = sum(message["role"] == "assistant" for message in messages)
    return job, turn, MODELS[job.protocol](job, messages)


def answer(job: Job, value: Any) -> int:
    """The number in a run's value."""
    return int(re.fullmatch(r"(?:It is )?(\d+)\.?", str(value))[1])  # type: ignore[index]
