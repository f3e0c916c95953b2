"""The soak: rounds of mixed runs in one process, and a look at the process after each."""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from callslip import Run, StoreError, TicketStore
from callslip._threads import pool
from soak.acts import Acts, Ended, decide
from soak.checks import (
    Process,
    Wrong,
    all_are_over,
    demand,
    gates_held,
    is_over,
    tasks_left,
    tree,
    wake_private_loop,
)
from soak.crew import Crew

AT_ONCE = 20
IN_THREADS = 5
WARM_UP = 4
PATIENCE = 180.0
"""Seconds that a round may take, and what is under way then. Both take about one."""
GROWTH = 1.2
SLACK = 32 * 1024 * 1024


class Soak:
    def __init__(self, folder: Path, seed: int, tell: Callable[[str], None]) -> None:
        random.seed(seed)
        self.folder = folder
        self.tell = tell
        self.seen: Counter[str] = Counter()
        self.faults: list[str] = []
        self.acts = Acts(Crew(), self.note)
        self.base: Process | None = None
        self.memory: list[int] = []
        self.lock = threading.Lock()
        self.stores: dict[str, TicketStore | None] = {}

    def note(self, what: str) -> None:
        with self.lock:
            self.seen[what] += 1

    def run(self, seconds: float) -> Counter[str]:
        """Soak for so long.

        Raises:
            Wrong: Something did not hold.
        """
        until = time.monotonic() + seconds
        with self.listening():
            asyncio.run(self.rounds(until))
        self.memory_is_flat()
        return self.seen

    async def rounds(self, until: float) -> None:
        asyncio.get_running_loop().set_exception_handler(self.fault)
        # Calls of soaked sync runs are not to wait for threads that the soak itself takes.
        asyncio.get_running_loop().set_default_executor(
            ThreadPoolExecutor(AT_ONCE * 2, thread_name_prefix="asyncio")
        )
        self.open()
        try:
            while time.monotonic() < until or self.seen["rounds"] <= WARM_UP:
                await self.round()
                self.seen["rounds"] += 1
                await self.checkpoint()
                if self.seen["rounds"] % 10 == 0:
                    self.tell(self.line())
        finally:
            self.close()

    def line(self) -> str:
        runs, memory = self.seen["runs checked"], self.memory[-1] // 2**20
        return f"{self.seen['rounds']} rounds, {runs} runs checked, {memory} MiB"

    def open(self) -> None:
        number = self.seen["files opened"]
        self.seen["files opened"] += 1
        self.stores = {
            "no store": None,
            "memory": TicketStore(),
            "file": TicketStore(
                self.folder / f"{number % 3}.sqlite",
                durability=random.choice(("full", "normal", "memory")),
            ),
        }

    def close(self) -> None:
        for store in self.stores.values():
            if store is not None:
                store.close()

    async def round(self) -> None:
        """Do many things at once, and wait until all are done."""
        acts, loop = self.acts, asyncio.get_running_loop()
        on_loop = [
            acts.plain,
            acts.cancelled_task,
            acts.timed,
            acts.cancelled_run,
            acts.watched,
            acts.left_early,
            acts.started,
            acts.conversation,
            acts.interrupted,
            acts.resumed,
        ]
        in_threads = [acts.sync, acts.sync_conversation, acts.sync_cancelled]
        over = threading.Event()
        deciding = [
            asyncio.create_task(self.decide_here(over)),
            asyncio.create_task(asyncio.to_thread(self.decide_elsewhere, over)),
        ]
        doing: dict[asyncio.Future[Ended], str] = {}
        with ThreadPoolExecutor(IN_THREADS, thread_name_prefix="soak") as pool:
            for number in range(AT_ONCE + IN_THREADS):
                name, store = random.choice(list(self.stores.items()))
                if number < AT_ONCE:
                    act = random.choice(on_loop)
                    doing[asyncio.ensure_future(act(store))] = f"{act.__name__}, {name}"
                else:
                    sync = random.choice(in_threads)
                    future = loop.run_in_executor(pool, sync, store)
                    doing[future] = f"{sync.__name__}, {name}"
            for what in doing.values():
                self.note(what)
            done, pending = await asyncio.wait(doing, timeout=PATIENCE)
            over.set()
            if pending:
                for thing in pending:
                    if isinstance(thing, asyncio.Task):
                        thing.print_stack(file=sys.stderr)
                raise Wrong("hung: " + "; ".join(doing[one] for one in pending) + self.open_runs())
        await asyncio.gather(*deciding)
        for future in done:
            self.check(doing[future], future)

    def open_runs(self) -> str:
        runs = [thing for thing in gc.get_objects() if isinstance(thing, Run)]
        # Those that this process has let go of stand in a store.
        for store in self.stores.values():
            if store is not None:
                runs += [store.run(row.run_id) for row in store.runs(status="running")]
        return "".join(f"\n{run!r}\n{run.export()}" for run in runs if not run.finished)

    def check(self, act: str, future: asyncio.Future[Ended]) -> None:
        try:
            run = future.result()
            if run is not None:
                self.seen["runs checked"] += is_over(run)
                self.count(run)
        except Exception as error:
            raise Wrong(f"{act}: {type(error).__name__}: {error}") from error

    def count(self, run: Run) -> None:
        """Count what happened in a run and in those below it."""
        for one in tree(run):
            self.seen["replies"] += one.turns
            self.seen["violations"] += one.violations
            self.seen["runs below others"] += one is not run
            for ticket in one.tickets:
                self.seen[f"{ticket.kind}: {ticket.outcome}"] += 1
                self.seen["waits for agents"] += ticket.tool == "wait_for_agents"

    async def decide_here(self, over: threading.Event) -> None:
        while not over.is_set():
            await asyncio.sleep(random.random() * 0.02)
            self.decide()

    def decide_elsewhere(self, over: threading.Event) -> None:
        while not over.wait(random.random() * 0.02):
            self.decide()

    def decide(self) -> None:
        """Decide on calls of kept runs."""
        for store in self.stores.values():
            if store is None:
                continue
            for ticket in store.tickets(awaiting_approval=True, limit=5):
                root = ticket.run_id.partition(".")[0]
                with suppress(StoreError):
                    run = store.run(random.choice((root, ticket.run_id)))
                    if done := decide(run):
                        self.note(done)

    async def checkpoint(self) -> None:
        """Everything has ended: nothing is to be left of it."""
        await asyncio.to_thread(self.check_stores)
        if self.seen["rounds"] % 5 == 0:
            self.close()
            self.open()
        until = time.monotonic() + PATIENCE
        while left := self.left():
            demand(time.monotonic() < until, "something is left", *left, *self.faults)
            await asyncio.sleep(0.05)
        demand(not self.faults, "something failed unseen", *self.faults)
        now = Process.now()
        self.memory.append(now.memory)
        if self.seen["rounds"] == WARM_UP:
            self.base = now

    def check_stores(self) -> None:
        for store in self.stores.values():
            if store is not None:
                self.seen["runs checked"] += all_are_over(store)
                self.seen["runs pruned"] += store.prune(keep=random.choice((0, 10)))

    def left(self) -> list[str]:
        """What may still be ending: threads of calls that were given up."""
        wake_private_loop()
        gc.collect()
        left = tasks_left() + gates_held()
        if not left and self.base is not None:
            left = Process.now().beyond(self.base)
        return left

    def memory_is_flat(self) -> None:
        sizes = self.memory[WARM_UP:]
        half = len(sizes) // 2
        if half < 3:
            return
        first, second = statistics.median(sizes[:half]), statistics.median(sizes[half:])
        text = f"{first / 2**20:.0f} MiB in the first half, {second / 2**20:.0f} in the second"
        self.seen["MiB at the end"] = int(second) // 2**20
        demand(second < first * GROWTH + SLACK, "the memory grows", text)
        self.tell(text)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear of what fails where nobody waits for it."""
        pool._private_loop().set_exception_handler(self.fault)
        hooks = threading.excepthook, sys.unraisablehook
        threading.excepthook = lambda args: self.faults.append(f"thread: {args.exc_value!r}")
        sys.unraisablehook = lambda args: self.faults.append(
            f"{args.err_msg} {args.object!r}: {args.exc_value!r}"
        )
        try:
            yield
        finally:
            threading.excepthook, sys.unraisablehook = hooks

    def fault(self, loop: Any, context: dict[str, Any]) -> None:
        self.faults.append(str(context))
