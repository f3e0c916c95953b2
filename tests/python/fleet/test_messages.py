"""Messages and decisions from many places, to runs in every state."""

import asyncio
import os
import random
import time

from callslip import Agent, TicketStore, UsageError, replay, tool
from callslip.fleet import Fleet
from fleets.agents import call, finish
from fleets.here import pay
from scripted import turn_of

LONG = 60
SEED = int(os.environ.get("CALLSLIP_FLEET_SEED", "11"))


async def until(holds, what):
    end = time.monotonic() + LONG
    while not await asyncio.to_thread(holds):
        assert time.monotonic() < end, what
        await asyncio.sleep(0.02)


class Working:
    """Workers in this process, each with a store of its own."""

    def __init__(self, url, agents, count=2, slots=32):
        self._stores = [TicketStore(url) for _ in range(count)]
        self._agents, self._slots = agents, slots
        self._tasks = []

    async def __aenter__(self):
        for store in self._stores:
            fleet = Fleet(store, self._agents, lease=10)
            self._tasks.append(asyncio.create_task(fleet.work(slots=self._slots, grace=5)))

    async def __aexit__(self, *_):
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        for store in self._stores:
            store.close()


async def test_a_thousand_messages_stand_in_the_logs_once(web, database):
    """To runs under way, at rest and ending, from ten places at once."""
    may_end = False

    async def keep_on(messages):
        await asyncio.sleep(0.02)
        return finish() if may_end else call("look")

    def rest(messages):
        return finish() if turn_of(messages) else call("pay", amount=7)

    @tool
    def look() -> str:
        """Look."""
        return "nothing new"

    agents = [
        Agent(keep_on, tools=[look], name="under_way"),
        Agent(rest, tools=[pay], name="at_rest"),
        Agent(lambda messages: finish(), name="ending"),
    ]
    said = {}
    async with Working(database, agents):
        fleet = Fleet(web)
        runs = [await fleet.submit(agent.name, "?") for agent in agents for _ in range(8)]
        await until(lambda: len(web.runs()) == len(runs), "all have begun")
        await until(lambda: len(web.tickets(awaiting_approval=True)) == 8, "they rest")
        texts = iter(range(1000))

        def send():
            for number in texts:
                run_id = runs[number % len(runs)]
                web.run(run_id).send(f"message {number}")
                said.setdefault(run_id, []).append(f"message {number}")

        await asyncio.gather(*(asyncio.to_thread(send) for _ in range(10)))
        may_end = True
        for ticket in web.tickets(awaiting_approval=True):
            web.run(ticket.run_id).approve(ticket)
        open_work = (
            "SELECT FROM callslip.run WHERE finished_at IS NULL OR msg IS NOT NULL "
            "UNION ALL SELECT FROM callslip.inbox"
        )
        await until(lambda: not web.query(open_work), "all have ended")
    assert sum(map(len, said.values())) == 1000
    for run_id in runs:
        run = web.run(run_id)
        told = [event.text for event in run.log if event.kind == "user_said"]
        assert sorted(told) == sorted(said[run_id])
        assert replay(run).log == run.log


async def test_of_two_decisions_at_the_same_moment_one_wins(web, database):
    agent = Agent(
        lambda messages: finish() if turn_of(messages) else call("pay", amount=7),
        tools=[pay],
        name="clerk",
    )
    won = {}

    def decide(run_id, how):
        run = web.run(run_id)
        try:
            run.approve("T1") if how == "ok" else run.deny("T1")
        except UsageError:
            return
        won.setdefault(run_id, []).append(how)

    fleet = Fleet(web)
    runs = [await fleet.submit("clerk", "?") for _ in range(30)]
    async with Working(database, [agent]):
        await until(lambda: len(web.tickets(awaiting_approval=True)) == 30, "they wait")
        both = [(run_id, how) for run_id in runs for how in ("ok", "denied")]
        random.Random(SEED).shuffle(both)
        await asyncio.gather(*(asyncio.to_thread(decide, *one) for one in both))
        for run_id in runs:
            result = await fleet.result(run_id, timeout=LONG)
            assert won[run_id] == [result.tickets[0].outcome]


async def test_a_run_that_a_worker_of_this_process_has_left_is_told_through_the_store(
    web, database
):
    """Another worker may have it by then."""
    gate = asyncio.Event()

    async def model(messages):
        await gate.wait()
        return finish() if turn_of(messages) else call("pay", amount=7)

    with TicketStore(database) as store:
        fleet = Fleet(store, [Agent(model, tools=[pay], name="clerk")])
        working = asyncio.create_task(fleet.work())
        run_id = await fleet.submit("clerk", "Pay 7.")
        await until(web.runs, "it is driven")
        run = store.run(run_id)
        gate.set()
        at_rest = "SELECT FROM callslip.run WHERE msg IS NULL"
        await until(lambda: web.query(at_rest), "it rests")
        working.cancel()
        await asyncio.wait([working])
        web.run(run_id).send("Be quick.")
        claimed, _ = web._shared.claim("default", 1, ["clerk"], [], begun_only=False)
        assert [row[0] for row in claimed] == [run_id]
        run.approve("T1", by="Ann")
        run.send("Be quicker.")
    told = web.query("SELECT kind FROM callslip.inbox ORDER BY id")
    assert [row["kind"] for row in told] == ["say", "approve", "say"]


async def test_a_message_to_a_finished_run_is_answered_with_the_instructions_of_the_run(
    web, database
):
    calls, prompts = [], []

    def instructions(context):
        calls.append(context.run_id)
        return f"Call {len(calls)}."

    def reply(messages):
        prompts.append(messages[0]["content"].splitlines()[-1])
        return finish()

    agent = Agent(reply, instructions=instructions, name="desk")
    async with Working(database, [agent], count=1):
        fleet = Fleet(web)
        run_id = await fleet.submit("desk", "x")
        await fleet.result(run_id, timeout=LONG)
        web.run(run_id).send("again")
        await until(lambda: len(prompts) == 2, "the message is not answered")
        await fleet.result(run_id, timeout=LONG)
    assert (calls, prompts) == ([run_id], ["Call 1.", "Call 1."])


async def test_a_run_that_waits_for_a_worker_is_shown(web):
    run = web.run(await Fleet(web).submit("nobody", "Count the stars."))
    assert str(run).splitlines() == [
        f"run {run.id}: not begun",
        "0 turns, 0 tickets, 0 violations, 0 tokens in, 0 out",
        "task: Count the stars.",
        "no answer yet",
    ]
    assert "run: not begun" in run.to_html()
