"""Cancelling the task of a run ends it, also where a tool or model takes no notice of that."""

import asyncio
import json
from contextlib import suppress

import pytest

from callslip import Agent, LimitExceeded, Limits, RunCancelled, replay, tool

FINISH = '{"thought": "", "action": "FINISH", "final_answer": "done", "task_successful": true}'


def call(name, **arguments):
    return json.dumps({"thought": "", "action": name, "args": json.dumps(arguments)})


class Stubborn:
    def __init__(self, what):
        self.what = what
        self.asked = 0
        self.begun = asyncio.Event()

    async def ignore(self):
        self.begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "I finish what I began"

    async def work(self) -> str:
        """Work."""
        return await self.ignore()

    async def other(self) -> str:
        """Work beside it."""
        await asyncio.sleep(60)
        return "never"

    async def model(self, messages):
        self.asked += 1
        if self.what == "model":
            await self.ignore()
        if self.asked > 1:
            return FINISH
        return call("work")

    async def chatty(self, messages):
        self.asked += 1
        rows = [{"call_id": name, "tool_name": name, "arguments": {}} for name in ("work", "other")]
        return f"<tool>{json.dumps(rows)}</tool>" if self.asked == 1 else "done"

    def agent(self, seconds=None):
        limits = Limits(seconds=seconds)
        tools = [tool(self.work)]
        if self.what == "calls side by side":
            tools.append(tool(self.other))
            return Agent(self.chatty, protocol="chatty", tools=tools, limits=limits)
        return Agent(self.model, tools=tools, limits=limits)


WHAT = ["model", "call", "calls side by side"]


@pytest.mark.parametrize("seconds", [None, 30])
@pytest.mark.parametrize("what", WHAT)
def test_the_caller_is_told_of_its_own_cancellation(what, seconds):
    async def main():
        stubborn = Stubborn(what)
        running = asyncio.create_task(stubborn.agent(seconds).run("go"))
        await stubborn.begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await running
        assert stubborn.asked == 1
        return caught.value.run

    run = asyncio.run(asyncio.wait_for(main(), 20))
    assert run.stop_reason == "cancelled"
    assert all(ticket.status == "COMPLETED" for ticket in run.tickets)
    replay(run)


def test_what_a_call_came_to_all_the_same_is_kept():
    async def main():
        stubborn = Stubborn("call")
        with pytest.raises(TimeoutError) as caught:
            await asyncio.wait_for(stubborn.agent().run("go"), 0.05)
        return caught.value.__cause__.run

    run = asyncio.run(asyncio.wait_for(main(), 20))
    assert [ticket.result for ticket in run.tickets] == ["I finish what I began"]


@pytest.mark.parametrize("what", WHAT)
def test_a_stream_that_is_left_ends(what):
    async def main():
        stubborn = Stubborn(what)
        async with stubborn.agent().stream("go") as stream:
            await stubborn.begun.wait()
        with pytest.raises(RunCancelled):
            _ = stream.result
        assert stubborn.asked == 1

    asyncio.run(asyncio.wait_for(main(), 20))


@pytest.mark.parametrize("what", WHAT)
def test_a_time_limit_is_none_of_the_callers_cancellations(what):
    async def main():
        stubborn = Stubborn(what)
        with suppress(LimitExceeded):
            result = await stubborn.agent(0.05).run("go")
            assert result.stop_reason == "limit"

    asyncio.run(asyncio.wait_for(main(), 20))
