"""Cancellation at each state of a run, of all that is below it."""

import asyncio
import gc
import threading
import time

import pytest

from callslip import (
    Agent,
    BoundedModel,
    Context,
    Event,
    LimitExceeded,
    Limits,
    RunCancelled,
    TicketProtocol,
    TicketStore,
    replay,
    tool,
)
from callslip._threads.commits import Commits
from left_open import Open, check_nothing_is_left
from reading import read_to_end
from scripted import (
    act,
    block,
    call,
    delegate,
    finish,
    give,
    spawn,
    task_of,
    turn_of,
    wait,
    wait_for,
)

began = threading.Event()


@pytest.fixture(autouse=True)
def _fresh():
    began.clear()


async def slow_model(messages):
    began.set()
    await asyncio.sleep(60)


async def slow_stream(messages):
    yield '{"thought": '
    began.set()
    await asyncio.sleep(60)


stopped = []


@tool
def sync_tool(context: Context) -> str:
    """Work until it is given up."""
    began.set()
    for _ in range(6000):
        if context.cancelled:
            stopped.append(context.ticket_id)
            return "stopped"
        time.sleep(0.01)
    return "late"


@tool
async def async_tool() -> str:
    """Sleep."""
    began.set()
    await asyncio.sleep(60)
    return "late"


@tool(needs_approval=True)
def approved_tool() -> str:
    """Wait for somebody."""
    return "never"


def calls(name):
    return lambda messages: act(name)


async def delegates(messages):
    """A ticket run whose child's child is at work when it is cancelled."""
    if task_of(messages) == "leaf":
        began.set()
        await asyncio.sleep(60)
    if turn_of(messages) == 0:
        return delegate({"go": "branch", "branch": "leaf"}[task_of(messages)])
    return wait("T1")


async def spawns(messages):
    if task_of(messages).startswith("Your role"):
        began.set()
        await asyncio.sleep(60)
    return block(spawn("a", "x"), spawn("b", "$a"), wait_for("$a", "$b"))


STATES = {
    "model": (slow_model, "react", []),
    "stream": (slow_stream, "react", []),
    "sync tool": (calls("sync_tool"), "react", [sync_tool]),
    "async tool": (calls("async_tool"), "react", [async_tool]),
    "approval": (calls("approved_tool"), "react", [approved_tool]),
    "wait for a task": (delegates, TicketProtocol(grace=0), []),
    "wait for agents": (spawns, "chatty", []),
}


def agent_in(state, **options):
    model, protocol, tools = STATES[state]
    delegate = protocol != "react"
    return Agent(model, protocol=protocol, tools=tools, delegate=delegate, **options)


def runs_below(run):
    yield run
    for child in run.children:
        yield from runs_below(child)


def assert_all_ended(run, reason="cancelled"):
    assert run.stop_reason == reason
    for one in runs_below(run):
        assert one.finished
        assert all(ticket.status == "COMPLETED" for ticket in one.tickets)
        assert replay(one).export() == one.export()


async def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


def others():
    return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


async def reached(state, run):
    if state == "approval":
        await until(lambda: run.awaiting_approval)
    else:
        await until(began.is_set)


@pytest.mark.parametrize("state", STATES)
def test_by_the_caller_s_task(state, store):
    async def main():
        agent = agent_in(state, store=store)
        task = asyncio.create_task(agent.run("go"))
        await until(store.runs)
        run = store.run(store.runs()[-1].run_id)
        await reached(state, run)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert others() == []
        return caught.value.run

    assert_all_ended(asyncio.run(main()))
    assert store.runs(status="running") == []
    assert store.tickets(status="IN_PROGRESS") == []


@pytest.mark.parametrize("thread", ["same", "other"])
@pytest.mark.parametrize("state", STATES)
def test_by_run_cancel(state, thread):
    async def main():
        async with agent_in(state).stream("go") as run:
            await reached(state, run)
            if thread == "same":
                run.cancel()
            else:
                await asyncio.to_thread(run.cancel)
            events, error = await read_to_end(run)
            assert isinstance(error, RunCancelled)
            with pytest.raises(RunCancelled):
                _ = run.result
        assert events[-1].kind == "run_finished"
        assert others() == []
        return run.run

    assert_all_ended(asyncio.run(main()))


@pytest.mark.parametrize("state", [state for state in STATES if state != "approval"])
def test_by_run_cancel_from_another_thread_of_a_sync_run(state, store):
    def cancel():
        began.wait(60)
        store.run(store.runs()[-1].run_id).cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    started = time.monotonic()
    with pytest.raises(RunCancelled) as caught:
        agent_in(state, store=store).run_sync("go")
    thread.join()
    assert time.monotonic() - started < 40
    assert_all_ended(caught.value.run)


def test_by_run_cancel_of_a_sync_run_that_waits_for_approval(store):
    def cancel():
        while not store.tickets(awaiting_approval=True):
            time.sleep(0.01)
        store.run(store.runs()[-1].run_id).cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(RunCancelled) as caught:
        agent_in("approval", store=store).run_sync("go")
    thread.join()
    assert_all_ended(caught.value.run)


# While a call awaits a decision, no time counts.
@pytest.mark.parametrize("driver", ["async", "sync"])
@pytest.mark.parametrize("state", [state for state in STATES if state != "approval"])
def test_by_a_time_limit(state, driver, store):
    agent = agent_in(state, limits=Limits(seconds=0.3), on_limit="raise", store=store)
    started = time.monotonic()
    with pytest.raises(LimitExceeded) as caught:
        if driver == "sync":
            agent.run_sync("go")
        else:
            asyncio.run(agent.run("go"))
    assert caught.value.limit == "seconds"
    assert time.monotonic() - started < 40
    assert_all_ended(caught.value.run, "limit")


@pytest.mark.parametrize("state", STATES)
def test_by_leaving_a_stream(state):
    async def main():
        async with agent_in(state).stream("go") as run:
            await reached(state, run)
        assert others() == []
        return run.run

    assert_all_ended(asyncio.run(main()))


def test_a_sync_tool_sees_that_it_was_given_up():
    stopped.clear()

    async def main():
        async with agent_in("sync tool").stream("go") as run:
            await reached("sync tool", run)
            run.cancel()
        await until(lambda: stopped)

    asyncio.run(main())
    assert stopped == ["T1"]


def test_a_sync_tool_in_the_run_s_own_thread_sees_it_too(store):
    stopped.clear()

    def cancel():
        began.wait(60)
        store.run(store.runs()[-1].run_id).cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(RunCancelled):
        agent_in("sync tool", store=store).run_sync("go")
    thread.join()
    assert stopped == ["T1"]


def test_a_child_alone_can_be_cancelled_and_its_parent_goes_on():
    async def model(messages):
        if task_of(messages) == "part":
            began.set()
            await asyncio.sleep(60)
        return [delegate("part"), wait("T1"), give("ok")][turn_of(messages)]

    async def main():
        async with Agent(model, protocol=TicketProtocol(grace=0)).stream("whole") as run:
            await until(began.is_set)
            run.run.children[0].cancel()
            async for _ in run:
                pass
            return run.result

    result = asyncio.run(main())
    assert result.value == "ok"
    assert result.tickets[0].outcome == "cancelled"
    assert "RunCancelled" in result.tickets[0].error


def test_cancelling_what_is_over_does_nothing():
    async def main():
        async with Agent(lambda _: finish()).stream("go") as run:
            async for _ in run:
                pass
            run.cancel()
            return run.result

    assert asyncio.run(main()).value == "done"


def test_a_kept_run_that_nobody_works_on_can_be_cancelled(store):
    def fail(messages):
        raise ConnectionError("no line")

    agent = Agent(fail, store=store)
    with pytest.raises(Exception, match="no line"):
        agent.run_sync("go")
    kept = store.runs()[0]
    assert kept.stop_reason == "model_error"
    store.run(kept.run_id).cancel()  # it is over already
    assert store.runs()[0].stop_reason == "model_error"


def test_a_cancelled_tree_leaves_nothing_behind(path):
    async def main(store):
        agent = agent_in("wait for a task", store=store)
        for _ in range(20):
            began.clear()
            task = asyncio.create_task(agent.run("go"))
            await until(began.is_set)
            task.cancel()
            await asyncio.wait([task])

    def drivers():
        gc.collect()
        return [one for one in gc.get_objects() if type(one).__name__ == "_Driver"]

    # Exceptions that other tests keep hold theirs.
    kept = drivers()
    with TicketStore(path) as store:
        asyncio.run(main(store))
        before = Open()
        asyncio.run(main(store))
        check_nothing_is_left(before, 20)
        assert store.runs(status="running") == []
        assert not [one for one in drivers() if not any(one is other for other in kept)]


@pytest.mark.parametrize("of", ["model", "tool"])
def test_by_run_cancel_while_it_waits_for_its_turn(of):
    @tool(concurrency=1)
    async def bounded() -> str:
        """Work."""
        began.set()
        await asyncio.sleep(60)
        return "late"

    model = BoundedModel(slow_model, concurrency=1) if of == "model" else calls("bounded")
    agent = Agent(model, tools=[bounded])

    async def main():
        async with agent.stream("first") as first:
            await until(began.is_set)
            async with agent.stream("second") as second:
                await asyncio.sleep(0.1)
                second.cancel()
                await read_to_end(second)
                assert second.run.stop_reason == "cancelled"
            first.cancel()
            await read_to_end(first)
        assert others() == []
        return first.run, second.run

    for run in asyncio.run(main()):
        assert_all_ended(run)


@pytest.mark.parametrize("on", ["model_asked", "ticket_opened"])
@pytest.mark.parametrize("protocol", ["react", "chatty", "ticket"])
def test_nothing_begins_that_was_cancelled_before_it_was_written_down(
    path, protocol, on, monkeypatch
):
    done = []
    written = Commits.written_async

    async def later(commits, run):
        await asyncio.sleep(0.02)
        await written(commits, run)

    monkeypatch.setattr(Commits, "written_async", later)

    @tool
    async def work(n: int) -> int:
        """Work."""
        done.append(n)
        return n

    scripts = {
        "react": act("work", n=1),
        "chatty": block(("a", "work", {"n": 1}), spawn("b", "x"), ("c", "work", {"n": 2})),
        "ticket": call("/work", {"n": 1}),
    }

    async def model(messages):
        if task_of(messages) != "go":
            done.append("child")
        elif on == "model_asked":
            done.append("asked")
        return scripts[protocol]

    async def main():
        with TicketStore(path) as store:
            delegate = protocol != "react"
            agent = Agent(model, protocol=protocol, tools=[work], delegate=delegate, store=store)
            async with agent.stream("go") as run:
                with pytest.raises(RunCancelled):
                    async for event in run:
                        if isinstance(event, Event) and event.kind == on:
                            run.cancel()
            assert_all_ended(run.run)
            assert run.run.children == []

    asyncio.run(main())
    assert done == []


@pytest.mark.parametrize("first", [call("/work"), delegate("part")], ids=["call", "task"])
def test_what_was_cancelled_before_it_began_never_begins(first):
    did = []

    def model(messages):
        if task_of(messages) == "part":
            did.append("part")
        return first if turn_of(messages) == 0 else give("done")

    @tool
    async def work() -> None:
        """Work."""
        did.append("work")

    async def main(store):
        # What is to be done waits until it is written down.
        waiting, go_on = asyncio.Event(), asyncio.Event()
        written = store._commits.written_async

        async def slow(run):
            if store.tickets():
                waiting.set()
                await go_on.wait()
            await written(run)

        store._commits.written_async = slow
        agent = Agent(model, protocol="ticket", tools=[work], store=store)
        running = asyncio.create_task(agent.run("go"))
        await waiting.wait()
        store.run(store.runs()[0].run_id).cancel()
        go_on.set()
        with pytest.raises(RunCancelled):
            await running
        assert did == []
        assert [run.stop_reason for run in store.runs()] == ["cancelled"]

    with TicketStore() as store:
        asyncio.run(asyncio.wait_for(main(store), 20))


@pytest.mark.parametrize("what", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("where", ["tool", "model"])
def test_what_ends_a_program_ends_a_sync_tree_and_no_other(where, what):
    @tool
    async def leave() -> str:
        """Leave."""
        raise what(3)

    async def model(messages):
        if task_of(messages) == "fine":
            return give("fine")
        if task_of(messages) == "go":
            return [delegate("part"), wait("T1")][min(turn_of(messages), 1)]
        if where == "model":
            raise what(3)
        return call("/leave")

    store = TicketStore()
    agent = Agent(model, protocol=TicketProtocol(grace=0), tools=[leave], store=store)
    told = {}

    def run_sync(task):
        try:
            told[task] = agent.run_sync(task).value
        except BaseException as error:  # it is looked at below
            told[task] = type(error)

    for task in ("go", "fine"):
        # What hangs must not hang the tests.
        thread = threading.Thread(target=run_sync, args=[task], daemon=True)
        thread.start()
        thread.join(60)
    assert told == {"go": what, "fine": "fine"}
    assert store.runs(status="running") == []
    assert store.tickets(status="IN_PROGRESS") == []
