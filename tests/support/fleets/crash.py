"""Workers that are killed and frozen at random while they work, and what is left of it."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from callslip import StoreError, TicketStore, UsageError
from callslip.fleet import Fleet
from fleets import ledger
from fleets.judge import Judge, Wrong

SUPPORT = Path(__file__).parents[1]

_EVENTS = 10
"""Events that are written between two kills, if there is anything to do."""


class Workers:
    """Processes that work on the runs of a database. Those that ended are started again.

    Args:
        url: The database, as the workers reach it.
        count: How many there are.
        options: More arguments of `fleets.worker`.
    """

    def __init__(self, url: str, count: int, *options: str) -> None:
        self._command = [sys.executable, "-m", "fleets.worker", url, *options]
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed with the workers
        self.processes = [self._start() for _ in range(count)]

    def _start(self) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path}
        return subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=self._log, env=environment
        )

    def kill(self, number: int) -> None:
        self.processes[number].kill()
        self.processes[number].wait()
        self.processes[number] = self._start()

    def signal(self, number: int, what: int) -> None:
        self.processes[number].send_signal(what)

    def restart_ended(self) -> int:
        ended = [at for at, process in enumerate(self.processes) if process.poll() is not None]
        for number in ended:
            self.processes[number] = self._start()
        return len(ended)

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read()

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self._log.close()


class FleetCrash:
    """Kills and freezes workers while runs are submitted, approved and talked to.

    Args:
        url: The database, without disturbances.
        seed: Of all that is random.
        lease: Seconds of a lease.
        tell: Is told how far it is.
        through: The database as the workers reach it. Default: as here.
    """

    def __init__(
        self,
        url: str,
        seed: int,
        *,
        lease: float = 3.0,
        tell: Callable[[str], object] = lambda _: None,
        through: str | None = None,
    ) -> None:
        self._random = random.Random(seed)
        self._url = url
        self._lease = lease
        self._tell = tell
        self._through = through or url
        self._runs: list[str] = []
        self._said: dict[str, list[str]] = {}
        self._written = 0
        self.seen: Counter[str] = Counter()
        ledger.make(url)

    async def run(
        self,
        kills: int,
        *,
        workers: int = 4,
        freeze: float = 0.1,
        disturb: Callable[[int], object] | None = None,
        settle: float = 120.0,
    ) -> Counter[str]:
        """Kill so many times, wait until all runs have ended, and judge what is left.

        Args:
            kills: How many workers are killed or frozen.
            workers: How many work at once.
            freeze: The part of them that are frozen, past their lease.
            disturb: Called before each of them, with its number.
            settle: Seconds that the runs have to end afterwards.

        Raises:
            Wrong: Something does not hold.
        """
        options = ["--ledger", self._url, "--lease", str(self._lease)]
        processes = Workers(self._through, workers, *options)
        frozen: list[tuple[float, int]] = []
        with TicketStore(self._url) as store:
            fleet = Fleet(store)
            try:
                await asyncio.sleep(1.5)
                for number in range(kills):
                    await self._give_work(store, fleet)
                    await self._until_written(store)
                    await asyncio.sleep(self._random.uniform(0.05, 0.6))
                    if disturb is not None:
                        await asyncio.to_thread(disturb, number)
                    self._disturb(processes, frozen, freeze)
                    self._tell(f"{number + 1} of {kills}, {len(self._runs)} runs")
                await self._settle(store, processes, frozen, settle)
                self.seen["drivers that lost a run"] = processes.log().count("was left:")
            finally:
                processes.close()
            self.judge(store)
        return self.seen

    def _disturb(self, processes: Workers, frozen: list[tuple[float, int]], freeze: float) -> None:
        now = time.monotonic()
        for item in [one for one in frozen if one[0] <= now]:
            frozen.remove(item)
            processes.signal(item[1], signal.SIGCONT)
        asleep = {number for _, number in frozen}
        awake = [number for number in range(len(processes.processes)) if number not in asleep]
        self.seen["workers that ended by themselves"] += processes.restart_ended()
        if not awake:
            return
        chosen = self._random.choice(awake)
        if self._random.random() < freeze:
            processes.signal(chosen, signal.SIGSTOP)
            frozen.append((now + self._lease + 1.0, chosen))
            self.seen["frozen"] += 1
        else:
            processes.kill(chosen)
            self.seen["killed"] += 1

    async def _give_work(self, store: TicketStore, fleet: Fleet) -> None:
        unfinished = await asyncio.to_thread(store.runs, status="running")
        for _ in range(max(0, 24 - len(unfinished))):
            name = self._random.choice(["busy", "busy", "careful", "wide", "wide"])
            key = f"{name}-{len(self._runs)}"
            run_id = await fleet.submit(name, f"TASK-{key}", key=key)
            if await fleet.submit(name, f"TASK-{key}", key=key) != run_id:
                raise Wrong(f"the key {key} gave two runs")
            self._runs.append(run_id)
        for ticket in await asyncio.to_thread(store.tickets, awaiting_approval=True):
            # Somebody else may have been faster, or the run was told twice.
            with suppress(UsageError):
                await asyncio.to_thread(store.run(ticket.run_id).approve, ticket, by="Ann")
                self.seen["approvals"] += 1
        if self._runs and self._random.random() < 0.5:
            run_id = self._random.choice(self._runs[-30:])
            text = f"message {sum(map(len, self._said.values()))}."
            run = await asyncio.to_thread(store.run, run_id)
            await asyncio.to_thread(run.send, text)
            self._said.setdefault(run_id, []).append(text)
            self.seen["messages"] += 1

    async def _until_written(self, store: TicketStore) -> None:
        """Wait until there is more to lose: on a busy machine workers take long to start."""
        until = time.monotonic() + 10
        while time.monotonic() < until:
            with suppress(StoreError):
                sql = "SELECT count(*) AS n FROM callslip.event"
                written = (await asyncio.to_thread(store.query, sql))[0]["n"]
                if written >= self._written + _EVENTS:
                    self._written = written
                    return
            await asyncio.sleep(0.05)

    async def _settle(
        self,
        store: TicketStore,
        processes: Workers,
        frozen: list[tuple[float, int]],
        seconds: float,
    ) -> None:
        for _, number in frozen:
            processes.signal(number, signal.SIGCONT)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            processes.restart_ended()
            for ticket in await asyncio.to_thread(store.tickets, awaiting_approval=True):
                with suppress(UsageError):
                    await asyncio.to_thread(store.run(ticket.run_id).approve, ticket)
            open_work = store.query(
                "SELECT count(*) AS n FROM callslip.run WHERE next = 0 OR finished_at IS NULL "
                "OR msg IS NOT NULL"
            )[0]["n"]
            waiting = store.query("SELECT count(*) AS n FROM callslip.inbox")[0]["n"]
            if open_work == waiting == 0:
                return
            await asyncio.sleep(0.2)
        raise Wrong(
            f"{open_work} runs have not ended, {waiting} messages wait\n{processes.log()[-3000:]}"
        )

    def judge(self, store: TicketStore) -> None:
        """Check what must hold of the logs and of the effects."""
        known = {run.run_id for run in store.runs()}
        if lost := set(self._runs) - known:
            raise Wrong(f"runs are lost: {sorted(lost)}")
        judge = Judge(store, ledger.read(self._url), seen=self.seen)
        for run_id in self._runs:
            judge.judge(run_id, self._said.get(run_id, []))
        judge.check_all_known()
