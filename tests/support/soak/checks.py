"""What must hold: of a run that has ended, and of the process when all runs have."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextvars import Context
from dataclasses import dataclass
from pathlib import Path

from callslip import Run, TicketStore, replay
from callslip._threads import gate as _gate
from callslip._threads import pool

PAGE = os.sysconf("SC_PAGE_SIZE")


class Wrong(AssertionError):  # noqa: N818  # what it says is a verdict
    """A promise was broken."""


def demand(holds: object, what: str, *details: object) -> None:
    if not holds:
        raise Wrong(what + "".join(f"\n  {detail}" for detail in details))


def tree(run: Run) -> Iterator[Run]:
    yield run
    for child in run.children:
        yield from tree(child)


def is_over(run: Run) -> int:
    """Check a run that has ended, and those below it. Returns how many there are."""
    count = 0
    for one in tree(run):
        if not one.log:
            continue  # it was cancelled before it began
        count += 1
        demand(one.finished, f"{one} has not ended", one.export())
        still_open = [ticket for ticket in one.tickets if ticket.status != "COMPLETED"]
        demand(not still_open, f"{one} has open tickets", *still_open, one.export())
        again = replay(one)
        same = list(again.messages) == list(one.messages) and again.tickets == one.tickets
        demand(same, f"the replay of {one} came out otherwise", one.export())
    demand(run.total_usage is not None, "no total")
    return count


def all_are_over(store: TicketStore) -> int:
    """The same for all runs of a store."""
    still_open = store.tickets(status="IN_PROGRESS")
    demand(not still_open, "tickets are left in progress", *still_open)
    running = store.runs(status="running")
    demand(not running, "runs are left running", *running)
    rows = store.runs()
    for row in rows:
        demand(not store._native.is_claimed(row.run_id), f"run {row.run_id} is still held", row)
        is_over(store.run(row.run_id))
    return len(rows)


def count(folder: str) -> int:
    return sum(1 for _ in Path(folder).iterdir())


@dataclass
class Process:
    """What the process holds, once nothing is under way."""

    threads: Counter[str]
    native: int
    files: int
    objects: Counter[str]
    memory: int

    @classmethod
    def now(cls) -> Process:
        # What a finalizer has let go of takes another collection.
        for _ in range(5):
            if not gc.collect():
                break
        threads = Counter(thread.name.partition("_")[0] for thread in threading.enumerate())
        native = count("/proc/self/task") - threads.total()
        objects: Counter[str] = Counter()
        for thing in gc.get_objects():
            kind = type(thing)
            # Of some kinds of other libraries it is no text.
            if str(getattr(kind, "__module__", "")).startswith("callslip"):
                objects[kind.__qualname__] += 1
        memory = int(Path("/proc/self/statm").read_text().split()[1]) * PAGE
        return cls(threads, native, count("/proc/self/fd"), objects, memory)

    def beyond(self, base: Process) -> list[str]:
        """What is there that was not there before."""
        found = [
            f"thread {name}"
            for name, count in self.threads.items()
            # The library has its pool and one private loop; a client may have left a pool.
            if count > max(LARGEST.get(name, 1), base.threads[name])
        ]
        found += [
            f"thread {name}" for name in self.threads if name not in KNOWN | base.threads.keys()
        ]
        if self.native > base.native:
            found.append(f"{self.native} native threads, {base.native} before")
        # A store has as many of these as there were loops that waited for it: two at most.
        wakers, base_wakers = self.objects["Waker"], base.objects["Waker"]
        if self.files - WAKER_FILES * wakers > base.files - WAKER_FILES * base_wakers:
            found.append(f"{self.files} files, {base.files} before")
        more = self.objects - base.objects - Counter(Waker=LOOPS, _OnLoop=LOOPS)
        found += [f"{count} more objects {name}" for name, count in more.items()]
        return found


LARGEST = {"callslip": pool.WORKERS, "callslip-own": pool.OWN_WORKERS, "asyncio": 2 * 32}
LOOPS = 2
WAKER_FILES = 2
KNOWN = frozenset({"MainThread", "callslip", "callslip-own", "callslip-loop", "asyncio"})
"""`asyncio` is the pool that the standard library gives to `asyncio.to_thread`."""


def wake_private_loop() -> None:
    """An idle loop keeps its last timer, with the context that was in, until it turns once more."""
    if pool._loop is not None:
        pool._loop.call_soon_threadsafe(int, context=Context())


def tasks_left() -> list[str]:
    """Tasks on the caller's loop, and on the library's private one."""
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    if pool._loop is not None:
        left += asyncio.all_tasks(pool._loop)
    return [str(task) for task in left]


def gates_held() -> list[str]:
    return [str(gate) for gate in list(_gate._gates) if gate._free != gate.limit or gate._waiting]
