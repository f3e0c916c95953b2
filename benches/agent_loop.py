"""CPU per turn of the agent loop with a model that answers at once, beside a hand-written loop.

    python benches/agent_loop.py [--rounds 5] [--agents 5000]

All loops call the same tool in the same process, in turn: the hand-written one with the replies of
the react protocol, callslip with each protocol's own. A turn is one reply, one call and its result;
the last one, with the answer, is not counted. Printed is the median over the rounds, in
microseconds of CPU, and beside it times the bare loop. Then many agents run at once, each of which
awaits its last reply until all of them do; the memory is looked at in that moment.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import multiprocessing
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from callslip import Agent, Limits, tool
from callslip.models import ModelReply, NativeCall
from callslip.protocols import ProtocolName

TURNS = (20, 100, 400, 2000)


def react(n: int) -> str:
    return json.dumps({"thought": "next", "action": "add", "args": json.dumps({"a": n, "b": 1})})


def chatty(n: int) -> str:
    call = {"call_id": f"c{n}", "tool_name": "add", "arguments": {"a": n, "b": 1}}
    return f"<tool>{json.dumps([call])}</tool>"


def ticket(n: int) -> str:
    call = {"type": "CALL", "route": "POST /add", "payload": {"a": n, "b": 1}, "description": "add"}
    return f"<thoughts>next</thoughts><output>{json.dumps(call)}</output>"


def native(n: int) -> ModelReply:
    return ModelReply(calls=[NativeCall(f"c{n}", "add", json.dumps({"a": n, "b": 1}))])


FINISH = json.dumps(
    {"thought": "done", "action": "FINISH", "final_answer": "ok", "task_successful": True}
)
RETURN = '<thoughts>done</thoughts><output>{"type": "RETURN", "value": "ok"}</output>'
Reply = str | ModelReply
PROTOCOLS: dict[ProtocolName, tuple[Callable[[int], Reply], str]] = {
    "react": (react, FINISH),
    "chatty": (chatty, "ok"),
    "ticket": (ticket, RETURN),
    "native": (native, "ok"),
}


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Script:
    """A model that gives so many calls, then finishes; the messages say where it is."""

    def __init__(self, turns: int, protocol: ProtocolName) -> None:
        call, end = PROTOCOLS[protocol]
        self.replies: list[Reply] = [*map(call, range(turns)), end]
        self.first: int | None = None

    async def __call__(
        self, messages: Sequence[object], tools: object = None, tool_choice: object = None
    ) -> Reply:
        # A run begins with the prompt, perhaps an example of several messages, and the task.
        if self.first is None:
            self.first = len(messages)
        return self.replies[(len(messages) - self.first) // 2]


class Waiting(Script):
    """The same, and each run waits for its last reply until all of them do."""

    def __init__(self, turns: int, protocol: ProtocolName, runs: int) -> None:
        super().__init__(turns, protocol)
        self.missing = runs
        self.all_wait = asyncio.Event()
        self.resident = 0

    async def __call__(
        self, messages: Sequence[object], tools: object = None, tool_choice: object = None
    ) -> Reply:
        reply = await super().__call__(messages)
        if reply is self.replies[-1]:
            self.missing -= 1
            if not self.missing:
                self.resident = resident()
                self.all_wait.set()
            await self.all_wait.wait()
        return reply


def resident() -> int:
    """Bytes of this process alone; files that are mapped do not count. On Linux."""
    status = Path("/proc/self/status").read_text()
    lines = dict(line.split(":", 1) for line in status.splitlines())
    return int(lines["RssAnon"].split()[0]) * 1024


async def bare(turns: int, model: Script | None = None) -> str:
    """Do what people write by hand: parse, call, append, ask again; no checks, limits or log."""
    model = model or BARE[turns]
    tools = {"add": add}
    messages: list[dict[str, str]] = [
        {"role": "system", "content": "You solve tasks with tools."},
        {"role": "user", "content": "count"},
    ]
    while True:
        text = str(await model(messages))
        messages.append({"role": "assistant", "content": text})
        reply = json.loads(text)
        if reply["action"] == "FINISH":
            return str(reply["final_answer"])
        try:
            result = await tools[reply["action"]](**json.loads(reply["args"]))
            observation = result if isinstance(result, str) else json.dumps(result)
        except Exception as error:  # noqa: BLE001
            observation = f"Error calling tool {reply['action']!r}: {error}"
        messages.append({"role": "user", "content": f"Observation: {observation}"})


def ours(protocol: ProtocolName) -> Callable[[int], Awaitable[str]]:
    """Return what runs the same with an agent: protocol, checks, guards, tickets, log."""
    agents = {
        turns: Agent(Script(turns, protocol), protocol=protocol, tools=[tool(add)], limits=LIMITS)
        for turns in TURNS
    }

    async def run(turns: int) -> str:
        return str((await agents[turns].run("count")).value)

    return run


LIMITS = Limits(turns=None, tickets=None)
BARE = {turns: Script(turns, "react") for turns in TURNS}


async def cpu(loop: Callable[[int], Awaitable[str]], turns: int) -> float:
    """Microseconds of CPU a turn."""
    repeats = max(1, 400 // turns)
    gc.collect()
    began = time.process_time_ns()
    for _ in range(repeats):
        answer = await loop(turns)
        assert answer == "ok"
    return (time.process_time_ns() - began) / 1000 / (turns * repeats)


async def at_once(protocol: ProtocolName | None, agents: int) -> tuple[float, float]:
    """Milliseconds of CPU, and KB an agent, of so many agents at once; the bare loop for None."""

    def prepared(runs: int) -> tuple[Waiting, Callable[[], Awaitable[object]]]:
        model = Waiting(STEPS, protocol or "react", runs)
        if protocol is None:
            return model, lambda: bare(STEPS, model)
        agent = Agent(model, protocol=protocol, tools=[tool(add)], limits=LIMITS)
        return model, lambda: agent.run("count")

    # What is imported, made or cached once is no cost of an agent.
    _, run = prepared(3)
    await asyncio.gather(*(run() for _ in range(3)))
    model, run = prepared(agents)
    gc.collect()
    before, began = resident(), time.process_time_ns()
    await asyncio.gather(*(run() for _ in range(agents)))
    spent = (time.process_time_ns() - began) / 1e6
    return spent, (model.resident - before) / 1024 / agents


STEPS = 5


def in_process(protocol: ProtocolName | None, agents: int) -> tuple[float, float]:
    return asyncio.run(at_once(protocol, agents))


def many(agents: int, rounds: int) -> None:
    """Print what many agents cost, each measurement in a process of its own."""
    print(
        f"{agents:,} agents of {STEPS} turns: milliseconds of CPU, times the bare loop, KB an agent"
    )
    base = 0.0
    for protocol in (None, *PROTOCOLS):
        with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            rows = [pool.apply(in_process, (protocol, agents)) for _ in range(rounds)]
        spent, size = (statistics.median(column) for column in zip(*rows, strict=True))
        base = base or spent
        print(f"{protocol or 'bare loop':>10} {spent:>8.0f} {spent / base:>5.1f} {size:>6.1f}")


async def main(rounds: int) -> None:
    loops = [bare, *map(ours, PROTOCOLS)]
    print(f"{'turns':>6} {'bare loop':>10} " + " ".join(f"{name:>13}" for name in PROTOCOLS))
    for turns in TURNS:
        rows = [[await cpu(loop, turns) for loop in loops] for _ in range(rounds + 1)]
        base, *mine = (statistics.median(column) for column in zip(*rows[1:], strict=True))
        each = " ".join(f"{one:>6.1f} ({one / base:.1f})".rjust(13) for one in mine)
        print(f"{turns:>6} {base:>10.1f} {each}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--agents", type=int, default=5_000)
    options = parser.parse_args()
    asyncio.run(main(options.rounds))
    many(options.agents, options.rounds)
