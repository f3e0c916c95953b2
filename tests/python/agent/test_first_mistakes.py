"""Mistakes of newcomers: each message says what to do."""

import asyncio
import gc
import inspect
import sys
from types import SimpleNamespace

import pytest

from callslip import Agent, Limits, ReactProtocol, TicketStore, UsageError, as_model, show, tool

FINISH = '{"thought": "t", "action": "FINISH", "final_answer": "done", "task_successful": true}'


def model(messages):
    return FINISH


def look(word: str) -> str:
    """Look a word up."""
    return word


@pytest.mark.parametrize(
    ("option", "passed"),
    [
        ("system_prompt", "instructions=…"),
        ("max_turns", "limits=Limits(turns=…)"),
        ("output_type", "returns=…"),
        ("temperature", "it to as_model(client, temperature=…)"),
        ("memory", "store=… and a key= for each conversation"),
        ("tool", "tools=…"),
        ("instruction", "instructions=…"),
    ],
)
def test_options_of_agents_by_other_names(option, passed):
    with pytest.raises(TypeError) as caught:
        Agent(model, **{option: "x"})
    assert str(caught.value) == f"expected an option of Agent: got {option}; pass {passed}"
    with pytest.raises(TypeError, match="expected an option of Agent: got"):
        Agent(model).replace(**{option: "x"})


def test_an_option_like_none_lists_them():
    with pytest.raises(TypeError, match=r"got xyzzy; pass one of model, protocol, instructions, "):
        Agent(model, xyzzy=1)


@pytest.mark.parametrize(
    ("limit", "passed"),
    [("max_turns", "turns"), ("timeout", "seconds"), ("turn", "turns"), ("max_cost", "cost")],
)
def test_limits_by_other_names(limit, passed):
    with pytest.raises(TypeError) as caught:
        Limits(**{limit: 3})
    assert str(caught.value) == f"expected an option of Limits: got {limit}; pass {passed}=…"


@pytest.mark.parametrize(
    ("option", "passed"),
    [("read_only", "readonly=True"), ("max_retries", "retries=…"), ("descripton", "description=…")],
)
def test_options_of_tools_by_other_names(option, passed):
    with pytest.raises(TypeError) as caught:
        tool(**{option: True})(look)
    assert str(caught.value) == f"expected an option of tool: got {option}; pass {passed}"


@pytest.mark.parametrize("name", ["run", "run_sync", "start", "stream"])
def test_options_of_runs_by_other_names(name):
    method = getattr(Agent(model), name)
    with pytest.raises(TypeError) as caught:
        made = method("?", max_turns=3)
        if inspect.iscoroutine(made):
            asyncio.run(made)
    told = f"expected an option of {name}: got max_turns; pass limits=Limits(turns=…)"
    assert str(caught.value) == told


def test_what_is_checked_keeps_its_signature():
    assert inspect.iscoroutinefunction(Agent.run)
    assert not inspect.iscoroutinefunction(Agent.run_sync)
    assert "instructions" in inspect.signature(Agent).parameters
    assert "turns" in inspect.signature(Limits).parameters
    assert next(iter(inspect.signature(tool).parameters)) == "function"


def test_a_class_in_place_of_its_object():
    with pytest.raises(UsageError, match=r"got the class ReactProtocol; pass ReactProtocol\(\)"):
        Agent(model, protocol=ReactProtocol)

    class Client:
        """A client."""

    with pytest.raises(UsageError, match=r"got the class .*Client; pass .*Client\(\)"):
        as_model(Client)


def test_messages_as_the_task():
    with pytest.raises(UsageError, match=r"pass earlier messages as messages=\[…\]"):
        Agent(model).run_sync([{"role": "user", "content": "?"}])


def test_a_stream_that_is_not_entered():
    async def awaited():
        await Agent(model).stream("?")

    async def looped():
        for _ in Agent(model).stream("?"):
            pass

    for wrong in (awaited, looped):
        with pytest.raises(UsageError, match=r"use async with agent.stream\(…\) as run"):
            asyncio.run(wrong())


BLOCKING = {
    "agent.run_sync": lambda agent, run: agent.run_sync("?"),
    "agent.stream_sync": lambda agent, run: agent.stream_sync("?"),
    "agent.resume_sync": lambda agent, run: agent.resume_sync(run.id),
    "agent.resume_all_sync": lambda agent, run: agent.resume_all_sync(),
    "run.send_sync": lambda agent, run: run.send_sync("And?"),
}


@pytest.mark.parametrize(("called", "call"), BLOCKING.items(), ids=BLOCKING)
def test_a_sync_call_in_a_running_loop_says_what_to_await(called, call):
    agent = Agent(model, store=TicketStore())
    run = agent.run_sync("?").run

    async def blocked():
        return call(agent, run)

    instead = called.removesuffix("_sync")
    told = rf"{called} stops the running event loop.*: use await {instead}\(…\)"
    with pytest.warns(RuntimeWarning, match=told) as warned:
        assert asyncio.run(blocked()) is not None
    assert [one.filename for one in warned] == [__file__]


def test_a_notebook_is_told_nothing_of_its_loop(monkeypatch):
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))

    async def cell():
        return Agent(model).run_sync("?").value

    assert asyncio.run(cell()) == "done"


def test_a_thread_without_a_loop_is_told_nothing():
    async def handler():
        return await asyncio.to_thread(Agent(model).run_sync, "?")

    assert asyncio.run(handler()).value == "done"


def test_what_is_shown_is_awaited_or_told():
    async def forgotten():
        assert "use await show(…)" in repr(show(Agent(model).stream("?")))
        gc.collect()

    async def iterated():
        async for _ in show(Agent(model).stream("?")):
            pass

    with pytest.warns(RuntimeWarning, match=r"never awaited.*: use await show\(…\)"):
        asyncio.run(forgotten())
    asyncio.run(iterated())
    gc.collect()
