"""Jobs: what a model wants next, told from its messages alone, so that it outlives any process.

A job is a number of steps. Each is done by one tool call, or is a job of its own that is given to
another run, and is worth some points; the answer is their sum. When the model is told that a call's
outcome is in doubt it looks up what happened: the step is done then, or is tried again as a new
attempt. A call that was denied is not made again: the step is done another way.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from crash.ledger import points
from scripted import asked, results_of, task_of, turn_of

Message = dict[str, str]
TOOLS = ("charge", "ship", "put", "look", "sign", "seal")
"""Of effect once, once with reconcile, idempotent, pure; `sign` (once) and `seal` (idempotent) are
awaiting approval until somebody approves."""
APPROVED = frozenset({"sign", "seal", "expert"})
"""What needs approval."""
WAYS = {
    "ticket": ("DELEGATE",),
    "chatty": ("spawn_agent", "packer", "teller"),
    "react": ("delegate_task", "clerk", "expert"),
}
"""How a job gives a part of itself to another run: by a move or a built-in tool, as a prepared role
(`packer`, `teller`), or by an agent that is a tool (`clerk`, `expert`)."""
WORKS = {
    "DELEGATE": "ticket",
    "spawn_agent": "chatty",
    "packer": "chatty",
    "teller": "react",
    "delegate_task": "react",
    "clerk": "chatty",
    "expert": "ticket",
}
"""The protocol of whoever gets it."""
TASK = re.compile(r"job (\S+) (ticket|chatty|react) (\d+) (\d+)")
ROLE = "Your role: job "
CARRIED = re.compile(r"Your role: job .*\n\n(?:It is )?(\d+)\.?")
ANSWER = re.compile(r"(?:It is )?(\d+)\.?")
RESULT = re.compile(r"^Result of ticket T(\d+):\n(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Job:
    """`levels` is how many levels of jobs may be below it."""

    name: str
    protocol: str
    steps: int
    levels: int = 0

    @property
    def task(self) -> str:
        return f"job {self.name} {self.protocol} {self.steps} {self.levels}"

    @staticmethod
    def of_task(task: str) -> Job:
        found = TASK.search(task)
        if found is None:
            raise ValueError(f"no job in {task!r}")
        return Job(found[1], found[2], int(found[3]), int(found[4]))

    def is_part(self, step: int) -> bool:
        """Whether a step is given to another run."""
        chance = random.Random(f"{self.name}/{step}/part").random()
        return self.levels > 0 and (step == 0 or chance < 0.3)

    def way(self, step: int) -> str:
        """How a step is tried first."""
        ways = WAYS[self.protocol] if self.is_part(step) else TOOLS
        return random.Random(f"{self.name}/{step}").choice(ways)

    def part(self, step: int, way: str) -> Job:
        steps = random.Random(f"{self.name}/{step}/steps").randint(1, 4)
        return Job(f"{self.name}-{step}", WORKS[way], steps, self.levels - 1)

    @property
    def last(self) -> int:
        """The step that it is, of the job that it is a part of."""
        return int(self.name.rpartition("-")[2])

    def worth(self, step: int) -> int:
        if self.is_part(step):
            return self.part(step, self.way(step)).right
        return points(self.name, step)

    @property
    def right(self) -> int:
        return sum(self.worth(step) for step in range(self.steps))

    def tree(self) -> Iterator[Job]:
        """It and all jobs below it; how those are given away may turn out otherwise."""
        yield self
        for step in range(self.steps):
            if self.is_part(step):
                yield from self.part(step, self.way(step)).tree()


@dataclass(frozen=True)
class Call:
    way: str
    step: int
    attempt: int

    def arguments(self, job: Job) -> dict[str, Any]:
        if self.way in WORKS:
            return {"task": job.part(self.step, self.way).task}
        return {"job": job.name, "step": self.step, "attempt": self.attempt}

    @staticmethod
    def of(way: str, arguments: dict[str, Any]) -> Call:
        if way in WORKS:
            return Call(way, Job.of_task(arguments["task"]).last, 0)
        return Call(way, arguments["step"], arguments["attempt"])


class Progress:
    """What is done, folded from the outcomes that the model has been told."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.done: dict[int, int] = {}
        self.ways = {step: job.way(step) for step in range(job.steps)}
        self.next = {step: Call(way, step, 0) for step, way in self.ways.items()}

    def told(self, call: Call, outcome: Any) -> None:
        """Take a number for the points, `None` for an audit that found nothing, else a text."""
        number = None if outcome is None else ANSWER.fullmatch(str(outcome))
        if number is not None:
            self.done[call.step] = int(number[1])
            self.next.pop(call.step, None)
        elif outcome is None and call.way == "audit":
            self.again(call)
        elif "InDoubt" in str(outcome) and call.way not in WORKS:
            self.next[call.step] = Call("audit", call.step, call.attempt)
        elif "was denied: do it another way" in str(outcome) and call.way in APPROVED:
            self.ways[call.step] = "delegate_task" if call.way in WORKS else "put"
            self.again(call)
        else:
            raise ValueError(f"{self.job} was told of {call}: {outcome}")

    def again(self, call: Call) -> None:
        self.next[call.step] = Call(self.ways[call.step], call.step, call.attempt + 1)

    def first(self) -> Call:
        return min(self.next.values(), key=lambda call: call.step)

    @property
    def total(self) -> int:
        return sum(self.done.values())


def react(job: Job, messages: Sequence[Message]) -> str:
    progress = Progress(job)
    for reply, told in zip(messages[2::2], messages[3::2], strict=False):
        move = json.loads(reply["content"])
        text = told["content"].removeprefix("Observation: ").splitlines()[0]
        progress.told(Call.of(move["action"], json.loads(move["args"])), value_of(text))
    if not progress.next:
        finish = {"action": "FINISH", "final_answer": str(progress.total), "task_successful": True}
        return json.dumps({"thought": "done", **finish})
    call = progress.first()
    args = json.dumps(call.arguments(job))
    return json.dumps({"thought": "next", "action": call.way, "args": args})


def value_of(text: str) -> Any:
    """A JSON value, or the text of what went wrong."""
    try:
        return json.loads(text)
    except ValueError:
        return text


class Agents:
    """The agents that a chatty job has spawned, and what it knows of them."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.waiting: dict[str, int] = {}
        """Steps, by call_id."""
        self.carries: dict[str, str] = {}
        self.said: dict[str, int] = {}

    def spawned(self, row: dict[str, Any]) -> None:
        step = int(row["call_id"][1:])
        self.progress.next.pop(step)
        self.waiting[row["call_id"]] = step
        if row["arguments"]["prompt"].startswith("$"):
            self.carries[row["call_id"]] = row["arguments"]["prompt"][1:]

    def ended(self, results: list[dict[str, Any]]) -> None:
        for row in results:
            agent, said = row["agent_id"], ANSWER.fullmatch(str(row.get("result")))
            if said is None:
                raise ValueError(f"{self.progress.job} was told of an agent: {row}")
            self.said[agent] = int(said[1])
            carried = self.said[self.carries[agent]] if agent in self.carries else 0
            step = self.waiting.pop(agent)
            self.progress.done[step] = self.said[agent] - carried

    def spawn(self, call: Call, before: str | None) -> dict[str, Any]:
        """Spawn one; at times it is given the answer of another one, and adds that to its own."""
        role, prompt = call.way, call.arguments(self.progress.job)["task"]
        if call.way == "spawn_agent":
            role, prompt = prompt, "It is 0."
            if before is not None:
                prompt = f"${before}"
        arguments = {"role": role, "prompt": prompt}
        return {"call_id": f"a{call.step}", "tool_name": "spawn_agent", "arguments": arguments}

    def wait(self, agents: Sequence[str]) -> dict[str, Any]:
        arguments = {"agent_ids": [f"${agent}" for agent in agents]}
        return {"call_id": "w", "tool_name": "wait_for_agents", "arguments": arguments}


def chatty(job: Job, messages: Sequence[Message]) -> str:
    """Do up to three steps side by side, and add two of them up by reference."""
    progress = Progress(job)
    agents = Agents(progress)
    for reply, told in zip(messages[2::2], messages[3::2], strict=False):
        block = reply["content"].partition("<tool>\n")[2].partition("\n</tool>")[0]
        calls = {row["call_id"]: row for row in json.loads(block)}
        values = results_of(told)
        for call_id, value in values.items():
            row = calls[call_id]
            if row["tool_name"] == "spawn_agent":
                agents.spawned(row)
            elif row["tool_name"] == "wait_for_agents":
                agents.ended(value)
            elif row["tool_name"] != "add":
                progress.told(Call.of(row["tool_name"], row["arguments"]), value)
            elif isinstance(value, int) and value != values["c0"] + values["c1"]:
                raise ValueError(f"added up wrongly: {values}")
    if not progress.next and not agents.waiting:
        return f"It is {progress.total + carried(task_of(messages))}."
    rows = block_of(job, progress, agents, len(messages))
    return f"On we go.\n<tool>\n{json.dumps(rows)}\n</tool>"


def block_of(job: Job, progress: Progress, agents: Agents, turn: int) -> list[dict[str, Any]]:
    chosen = sorted(progress.next.values(), key=lambda call: call.step)[:4]
    calls = [call for call in chosen if call.way not in WORKS]
    rows = [
        {"call_id": f"c{at}", "tool_name": call.way, "arguments": call.arguments(job)}
        for at, call in enumerate(calls)
    ]
    if len(calls) > 1 and all(call.way != "audit" for call in calls[:2]):
        added = {"job": job.name, "turn": turn, "a": "$c0", "b": "$c1"}
        rows.append({"call_id": "sum", "tool_name": "add", "arguments": added})
    luck = random.Random(f"{job.name}/{turn}")
    waiting = list(agents.waiting)
    for call in chosen:
        if call.way in WORKS:
            before = waiting[-1] if waiting and luck.random() < 0.6 else None
            rows.append(agents.spawn(call, before))
            waiting.append(f"a{call.step}")
    if waiting and (not rows or luck.random() < 0.4):
        rows.append(agents.wait(waiting))
    return rows


def ticket(job: Job, messages: Sequence[Message]) -> str:
    """Keep two calls or tasks in the background; await and load the older one."""
    progress = Progress(job)
    opened: list[Call] = []
    loaded: set[int] = set()
    for message in messages[2:]:
        if message["role"] == "assistant":
            move = json.loads(message["content"].partition("<output>")[2].partition("</output>")[0])
            if move["type"] in {"CALL", "DELEGATE"}:
                way = move.get("route", "/DELEGATE")[1:]
                opened.append(Call.of(way, move.get("payload", move)))
                progress.next.pop(opened[-1].step)
            continue
        for found in RESULT.finditer(message["content"]):
            number = int(found[1])
            # A short result comes by itself, and may be loaded once more.
            if number not in loaded:
                loaded.add(number)
                progress.told(opened[number - 1], value_of(found[2]))
    waiting = [number for number in range(1, len(opened) + 1) if number not in loaded]
    if progress.next and len(waiting) < 2:
        call = progress.first()
        if call.way == "DELEGATE":
            return output(type="DELEGATE", **call.arguments(job))
        said = f"{call.way} {call.step}"
        return output(
            type="CALL", route=f"/{call.way}", payload=call.arguments(job), description=said
        )
    if not waiting:
        return output(type="RETURN", value=progress.total)
    first = f"T{waiting[0]}"
    # Each message lists what has changed.
    told = [one["content"] for one in messages if one["role"] == "user"]
    rows = [row for one in told for row in json.loads(one.rpartition("Tickets:\n")[2])]
    complete = any(row["id"] == first and row["status"] == "COMPLETED" for row in rows)
    return output(type="LOAD_TICKET" if complete else "AWAIT", ticket_id=first)


def output(**move: Any) -> str:
    return f"<thoughts>\nplan\n</thoughts>\n<output>\n{json.dumps(move)}\n</output>"


MODELS = {"react": react, "chatty": chatty, "ticket": ticket}


def reply(messages: Sequence[Message]) -> tuple[Job, int, str]:
    """Whose turn it is, which, and what the model says."""
    messages = [messages[0], *asked(messages)]
    job = Job.of_task(task_of(messages))
    turn = turn_of(messages)
    return job, turn, MODELS[job.protocol](job, messages)


def carried(task: str) -> int:
    """What a spawned agent was given to add to its own."""
    if not task.startswith(ROLE):
        return 0
    found = CARRIED.fullmatch(task)
    if found is None:
        raise ValueError(f"nothing to add to in {task!r}")
    return int(found[1])


def answer(task: str, value: Any) -> int:
    """The number in a run's value, without what it was given to carry."""
    number = ANSWER.fullmatch(str(value))
    if number is None:
        raise ValueError(f"no answer to {task!r}: {value!r}")
    return int(number[1]) - carried(task)
