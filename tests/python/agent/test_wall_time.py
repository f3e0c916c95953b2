"""`Limits(seconds=)` counts the time in which something works on a run, and no other."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from callslip import Agent, Limits, Pending, ScriptedModel, TicketStore, ask_user, replay, tool
from callslip._runtime.session import RunSession
from scripted import act, block, finish

LIMIT = Limits(seconds=60)
LONG = 30


class Clock:
    """The clock of runs, which only goes when it is told to."""

    def __init__(self):
        self.now = time.time()

    def go(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(RunSession, "now", lambda session: clock.now)
    at_rest = SimpleNamespace(time=lambda: clock.now)
    monkeypatch.setattr("callslip.runs._conversation.time", at_rest)
    return clock


def tools_of(clock):
    @tool(needs_approval=True)
    def pay(amount: int, takes: int = 0) -> str:
        """Pay."""
        clock.go(takes)
        return f"paid {amount}"

    @tool(external=True)
    def sign() -> str:
        """Sign."""

    @tool
    def render() -> str | Pending:
        """Render."""
        return Pending("job-1")

    return [pay, sign, render, ask_user]


CALLS = {
    "approval": act("pay", amount=5),
    "result": act("sign"),
    "pending": act("render"),
    "question": act("ask_user", question="Which?"),
}


def agent_of(clock, script, store, **options):
    return Agent(ScriptedModel(script), tools=tools_of(clock), store=store, limits=LIMIT, **options)


def boss_of(clock, script, store):
    """An agent with a time limit, whose child run waits."""
    clerk = Agent(ScriptedModel(script), tools=tools_of(clock), name="clerk")
    model = ScriptedModel([act("clerk", task="x"), finish()])
    return Agent(model, tools=[clerk.as_tool()], store=store, limits=LIMIT)


DRIVERS = {
    "async": lambda agent: asyncio.run(asyncio.wait_for(agent.run("go"), LONG)),
    "sync": lambda agent: agent.run_sync("go"),
}


@pytest.fixture(params=DRIVERS)
def drive(request):
    return DRIVERS[request.param]


def waiting_in(store):
    return store.tickets(awaiting="approval") + store.tickets(awaiting="result")


def settle(store, ticket):
    run = store.run(ticket.run_id)
    if ticket.awaiting == "approval":
        run.approve(ticket)
    else:
        run.answer(ticket, "an answer")


def run_with(drive, agent, act_on):
    """Run in a thread, and act on each ticket that waits from this one."""
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(drive, agent)
        until = time.monotonic() + LONG
        while not working.done() and time.monotonic() < until:
            for ticket in waiting_in(agent.store):
                act_on(ticket)
        return working.result(LONG)


def settle_after(clock, store, seconds):
    seen = set()

    def act_on(ticket):
        if (ticket.run_id, ticket.id) not in seen:
            seen.add((ticket.run_id, ticket.id))
            clock.go(seconds)
            settle(store, ticket)

    return act_on


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("below", [False, True])
def test_waiting_for_others_does_not_count(kind, below, drive, store, clock):
    script = [CALLS[kind], CALLS["approval"], finish()]
    agent = (boss_of if below else agent_of)(clock, script, store)
    result = run_with(drive, agent, settle_after(clock, store, 1000))
    assert result.stop_reason == "finished"
    assert replay(result.run).export() == result.run.export()
    paused = [event.seconds for event in result.run.log if getattr(event, "note", "") == "paused"]
    assert sum(paused) == pytest.approx(2000 if below else 0)


@pytest.mark.parametrize("below", [False, True])
def test_work_before_and_after_a_wait_counts(below, drive, store, clock):
    script = [act("pay", amount=5, takes=35), act("pay", amount=6, takes=35), finish()]
    agent = (boss_of if below else agent_of)(clock, script, store)
    result = run_with(drive, agent, settle_after(clock, store, 1000))
    assert result.stop_reason == "limit"
    assert replay(result.run).export() == result.run.export()


@pytest.mark.parametrize("kind", CALLS)
def test_a_decision_while_no_process_works_on_the_run_does_not_count(kind, store, clock):
    logs = []

    def copy(ticket):
        if not logs:
            # As a process that ended leaves it.
            logs.append(store.run(ticket.run_id).export())
        settle(store, ticket)

    run_with(DRIVERS["async"], agent_of(clock, [CALLS[kind], finish()], store), copy)
    with TicketStore() as left:
        run_id = left.import_run(logs[0])
        clock.go(1000)
        settle(left, waiting_in(left)[0])
        clock.go(1000)
        result = agent_of(clock, [finish()], left).resume_sync(run_id)
    assert (result.stop_reason, result.tickets[0].outcome) == ("finished", "ok")
    assert replay(result.run).export() == result.run.export()


@pytest.mark.parametrize(("seconds", "reason"), [(61, "limit"), (30, "finished")])
def test_a_call_beside_the_one_that_waits_is_work(seconds, reason, drive, store, clock):
    is_asked, may_end = threading.Event(), threading.Event()

    @tool
    def work(n: int) -> int:
        """Work."""
        is_asked.wait(LONG)
        clock.go(seconds)
        may_end.set()
        return n

    calls = block(("a", "work", {"n": 1}), ("b", "pay", {"amount": 5}))
    agent = Agent(
        ScriptedModel([calls, "done"]),
        protocol="chatty",
        tools=[work, *tools_of(clock)],
        store=store,
        limits=LIMIT,
    )

    def act_on(ticket):
        is_asked.set()
        if may_end.wait(LONG) and store.tickets(status="COMPLETED"):
            clock.go(1000)
            settle(store, ticket)

    result = run_with(drive, agent, act_on)
    assert result.stop_reason == reason
    assert replay(result.run).export() == result.run.export()


def test_a_function_that_asks_a_person_takes_none_of_the_time(clock):
    def approve(ticket):
        clock.go(1000)
        return True

    agent = agent_of(clock, [CALLS["approval"], finish()], None)
    assert agent.run_sync("go", approve=approve, answer=approve).stop_reason == "finished"
    agent = agent_of(clock, [CALLS["approval"], finish()], None)
    assert asyncio.run(agent.run("go", approve=approve, answer=approve)).stop_reason == "finished"
