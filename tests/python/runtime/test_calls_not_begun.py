"""A call that waits for a thread is not made once the cancel of its run was acknowledged."""

import asyncio
import threading
from contextlib import nullcontext

import pytest

from callslip import Agent, RunCancelled, TicketStore, tool
from callslip._threads import pool
from scripted import act, block, finish, turn_of


@pytest.fixture
def full_pool():
    """The threads of tools, all occupied until this is set."""
    free = threading.Event()
    held = [pool.submit(free.wait, 60) for _ in range(pool.WORKERS)]
    yield free
    free.set()
    for one in held:
        one.result(60)


def replies(*texts):
    async def model(messages):
        # A sync one would need a thread.
        return texts[turn_of(messages)]

    return model


@pytest.mark.parametrize("which", ["run", "run above", "run above, which goes on"])
def test_a_call_that_waited_for_a_thread_is_not_made(full_pool, which):
    made, entered, leave = [], threading.Event(), threading.Event()

    @tool(effect="once")
    def work() -> str:
        """Work."""
        made.append(1)
        return "worked"

    @tool
    async def hold() -> str:
        """Keep the event loop busy, so that the driver learns of nothing."""
        entered.set()
        assert leave.wait(60)
        return "held"

    calls = block(("a", "work", {}), ("b", "hold", {}))
    store = TicketStore()
    agent = Agent(
        replies(calls, "done"), protocol="chatty", tools=[work, hold], store=store, name="a"
    )
    ask = [agent.as_tool(name="ask")]
    above = Agent(replies(act("ask", task="t"), finish()), tools=ask, store=store, name="above")

    async def main():
        run = (agent if which == "run" else above).start("go")

        def cancel():
            assert entered.wait(60)
            run.cancel()
            if which == "run above, which goes on":
                store.run(run.id).send("Say that you are done.")
            full_pool.set()
            # Once this has a thread, the call has had one.
            pool.submit(int).result(60)
            leave.set()

        cancelling = asyncio.ensure_future(asyncio.to_thread(cancel))
        with pytest.raises(RunCancelled) if which in {"run", "run above"} else nullcontext():
            await run
        await cancelling

    asyncio.run(main())
    assert made == []
    reasons = {run.agent: run.stop_reason for run in store.runs()}
    assert reasons.pop("a") == "cancelled"
    assert reasons in ({}, {"above": "finished" if which.endswith("goes on") else "cancelled"})
