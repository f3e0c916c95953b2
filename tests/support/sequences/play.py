"""One sequence from its seed: what its players do, the end of all its runs, and the verdict."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from callslip import TicketStore
from callslip.fleet import Fleet
from fleets.nursery import Nursery
from sequences.crew import PROTOCOLS, Crew, watching
from sequences.judge import Judge
from sequences.ledger import Ledger
from sequences.players import Loop, Players

PATIENCE = 60.0
"""Seconds in which all runs end once nobody disturbs them."""

LEASE = 1.0
"""Seconds after which others take up what a killed process has driven."""

seen: Counter[str] = Counter()
"""What has happened in all sequences so far."""


def protocol_of(seed: int) -> str:
    return PROTOCOLS[seed % len(PROTOCOLS)]


def settle(crew: Crew, store: TicketStore, players: Players, ledger: Ledger, seed: int) -> None:
    """Decide what waits and resume what was left, until all runs are over."""
    chance, until = random.Random(f"{seed}/end"), time.monotonic() + PATIENCE
    while time.monotonic() < until:
        waiting = store.tickets(awaiting_approval=True)
        for ticket in waiting:
            players.decide(chance.choice(["approve", "approve", "deny"]), ticket.run_id, ticket.id)
        if not players.busy:
            if not store.runs(status="running") and not _is_due(store):
                return
            if store._shared is None:
                for agent in crew.agents.values():
                    players.resume_all(agent)
        time.sleep(0.001)
    ledger.write("fault", what=f"runs are left open: {store.runs(status='running')}")


def _is_due(store: TicketStore) -> bool:
    """Whether a run of a database has something to do: a message to it may just have come."""
    if store._shared is None:
        return False
    return bool(store.query("SELECT id FROM callslip.run WHERE msg IS NOT NULL LIMIT 1"))


def memory(seed: int) -> list[str]:
    """Play in one process, on a store in memory. Returns what is wrong."""
    ledger = Ledger()
    with TicketStore() as store, watching():
        return _to_the_end(store, ledger, seed)


def file(seed: int, nursery: Nursery, folder: Path) -> list[str]:
    """Play in one process after the other, which end in the middle; then come to an end."""
    path, ledger = folder / f"{seed}.sqlite", Ledger(folder / f"{seed}.ledger")
    chance = random.Random(f"{seed}/lives")
    try:
        for life in range(chance.choice([1, 1, 2])):
            order = [path, folder / f"{seed}.ledger", seed, life, chance.choice([None, 0.05, 0.2])]
            _wait_for(nursery, [_born(nursery, folder, order)])
        with TicketStore(path) as store, watching():
            return _to_the_end(store, ledger, seed)
    finally:
        ledger.close()


def shared(seed: int, nursery: Nursery, folder: Path, url: str) -> list[str]:
    """Play in several processes on a database. Some are killed; a worker ends what is left."""
    ledger = Ledger(folder / f"{seed}.ledger")
    chance = random.Random(f"{seed}/lives")
    orders = [
        [url, folder / f"{seed}.ledger", seed, life, chance.choice([None, None, 0.3])]
        for life in range(chance.choice([1, 2]))
    ]
    try:
        with TicketStore(url) as store, watching():
            lives = [_born(nursery, folder, order) for order in orders]
            return _to_the_end(store, ledger, seed, lambda: _wait_for(nursery, lives))
    finally:
        ledger.close()


def _born(nursery: Nursery, folder: Path, order: list[Any]) -> int:
    path, ledger, seed, life, seconds = order
    return nursery.start("play", folder / "log", str(path), str(ledger), seed, life, seconds)


def _wait_for(nursery: Nursery, lives: list[int]) -> None:
    for pid in lives:
        asyncio.run(nursery.end(pid, 120))


def live(place: str, ledger_path: str, seed: int, life: int, seconds: float | None) -> None:
    """Be a process that plays and ends, at its own time or killed after so many seconds."""
    if seconds is not None:
        wait = random.Random(f"{seed}/{life}/end").random() * seconds
        threading.Timer(wait, os.kill, (os.getpid(), signal.SIGKILL)).start()
    ledger = Ledger(Path(ledger_path))
    # What it leaves is what a process leaves that ends.
    with watching():
        _play(TicketStore(place), ledger, Loop(), f"{seed}/{life}")
    os._exit(0)


def _play(store: TicketStore, ledger: Ledger, loop: Loop, name: str) -> tuple[Crew, Players]:
    chance = random.Random(name)
    if store._shared is not None:
        store._shared.set_lease(LEASE)
    crew = Crew(protocol_of(int(name.partition("/")[0])), store, ledger)
    players = Players(crew, store, ledger, loop, name)
    players.play(chance.choice([1, 2, 3]), chance.randrange(3, 8))
    return crew, players


def _to_the_end(
    store: TicketStore, ledger: Ledger, seed: int, wait: Callable[[], object] = lambda: None
) -> list[str]:
    loop = Loop()
    try:
        crew, players = _play(store, ledger, loop, f"{seed}/last")
        wait()
        with working(crew, store, loop):
            settle(crew, store, players, ledger, seed)
        judge = Judge(store, ledger.read())
        wrong = judge.check()
        seen.update(judge.seen)
        return wrong
    finally:
        loop.close()


@contextmanager
def working(crew: Crew, store: TicketStore, loop: Loop) -> Iterator[None]:
    """Have a worker take up what was left in a database."""
    if store._shared is None:
        yield
        return
    fleet = Fleet(store, list(crew.agents.values()), lease=LEASE)
    work = loop.submit(fleet.work(slots=32, grace=5))
    try:
        yield
    finally:
        work.cancel()
        with suppress(CancelledError):
            work.result(60)
