"""CPU per step of the agent loop with a model that answers at once, beside a hand-written loop.

    python benches/agent_loop.py [--rounds 5]

Both loops see the same replies and call the same tool in the same process, in turn. A step is one
reply, one call and its result. Printed is the median over the rounds, in microseconds of CPU.
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

STEPS = (20, 100, 400, 2000)
REPLIES = [
    json.dumps({"thought": "next", "action": "add", "args": json.dumps({"a": n, "b": 1})})
    for n in range(max(STEPS))
]
FINISH = json.dumps(
    {"thought": "done", "action": "FINISH", "final_answer": "ok", "task_successful": True}
)


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Script:
    """A model that gives so many calls, then finishes; the messages say where it is."""

    def __init__(self, steps: int) -> None:
        self.replies = [*REPLIES[:steps], FINISH]

    async def __call__(self, messages: Sequence[object]) -> str:
        return self.replies[(len(messages) - 2) // 2]


async def bare(steps: int) -> str:
    """Do what people write by hand: parse, call, append, ask again; no checks, limits or log."""
    model = SCRIPTS[steps]
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


async def ours(steps: int) -> str:
    """Run the same with an agent: protocol, checks, guards, tickets, log."""
    return str((await AGENTS[steps].run("count")).value)


LIMITS = Limits(steps=None, tickets=None)
SCRIPTS = {steps: Script(steps) for steps in STEPS}
AGENTS = {
    steps: Agent(script, protocol="react", tools=[tool(add)], limits=LIMITS)
    for steps, script in SCRIPTS.items()
}


async def cpu(loop: Callable[[int], Awaitable[str]], steps: int) -> float:
    """Microseconds of CPU a step."""
    repeats = max(1, 400 // steps)
    gc.collect()
    began = time.process_time_ns()
    for _ in range(repeats):
        answer = await loop(steps)
        assert answer == "ok"
    return (time.process_time_ns() - began) / 1000 / (steps * repeats)


async def main(rounds: int) -> None:
    print(f"{'steps':>6} {'bare loop':>10} {'callslip':>10} {'ratio':>6}   microseconds a step")
    for steps in STEPS:
        pairs = []
        for _ in range(rounds + 1):
            pairs.append((await cpu(bare, steps), await cpu(ours, steps)))
        base, mine = (statistics.median(column) for column in zip(*pairs[1:], strict=True))
        print(f"{steps:>6} {base:>10.1f} {mine:>10.1f} {mine / base:>6.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    asyncio.run(main(parser.parse_args().rounds))
