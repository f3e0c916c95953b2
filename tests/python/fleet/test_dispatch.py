"""A fleet whose runs an engine of the user's drives: what it is told, and what a sweep finds."""

import asyncio
import json
import logging
import sys
import threading
import time

import psycopg
import psycopg.sql
import pytest

from callslip import (
    Agent,
    Context,
    ModelError,
    StoreError,
    TicketStore,
    UsageError,
    replay,
    tool,
)
from callslip._runtime.drive import drive_async
from callslip.fleet import Fleet
from fleets.here import pay
from scripted import turn_of

LONG = 30


def call(name, **args):
    return json.dumps({"thought": "t", "action": name, "args": args})


FINISH = json.dumps(
    {"thought": "t", "action": "FINISH", "final_answer": "done", "task_successful": True}
)


def agent_of(*replies, name="clerk", tools=(pay,), **options):
    def model(messages):
        return replies[min(turn_of(messages), len(replies) - 1)]

    return Agent(model, tools=tools, name=name, **options)


PAYING = agent_of(call("pay", amount=7), FINISH)


class Engine:
    """Notes which runs it is to drive."""

    def __init__(self):
        self.woken = []

    def __call__(self, run_id):
        self.woken.append(run_id)

    def take(self):
        woken, self.woken = self.woken, []
        return woken


@pytest.fixture
def engine():
    return Engine()


@pytest.fixture
def fleet(web, engine):
    return Fleet(web, [PAYING], lease=30, dispatch=engine)


async def until(holds, what):
    end = time.monotonic() + LONG
    while not await asyncio.to_thread(holds):
        assert time.monotonic() < end, what
        await asyncio.sleep(0.02)


def grow_older(url):
    """Half a minute goes by for what waits."""
    with psycopg.connect(url, autocommit=True) as connection:
        for name in connection.execute("SELECT queue_name FROM pgmq.meta").fetchall():
            table = psycopg.sql.Identifier("pgmq", f"q_{name[0]}")
            older = psycopg.sql.SQL("UPDATE {} SET vt = vt - interval '31 seconds'").format(table)
            connection.execute(older)


def messages(store):
    return store.query("SELECT id FROM callslip.run WHERE msg IS NOT NULL")


async def test_an_engine_drives_a_run_as_it_is_told(web, fleet, engine):
    run_id = await fleet.submit("clerk", "Pay 7.")
    assert engine.take() == [run_id]
    assert await fleet.drive(run_id) == "rests"
    assert messages(web) == []
    assert engine.take() == []
    web.run(run_id).approve("T1", by="Ann")
    assert engine.take() == [run_id]
    assert await fleet.drive(run_id) == "over"
    result = await fleet.result(run_id, timeout=LONG)
    assert (result.value, result.tickets[0].result) == ("done", "paid 7")
    assert (messages(web), engine.take()) == ([], [])
    # Told once more, it leaves at once.
    assert await fleet.drive(run_id) == "over"


@pytest.mark.parametrize(
    "tell",
    [
        lambda run: run.approve("T1"),
        lambda run: run.deny("T1"),
        lambda run: run.send("Only half."),
        lambda run: run.cancel(),
    ],
    ids=["approve", "deny", "send", "cancel"],
)
async def test_whatever_a_run_at_rest_is_told_wakes_it(web, fleet, engine, tell):
    run_id = await fleet.submit("clerk", "Pay 7.")
    await fleet.drive(run_id)
    engine.take()
    tell(web.run(run_id))
    assert engine.take() == [run_id]


async def test_a_message_wakes_a_run_that_is_over(web, fleet, engine):
    fleet = Fleet(web, [agent_of(FINISH)], dispatch=engine)
    run_id = await fleet.submit("clerk", "?")
    assert await fleet.drive(run_id) == "over"
    engine.take()
    web.run(run_id).send("And now?")
    assert engine.take() == [run_id]
    assert await fleet.drive(run_id) == "over"
    assert [event.kind for event in web.run(run_id).log].count("user_said") == 1


@pytest.mark.parametrize("where", ["on the loop", "in a thread"])
async def test_an_async_function_is_awaited(web, where):
    woken = []

    async def wake(run_id):
        await asyncio.sleep(0.01)
        woken.append((run_id, threading.current_thread() is threading.main_thread()))

    fleet = Fleet(web, [PAYING], dispatch=wake)
    run_id = await fleet.submit("clerk", "Pay 7.")
    assert woken == [(run_id, True)]
    await fleet.drive(run_id)
    run = web.run(run_id)
    if where == "on the loop":
        run.approve("T1")
        await until(lambda: len(woken) == 2, "it is called")
    else:
        await asyncio.to_thread(run.approve, "T1")
    assert woken == [(run_id, True), (run_id, where == "on the loop")]


async def test_a_run_in_progress_is_told_and_not_dispatched(web, engine):
    begun, gate = asyncio.Event(), asyncio.Event()

    async def model(messages):
        begun.set()
        await gate.wait()
        return FINISH

    fleet = Fleet(web, [Agent(model, name="clerk")], dispatch=engine)
    run_id = await fleet.submit("clerk", "?")
    driving = asyncio.create_task(fleet.drive(run_id))
    await begun.wait()
    engine.take()
    with TicketStore(web._url) as other:
        told = Engine()
        Fleet(other, dispatch=told)
        other.run(run_id).send("Only half.")
        assert told.take() == []
        with pytest.raises(StoreError, match="in progress in another process"):
            await Fleet(other, [Agent(model, name="clerk")]).drive(run_id)
        # It reaches the run before that is over.
        log = "SELECT FROM callslip.events WHERE kind = 'user_said'"
        await until(lambda: web.query(log), "it is told")
        other.run(run_id).cancel()
        assert await asyncio.wait_for(driving, LONG) == "over"
    assert web.run(run_id).stop_reason == "cancelled"
    assert messages(web) == []


async def test_a_function_that_raises_loses_nothing(web, caplog):
    def wake(run_id):
        raise OSError("the broker is away")

    fleet = Fleet(web, [PAYING], dispatch=wake)
    with caplog.at_level(logging.WARNING, "callslip.fleet"):
        run_id = await fleet.submit("clerk", "Pay 7.")
        await fleet.drive(run_id)
        web.run(run_id).approve("T1")
    assert caplog.messages == [f"run {run_id} was not dispatched"] * 2
    assert await fleet.due(waiting=0) == [run_id]


async def test_a_run_rests_once_however_long_its_driver_takes_to_end(web, monkeypatch, caplog):
    async def drive_slowly(session):
        try:
            await drive_async(session)
        finally:
            await asyncio.sleep(0.3)

    monkeypatch.setattr("callslip.fleet._driven.drive_async", drive_slowly)
    fleet = Fleet(web, [PAYING])
    assert await fleet.drive(await fleet.submit("clerk", "Pay 7.")) == "rests"
    assert caplog.messages == []


async def test_the_same_key_wakes_a_run_only_while_it_waits(fleet, engine):
    run_id = await fleet.submit("clerk", "Pay 7.", key="order-7")
    # As after a crash between the commit and the call of the function.
    assert await fleet.submit("clerk", "Pay 7.", key="order-7") == run_id
    assert engine.take() == [run_id, run_id]
    await fleet.drive(run_id)
    assert await fleet.submit("clerk", "Pay 7.", key="order-7") == run_id
    assert engine.take() == []


async def test_a_sweep_finds_what_nobody_drives(web, database):
    # It commits, and tells no engine.
    silent = Fleet(web, [PAYING], lease=5)
    run_id = await silent.submit("clerk", "Pay 7.")
    assert await silent.due(waiting=30) == []
    grow_older(database)
    assert await silent.due(waiting=30) == [run_id]
    # Not again before the same time has gone by, but it waits all the same.
    assert await silent.due(waiting=30) == []
    grow_older(database)
    assert await silent.due(waiting=30) == [run_id]
    assert await silent.drive(run_id) == "rests"
    assert await silent.due(waiting=0) == []
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SELECT callslip.wake(%s)", [run_id])
    assert await silent.due(waiting=0) == [run_id]


async def test_a_sweep_names_each_run_to_one_of_many(web, database):
    fleet = Fleet(web)
    runs = {await fleet.submit("clerk", str(number), queue=f"q{number % 2}") for number in range(9)}
    grow_older(database)
    found = await asyncio.gather(*(fleet.due(limit=2) for _ in range(3)))
    rest = await fleet.due()
    named = [run_id for some in [*found, rest] for run_id in some]
    assert sorted(named) == sorted(runs)
    assert all(len(some) <= 4 for some in found)


async def test_a_sweep_finds_at_once_what_is_to_begin_later(fleet, engine):
    run_id = await fleet.submit("clerk", "Pay 7.", at=time.time() + 1)
    assert engine.take() == []
    assert await fleet.due() == []
    end = time.monotonic() + LONG
    while not (found := await fleet.due(waiting=30)):
        assert time.monotonic() < end
        await asyncio.sleep(0.05)
    assert found == [run_id]
    assert await fleet.drive(run_id) == "rests"


async def test_a_run_at_rest_is_found_when_its_result_is_late(web, engine):
    @tool(external=True, timeout=2)
    def sign() -> str:
        """Sign."""

    agent = agent_of(call("sign"), FINISH, tools=(sign,))
    fleet = Fleet(web, [agent], lease=30, dispatch=engine)
    run_id = await fleet.submit("clerk", "Sign.")
    assert await fleet.drive(run_id) == "rests"
    end = time.monotonic() + LONG
    while not (found := await fleet.due(waiting=30)):
        assert time.monotonic() < end
        await asyncio.sleep(0.05)
    assert found == [run_id]
    assert await fleet.drive(run_id) == "over"
    run = web.run(run_id)
    assert (run.stop_reason, run.tickets[0].outcome) == ("finished", "error")
    assert replay(run).log == run.log


async def test_a_run_whose_process_has_ended_is_found(database, fleet):
    run_id = await fleet.submit("clerk", "Pay 7.")
    with psycopg.connect(database, autocommit=True) as connection:
        # Of a process that says nothing any more.
        connection.execute("SELECT callslip.take(%s, 3600)", [run_id])
        assert await fleet.due(waiting=0) == []
        with pytest.raises(StoreError, match="in progress in another process"):
            await fleet.drive(run_id)
        # An hour later.
        connection.execute("UPDATE pgmq.q_callslip_default SET vt = clock_timestamp()")
    assert await fleet.due(waiting=0) == [run_id]
    assert await fleet.drive(run_id) == "rests"


async def test_a_sweep_calls_the_function(web, fleet, engine):
    run_id = await Fleet(web).submit("clerk", "Pay 7.")
    sweeping = asyncio.create_task(fleet.sweep(every=0.05, waiting=0.1))
    await until(lambda: engine.woken, "it is found")
    sweeping.cancel()
    await asyncio.wait([sweeping])
    assert engine.take()[0] == run_id


async def test_a_parent_is_woken_by_the_end_of_its_child(web, database, engine):
    child_agent = agent_of(call("pay", amount=7), FINISH, name="child")
    tools = [child_agent.as_tool()]
    parent = agent_of(call("child", task="Pay."), FINISH, name="parent", tools=tools)
    fleet = Fleet(web, [parent, child_agent], dispatch=engine)
    run_id = await fleet.submit("parent", "Delegate.")
    assert await fleet.drive(run_id) == "rests"
    (child_id,) = web.query("SELECT id FROM callslip.run WHERE parent IS NOT NULL")[0].values()
    engine.take()
    web.run(child_id).approve("T1")
    # It is driven by its parent, which is woken.
    assert engine.take() == [run_id]
    assert await fleet.drive(run_id) == "over"


async def test_an_engine_learns_why_a_run_was_left(web, engine):
    @tool
    def fails(context: Context) -> str:
        """Fail."""
        raise SystemError

    def model(messages):
        raise KeyError("a mistake of the program")

    fleet = Fleet(web, [Agent(model, name="clerk")], dispatch=engine)
    run_id = await fleet.submit("clerk", "?")
    # The run ends with it, as anywhere.
    assert await fleet.drive(run_id) == "over"
    run_id = await fleet.submit("unknown", "?")
    with pytest.raises(UsageError, match="expected an agent of the name 'unknown'"):
        await fleet.drive(run_id)
    paying = Fleet(web, [PAYING])
    run_id = await paying.submit("clerk", "Pay 7.")
    assert await paying.drive(run_id) == "rests"
    web.run(run_id).approve("T1")
    other = Fleet(web, [agent_of(FINISH, tools=[fails])])
    with pytest.raises(UsageError, match=r"expected an agent that can go on with run .* accept="):
        await other.drive(run_id)
    assert await Fleet(web, [PAYING]).drive(run_id) == "over"


async def test_a_run_that_is_taken_over_raises_where_it_was_driven(web, database):
    begun = asyncio.Event()

    async def model(messages):
        begun.set()
        await asyncio.sleep(3600)

    fleet = Fleet(web, [Agent(model, name="clerk")], lease=1)
    run_id = await fleet.submit("clerk", "?")
    driving = asyncio.create_task(fleet.drive(run_id))
    await begun.wait()
    with psycopg.connect(database, autocommit=True) as connection:
        # As if it had been frozen past its lease, and another process had taken the run.
        connection.execute("UPDATE callslip.run SET epoch = nextval('callslip.epoch')")
    with pytest.raises(StoreError, match="another"):
        await asyncio.wait_for(driving, LONG)


async def test_a_run_that_ends_the_processes_of_its_engine_is_given_up(web, database):
    program = (
        "import asyncio, os, sys\n"
        "from callslip import Agent, TicketStore\n"
        "from callslip.fleet import Fleet\n"
        "agent = Agent(lambda messages: os._exit(9), name='clerk')\n"
        "fleet = Fleet(TicketStore(sys.argv[1]), [agent], lease=60)\n"
        "asyncio.run(fleet.drive(sys.argv[2]))\n"
    )
    fleet = Fleet(web, [agent_of(FINISH, tools=[])], lease=60)
    run_id = await fleet.submit("clerk", "?")
    # The first one has written how the run began.
    for _ in range(6):
        arguments = [sys.executable, "-c", program, database, run_id]
        process = await asyncio.create_subprocess_exec(*arguments)
        assert await asyncio.wait_for(process.wait(), LONG) == 9
        with psycopg.connect(database, autocommit=True) as connection:
            # Its lease ends.
            connection.execute("UPDATE pgmq.q_callslip_default SET vt = clock_timestamp()")
    assert await fleet.drive(run_id) == "over"
    with pytest.raises(ModelError, match="5 workers in a row"):
        await fleet.result(run_id)
    # Somebody has looked at it, and says so.
    web.run(run_id).send("Go on.")
    assert await fleet.drive(run_id) == "over"
    assert (await fleet.result(run_id)).value == "done"


async def test_a_task_that_is_cancelled_leaves_its_run(web):
    begun = asyncio.Event()

    async def model(messages):
        begun.set()
        await asyncio.sleep(3600)

    fleet = Fleet(web, [Agent(model, name="clerk")], lease=3600)
    run_id = await fleet.submit("clerk", "?")
    driving = asyncio.create_task(fleet.drive(run_id))
    await begun.wait()
    driving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await driving
    await until(lambda: web._shared.due_near(run_id) == [run_id], "it is left")
    assert await Fleet(web, [agent_of(FINISH, tools=())]).drive(run_id) == "over"


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda web: Fleet(web, dispatch="temporal"), "dispatch='queue' or a function"),
        (lambda web: Fleet(web, [PAYING], dispatch=print).work(), "without dispatch="),
        (lambda web: Fleet(web).sweep(), "fleet.work"),
        (lambda web: Fleet(web, dispatch=print).sweep(every=0), "a number of seconds above 0"),
        (lambda web: Fleet(web).due(waiting=-1), "a number of seconds from 0"),
        (lambda web: Fleet(web).due(limit=0), "a whole number from 1"),
    ],
)
async def test_wrong_arguments_say_what_to_pass(web, wrong, hint):
    with pytest.raises(UsageError, match=hint):
        value = wrong(web)
        await value
