"""Threads that start, cancel, talk to, decide on and resume runs, and write down the answers."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from callslip import CallslipError, Run, TicketStore
from sequences.crew import Crew
from sequences.ledger import Ledger

ACTS = {
    "start": 5,
    "cancel": 3,
    "send": 3,
    "approve": 5,
    "deny": 2,
    "resume": 3,
    "resume_all": 1,
    "pause": 3,
}


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="asyncio", daemon=True)
        self._thread.start()

    def submit(self, coroutine: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def close(self) -> None:
        async def leave() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.get_running_loop().shutdown_default_executor()

        self.submit(leave()).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()


class Players:
    """What the threads of one process do with one store.

    Args:
        crew: The agents.
        store: Their store, as this process has it.
        ledger: Where each act is written down before it begins and after it was acknowledged.
        loop: Where runs are driven that are not driven by a thread.
        name: Chooses the acts.
    """

    def __init__(
        self, crew: Crew, store: TicketStore, ledger: Ledger, loop: Loop, name: str
    ) -> None:
        self._crew, self._store, self._ledger, self._loop = crew, store, ledger, loop
        self._name = name
        self._drivers: list[threading.Thread] = []
        self._futures: list[Future[Any]] = []
        self._numbers = itertools.count()

    def play(self, threads: int, acts: int) -> None:
        """Act in so many threads, and return once they have. Runs may go on."""
        playing = [
            threading.Thread(target=self._play, args=(random.Random(f"{self._name}/{n}"), acts, n))
            for n in range(threads)
        ]
        for thread in playing:
            thread.start()
        for thread in playing:
            thread.join(120)
            if thread.is_alive():
                self._ledger.write("fault", what="an act has not returned")

    def _play(self, chance: random.Random, acts: int, number: int) -> None:
        for at in range(acts):
            name = "start" if at == 0 else chance.choices(list(ACTS), list(ACTS.values()))[0]
            if name == "pause":
                # So that what follows meets runs at other points.
                time.sleep(chance.random() * 0.01)
            elif name == "start":
                self._start(chance, f"task {self._name} {number} {at}")
            elif name == "resume_all":
                agent = chance.choice(list(self._crew.agents.values()))
                if chance.random() < 0.5:
                    self._drive(agent.resume_all_sync, "resume_all")
                else:
                    self._await(agent.resume_all(), "resume_all")
            else:
                self._tell(chance, name)

    def _start(self, chance: random.Random, task: str) -> None:
        agent = chance.choice([self._crew.top, self._crew.top, self._crew.middle])
        how = chance.choice(["sync", "run", "start"])
        if how == "sync":
            self._drive(lambda: agent.run_sync(task), "start")
        elif how == "run":
            self._await(agent.run(task), "start")
        else:

            async def start() -> None:
                await agent.start(task)

            self._await(start(), "start")

    def _tell(self, chance: random.Random, name: str) -> None:
        """Say something to a run that is chosen by chance."""
        rows = self._store.runs()
        if not rows:
            return
        row = chance.choice(rows[-12:])
        if name == "resume":
            self._resume(chance, row.run_id, row.agent)
            return
        run = self._done(lambda: self._store.run(row.run_id))
        if run is None:
            return
        if name in {"approve", "deny"}:
            # At times one that is decided already, or was never asked about.
            waiting = run.awaiting_approval if chance.random() < 0.9 else run.tickets
            if waiting:
                ticket = chance.choice(waiting)
                self.decide(name, ticket.run_id, ticket.id)
        elif name == "cancel":
            self.act("cancel", run.cancel, run.id)
        else:
            text = f"message {self._name} {os.getpid()} {next(self._numbers)}"
            self.act("send", lambda: self._send(chance, run, text), run.id, text=text)

    def _send(self, chance: random.Random, run: Run[Any], text: str) -> None:
        answer = run.send(text)
        # On a database, one to a child run that is over waits for whoever resumes that run.
        if chance.random() < 0.5 and self._store.address is None:

            async def wait() -> None:
                await answer

            self._await(wait(), "await")

    def _resume(self, chance: random.Random, run_id: str, name: str) -> None:
        agent = self._crew.agents[name]
        if chance.random() < 0.5:
            self._drive(lambda: agent.resume_sync(run_id), "resume", run_id)
        else:
            self._await(agent.resume(run_id), "resume", run_id)

    def decide(self, name: str, run_id: str, ticket: str) -> None:
        """Approve or deny a call, and write down what came of it."""

        def decide() -> None:
            run = self._store.run(run_id)
            (run.approve if name == "approve" else run.deny)(ticket)

        self.act(name, decide, run_id, ticket=ticket)

    def act(self, name: str, act: Callable[[], object], run_id: str | None, **more: Any) -> bool:
        """Do something that is acknowledged by returning. Returns whether it was."""
        begun = self._ledger.write("begin", act=name, run=run_id, **more)
        try:
            act()
        except CallslipError as error:
            self._ledger.write("refused", of=begun["id"], why=f"{type(error).__name__}: {error}")
            return False
        except BaseException:
            self._ledger.write("fault", of=begun["id"], what=traceback.format_exc())
            return False
        # What the store has by now: later events follow the acknowledgement.
        line = self._ledger.write("acknowledged", of=begun["id"], time=time.time())
        if name == "cancel" and run_id is not None:
            seq = self._done(lambda: self._store.run(run_id).seq)
            times = {"at_ack": line["at"], "time_ack": line["time"]}
            self._ledger.write("stands", of=begun["id"], seq=seq, **times)
        return True

    def _done(self, read: Callable[[], Any]) -> Any:
        with suppress(CallslipError):
            return read()
        return None

    def _drive(self, drive: Callable[[], object], name: str, run_id: str | None = None) -> None:
        def driving() -> None:
            self.act(name, drive, run_id)

        thread = threading.Thread(target=driving, daemon=True)
        self._drivers.append(thread)
        thread.start()

    def _await(self, awaitable: Any, name: str, run_id: str | None = None) -> None:
        begun = self._ledger.write("begin", act=name, run=run_id)

        async def driving() -> None:
            try:
                await awaitable
            except CallslipError as error:
                self._ledger.write(
                    "refused", of=begun["id"], why=f"{type(error).__name__}: {error}"
                )
            except asyncio.CancelledError:
                pass
            except BaseException:
                self._ledger.write("fault", of=begun["id"], what=traceback.format_exc())

        self._futures.append(self._loop.submit(driving()))

    @property
    def busy(self) -> bool:
        """Whether a run is still being driven for a player."""
        threads = any(thread.is_alive() for thread in self._drivers)
        return threads or not all(future.done() for future in self._futures)

    def resume_all(self, agent: Any) -> None:
        """Resume what nobody drives."""
        self._drive(agent.resume_all_sync, "resume_all")
