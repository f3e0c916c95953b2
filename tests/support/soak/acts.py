"""What is done with agents: every way to drive a run, and every way to end one early."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from callslip import (
    Event,
    Run,
    RunFailed,
    RunResult,
    StoreError,
    TicketStore,
    UsageError,
)
from reading import read_to_end
from soak.checks import is_over
from soak.crew import Crew

Ended = Run | None


def brief() -> float:
    """Seconds that mostly end within a run, and at times before it has begun."""
    return random.choice((0.0, 0.002, 0.02, 0.1, 0.4)) * random.random()


def task() -> str:
    return f"task {random.randrange(10**9)}"


def decide(run: Run) -> str | None:
    """Say something about a call that waits for approval: yes, no, or that all is to end."""
    try:
        waiting = run.awaiting_approval
        if not waiting:
            return None
        ticket = random.choice(waiting)
        luck = random.random()
        if luck < 0.5:
            run.approve(ticket)
            return "approved"
        if luck < 0.9:
            run.deny(ticket, "no")
            return "denied"
        run.cancel()
    except (UsageError, StoreError):
        return None  # somebody else has decided meanwhile, or the run has ended
    return "cancelled while awaiting approval"


class Acts:
    """`seen` is told what was done. Each act returns the run, to be looked at when it has ended."""

    def __init__(self, crew: Crew, seen: Callable[[str], None]) -> None:
        self.crew = crew
        self.seen = seen

    async def outcome(self, awaitable: Awaitable[RunResult]) -> Ended:
        """Wait for a run, however it ends."""
        try:
            result = await awaitable
        except RunFailed as error:
            self.seen(f"ended by {type(error).__name__}")
            return error.run
        except (asyncio.CancelledError, TimeoutError) as error:
            self.seen("ended by the cancellation of its task")
            return getattr(error, "run", None) or getattr(error.__cause__, "run", None)
        self.seen(f"ended with {result.stop_reason}")
        return result.run

    async def plain(self, store: TicketStore | None) -> Ended:
        agent = self.crew.agent(store, asks=store is not None)
        return await self.outcome(agent.run(task()))

    async def cancelled_task(self, store: TicketStore | None) -> Ended:
        agent = self.crew.agent(store, asks=store is not None)
        running = asyncio.create_task(agent.run(task()))
        await asyncio.sleep(brief())
        running.cancel()
        return await self.outcome(running)

    async def timed(self, store: TicketStore | None) -> Ended:
        agent = self.crew.agent(store, asks=store is not None)
        return await self.outcome(asyncio.wait_for(agent.run(task()), brief()))

    async def cancelled_run(self, store: TicketStore | None) -> Ended:
        """By `Run.cancel`, from here or from another thread."""
        agent = self.crew.agent(store, asks=True)
        async with agent.stream(task(), children=random.random() < 0.5) as stream:

            async def cancel() -> None:
                await asyncio.sleep(brief())
                if random.random() < 0.5:
                    stream.cancel()
                else:
                    await asyncio.to_thread(stream.cancel)

            cancelling = asyncio.create_task(cancel())
            await read_to_end(stream)
            await cancelling
        with suppress(UsageError):
            await self.outcome(self.result(stream))
        return stream.run

    async def result(self, stream: Any) -> RunResult:
        result: RunResult = stream.result
        return result

    async def watched(self, store: TicketStore | None) -> Ended:
        """Take what comes, quickly or slowly, and decide on what is asked."""
        agent = self.crew.agent(store, asks=True)
        slow = random.choice((0.0, 0.0, 0.0005, 0.003))
        async with agent.stream(task(), children=random.random() < 0.5) as stream:

            async def answer() -> None:
                while not stream.run.finished:
                    await asyncio.sleep(0.005)
                    if done := decide(stream.run):
                        self.seen(done)

            answering = asyncio.create_task(answer())
            events = 0
            with suppress(RunFailed):
                async for event in stream:
                    events += isinstance(event, Event)
                    if slow:
                        await asyncio.sleep(random.random() * slow)
            await answering
        self.seen("streams read slowly" if slow else "streams read at once")
        await self.outcome(self.result(stream))
        return stream.run

    async def left_early(self, store: TicketStore | None) -> Ended:
        agent = self.crew.agent(store, asks=True)
        enough = random.choice((0, 1, 5, 20, 300))
        slow = random.choice((0.0, 0.002))
        async with agent.stream(task()) as stream:
            reading = asyncio.create_task(read(stream, enough, slow))
            await asyncio.wait([reading], timeout=brief() if random.random() < 0.3 else 0.5)
            reading.cancel()
            await asyncio.wait([reading])
        return stream.run

    async def started(self, store: TicketStore | None) -> Ended:
        """Leave a run to itself, with watchers that come and go; each is told everything once."""
        agent = self.crew.agent(store, asks=False)
        run = agent.start(task())
        told = await asyncio.gather(*(follow(run) for _ in range(random.randint(0, 4))))
        ended = await self.outcome(awaited(run))
        for events in told:
            assert events == run.log, "a watcher was not told of everything once"
        self.seen("runs that were watched from beside")
        return ended

    async def conversation(self, store: TicketStore | None) -> Ended:
        """Say more once it has ended, however it did; at times give up waiting for that."""
        agent = self.crew.agent(store, asks=store is not None)
        run = await self.outcome(agent.run(task()))
        for _ in range(random.randint(1, 3)):
            if run is None or not run.log:
                return run
            self.seen("messages sent to a run that was over")
            is_over(run)
            answer = run.send("and then?")
            if random.random() < 0.3:
                await self.outcome(asyncio.wait_for(answer, brief()))
            else:
                await self.outcome(answer)
            if not run.finished:
                # It was given up before it was waited for: what was said is written down.
                self.seen("messages that nobody waited for")
                await self.outcome(run.send("are you there?"))
        return run

    async def interrupted(self, store: TicketStore | None) -> Ended:
        """Say more while it is under way, from here or from another thread."""
        agent = self.crew.agent(store, asks=False)
        async with agent.stream(task()) as stream:

            async def say() -> None:
                await asyncio.sleep(brief())
                if not stream.run.log or stream.run.finished:
                    return
                self.seen("messages sent to a run under way")
                if random.random() < 0.5:
                    answer = stream.send("by the way")
                else:
                    answer = await asyncio.to_thread(stream.send, "by the way")
                await self.outcome(answer)

            saying = asyncio.create_task(say())
            await read_to_end(stream)
            await saying
        return stream.run

    async def resumed(self, store: TicketStore | None) -> Ended:
        """Cancel a kept run, then go on with it."""
        if store is None:
            return await self.plain(store)
        agent = self.crew.agent(store, asks=True)
        running = asyncio.create_task(agent.run(task()))
        await asyncio.sleep(brief())
        running.cancel()
        run = await self.outcome(running)
        if run is None or not run.log:
            return run
        is_over(run)
        self.seen("runs resumed")
        if random.random() < 0.5:
            return await self.outcome(agent.resume(run.id))
        return await self.outcome(asyncio.to_thread(agent.resume_sync, run.id))

    def sync(self, store: TicketStore | None) -> Ended:
        agent = self.crew.agent(store, asks=store is not None)
        return self.sync_outcome(lambda: agent.run_sync(task()))

    def sync_conversation(self, store: TicketStore | None) -> Ended:
        run = self.sync(store)
        for _ in range(random.randint(1, 2)):
            if run is None or not run.log:
                return run
            is_over(run)
            self.seen("messages sent to a run that was over")
            self.sync_outcome(lambda: run.send_sync("and then?"))
        return run

    def sync_cancelled(self, store: TicketStore | None) -> Ended:
        """By another thread."""
        if store is None:
            return self.sync(store)
        agent = self.crew.agent(store, asks=True)
        name = task()
        timer = threading.Timer(brief(), cancel_by_task, (store, name))
        timer.start()
        run = self.sync_outcome(lambda: agent.run_sync(name))
        timer.join()
        return run

    def sync_outcome(self, work: Callable[[], RunResult]) -> Ended:
        try:
            result = work()
        except RunFailed as error:
            self.seen(f"ended by {type(error).__name__}")
            return error.run
        self.seen(f"ended with {result.stop_reason}")
        return result.run


async def read(stream: Any, enough: int, slow: float) -> None:
    seen = 0
    with suppress(RunFailed):
        async for _ in stream:
            seen += 1
            if seen >= enough:
                return
            await asyncio.sleep(slow)


async def awaited(run: Run) -> RunResult:
    return await run


async def follow(run: Run) -> list[Event]:
    """Watch a run to its end, and come back at times."""
    events: list[Event] = []
    with suppress(RunFailed):
        while not (run.finished and events and events[-1].kind == "run_finished"):
            enough = random.choice((1, 5, 1000))
            async for item in run.watch(after=events[-1].seq if events else None):
                if isinstance(item, Event):
                    events.append(item)
                    enough -= 1
                if not enough:
                    break
                if random.random() < 0.1:
                    await asyncio.sleep(brief() / 20)
    return events


def cancel_by_task(store: TicketStore, name: str) -> None:
    for row in store.runs(status="running"):
        if row.task == name:
            with suppress(StoreError):
                store.run(row.run_id).cancel()
