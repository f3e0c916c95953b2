"""`make decisions`: decisions about runs under way, each followed by kill -9 at once.

Each is given by a process of its own, which is killed the moment that it is acknowledged. It must
stand in the log.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from callslip import (
    Agent,
    Context,
    Event,
    Run,
    RunFailed,
    ScriptedModel,
    TicketProtocol,
    TicketStore,
    tool,
)
from crash.judge import Wrong, demand

SECONDS = 60

DECISIONS = ["approve", "deny", "send", "cancel"]
WAYS = ["thread", "loop", "stream", "tool"]
PROTOCOLS: list[Any] = ["react", "chatty", TicketProtocol(grace=0)]


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def script(protocol: Any) -> list[str]:
    """Replies: a call that waits for approval, and one of the tool that decides about it."""
    if protocol == "react":
        return [r'{"thought": "", "action": "pay", "args": "{\"amount\": 5}"}']
    if protocol == "chatty":
        calls = (
            '{"call_id": "p", "tool_name": "pay", "arguments": {"amount": 5}}, '
            '{"call_id": "d", "tool_name": "decide", "arguments": {}}'
        )
        return [f"<tool>[{calls}]</tool>"]
    paying = '{"type": "CALL", "route": "/pay", "payload": {"amount": 5}, "description": "pay"}'
    deciding = '{"type": "CALL", "route": "/decide", "payload": {}, "description": "decide"}'
    awaiting = '{"type": "AWAIT", "ticket_id": "T1"}'
    moves = (paying, deciding, awaiting)
    return [f"<thoughts>\n</thoughts>\n<output>\n{move}\n</output>" for move in moves]


def give(run: Run, decision: str) -> NoReturn:
    """Decide, and die of it."""
    if decision == "send":
        run.send("and be quick")
    elif decision == "cancel":
        run.cancel()
    else:
        getattr(run, decision)("T1")
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def child(path: Path, task: str, decision: str, way: str, protocol: Any) -> None:
    """Begin a run, and decide about it from somewhere once its call waits."""
    store = TicketStore(path)

    def waiting() -> Run | None:
        waiting = store.tickets(awaiting_approval=True)
        runs = [ticket.run_id for ticket in waiting if store.run(ticket.run_id).task == task]
        return store.run(runs[0]) if runs else None

    @tool
    def decide(context: Context) -> str:
        """Decide, inside of a call."""
        if way == "tool":
            give(store.run(context.run_id), decision)
        return "left alone"

    agent = Agent(
        ScriptedModel(script(protocol)), protocol=protocol, tools=[pay, decide], store=store
    )

    async def on_loop() -> None:
        running = asyncio.create_task(agent.run(task))
        while (run := waiting()) is None:
            await asyncio.sleep(0.001)
        give(run, decision)
        await running

    async def in_stream() -> None:
        async with agent.stream(task) as run:
            async for event in run:
                if isinstance(event, Event) and getattr(event, "needs_approval", False):
                    give(run.run, decision)

    if way == "loop":
        asyncio.run(on_loop())
    elif way == "stream":
        asyncio.run(in_stream())
    elif way == "tool":
        run_sync(agent, task)
        # It is over, and whoever has decided has not died yet.
        signal.pause()
    else:
        threading.Thread(target=run_sync, args=[agent, task], daemon=True).start()
        while (run := waiting()) is None:
            time.sleep(0.001)
        give(run, decision)


def run_sync(agent: Agent, task: str) -> None:
    # It goes on with the decision, up to the end of its script, before whoever decides is told.
    with suppress(RunFailed):
        agent.run_sync(task)


def kill(path: Path, *what: Any) -> None:
    """Have a process of its own decide, and see it die."""
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(SECONDS)
            child(path, *what)
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    demand(killed, "a process did not get as far as its decision", what, status)


def stands(run: Run, decision: str) -> bool:
    """Whether a run's log has the decision."""
    events = run.log
    kinds = [event.kind for event in events]
    if decision == "approve":
        return "approved" in kinds
    if decision == "send":
        return "user_said" in kinds
    if decision == "cancel":
        return run.stop_reason == "cancelled"
    return [ticket.outcome for ticket in run.tickets if ticket.tool == "pay"] == ["denied"]


def decide_and_die(
    folder: Path, decisions: int, seed: int, tell: Callable[[int], None]
) -> Counter[str]:
    """Kill so many processes. Returns what was decided, and from where.

    Raises:
        Wrong: A decision is lost.
    """
    choices = random.Random(seed)
    seen: Counter[str] = Counter()
    turns = itertools.cycle(itertools.product(DECISIONS, WAYS))
    for number in range(decisions):
        path = folder / f"{number // 50}.sqlite"
        decision, way = next(turns)
        # In react nothing else is called while a call waits.
        protocols = PROTOCOLS[1:] if way == "tool" else PROTOCOLS
        task = f"task {number}"
        kill(path, task, decision, way, choices.choice(protocols))
        with TicketStore(path) as store:
            (run,) = [one for one in store.runs(limit=4) if one.task == task]
            held = stands(store.run(run.run_id), decision)
        demand(held, f"decision {number} is lost", decision, way, path)
        seen[decision] += 1
        seen[f"by a {way}"] += 1
        tell(number + 1)
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(prog="decisions", description=__doc__)
    parser.add_argument("decisions", type=int)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}")

    def tell(count: int) -> None:
        print(f"\r{count} decisions", end="", flush=True)

    folder = Path(tempfile.mkdtemp(prefix="callslip-decisions-"))
    try:
        seen = decide_and_die(folder, options.decisions, options.seed, tell)
    except Wrong as wrong:
        print(f"\n{wrong}\nseed {options.seed}, the files are in {folder}", file=sys.stderr)
        return 1
    print()
    for name, count in sorted(seen.items()):
        print(f"{count:>8}  {name}")
    print(f"\nnone of {options.decisions} is lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
