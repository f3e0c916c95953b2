"""Tasks that a function of the program checks before anything is asked."""

import asyncio

import pytest

from callslip import Agent, Context, ScriptedModel, TicketStore, UsageError
from reading import read_to_end
from scripted import delegate, finish, give, task_of, turn_of, wait


class RefusedError(Exception):
    """The program's own."""


def refuse(task, context):
    if "secret" in task:
        raise RefusedError(f"no: {task}")


async def refuse_later(task, context):
    await asyncio.sleep(0)
    refuse(task, context)


@pytest.fixture(params=[refuse, refuse_later], ids=["sync", "async"])
def check(request):
    return request.param


def run_sync(agent, task):
    return agent.run_sync(task)


def run(agent, task):
    return asyncio.run(agent.run(task))


def stream(agent, task):
    async def main():
        async with agent.stream(task) as run:
            async for _ in run:
                pass
        return run.result

    return asyncio.run(main())


def stream_sync(agent, task):
    stream = agent.stream_sync(task)
    list(stream)
    return stream.result


def start(agent, task):
    async def main():
        return await agent.start(task)

    return asyncio.run(main())


@pytest.mark.parametrize("drive", [run_sync, run, stream, stream_sync, start])
def test_a_task_is_refused_before_anything_is_asked_or_written(tmp_path, check, drive):
    with TicketStore(tmp_path / "runs.sqlite") as store:
        model = ScriptedModel([finish("fine")])
        agent = Agent(model, check_task=check, store=store)
        with pytest.raises(RefusedError, match="no: the secret"):
            drive(agent, "the secret")
        assert model.requests == []
        assert store.runs() == []
        assert drive(agent, "the weather").value == "fine"


def test_the_check_has_the_context_of_the_run():
    seen = []

    def check(task, context: Context):
        seen.append((task, context.run_id, context.ticket_id, context.tool, context.deps))

    agent = Agent(ScriptedModel([finish()]), check_task=check)
    result = agent.run_sync("go", deps="deps")
    assert seen == [("go", result.run.id, "", "check_task", "deps")]


def test_the_task_is_checked_once_and_a_resumed_run_not_again(tmp_path):
    seen = []

    def model(messages):
        if len(seen) == 1 and not failed:
            failed.append(1)
            raise ConnectionError("gone")
        return finish()

    failed = []
    with TicketStore(tmp_path / "runs.sqlite") as store:
        agent = Agent(
            model,
            check_task=lambda task, context: seen.append(task),
            instructions=lambda context: "Be brief.",
            store=store,
        )
        with pytest.raises(Exception, match="gone") as caught:
            agent.run_sync("go")
        agent.resume_sync(caught.value.run.id).run.send_sync("more")
    assert seen == ["go"]


def test_tasks_that_a_model_delegates_are_not_checked():
    seen = []

    def model(messages):
        if task_of(messages) == "inner":
            return give("in")
        return [delegate("inner"), wait("T1"), give("out")][turn_of(messages)]

    agent = Agent(model, protocol="ticket", check_task=lambda task, context: seen.append(task))
    assert agent.run_sync("outer").value == "out"
    assert seen == ["outer"]


def test_those_who_watch_are_told():
    async def main():
        run = Agent(ScriptedModel([finish()]), check_task=refuse).start("the secret")
        with pytest.raises(RefusedError):
            await read_to_end(run.watch())
        return run

    assert asyncio.run(main()).log == []


def test_a_check_must_be_a_function():
    with pytest.raises(UsageError, match="expected check_task to be a function: got 'x'"):
        Agent(ScriptedModel([]), check_task="x")
