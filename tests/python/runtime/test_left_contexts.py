"""Contexts that outlive their call, such as those of timers: they keep nothing of it alive."""

import asyncio
import contextvars
import gc
import logging
import weakref

import pytest

from callslip import Agent, Fail, Retry, ScriptedModel, tool
from scripted import act, finish
from serving import eventually


@pytest.fixture(autouse=True)
def nothing_is_logged():
    """The records that pytest keeps have tracebacks, and these have frames."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


class Held:
    """Something that a tool holds, such as a connection."""


def run_sync(agent):
    return agent.run_sync("go")


def run_async(agent):
    return asyncio.run(agent.run("go"))


def ends_well():
    return "ok"


def fails():
    raise Fail("no")


def is_repaired():
    raise Retry("again")


def breaks():
    raise ValueError("broken")


def assert_nothing_is_kept(run, tool_with):
    """Run an agent whose tool copies its context, and see that the copy keeps nothing alive."""
    left = []

    def agent():
        held = Held()
        made = tool_with(held, left)
        return Agent(ScriptedModel([act("work"), finish()]), tools=[made]), weakref.ref(held)

    made, held = agent()
    run(made)
    del made
    assert left
    # A collection of another thread, which earlier tests may have left, has ours do nothing.
    assert eventually(lambda: gc.collect() >= 0 and held() is None)


@pytest.mark.parametrize("run", [run_sync, run_async])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("end", [ends_well, fails, is_repaired, breaks])
@pytest.mark.parametrize("options", [{}, {"readonly": True}, {"concurrency": 1}], ids=str)
def test_a_context_keeps_no_tool_alive(run, is_async, end, options):
    def tool_with(held, left):
        def work() -> str:
            assert held
            left.append(contextvars.copy_context())
            return end()

        async def awork() -> str:
            return work()

        return tool(name="work", description="Work.", **options)(awork if is_async else work)

    assert_nothing_is_kept(run, tool_with)


@pytest.mark.parametrize("run", [run_sync, run_async])
def test_a_call_that_took_too_long_is_kept_alive_by_nothing(run):
    def tool_with(held, left):
        @tool(timeout=1)
        async def work() -> str:
            """Work."""
            assert held
            left.append(contextvars.copy_context())
            await asyncio.sleep(60)
            return "late"

        return work

    assert_nothing_is_kept(run, tool_with)
