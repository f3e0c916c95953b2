"""Errors of the program that end a run: they carry the run, and no stream ends without them."""

import asyncio

import pytest

from callslip import Agent, RunCancelled, ScriptedModel, UsageError, tool
from scripted import act, finish


@tool
def count() -> int:
    """Count."""
    return 3


@tool(needs_approval=True)
def pay() -> str:
    """Pay."""
    return "paid"


async def read(agent, **options):
    async with agent.stream("Pay.", **options) as run:
        async for _ in run:
            pass


def read_sync(agent, **options):
    for _ in agent.stream_sync("Pay.", **options):
        pass


WAYS = {
    "run_sync": lambda agent, **options: agent.run_sync("Pay.", **options),
    "run": lambda agent, **options: asyncio.run(agent.run("Pay.", **options)),
    "stream": lambda agent, **options: asyncio.run(read(agent, **options)),
    "stream_sync": read_sync,
}
EVERY_WAY = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
ERRORS = (ValueError("nobody"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError())
EVERY_ERROR = pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)


def raising(error):
    def function(*_):
        raise error

    return function


def payer(**options):
    return Agent(ScriptedModel([act("count"), act("pay"), finish()]), tools=[count, pay], **options)


def results_of(error):
    return [ticket.result for ticket in error.run.tickets]


@EVERY_WAY
@EVERY_ERROR
def test_an_error_of_approve_carries_the_run(way, error):
    with pytest.raises(type(error)) as caught:
        way(payer(), approve=raising(error))
    assert results_of(caught.value) == [3, None]


@EVERY_WAY
@EVERY_ERROR
def test_an_error_of_check_answer_carries_the_run(way, error):
    with pytest.raises(type(error)) as caught:
        way(payer(check_answer=raising(error)), approve=lambda ticket: True)
    assert results_of(caught.value) == [3, "paid"]


@EVERY_WAY
def test_what_approve_may_not_return_is_an_error_with_the_run(way):
    with pytest.raises(UsageError, match="expected approve to return True") as caught:
        way(payer(), approve=lambda ticket: None)
    assert results_of(caught.value) == [3, None]


class OwnError(Exception):
    run = "of the program"


class ClosedError(Exception):
    __slots__ = ()

    def __setattr__(self, name, value):
        raise TypeError(name)


@EVERY_WAY
@pytest.mark.parametrize("error", [OwnError(), ClosedError()], ids=["own", "closed"])
def test_an_error_may_have_a_run_of_its_own_or_no_room_for_one(way, error):
    with pytest.raises(type(error)) as caught:
        way(payer(), approve=raising(error))
    assert caught.value is error
    assert getattr(error, "run", "") in ("of the program", "")


def test_the_run_is_the_one_that_the_program_knows():
    below = Agent(ScriptedModel([finish("x")]), check_answer=raising(KeyboardInterrupt()))
    agent = Agent(
        ScriptedModel([act("ask", task="x"), finish()]),
        tools=[below.as_tool(name="ask", description="Ask.")],
    )
    with pytest.raises(KeyboardInterrupt) as caught:
        agent.run_sync("Ask.")
    assert [ticket.tool for ticket in caught.value.run.tickets] == ["ask"]


@pytest.mark.parametrize("pause", [0, 0.05], ids=["at once", "later"])
def test_a_started_run_raises_the_error_wherever_it_is_heard(pause):
    async def main():
        run = Agent(ScriptedModel([finish()]), check_answer=raising(ValueError("no"))).start("Go.")
        await asyncio.sleep(pause)
        for _ in range(2):
            with pytest.raises(ValueError, match="no"):
                await run
        with pytest.raises(ValueError, match="no"):
            async for _ in run.watch():
                pass
        return run

    assert asyncio.run(main()).stop_reason == "cancelled"


def test_a_started_run_that_is_cancelled_says_so_whatever_its_model_raises():
    async def model(messages):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ConnectionError("closed") from None

    async def main():
        run = Agent(model).start("Go.")
        await asyncio.sleep(0.05)
        run.cancel()
        with pytest.raises(RunCancelled):
            await run

    asyncio.run(main())


def test_a_run_that_an_error_of_the_program_has_ended_may_be_continued():
    answers = [ValueError("no"), None]

    def check(value, context):
        if error := answers.pop(0):
            raise error

    agent = Agent(ScriptedModel([finish("one"), finish("two")]), check_answer=check)
    with pytest.raises(ValueError, match="no") as caught:
        agent.run_sync("Go.")
    assert caught.value.run.send_sync("Once more.").value == "two"
