"""Runs that end, or are looked at, while functions of the program are called before they begin."""

import asyncio

import pytest

from callslip import Agent, FunctionModel, RunCancelled, ScriptedModel, UsageError
from reading import read_to_end
from scripted import act, finish, turn_of

LONG = 20


class Waiting:
    """A function for `check_task` or `instructions` that does not return by itself."""

    def __init__(self):
        self.entered = asyncio.Event()

    async def __call__(self, *_):
        self.entered.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize("option", ["check_task", "instructions"])
@pytest.mark.parametrize("is_entered", [False, True], ids=["at_once", "in_the_function"])
def test_a_run_that_is_cancelled_before_it_begins_is_over_at_once_and_not_written_down(
    store, option, is_entered
):
    async def main():
        waiting = Waiting()
        run = Agent(ScriptedModel([]), store=store, **{option: waiting}).start("go")
        watcher = asyncio.ensure_future(read_to_end(run.watch()))
        if is_entered:
            await waiting.entered.wait()
        await asyncio.to_thread(run.cancel)
        with pytest.raises(RunCancelled, match="the run was cancelled"):
            await asyncio.wait_for(run, LONG)
        for watching in (watcher, read_to_end(run.watch())):
            items, error = await asyncio.wait_for(watching, LONG)
            assert items == []
            assert isinstance(error, RunCancelled)
        run.cancel()
        with pytest.raises(RunCancelled, match="the run was cancelled"):
            await run
        return run

    run = asyncio.run(main())
    assert (run.log, store.runs()) == ([], [])
    assert (run.status, run.stop_reason) == ("finished", "cancelled")


def test_a_run_whose_task_was_refused_can_be_cancelled_and_is_not_written_down(store):
    def refuse(task, context):
        raise ValueError("no")

    async def main():
        run = Agent(ScriptedModel([]), store=store, check_task=refuse).start("go")
        with pytest.raises(ValueError, match="no"):
            await run
        run.cancel()

    asyncio.run(main())
    assert store.runs() == []


def test_a_message_to_a_run_that_has_not_begun_is_refused(store):
    async def main():
        waiting = Waiting()
        run = Agent(ScriptedModel([]), store=store, instructions=waiting).start("go")
        await waiting.entered.wait()
        with pytest.raises(UsageError, match="the run has not begun yet"):
            run.send("more")
        run.cancel()
        with pytest.raises(RunCancelled):
            await run

    asyncio.run(main())
    assert store.runs() == []


def test_a_child_that_is_cancelled_before_it_begins_is_not_written_down(store):
    async def main():
        waiting = Waiting()
        child = Agent(ScriptedModel([]), name="part", instructions=waiting, store=store)
        agent = Agent(
            ScriptedModel([act("part", task="a")]),
            tools=[child.as_tool(description="Does a part.")],
            store=store,
        )
        run = agent.start("go")
        await waiting.entered.wait()
        run.cancel()
        with pytest.raises(RunCancelled):
            await asyncio.wait_for(run, LONG)
        return run

    run = asyncio.run(main())
    assert [one.run_id for one in store.runs()] == [run.id]
    assert store.run(run.id).tickets[0].outcome == "cancelled"


def test_a_run_that_is_left_before_it_begins_names_no_run_to_resume(store):
    async def main():
        waiting = Waiting()
        run = Agent(ScriptedModel([]), store=store, instructions=waiting).start("go")
        await waiting.entered.wait()
        return run

    run = asyncio.run(main())
    assert store.runs() == []
    with pytest.raises(RunCancelled) as left:
        asyncio.run(_result(run))
    assert str(left.value) == "the run was left before its end"


async def _result(run):
    return await run


def test_a_function_that_outlives_its_cancellation_begins_no_run(store):
    entered = []

    async def stubborn(context):
        entered.append(1)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "Be brief."

    async def main():
        model = FunctionModel(lambda messages: [finish()][turn_of(messages)])
        run = Agent(model, store=store, instructions=stubborn).start("go")
        while not entered:
            await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(RunCancelled):
            await run
        return asyncio.current_task().cancelling(), model.requests

    assert asyncio.run(main()) == (0, [])
    assert store.runs() == []


def test_a_run_that_has_not_begun_is_shown(store):
    async def main():
        waiting = Waiting()
        agent = Agent(ScriptedModel([]), name="clerk", store=store, instructions=waiting)
        run = agent.start("Count the <stars>.")
        await waiting.entered.wait()
        shown = str(run), run.to_html(), run.trace().to_dict()
        run.cancel()
        return run.id, *shown

    run_id, text, html, trace = asyncio.run(main())
    assert text.splitlines() == [
        f"run {run_id}: not begun",
        "agent clerk, protocol react",
        "0 turns, 0 tickets, 0 violations, 0 tokens in, 0 out",
        "task: Count the <stars>.",
        "no answer yet",
    ]
    assert "clerk: not begun" in html
    assert "<dt>started</dt><dd>not yet</dd>" in html
    assert (trace["agent"], trace["started_at"], trace["events"]) == ("clerk", 0.0, 0)


STEPS = {
    "cancel": lambda run: run.cancel(),
    "send": lambda run: run.send("more"),
    "approve": lambda run: run.approve("T1"),
    "deny": lambda run: run.deny("T1"),
}
UNREAD = "the run of this stream has not been read yet: enter the stream first, or take an item"
UNBEGUN = r"run \w+ has not begun: enter its stream first, or take an item of stream_sync\(…\)$"


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kept", [True, False])
def test_a_stream_that_was_not_entered_is_told(step, kept, store):
    async def main():
        agent = Agent(ScriptedModel([finish()]), store=store if kept else None)
        stream = agent.stream("go")
        with pytest.raises(UsageError, match=UNBEGUN):
            STEPS[step](stream.run)
        with pytest.raises(UsageError, match=UNBEGUN):
            await stream.run
        async with stream as run:
            assert [event async for event in run][-1].reason == "finished"

    asyncio.run(main())


@pytest.mark.parametrize("step", [step for step in STEPS if step != "cancel"])
def test_a_message_for_a_run_that_is_read_later_is_told(step, store):
    async def main():
        agent = Agent(ScriptedModel([finish(), finish()]), store=store)
        run_id = (await agent.run("go")).run.id
        stream = agent.stream(run=run_id, say="more")
        with pytest.raises(UsageError, match=UNREAD):
            stream.run.cancel()
        with pytest.raises(UsageError, match=UNREAD):
            STEPS[step](stream)
        async with stream as run:
            run.run.cancel()
        assert run.run.id == run_id

    asyncio.run(main())
    with pytest.raises(UsageError, match=UNREAD):
        _ = Agent(ScriptedModel([]), store=store).stream_sync(run="r", say="more").run


@pytest.mark.parametrize("step", STEPS)
def test_what_comes_for_a_run_that_was_cancelled_before_it_began_is_told(step, store):
    async def main():
        waiting = Waiting()
        run = Agent(ScriptedModel([]), store=store, instructions=waiting).start("go")
        await waiting.entered.wait()
        run.cancel()
        with pytest.raises(RunCancelled):
            await run
        if step == "cancel":
            run.cancel()
            return
        with pytest.raises(UsageError, match="was cancelled before it began, and nothing of it is"):
            STEPS[step](run)

    asyncio.run(main())
