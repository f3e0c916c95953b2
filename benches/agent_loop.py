"""CPU per turn of the agent loop with a model that answers at once, beside a hand-written loop.

    python benches/agent_loop.py [--rounds 5]

All loops call the same tool in the same process, in turn: the hand-written one with the replies of
the react protocol, callslip with each protocol's own. A turn is one reply, one call and its result;
the last one, with the answer, is not counted. Printed is the median over the rounds, in
microseconds of CPU, and beside it times the bare loop.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence

from callslip import Agent, Limits, tool
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


FINISH = json.dumps(
    {"thought": "done", "action": "FINISH", "final_answer": "ok", "task_successful": True}
)
RETURN = '<thoughts>done</thoughts><output>{"type": "RETURN", "value": "ok"}</output>'
PROTOCOLS: dict[ProtocolName, tuple[Callable[[int], str], str]] = {
    "react": (react, FINISH),
    "chatty": (chatty, "ok"),
    "ticket": (ticket, RETURN),
}


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Script:
    """A model that gives so many calls, then finishes; the messages say where it is."""

    def __init__(self, turns: int, protocol: ProtocolName) -> None:
        call, end = PROTOCOLS[protocol]
        self.replies = [*map(call, range(turns)), end]
        self.first: int | None = None

    async def __call__(self, messages: Sequence[object]) -> str:
        # A run begins with the prompt, perhaps an example of several messages, and the task.
        if self.first is None:
            self.first = len(messages)
        return self.replies[(len(messages) - self.first) // 2]


async def bare(turns: int) -> str:
    """Do what people write by hand: parse, call, append, ask again; no checks, limits or log."""
    model = BARE[turns]
    tools = {"add": add}
    messages: list[dict[str, str]] = [
        {"role": "system", "content": "You solve tasks with tools."},
        {"role": "user", "content": "count"},
    ]
    while True:
        text = await model(messages)
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
    asyncio.run(main(parser.parse_args().rounds))
