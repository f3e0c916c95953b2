"""Progress of calls, told to whoever watches the run and to nobody else."""

import asyncio
import threading
from fractions import Fraction

import pytest

from callslip import Agent, ChattyProtocol, Context, Event, Progress, ScriptedModel, tool
from scripted import act, block, finish, turn_of


@tool
async def copy(files: int, context: Context) -> str:
    for done in range(files):
        context.progress(done + 1, files, f"file {done + 1}")
    return "copied"


@tool
def copy_in_thread(files: int, context: Context) -> str:
    for done in range(files):
        context.progress(done + 1, files)
    return threading.current_thread().name


async def watch(agent, task="t", **options):
    seen = []
    async with agent.stream(task, **options) as run:
        async for event in run:
            seen.append(event)
    assert run.result.success
    return seen


def kinds(seen):
    """Events by kind and progress as it is, in their order."""
    return [event.kind if isinstance(event, Event) else event for event in seen]


def told(seen):
    return [event for event in seen if isinstance(event, Progress)]


def test_progress_comes_between_the_call_and_its_end():
    agent = Agent(ScriptedModel([act("copy", files=2), finish()]), tools=[copy])
    seen = kinds(asyncio.run(watch(agent)))
    run_id = told(seen)[0].run_id
    first = Progress(run_id, "T1", "copy", 1, 2, "file 1")
    second = Progress(run_id, "T1", "copy", 2, 2, "file 2")
    begins = seen.index("ticket_opened")
    assert seen[begins : begins + 4] == ["ticket_opened", first, second, "ticket_completed"]


def test_progress_from_a_thread_comes_in_order_and_before_the_end():
    agent = Agent(
        ScriptedModel([act("copy_in_thread", files=50), finish()]), tools=[copy_in_thread]
    )
    seen = kinds(asyncio.run(watch(agent)))
    begins, ends = seen.index("ticket_opened"), seen.index("ticket_completed")
    between = seen[begins + 1 : ends]
    assert [progress.done for progress in between] == list(range(1, 51))


def test_progress_is_no_part_of_the_log():
    agent = Agent(ScriptedModel([act("copy", files=3), finish()]), tools=[copy])
    result = agent.run_sync("t")
    assert result.success
    assert "file 1" not in result.run.export()


def test_progress_nobody_watches_costs_nothing_and_is_no_error():
    agent = Agent(ScriptedModel([act("copy_in_thread", files=3), finish()]), tools=[copy_in_thread])
    assert asyncio.run(agent.run("t")).success
    Context(run_id="r", ticket_id="T1", tool="x").progress(1, 2, "outside of a run")


def test_a_flood_of_progress_holds_up_nobody_and_keeps_the_last():
    flood = 20_000
    agent = Agent(
        ScriptedModel([act("copy_in_thread", files=flood), finish()]), tools=[copy_in_thread]
    )

    async def watch_late():
        async with agent.stream("t") as run:
            for _ in range(1200):
                if run.run.finished:
                    break
                await asyncio.sleep(0.05)
            assert run.run.finished
            return [event async for event in run]

    seen = told(asyncio.run(watch_late()))
    assert 0 < len(seen) <= 256


def test_progress_after_the_end_of_its_call_is_dropped():
    kept = []

    @tool
    async def leave(context: Context) -> str:
        kept.append(context)
        return "left"

    def model(messages):
        if turn_of(messages) == 0:
            return act("leave")
        kept[0].progress(1, 1, "too late")
        return finish()

    assert told(asyncio.run(watch(Agent(model, tools=[leave])))) == []


def test_progress_of_runs_below_is_told_with_children_only():
    def agent():
        worker = Agent(
            ScriptedModel([block(("c", "copy", {"files": 2})), "done"]),
            protocol=ChattyProtocol(),
            tools=[copy],
            name="worker",
        )
        return Agent(
            ScriptedModel([act("worker", task="copy them"), finish()]), tools=[worker.as_tool()]
        )

    assert told(asyncio.run(watch(agent()))) == []
    below = told(asyncio.run(watch(agent(), children=True)))
    assert [(progress.tool, progress.done) for progress in below] == [("copy", 1), ("copy", 2)]
    assert all(progress.run_id.endswith(".T1") for progress in below)


@pytest.mark.parametrize(
    ("told", "error", "message"),
    [
        (("x",), TypeError, "expected done of progress as a number: got str"),
        ((None,), TypeError, "expected done of progress as a number: got NoneType"),
        ((1, "2"), TypeError, "expected total of progress as a number: got str"),
        ((1, 2, 3), TypeError, "expected message of progress as a string: got int"),
        ((float("nan"),), ValueError, "expected done of progress as a finite number: got nan"),
        ((1, float("inf")), ValueError, "expected total of progress as a finite number: got inf"),
        (
            (10**400,),
            ValueError,
            "expected done of progress as a finite number: got one larger than any float",
        ),
    ],
)
def test_progress_that_is_no_number_is_the_tools_failure(told, error, message):
    @tool
    def odd(context: Context) -> str:
        context.progress(*told)
        return "done"

    ticket = Agent(ScriptedModel([act("odd"), finish()]), tools=[odd]).run_sync("t").tickets[0]
    assert ticket.error == f"Error calling tool 'odd': {error.__name__}: {message}."


@pytest.mark.parametrize("done", [1, 0.5, True, Fraction(1, 3), -2])
def test_progress_may_be_any_finite_number(done):
    Context(run_id="r", ticket_id="T1", tool="x").progress(done, 10**300)
