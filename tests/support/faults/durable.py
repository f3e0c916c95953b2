"""Runs on a store with a fault below it, and what each word that they say promises.

Before a model or tool is called, all that led to the call is committed. So a call is an
acknowledgement: when turn 3 is asked for, the reply and the outcome of turn 2 are kept. The tool is
pure: a run that goes on repeats it, and ends with the same value.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from callslip import Agent, Limits, ReactProtocol, RunResult, StoreError, TicketStore, tool

SHIM = ctypes.CDLL(None)
TASK = "count to {}, {}"
Say = Callable[[Any], None]


def react(action: str, **more: Any) -> str:
    return json.dumps({"thought": "t", "action": action, **more})


def reply(messages: Sequence[Any], say: Say, size: int) -> str:
    """Count on from what was told last; the task says how far."""
    words = messages[1]["content"].split()
    last, name = int(words[2].strip(",")), words[3]
    turn = (len(messages) - 2) // 2
    say(["model", name, turn])
    at = int(messages[-1]["content"].splitlines()[0].rpartition(" ")[2]) if turn else 0
    if at < last:
        args = {"run": name, "number": at, "text": "x" * size}
        return react("step", args=json.dumps(args))
    return react("FINISH", final_answer=str(at), task_successful=True)


def agent(store: TicketStore, say: Say = lambda _: None, size: int = 10) -> Agent:
    """Make an agent; `size` pads what it says, to move the commits among the pages."""

    @tool(effect="pure")
    def step(run: str, number: int, text: str) -> int:
        """Count one on."""
        say(["tool", run, number])
        return number + 1

    def model(messages: Sequence[Any]) -> str:
        return reply(messages, say, size)

    return Agent(
        model,
        protocol=ReactProtocol(examples=False),
        tools=[step],
        limits=Limits(turns=None, tickets=None),
        store=store,
    )


def one_run(path: Path, say: Say, turns: int, durability: str = "full", size: int = 10) -> str:
    """Run alone, through the sync driver; close the store at the end."""
    store = TicketStore(path, durability=durability)
    say(["open"])
    result = agent(store, say, size).run_sync(TASK.format(turns, "a"))
    say(["finished", "a", result.value])
    store.close()
    return result.value


def runs_side_by_side(
    path: Path, say: Say, turns: int, runs: int, *, driver: str, size: int = 10
) -> list[str]:
    """Run several at once, on one event loop or in threads: their commits are made in groups."""
    store = TicketStore(path)
    say(["open"])
    worker = agent(store, say, size)

    def told(name: str, result: RunResult) -> str:
        say(["finished", name, result.value])
        return str(result.value)

    async def one(name: str) -> str:
        return told(name, await worker.run(TASK.format(turns, name)))

    async def together() -> list[str | BaseException]:
        return await asyncio.gather(*map(one, names), return_exceptions=True)

    def in_thread(name: str) -> str | Exception:
        try:
            return told(name, worker.run_sync(TASK.format(turns, name)))
        except Exception as error:
            return error

    names = [chr(ord("a") + number) for number in range(runs)]
    if driver == "async":
        ends: list[Any] = asyncio.run(together())
    else:
        with ThreadPoolExecutor(runs) as pool:
            ends = list(pool.map(in_thread, names))
    for end in ends:
        if isinstance(end, BaseException):
            raise end
    store.close()
    return ends


def unfinished(path: Path, say: Say) -> dict[str, Any]:
    """Go on with every run that is there."""
    store = TicketStore(path)
    results = agent(store, say).resume_all_sync()
    store.close()
    for result in results.values():
        if isinstance(result, Exception):
            raise result
    return {run: result.value for run, result in results.items()}


def until_power_is_cut(path: Path, say: Say, turns: int) -> None:
    """Run; whatever comes of it, lose power then: what was said must be there all the same."""
    try:
        one_run(path, say, turns)
    except Exception as error:
        say(["failed", [kind.__name__ for kind in type(error).__mro__], str(error)])
    SHIM.faults_cut_power()


def again_after_an_error(path: Path, say: Say, turns: int, *, cut: bool = False) -> str:
    """Run; after an error go on with the same store, which opens its file again.

    At the end the power is cut, or the store is closed.
    """
    try:
        store = TicketStore(path)
    except StoreError as error:
        say(["failed", str(error)])
        store = TicketStore(path)
    worker = agent(store, say)
    try:
        value = worker.run_sync(TASK.format(turns, "a")).value
    except StoreError as error:
        say(["failed", str(error)])
        results = worker.resume_all_sync()
        value = next((result.value for result in results.values()), "none")
    if value != "none":
        say(["finished", "a", value])
    if cut:
        SHIM.faults_cut_power()
    store.close()
    return value


def clear(path: Path, say: Say) -> None:
    """Fold run `a`, delete `b`, take in a copy of `c`, then keep the latest run alone."""
    store = TicketStore(path)
    runs = {run.task.rpartition(" ")[2]: run.run_id for run in store.runs()}
    store.compact(runs["a"])
    say("compacted")
    store.delete(runs["b"])
    say("deleted")
    copy = store.run(runs["c"]).export().replace(runs["c"], "copy")
    store.import_run(copy)
    say("imported")
    store.prune(keep=1)
    say("pruned")
    store.close()
