"""The work that each peer is given, and what all measurements of it share.

Nothing here imports a peer: each one's process imports its adapter alone.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

PROMPT = "You solve tasks with tools."
TASK = "count"
FINISH = json.dumps(
    {"thought": "done", "action": "FINISH", "final_answer": "ok", "task_successful": True}
)

Wait = Callable[[int], Awaitable[None]] | None
"""Awaited by a model before the reply of this turn, from 0."""

Run = Callable[[], Awaitable[str]]
"""One run of an agent, from the task to its answer."""

Counter = Callable[[int, Wait], Run]
"""Makes a run whose model calls `add` so often before it answers "ok"."""


class Made:
    """How many calls were made, so that nobody is measured who makes fewer."""

    calls = 0


async def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    Made.calls += 1
    return a + b


def react_call(turn: int) -> str:
    """Return a call in the react protocol."""
    arguments = json.dumps({"a": turn, "b": 1})
    return json.dumps({"thought": "next", "action": "add", "args": arguments})


def text_model(
    turns: int, wait: Wait, first: int = 2
) -> Callable[[Sequence[object]], Awaitable[str]]:
    """Answer in the react protocol; a run begins with so many messages, and has two more a turn."""
    replies = [*map(react_call, range(turns)), FINISH]

    async def model(messages: Sequence[object]) -> str:
        turn = (len(messages) - first) // 2
        if wait is not None:
            await wait(turn)
        return replies[turn]

    return model


class Gate:
    """Holds every agent at its last reply until all are there, and then looks at the memory."""

    def __init__(self, turn: int, agents: int) -> None:
        self.turn = turn
        self.missing = agents
        self.open = asyncio.Event()
        self.resident = 0

    async def __call__(self, turn: int) -> None:
        if turn == self.turn:
            self.missing -= 1
            if self.missing == 0:
                self.resident = resident()
                self.open.set()
            await self.open.wait()


def resident() -> int:
    """Bytes of this process alone, swapped ones too; files that are mapped do not count."""
    status = Path("/proc/self/status").read_text()
    lines = dict(line.split(":", 1) for line in status.splitlines())
    return sum(int(lines[name].split()[0]) for name in ("RssAnon", "VmSwap")) * 1024


def warm(counter: Counter, turns: int, wait: Wait = None) -> Run:
    """Run a few first: what is imported, made or cached once is no cost of an agent."""
    run = counter(turns, wait)

    async def several() -> None:
        for _ in range(3):
            Made.calls = 0
            assert await run() == "ok"
            assert Made.calls == turns, f"expected {turns} calls: got {Made.calls}"

    asyncio.run(several())
    gc.collect()
    return run
