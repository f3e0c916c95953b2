"""What watching costs: many watchers of many runs, beside a bare fan-out of asyncio.

    python benches/watching.py                      # 10 watchers of each of 100 runs

The baseline passes the same objects to as many readers, each with a queue of its own, in the same
process. Both are the CPU of the whole process for each event and watcher. Runs that nobody can
watch are measured first, and taken off.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial

from callslip import Agent, Event, ReactProtocol, Run, tool

TURNS = 20
END = '{"thought": "t", "action": "FINISH", "final_answer": "ok", "task_successful": true}'


@tool
async def step(n: int) -> int:
    """Count."""
    await asyncio.sleep(0)
    return n


async def model(messages: list[dict[str, str]]) -> str:
    """Make so many calls, then end."""
    await asyncio.sleep(0)
    turn = sum(message["role"] == "assistant" for message in messages)
    if turn < TURNS:
        return f'{{"thought": "t", "action": "step", "args": {{"n": {turn}}}}}'
    return END


async def read(run: Run) -> int:
    """Watch a run to its end. Returns the number of its events."""
    return sum([isinstance(item, Event) async for item in run.watch()])


async def runs(count: int, watchers: int) -> tuple[int, list[Event]]:
    """Drive runs with watchers. Returns the number of events told, and a log."""
    agent = Agent(model, protocol=ReactProtocol(examples=False), tools=[step])
    if not watchers:
        results = await asyncio.gather(*(agent.run("go") for _ in range(count)))
        return 0, results[0].run.log
    started = [agent.start("go") for _ in range(count)]
    told = await asyncio.gather(*(read(run) for run in started for _ in range(watchers)))
    await asyncio.gather(*(awaited(run) for run in started))
    return sum(told), started[0].log


async def awaited(run: Run) -> None:
    """Wait for a run."""
    await run


async def fan_out(count: int, watchers: int, log: list[Event]) -> int:
    """Pass the events of one log to as many readers, with a queue for each."""

    async def reader(queue: asyncio.Queue[Event | None]) -> int:
        seen = 0
        while await queue.get() is not None:
            seen += 1
        return seen

    async def writer(queues: list[asyncio.Queue[Event | None]]) -> None:
        for event in log:
            for queue in queues:
                queue.put_nowait(event)
            await asyncio.sleep(0)
        for queue in queues:
            queue.put_nowait(None)

    groups: list[list[asyncio.Queue[Event | None]]] = [
        [asyncio.Queue() for _ in range(watchers)] for _ in range(count)
    ]
    reading = asyncio.gather(*(reader(queue) for queues in groups for queue in queues))
    await asyncio.gather(*(writer(queues) for queues in groups))
    return sum(await reading)


def cpu(work: Callable[[], Awaitable[object]]) -> tuple[float, object]:
    """Return the CPU seconds of some work in a loop of its own, and its result."""

    async def main() -> object:
        return await work()

    began = time.process_time()
    result = asyncio.run(main())
    return time.process_time() - began, result


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--watchers", type=int, default=10, help="of each run")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    bare, watched = [], []
    for _ in range(options.rounds):
        alone, _told = cpu(lambda: runs(options.runs, 0))
        total, result = cpu(lambda: runs(options.runs, options.watchers))
        told, log = result  # type: ignore[misc]
        watched.append((total - alone) / told * 1e6)
        seconds, passed = cpu(partial(fan_out, options.runs, options.watchers, log))
        assert passed == told
        bare.append(seconds / told * 1e6)
    print(f"{options.runs} runs of {len(log)} events, {options.watchers} watchers each\n")
    print("| | CPU for each event and watcher | ratio |")
    print("|---|---|---|")
    for name, figures in (("bare fan-out of asyncio", bare), ("`run.watch()`", watched)):
        median = sorted(figures)[len(figures) // 2]
        base = sorted(bare)[len(bare) // 2]
        print(f"| {name} | {median:.2f} us | {median / base:.2f} |")


if __name__ == "__main__":
    main()
