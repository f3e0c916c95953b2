"""Bounds on calls at once per model and per tool, and fairness between runs."""

import asyncio
import threading
import time

import pytest

from callslip import Agent, BoundedModel, TicketProtocol, tool
from scripted import act, block, delegate, finish, give, task_of, turn_of, wait


class Meter:
    """How many are inside at once, at most."""

    def __init__(self):
        self._lock = threading.Lock()
        self.now = self.most = self.total = 0

    def __enter__(self):
        with self._lock:
            self.now += 1
            self.total += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_):
        with self._lock:
            self.now -= 1


def test_a_tool_is_called_so_often_at_once_in_all_runs():
    meter = Meter()

    @tool(concurrency=2)
    async def work(n: int) -> int:
        """Work."""
        with meter:
            await asyncio.sleep(0.02)
        return n

    def model(messages):
        return [block(*[(f"c{n}", "work", {"n": n}) for n in range(5)]), "ok"][turn_of(messages)]

    async def main():
        agent = Agent(model, protocol="chatty", tools=[work])
        return await asyncio.gather(*[agent.run(f"go {n}") for n in range(4)])

    assert [result.value for result in asyncio.run(main())] == ["ok"] * 4
    assert (meter.most, meter.total) == (2, 20)


@pytest.mark.parametrize("streams", [False, True])
def test_a_model_is_asked_so_often_at_once_by_all_agents(streams):
    meter = Meter()

    async def whole(messages):
        with meter:
            await asyncio.sleep(0.02)
            return finish()

    async def stream(messages):
        with meter:
            for piece in (finish()[:10], finish()[10:]):
                await asyncio.sleep(0.01)
                yield piece

    model = BoundedModel(stream if streams else whole, concurrency=3)

    async def main():
        agents = [Agent(model), Agent(model)]
        await asyncio.gather(*[agents[n % 2].run(f"go {n}") for n in range(12)])

    asyncio.run(main())
    assert (meter.most, meter.total) == (3, 12)


def test_bounds_hold_for_sync_runs_and_their_children():
    meter = Meter()

    def reply(messages):
        with meter:
            time.sleep(0.01)
        if task_of(messages) != "whole":
            return give("ok")
        script = [*(delegate(f"part {n}") for n in range(4)), *(wait(f"T{n}") for n in (1, 2, 3))]
        return [*script, give("ok")][turn_of(messages)]

    model = BoundedModel(reply, concurrency=1)
    agent = Agent(model, protocol=TicketProtocol(grace=0))
    assert agent.run_sync("whole").value == "ok"
    assert meter.most == 1


def test_a_waiting_tree_does_not_hold_up_another_run():
    asked = []

    async def reply(messages):
        asked.append(task_of(messages))
        await asyncio.sleep(0.01)
        if task_of(messages) == "small":
            return give("ok")
        if task_of(messages) != "large":
            return give("part")
        turn = turn_of(messages)
        return delegate(f"part {turn}") if turn < 30 else give("ok")

    model = BoundedModel(reply, concurrency=1)
    agent = Agent(model, protocol=TicketProtocol(grace=0))

    async def main():
        large = asyncio.create_task(agent.run("large"))
        while len(asked) < 10:
            await asyncio.sleep(0.01)
        before = len(asked)
        await agent.run("small")
        after = len(asked)
        large.cancel()
        await asyncio.wait([large])
        return after - before

    # Its own call, the one under way, and those that got the turn before it and after it.
    assert asyncio.run(main()) <= 4


def test_an_agent_that_calls_itself_through_a_bounded_tool_does_not_wait_for_itself():
    def reply(messages):
        if task_of(messages) == "deeper":
            return finish("in")
        return [act("again", task="deeper"), finish("out")][turn_of(messages)]

    inner = Agent(reply, name="again")
    middle = Agent(reply, tools=[inner.as_tool(concurrency=1)], name="again")
    outer = Agent(reply, tools=[middle.as_tool(concurrency=1)])
    assert outer.run_sync("go").value == "out"


def test_a_bounded_sync_tool_waits_without_a_thread():
    running = Meter()

    @tool(concurrency=1)
    def work(n: int) -> int:
        """Work."""
        with running:
            time.sleep(0.002)
        return n

    @tool
    def other(n: int) -> int:
        """Work."""
        return n

    def model(messages):
        calls = [(f"c{n}", "work", {"n": n}) for n in range(31)]
        return [block(*calls, ("o", "other", {"n": 1})), "ok"][turn_of(messages)]

    result = Agent(model, protocol="chatty", tools=[work, other]).run_sync("go")
    assert running.most == 1
    # It did not stand in line behind those that wait for their turn.
    last = next(ticket for ticket in result.tickets if ticket.tool == "other")
    assert last.completed_at < max(ticket.completed_at for ticket in result.tickets)


def test_a_cancelled_waiter_gives_its_place_up():
    release = asyncio.Event()

    @tool(concurrency=1)
    async def work(n: int) -> int:
        """Work."""
        await release.wait()
        return n

    def model(messages):
        return [act("work", n=int(task_of(messages)[-1])), finish()][turn_of(messages)]

    async def main():
        agent = Agent(model, tools=[work])
        runs = [asyncio.create_task(agent.run(f"go {n}")) for n in range(3)]
        await asyncio.sleep(0.05)
        runs[1].cancel()
        await asyncio.wait([runs[1]])
        release.set()
        return [(await runs[n]).value for n in (0, 2)]

    assert asyncio.run(main()) == ["done", "done"]


def test_who_watches_slowly_holds_no_place():
    async def chatter(messages):
        for _ in range(2000):
            yield "word "

    async def main():
        model = BoundedModel(chatter, concurrency=1)
        async with Agent(model, protocol="chatty").stream("slow"):
            await asyncio.sleep(0.1)
            return await asyncio.wait_for(Agent(model, protocol="chatty").run("other"), 60)

    assert asyncio.run(main()).value.startswith("word word")


def taken(gate):
    return gate.limit - gate._free


def wait_until(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.002)


def test_a_sync_tool_that_takes_too_long_counts_until_its_thread_has_ended():
    meter = Meter()

    @tool(concurrency=1, timeout=0.02)
    def work(n: int) -> int:
        """Work."""
        with meter:
            time.sleep(0.1)
        return n

    def model(messages):
        return [block(*[(f"c{n}", "work", {"n": n}) for n in range(4)]), "ok"][turn_of(messages)]

    agent = Agent(model, protocol="chatty", tools=[work])
    result = agent.run_sync("go")
    assert [ticket.outcome for ticket in result.tickets] == ["error"] * 4
    asyncio.run(agent.run("go"))
    wait_until(lambda: meter.now == 0 and not taken(work.gate))
    assert (meter.most, meter.total) == (1, 8)


def test_a_sync_tool_of_a_cancelled_run_counts_until_its_thread_has_ended():
    meter = Meter()

    @tool(concurrency=2)
    def work(n: int) -> int:
        """Work."""
        with meter:
            time.sleep(0.1)
        return n

    def model(messages):
        return [act("work", n=1), finish()][turn_of(messages)]

    async def main():
        agent = Agent(model, tools=[work])
        for n in range(1, 6):
            run = asyncio.create_task(agent.run("go"))
            while meter.total < n:
                await asyncio.sleep(0.002)
            run.cancel()
            await asyncio.wait([run])
        return (await agent.run("go")).value

    assert asyncio.run(main()) == "done"
    wait_until(lambda: not taken(work.gate))
    assert (meter.most, meter.total) == (2, 6)


def test_a_call_inside_of_one_that_was_given_up_waits_for_no_slot_of_its_own():
    done = []

    @tool(concurrency=1, timeout=0.05)
    def work(n: int) -> int:
        """Work."""
        if n:
            time.sleep(0.1)
            inner.run_sync("go")
        done.append(n)
        return n

    def model(messages):
        return [act("work", n=int(task_of(messages) == "first")), finish()][turn_of(messages)]

    inner = Agent(model, tools=[work])
    assert inner.run_sync("first").tickets[0].outcome == "error"
    wait_until(lambda: not taken(work.gate))
    assert done == [0, 1]


def test_a_bounded_sync_model_of_a_cancelled_run_counts_until_its_thread_has_ended():
    meter = Meter()

    def slow(messages):
        with meter:
            time.sleep(0.1)
        return finish()

    model = BoundedModel(slow, concurrency=1)

    async def main():
        agent = Agent(model)
        run = asyncio.create_task(agent.run("go"))
        while not meter.total:
            await asyncio.sleep(0.002)
        run.cancel()
        await asyncio.wait([run])
        await agent.run("go")

    asyncio.run(main())
    assert (meter.most, meter.total) == (1, 2)
    assert not taken(model.gate)
