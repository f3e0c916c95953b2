"""Processes that are killed or frozen between any two of their messages to the database."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Self

import psycopg

from callslip import TicketStore, UsageError
from callslip.fleet import Fleet
from callslip.fleet._driven import Claim
from fleets import ledger
from fleets.agents import agents
from fleets.judge import Judge, Wrong
from fleets.lives import LEASE
from fleets.nursery import Nursery
from fleets.wire import Point, PointProxy

_SECONDS = 60.0
"""In which anything here has happened, or never does."""


class State(NamedTuple):
    """A run in the database.

    Attributes:
        is_over: Whether it has ended.
        has_message: Whether it has something to do.
        waiting: How much it was told that does not stand in its log.
        parked: How many calls await approval.
        messages: How many messages of the queues name it.
    """

    is_over: bool
    has_message: bool
    waiting: int
    parked: int
    messages: int


class Place:
    """A database with what all lanes share.

    Args:
        url: The database.
        folder: For the logs of processes.
    """

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.seen: Counter[str] = Counter()
        ledger.make(url)
        self.nursery = Nursery()
        self.store = TicketStore(url)
        self.fleet = Fleet(self.store, agents(url, wait=0), lease=LEASE)

    def close(self) -> None:
        self.store.close()
        self.nursery.close()


class Lane:
    """Where one process lives and dies at a time, with a queue of its own.

    Args:
        place: What it shares with others.
        number: Its number.
    """

    def __init__(self, place: Place, number: int) -> None:
        self.place = place
        self.queue = f"lane{number}"
        self.store = place.store
        self.log = place.folder / self.queue
        self._connection: psycopg.AsyncConnection | None = None

    async def rows(self, sql: str, *values: object) -> list[tuple]:
        if self._connection is None:
            connecting = psycopg.AsyncConnection.connect(self.place.url, autocommit=True)
            self._connection = await connecting
        cursor = await self._connection.execute(sql, values)
        return await cursor.fetchall() if cursor.description else []

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def submit(self, agent: str = "thorough") -> str:
        return await self.place.fleet.submit(agent, "TASK-0", queue=self.queue)

    async def state(self, run_id: str) -> State:
        ((is_over, has_message, waiting, parked, messages),) = await self.rows(
            f"""SELECT finished_at IS NOT NULL, msg IS NOT NULL,
                (SELECT count(*) FROM callslip.inbox WHERE run = run.id OR holder = run.id),
                (SELECT count(*) FROM callslip.ticket WHERE ticket.run = run.key AND parked),
                (SELECT count(*) FROM pgmq.q_callslip_{self.queue} WHERE message ->> 'run' = run.id)
                + (SELECT count(*) FROM pgmq.q_callslip_later WHERE message ->> 'run' = run.id)
            FROM callslip.run AS run WHERE id = %s""",
            run_id,
        )
        state = State(is_over, has_message, waiting, parked, messages)
        if state.messages != state.has_message:
            raise Wrong(f"run {run_id} has {state.messages} messages: {state}")
        if state.waiting and not state.has_message:
            raise Wrong(f"run {run_id} rests, and was told something: {state}")
        return state

    async def is_held(self, run_id: str) -> bool:
        """Whether a worker has the lease of a run that is not over."""
        return bool(
            await self.rows(
                f"""SELECT 1 FROM callslip.run
                JOIN pgmq.q_callslip_{self.queue} AS q ON q.msg_id = msg
                WHERE run.id = %s AND q.vt > clock_timestamp() AND finished_at IS NULL""",
                run_id,
            )
        )

    async def decide(self, *runs: str, said: list[str], stop: Callable[[], bool]) -> bool:
        """Talk to the first run once it rests, approve all calls, and return whether all are over.

        Args:
            runs: The runs.
            said: Gets what the run was told.
            stop: Whether to return before that.
        """
        until = time.monotonic() + _SECONDS
        while not stop():
            states = [await self.state(run_id) for run_id in runs]
            if all(one.is_over and not one.has_message for one in states):
                return True
            for run_id, state in zip(runs, states, strict=True):
                if state.parked and not state.has_message:
                    await asyncio.to_thread(self._approve, run_id, said)
            if time.monotonic() > until:
                raise Wrong(f"no end of {runs}: {states}\n{self.written()}")
            await asyncio.sleep(0.01)
        return False

    def _approve(self, run_id: str, said: list[str]) -> None:
        run = self.store.run(run_id)
        if "It is urgent." not in said:
            run.send("It is urgent.")
            said.append("It is urgent.")
        with suppress(UsageError):
            run.approve("T4", by="Ann")

    async def expire(self) -> None:
        """Have all leases end now."""
        await self.rows(f"UPDATE pgmq.q_callslip_{self.queue} SET vt = clock_timestamp()")

    async def claim(self) -> list[Claim]:
        """Claim what another worker would claim now."""
        await self.expire()
        known = [agent.name for agent in agents(self.place.url)]
        claim = self.store._shared.claim
        rows, _ = await asyncio.to_thread(claim, self.queue, 4, known, [], begun_only=False)
        return [Claim(*row) for row in rows]

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Another worker, which takes over."""
        await self.expire()
        fleet = self.place.fleet
        task = asyncio.create_task(fleet.work(queues=[self.queue], slots=4, grace=5))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def finish(self, *runs: str, said: list[str]) -> None:
        states = [await self.state(run_id) for run_id in runs]
        if not all(one.is_over and not one.has_message for one in states):
            async with self.working():
                await self.decide(*runs, said=said, stop=lambda: False)

    def judge(self, run_id: str, said: list[str]) -> None:
        effects = ledger.read(self.place.url, run_id)
        judge = Judge(self.store, effects, seen=self.place.seen)
        judge.judge(run_id, said)
        judge.check_all_known()

    def written(self) -> str:
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else ""


class Life:
    """A process that is stopped at a point.

    Args:
        lane: Where.
        point: The point; `None` for a whole life.
        name: What it does: a function of `fleets.lives`.
    """

    def __init__(self, lane: Lane, point: Point | None, name: str) -> None:
        self._lane = lane
        self._nursery = lane.place.nursery
        self._name = name
        self.pid = 0
        self.is_gone = False
        loop = asyncio.get_running_loop()
        self.reached = asyncio.Event()

        def on_reached() -> None:
            loop.call_soon_threadsafe(self.reached.set)

        self.proxy = PointProxy(lane.place.url, point, on_reached=on_reached)

    def start(self, *arguments: object) -> None:
        self._lane.log.unlink(missing_ok=True)
        log = self._lane.log
        self.pid = self._nursery.start(self._name, log, self.proxy.url, *arguments)

    def has_ended(self) -> bool:
        """Whether it has ended by itself."""
        if not self.is_gone and (code := self._nursery.ended(self.pid)) is not None:
            self.is_gone = True
            if code != 0:
                raise Wrong(f"the process has ended with {code}\n{self._lane.written()}")
        return self.is_gone

    def has_stopped(self) -> bool:
        """Whether it has reached its point, or has ended without reaching it."""
        return self.has_ended() or self.reached.is_set()

    async def stopped(self) -> None:
        until = time.monotonic() + _SECONDS
        while not self.has_stopped():
            if time.monotonic() > until:
                raise Wrong(f"the process does not end\n{self._lane.written()}")
            await asyncio.sleep(0.005)

    def signal(self, what: int) -> None:
        if not self.is_gone:
            os.kill(self.pid, what)

    async def kill(self) -> None:
        if not self.is_gone:
            os.kill(self.pid, signal.SIGKILL)
            await self._nursery.end(self.pid)
            self.is_gone = True
        await asyncio.to_thread(self.proxy.close)

    async def end(self) -> None:
        """Have it end in good order."""
        self.signal(signal.SIGTERM)
        if not self.is_gone:
            await self._nursery.end(self.pid)
            self.is_gone = True

    async def quiet(self) -> None:
        """Wait until it has nothing more to say, but for its looking around now and then."""
        until, count = time.monotonic() + _SECONDS, -1
        while count != len(self.proxy.messages) and time.monotonic() < until:
            count = len(self.proxy.messages)
            await asyncio.sleep(0.3)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()


async def kill_worker(lane: Lane, point: Point | None) -> list[str]:
    """Have a worker die at a point, and another one go on. Returns the messages of the first."""
    run_id = await lane.submit()
    said = ["Be quick."]
    await asyncio.to_thread(lambda: lane.store.run(run_id).send("Be quick."))
    async with Life(lane, point, "work") as worker:
        worker.start(lane.place.url, lane.queue)
        if await lane.decide(run_id, said=said, stop=worker.has_stopped):
            worker.signal(signal.SIGTERM)
            await worker.stopped()
        lane.place.seen["killed"] += worker.reached.is_set()
    await lane.finish(run_id, said=said)
    await asyncio.to_thread(lane.judge, run_id, said)
    return worker.proxy.messages


async def freeze_worker(lane: Lane, point: Point | None) -> list[str]:
    """Have a worker freeze at a point, another one end its run, and the first one wake up then."""
    return await _freeze_worker(lane, point, is_driven_on=True)


async def rob_worker(lane: Lane, point: Point | None) -> list[str]:
    """Have a worker freeze at a point, and wake up when another one has claimed its run."""
    return await _freeze_worker(lane, point, is_driven_on=False)


async def tell_worker(lane: Lane, point: Point | None) -> list[str]:
    """Tell a run something while its worker stops at a point, and have that go on."""
    run_id = await lane.submit()
    said = ["Be quick."]
    await asyncio.to_thread(lambda: lane.store.run(run_id).send("Be quick."))
    async with Life(lane, point, "work") as worker:
        worker.start(lane.place.url, lane.queue)
        if await lane.decide(run_id, said=said, stop=worker.has_stopped):
            worker.signal(signal.SIGTERM)
            await worker.stopped()
        if worker.reached.is_set():
            await asyncio.to_thread(lambda: lane.store.run(run_id).send("By the way."))
            said.append("By the way.")
            lane.place.seen["told"] += 1
            worker.proxy.release()
            await lane.decide(run_id, said=said, stop=worker.has_ended)
        await worker.end()
    await lane.finish(run_id, said=said)
    await asyncio.to_thread(lane.judge, run_id, said)
    return worker.proxy.messages


async def _freeze_worker(lane: Lane, point: Point | None, *, is_driven_on: bool) -> list[str]:
    run_id = await lane.submit()
    said = ["Be quick."]
    await asyncio.to_thread(lambda: lane.store.run(run_id).send("Be quick."))
    async with Life(lane, point, "work") as worker:
        worker.start(lane.place.url, lane.queue)
        if await lane.decide(run_id, said=said, stop=worker.has_stopped):
            worker.signal(signal.SIGTERM)
            await worker.stopped()
        worker.signal(signal.SIGSTOP)
        lane.place.seen["frozen"] += worker.reached.is_set()
        is_held = await lane.is_held(run_id)
        claimed = []
        if is_driven_on:
            await lane.finish(run_id, said=said)
        else:
            claimed = await lane.claim()
        before = await asyncio.to_thread(_written, lane, run_id)
        worker.proxy.release()
        worker.signal(signal.SIGCONT)
        await worker.quiet()
        await worker.end()
    after = await asyncio.to_thread(_written, lane, run_id)
    if before != after:
        raise Wrong(f"who woke up has written\n{before}\n{after}")
    for one in claimed:
        one.let_go(lane.store._shared)
    await lane.finish(run_id, said=said)
    await asyncio.to_thread(lane.judge, run_id, said)
    lane.place.seen["frozen with a run"] += is_held
    if is_held and point is not None:
        _judge_refusal(lane, worker.proxy.messages[point.number - 1 :])
    return worker.proxy.messages


def _judge_refusal(lane: Lane, messages: list[str]) -> None:
    """Check that a driver was told that it has lost its run, unless it only wanted to leave it."""
    is_refused = "was left" in lane.written()
    wants_to_leave = any("callslip.rest" in one or "callslip.leave" in one for one in messages)
    if not is_refused and not wants_to_leave:
        raise Wrong(f"who woke up was not refused: {messages}\n{lane.written()}")
    lane.place.seen["refused"] += is_refused


def _written(lane: Lane, run_id: str) -> list[str]:
    """Return the logs of a run and of those below it."""
    below = sorted(run.run_id for run in lane.store.runs() if run.run_id.startswith(f"{run_id}."))
    return [lane.store.run(one).export() for one in [run_id, *below]]


async def kill_teller(lane: Lane, point: Point | None) -> list[str]:
    """Have a process die at a point that decides and talks, and another one do it again."""
    resting, doomed = await lane.submit(), await lane.submit()
    over = await lane.submit("keeper")
    async with lane.working():
        await _until_they_rest(lane, resting, doomed, over)
    key = f"{lane.queue}-{resting}"
    async with Life(lane, point, "tell") as teller:
        runs = {"resting": resting, "doomed": doomed, "over": over}
        teller.start(lane.queue, key, runs)
        await teller.stopped()
        lane.place.seen["killed"] += teller.reached.is_set()
    told = {run_id: await _told(lane, run_id) for run_id in (resting, doomed, over)}
    run_id = await lane.place.fleet.submit("thorough", f"TASK-{key}", queue=lane.queue, key=key)
    ((count,),) = await lane.rows("SELECT count(*) FROM callslip.run WHERE submit_key = %s", key)
    if count != 1:
        raise Wrong(f"the key {key} gave {count} runs")
    if "cancel" not in told[doomed]:
        await asyncio.to_thread(lambda: lane.store.run(doomed).cancel())
    said = ["It is urgent."] if "say" not in told[resting] else ["Be quick.", "It is urgent."]
    await asyncio.to_thread(lane._approve, resting, [])
    said_to_new: list[str] = []
    await lane.finish(run_id, resting, doomed, over, said=said_to_new)
    await asyncio.to_thread(lane.judge, run_id, said_to_new)
    await asyncio.to_thread(lane.judge, resting, said)
    await asyncio.to_thread(lane.judge, doomed, [])
    await asyncio.to_thread(lane.judge, over, ["Once more."] if "say" in told[over] else [])
    reason = lane.store.run(doomed).stop_reason
    if reason != "cancelled":
        raise Wrong(f"run {doomed} was cancelled, and has ended as {reason}")
    return teller.proxy.messages


async def _until_they_rest(lane: Lane, *runs: str) -> None:
    until = time.monotonic() + _SECONDS
    while True:
        states = [await lane.state(run_id) for run_id in runs]
        if all((one.parked or one.is_over) and not one.has_message for one in states):
            return
        if time.monotonic() > until:
            raise Wrong(f"they do not rest: {states}")
        await asyncio.sleep(0.01)


async def _told(lane: Lane, run_id: str) -> list[str]:
    await lane.state(run_id)
    rows = await lane.rows("SELECT kind FROM callslip.inbox WHERE run = %s ORDER BY id", run_id)
    return [kind for (kind,) in rows]


async def every_point(
    place: Place,
    live: Callable[[Lane, Point | None], object],
    *,
    lanes: int = 6,
    sample: int | None = None,
    seed: int = 0,
    tell: Callable[[str], object] = lambda _: None,
) -> Counter[str]:
    """Have a process stop at every point of its life, before and after each message.

    Args:
        place: The database.
        live: `kill_worker`, `freeze_worker` or `kill_teller`.
        lanes: How many live at once.
        sample: How many points are tried, chosen at random; default all.
        seed: Of the choice.
        tell: Is told how far it is.

    Raises:
        Wrong: Something does not hold; it names the point.
    """
    all_lanes = [Lane(place, number) for number in range(lanes)]
    try:
        messages = await live(all_lanes[0], None)
        numbers = range(1, len(messages) + 1)
        points = [Point(number, is_before) for number in numbers for is_before in (True, False)]
        place.seen["points"] = len(points)
        if sample is not None and sample < len(points):
            points = sorted(random.Random(seed).sample(points, sample))
        left = list(reversed(points))

        async def use(lane: Lane) -> None:
            while left:
                point = left.pop()
                try:
                    await live(lane, point)
                except (Wrong, TimeoutError) as error:
                    left.clear()
                    message = messages[point.number - 1]
                    raise Wrong(f"{point}, about {message!r}: {error}") from error
                tell(f"{len(points) - len(left)} of {len(points)}")

        for done in await asyncio.gather(*map(use, all_lanes), return_exceptions=True):
            if done is not None:
                raise done
    finally:
        for lane in all_lanes:
            await lane.close()
    return place.seen


LIVES = {
    "worker-killed": kill_worker,
    "worker-frozen": freeze_worker,
    "worker-robbed": rob_worker,
    "worker-told": tell_worker,
    "teller-killed": kill_teller,
}
