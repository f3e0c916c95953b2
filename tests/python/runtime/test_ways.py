"""In every way to call a tool, both drivers ask first where they must."""

import asyncio
import inspect
import threading

import pytest

from callslip import Agent, Context, Limits, ModelError, NotDone, TicketStore, tool
from callslip.models import Retrying
from scripted import act, finish, turn_of

REPLIES = [act("work", n=1), finish()]
WAYS = {
    "plain": {},
    "context": {"context": True},
    "timeout": {"timeout": 60.0},
    "concurrency": {"concurrency": 1},
}


class Desk:
    """A tool that counts its calls, in one of the ways that it can be written in."""

    def __init__(self, way, is_async, **options):
        self.done = 0
        has_context = way == "context"
        settings = {name: value for name, value in WAYS[way].items() if name != "context"}

        def work(n: int) -> str:
            self.done += 1
            return f"worked {n}"

        async def work_async(n: int) -> str:
            await asyncio.sleep(0)
            return work(n)

        def work_with(n: int, context: Context) -> str:
            assert context.tool == "work"
            return work(n)

        async def work_with_async(n: int, context: Context) -> str:
            await asyncio.sleep(0)
            return work_with(n, context)

        kinds = (work_with, work_with_async) if has_context else (work, work_async)
        function = kinds[is_async]
        function.__name__ = "work"
        assert inspect.iscoroutinefunction(function) == is_async
        self.tool = tool(**settings, **options)(function)

    def agent(self, store=None, *, bounded=False):
        return Agent(
            lambda messages: REPLIES[turn_of(messages)],
            tools=[self.tool],
            store=store,
            limits=Limits(seconds=600 if bounded else None),
        )


def in_task(function, *args, **options):
    async def main():
        return await function(*args, **options)

    return asyncio.run(main())


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def is_async(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["", "bounded"])
def bounded(request):
    return request.param


@pytest.fixture(params=["run", "run_sync"])
def driver(request):
    return request.param


every_way = pytest.mark.parametrize("way", WAYS)


def resumed(driver, bounded, before, after):
    """The result of a run whose process has ended during its call."""
    run = before.agent(bounded=bounded).run_sync("go").run
    lines = run.export().splitlines(keepends=True)
    opened = [event.kind for event in run.log].index("ticket_opened")
    store = TicketStore()
    store.import_run("".join(lines[: opened + 1]))
    agent = after.agent(store, bounded=bounded)
    if driver == "run_sync":
        return agent.resume_sync(run.id)
    return in_task(agent.resume, run.id)


@every_way
def test_a_call_that_may_have_been_made_is_not_made_again(driver, bounded, way, is_async):
    after = Desk(way, is_async)
    result = resumed(driver, bounded, Desk(way, is_async), after)
    assert (after.done, result.tickets[0].outcome) == (0, "in_doubt")


@every_way
def test_what_came_of_a_call_is_looked_up_first(driver, bounded, way, is_async):
    def looked_up(context):
        return "worked before"

    after = Desk(way, is_async, reconcile=looked_up)
    result = resumed(driver, bounded, Desk(way, is_async, reconcile=looked_up), after)
    assert (after.done, result.tickets[0].result) == (0, "worked before")


@every_way
def test_a_call_that_was_not_made_is_made_once(driver, bounded, way, is_async):
    def nothing(context):
        return NotDone()

    after = Desk(way, is_async, reconcile=nothing)
    result = resumed(driver, bounded, Desk(way, is_async, reconcile=nothing), after)
    assert (after.done, result.tickets[0].result) == (1, "worked 1")


@every_way
@pytest.mark.parametrize("decision", [True, "too much"])
def test_no_call_is_made_before_it_is_approved(driver, bounded, way, is_async, decision):
    desk = Desk(way, is_async, needs_approval=True)
    done = []

    def approve(ticket):
        done.append(desk.done)
        return decision

    agent = desk.agent(bounded=bounded)
    if driver == "run_sync":
        result = agent.run_sync("go", approve=approve)
    else:
        result = in_task(agent.run, "go", approve=approve)
    assert done == [0]
    assert desk.done == (decision is True)
    assert result.value == "done"


def test_a_stream_that_broke_behind_an_early_call_is_not_asked_for_again(driver):
    looks, requests = [], []

    @tool(readonly=True)
    async def look(at: int) -> str:
        """Look."""
        looks.append(at)
        return "seen"

    async def model(messages):
        requests.append(len(messages))
        yield '<tool>[{"call_id": "a", "tool_name": "look", "arguments": {"at": 1}}, '
        while not looks:
            await asyncio.sleep(0.001)
        raise ConnectionError("lost")

    agent = Agent(
        Retrying(model, tries=3, backoff=0), protocol="chatty", tools=[look], python=False
    )
    with pytest.raises(ModelError):
        agent.run_sync("go") if driver == "run_sync" else in_task(agent.run, "go")
    assert (looks, len(requests)) == ([1], 1)


def test_an_error_that_python_replaces_on_its_way_is_told_as_it_was(driver):
    def model(messages):
        raise StopIteration("no more")

    agent = Agent(Retrying(model, tries=2, backoff=0))
    with pytest.raises(ModelError) as caught:
        agent.run_sync("go") if driver == "run_sync" else in_task(agent.run, "go")
    kinds = ("model_attempt_failed", "run_finished")
    told = [event.error for event in caught.value.run.log if event.kind in kinds]
    assert told == ["StopIteration: no more"] * 2


def test_a_sync_model_that_returns_an_awaitable_is_never_called_on_the_loop():
    threads = []

    async def later(reply):
        return reply

    def model(messages):
        threads.append(threading.current_thread())
        return later(REPLIES[turn_of(messages)])

    result = in_task(Agent(model, tools=[Desk("plain", is_async=False).tool]).run, "go")
    assert result.value == "done"
    assert threading.main_thread() not in threads
