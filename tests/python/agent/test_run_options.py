"""Options of one run (deps, limits, messages), agents like others, and overrides."""

import asyncio
import dataclasses
import gc
import pickle
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import pytest

from callslip import (
    Agent,
    Context,
    FunctionModel,
    KeepLast,
    LimitExceeded,
    Limits,
    ModelError,
    Retry,
    Role,
    ScriptedModel,
    TicketProtocol,
    TicketStore,
    UsageError,
    replay,
    tool,
)
from callslip.protocols import find_protocol
from scripted import (
    act,
    asked,
    block,
    call,
    delegate,
    finish,
    give,
    load,
    spawn,
    task_of,
    turn_of,
    wait,
    wait_for,
)
from serving import eventually

EARLIER = [
    {"role": "user", "content": "I am Ann."},
    {"role": "assistant", "content": "Hello Ann."},
]


class Deps:
    def __init__(self, user="Ann"):
        self.user = user

    def __repr__(self):
        return "a secret"

    def __reduce__(self):
        raise AssertionError("deps are never written down")


@tool
def who(context: Context[Deps]) -> str:
    """Say who the user is."""
    return context.deps.user


@tool
async def who_later(context: Context) -> str:
    """Say who the user is."""
    await asyncio.sleep(0)
    return context.deps.user


async def _streamed(agent, task, **options):
    async with agent.stream(task, **options) as run:
        async for _ in run:
            pass
    return run.result


WAYS = {
    "sync": lambda agent, task, **options: agent.run_sync(task, **options),
    "async": lambda agent, task, **options: asyncio.run(agent.run(task, **options)),
    "stream": lambda agent, task, **options: asyncio.run(_streamed(agent, task, **options)),
}


@pytest.fixture(params=WAYS)
def start(request):
    return WAYS[request.param]


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path):
    """A store; that of a file writes a part of each log apart."""
    with TicketStore(None if request.param == "memory" else tmp_path / "runs.sqlite") as store:
        yield store


# --- deps


@pytest.mark.parametrize("function", [who, who_later])
def test_tools_have_the_deps_of_their_run(start, function):
    model = ScriptedModel([act(function.name), finish("1"), act(function.name), finish("2")])
    agent = Agent(model, tools=[function])
    assert [start(agent, "x", deps=Deps(user)).tickets[0].result for user in ("Ann", "Bob")] == [
        "Ann",
        "Bob",
    ]


def test_without_deps_there_are_none(start):
    @tool
    def none(context: Context) -> bool:
        return context.deps is None

    result = start(Agent(ScriptedModel([act("none"), finish()]), tools=[none]), "x")
    assert result.tickets[0].result is True


@pytest.mark.parametrize(
    "annotation",
    [Context[Deps], Context[Deps] | None, Annotated[Context[Deps], "x"], Context | None],
)
def test_a_context_with_its_type_is_hidden_from_the_model(annotation):
    def plain(city: str, context) -> str:
        return city

    plain.__annotations__["context"] = annotation
    assert list(tool(plain).parameters["properties"]) == ["city"]


def test_a_check_of_answers_has_the_deps(start):
    def check(value, context: Context[Deps]):
        if context.deps.user not in value:
            raise Retry(f"name {context.deps.user}")

    model = ScriptedModel([finish("Hello."), finish("Hello Ann.")])
    result = start(Agent(model, check_answer=check), "x", deps=Deps())
    assert result.value == "Hello Ann."
    assert "name Ann" in result.messages[-2]["content"]


def test_deps_are_not_written_down(start, tmp_path):
    def broken(context: Context[Deps]) -> str:
        raise ValueError(f"{context!r}")

    path = tmp_path / "runs.sqlite"
    with TicketStore(path) as store:
        agent = Agent(ScriptedModel([act("broken"), finish()]), tools=[broken], store=store)
        run = start(agent, "x", deps=Deps()).run
        assert "ValueError: Context(" in run.tickets[0].error
        assert "a secret" not in run.export() + repr(run) + repr(run.messages)
    assert b"a secret" not in b"".join(one.read_bytes() for one in tmp_path.iterdir())
    assert pickle.dumps(run.log)


def test_child_runs_have_the_same_deps(start):
    def reply(messages):
        if task_of(messages) == "part":
            return [call("/who"), wait("T1"), give("1")][turn_of(messages)]
        return [delegate("part"), wait("T1"), load("T1"), give("2")][turn_of(messages)]

    agent = Agent(FunctionModel(reply), protocol="ticket", tools=[who])
    run = start(agent, "whole", deps=Deps()).run
    assert run.children[0].tickets[0].result == "Ann"


def test_a_run_that_a_tool_starts_has_the_deps_of_the_run_that_calls_or_its_own():
    inner = Agent(ScriptedModel([act("who"), finish(), act("who"), finish()]), tools=[who])

    @tool
    async def ask(context: Context) -> list:
        same = await inner.run("x")
        other = await inner.run("x", deps=Deps("Bob"))
        return [one.tickets[0].result for one in (same, other)]

    outer = Agent(ScriptedModel([act("ask"), finish()]), tools=[ask])
    assert outer.run_sync("x", deps=Deps()).tickets[0].result == ["Ann", "Bob"]


def failing(messages):
    raise RuntimeError("no service")


def interrupted(agent, task="x", **options):
    """The id of a run whose model has failed."""
    with agent.override(model=failing), pytest.raises(ModelError) as caught:
        agent.run_sync(task, **options)
    return caught.value.run.id


@pytest.mark.parametrize("how", ["resume", "resume_sync", "resume_all", "resume_all_sync"])
def test_a_resumed_run_takes_deps_again(how):
    agent = Agent(ScriptedModel([act("who"), finish()]), tools=[who], store=TicketStore())
    run_id = interrupted(agent, deps=Deps())
    one = {"resume": "resume_sync", "resume_sync": "resume_sync"}.get(how)
    if how == "resume":
        result = asyncio.run(agent.resume(run_id, deps=Deps("Bob")))
    elif one:
        result = agent.resume_sync(run_id, deps=Deps("Bob"))
    else:
        # Such a run is over: one that is in progress in the log is made from it.
        lines = agent.store.run(run_id).export().splitlines(keepends=True)
        agent = agent.replace(store=TicketStore())
        agent.store.import_run("".join(lines[:2]))
        every = (
            asyncio.run(agent.resume_all(deps=Deps("Bob")))
            if how == "resume_all"
            else agent.resume_all_sync(deps=Deps("Bob"))
        )
        result = every[run_id]
    assert result.tickets[0].result == "Bob"


def test_a_conversation_keeps_its_deps_or_takes_others():
    model = ScriptedModel([finish("1"), *[act("who"), finish("2")] * 3])
    agent = Agent(model, tools=[who])
    run = agent.run_sync("x", deps=Deps()).run
    assert run.send_sync("y").tickets[-1].result == "Ann"
    assert run.send_sync("z", deps=Deps("Bob")).tickets[-1].result == "Bob"

    async def more():
        return await run.send("z", deps=Deps("Cid"))

    assert asyncio.run(more()).tickets[-1].result == "Cid"


def test_a_stream_continues_with_other_deps():
    async def main():
        model = ScriptedModel([finish("1"), act("who"), finish("2")])
        async with Agent(model, tools=[who]).stream("x", deps=Deps()) as run:
            async for _ in run:
                pass
            await run.send("y", deps=Deps("Bob"))
            return run.result.tickets[0].result

    assert asyncio.run(main()) == "Bob"


def test_a_run_in_progress_takes_no_other_deps():
    seen = []

    @tool
    def meddle(context: Context) -> str:
        with pytest.raises(UsageError, match="in progress"):
            seen[0].send("more", deps=Deps())
        return "ok"

    async def main():
        model = ScriptedModel([act("meddle"), finish()])
        async with Agent(model, tools=[meddle]).stream("x") as run:
            seen.append(run.run)
            async for _ in run:
                pass
            return run.result.tickets[0].result

    assert asyncio.run(main()) == "ok"


def test_deps_are_gone_with_their_run():
    deps = Deps()
    gone = weakref.ref(deps)
    Agent(ScriptedModel([act("who"), finish()]), tools=[who]).run_sync("x", deps=deps)
    del deps
    # A collection of another thread has ours do nothing.
    assert eventually(lambda: gc.collect() >= 0 and gone() is None)


# --- limits of a run


def test_a_run_has_its_own_limits(start):
    model = FunctionModel(lambda messages: act("who", n=turn_of(messages)))

    @tool(name="who")
    def ask(n: int) -> int:
        return n

    agent = Agent(model, tools=[ask], limits=Limits(turns=9), on_limit="raise")
    with pytest.raises(LimitExceeded) as caught:
        start(agent, "x", limits=Limits(turns=2))
    assert caught.value.run.turns == 2
    with pytest.raises(LimitExceeded) as caught:
        start(agent, "x")
    assert caught.value.run.turns == 9


def test_a_resumed_run_keeps_its_own_limits(store):
    replies = [act("who", n=at) for at in range(9)]

    @tool(name="who")
    def ask(n: int) -> int:
        return n

    agent = Agent(ScriptedModel(replies), tools=[ask], on_limit="raise", store=store)
    run_id = interrupted(agent, limits=Limits(turns=3, depth=7))
    with pytest.raises(LimitExceeded) as caught:
        agent.resume_sync(run_id)
    assert caught.value.run.turns == 3
    assert caught.value.run.log[0].limits["depth"] == 7


def deeper(messages):
    """Delegate the rest of a task of letters, as long as that is offered."""
    task = task_of(messages)
    if turn_of(messages) == 0 and len(task) > 1 and "DELEGATE" in messages[0]["content"]:
        return delegate(task[1:])
    if turn_of(messages) == 1 and len(task) > 1 and "DELEGATE" in messages[0]["content"]:
        return wait("T1")
    return give(task)


def levels(run):
    return 1 + max((levels(child) for child in run.children), default=0)


@pytest.mark.parametrize(("own", "of_run", "found"), [(4, 1, 2), (1, 3, 4), (0, 2, 3), (2, 0, 1)])
def test_the_levels_of_a_run_are_those_of_its_own_limits(start, own, of_run, found):
    agent = Agent(FunctionModel(deeper), protocol="ticket", limits=Limits(depth=own))
    assert levels(start(agent, "abcdefgh", limits=Limits(depth=of_run)).run) == found
    assert levels(start(agent, "abcdefgh").run) == own + 1


@pytest.mark.parametrize(("own", "of_run", "found"), [(4, 1, 2), (1, 3, 4), (0, 2, 3), (2, 0, 1)])
def test_a_resumed_run_has_the_levels_of_its_own_limits(own, of_run, found, store):
    agent = Agent(FunctionModel(deeper), protocol="ticket", limits=Limits(depth=own), store=store)
    run_id = interrupted(agent, "abcdefgh", limits=Limits(depth=of_run))
    assert levels(agent.resume_sync(run_id).run) == found


def test_agents_as_tools_are_offered_by_the_limits_of_the_run(start):
    inner = Agent(ScriptedModel([finish("1")] * 9), name="inner").as_tool()
    model = ScriptedModel([finish()])
    agent = Agent(model, tools=[inner], store=TicketStore())
    run = start(agent, "x", limits=Limits(depth=0)).run
    assert "inner" not in run.messages[0]["content"]
    run_id = interrupted(agent, limits=Limits(depth=0))
    assert agent.replace(model=ScriptedModel([finish()])).resume_sync(run_id).value == "done"


def test_child_runs_of_the_same_agent_have_the_limits_of_the_run(start):
    def reply(messages):
        if task_of(messages) == "part":
            return "not a move"
        return [delegate("part"), wait("T1"), give("2")][turn_of(messages)]

    agent = Agent(FunctionModel(reply), protocol="ticket")
    run = start(agent, "whole", limits=Limits(max_violations=1)).run
    assert run.children[0].violations == 2


@pytest.mark.parametrize("given", [5, {"turns": 3}, "x"])
def test_other_limits_are_refused(start, given):
    with pytest.raises(UsageError, match="expected limits=Limits"):
        start(Agent(ScriptedModel([finish()])), "x", limits=given)


# --- an earlier conversation


@pytest.mark.parametrize("protocol", ["react", "chatty", "ticket"])
def test_an_earlier_conversation_stands_before_the_task(start, protocol):
    answer = {"react": finish("Ann"), "chatty": "Ann", "ticket": give("Ann")}[protocol]
    model = ScriptedModel([answer])
    shows_one = dataclasses.replace(find_protocol(protocol), examples=True)
    agent = Agent(model, protocol=shows_one, tools=[who])
    run = start(agent, "Who am I?", messages=EARLIER, deps=Deps()).run
    shown = model.requests[0].messages
    task = next(at for at, one in enumerate(shown) if one["content"].startswith("Who am I?"))
    assert shown[task - 2 : task] == EARLIER
    assert "Wexcombe" in shown[task - 3]["content"]
    assert task == len(shown) - 1
    assert run.log[0].messages == EARLIER
    assert run.task == "Who am I?"
    again = replay(run.export())
    assert again.messages == run.messages


def test_without_one_nothing_is_written_down(start):
    run = start(Agent(ScriptedModel([finish()])), "x", messages=[]).run
    assert run.log[0].messages == []


def test_a_run_with_an_earlier_conversation_is_resumed_and_compacted(store):
    agent = Agent(ScriptedModel([finish("1"), finish("2")]), store=store)
    run_id = interrupted(agent, messages=EARLIER)
    result = agent.resume_sync(run_id)
    assert list(asked(result.messages)[:2]) == EARLIER
    agent.store.compact(run_id)
    more = agent.store.run(run_id)
    assert list(asked(more.messages)[:2]) == EARLIER


def test_a_history_policy_keeps_the_earlier_conversation(start):
    @tool(name="who")
    def ask(n: int) -> int:
        return n

    model = ScriptedModel([*[act("who", n=at) for at in range(6)], finish()])
    agent = Agent(model, tools=[ask], history=KeepLast(2))
    run = start(agent, "Who am I?", messages=EARLIER).run
    assert run.turns == 7
    shown = model.requests[-1].messages
    opening = asked(shown)[:3]
    assert opening[:2] == EARLIER
    assert opening[2]["content"].startswith("Who am I?\n\n[")
    assert len(shown) < len(run.messages)
    exchanges = []
    every = Agent(
        ScriptedModel([act("who", n=1), finish()]),
        tools=[ask],
        history=lambda given: exchanges.append(given) or given,
    )
    start(every, "Who am I?", messages=EARLIER)
    assert [len(given) for given in exchanges] == [1]


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ("hello", "got str"),
        ({"role": "user", "content": "x"}, "got dict"),
        (5, "got int"),
        (["hello"], "message 1 .* got str"),
        ([*EARLIER, {"role": "user"}], r"message 3 .* got the keys \['role'\]"),
        ([{"role": "user", "content": "x", "name": "Ann"}], "message 1"),
        ([{"role": "system", "content": "x"}], "instructions"),
        ([{"role": "tool", "content": "x"}], "'user' or 'assistant' in message 1 .*: got 'tool'"),
        ([{"role": ["user"], "content": "x"}], "'user' or 'assistant'"),
        ([{"role": "user", "content": None}], "message 1 .* as text, or .*: got NoneType"),
        ([{"role": "user", "content": [{"text": "x"}]}], "files in .* message 1 .*: got dict"),
        ([{"role": "user", "content": " "}], "blank"),
        ([{"role": "user", "content": "\ud800"}], "surrogate"),
    ],
)
def test_other_messages_are_refused(start, messages, words):
    store = TicketStore()
    with pytest.raises(UsageError, match=words):
        start(Agent(ScriptedModel([finish()]), store=store), "x", messages=messages)
    assert store.runs() == []


# --- agents like others


def test_replace_changes_what_is_passed_and_keeps_the_rest():
    store = TicketStore()
    first, second = ScriptedModel([]), ScriptedModel([finish("5")])
    limits = Limits(turns=7)
    agent = Agent(
        first,
        protocol=TicketProtocol(grace=0.5),
        tools=[who],
        limits=limits,
        store=store,
        name="clerk",
        instructions="Be brief.",
        seed=3,
        history=KeepLast(3),
        on_limit="raise",
    )
    same = agent.replace()
    assert same is not agent
    for name in ("protocol", "limits", "store", "name", "history", "on_limit", "model"):
        assert getattr(same, name) is getattr(agent, name), name
    assert same.system_prompt == agent.system_prompt
    changed = agent.replace(model=second, protocol="react", instructions=None, tools=[])
    assert changed.model is second
    assert agent.model is first
    assert "Be brief." not in changed.system_prompt
    assert "who" not in changed.system_prompt
    assert "who" in agent.system_prompt
    assert changed.replace(returns=int).run_sync("x").value == 5
    assert changed.store is store


def test_what_follows_from_an_option_follows_anew():
    agent = Agent(ScriptedModel([]), protocol="ticket")
    assert agent.delegate is True
    assert agent.replace(protocol="react").delegate is False
    assert (
        Agent(ScriptedModel([]), protocol="ticket", delegate=True)
        .replace(protocol="react")
        .delegate
    )


def test_a_list_that_was_passed_may_change_later():
    tools, stop, roles = [who], ["END"], {"Worker": Role()}
    agent = Agent(ScriptedModel([]), protocol="chatty", tools=tools, stop=stop, roles=roles)
    tools.clear()
    stop.append("x")
    roles["Other"] = Role()
    same = agent.replace(model=ScriptedModel([]))
    assert "who" in same.system_prompt
    assert same._requested["stop"] == ["END"]
    assert set(same.roles) == {"Worker"}
    same.roles.clear()
    assert set(agent.roles) == {"Worker"}


def test_a_store_of_a_file_is_shared(tmp_path):
    agent = Agent(ScriptedModel([finish()]), store=str(tmp_path / "runs.sqlite"))
    same = agent.replace(name="other")
    assert same.store is agent.store
    assert same.run_sync("x").value == "done"
    agent.store.close()


def test_an_unknown_option_is_an_error():
    agent = Agent(ScriptedModel([]))
    with pytest.raises(TypeError, match="modle"):
        agent.replace(modle=ScriptedModel([]))
    with pytest.raises(TypeError, match="modle"), agent.override(modle=ScriptedModel([])):
        pytest.fail("the block was entered")
    with pytest.raises(UsageError, match=r"replace\(returns=…\)"), agent.override(returns=int):
        pytest.fail("the block was entered")
    with pytest.raises(UsageError, match="on_limit"), agent.override(on_limit="x"):
        pytest.fail("the block was entered")


def test_a_subclass_stays_one():
    class Own(Agent):
        pass

    assert type(Own(ScriptedModel([])).replace(name="x")) is Own


# --- overrides


def says(answer):
    return FunctionModel(lambda messages: finish(answer))


def test_an_override_holds_in_its_block(start):
    agent = Agent(says("real"))
    with agent.override(model=says("fake")):
        assert start(agent, "x").value == "fake"
        with agent.override(instructions="Be brief."):
            inner = start(agent, "x")
            assert inner.value == "fake"
            assert inner.messages[0]["content"].endswith("\nBe brief.\n")
        assert "Be brief." not in start(agent, "x").messages[0]["content"]
    assert start(agent, "x").value == "real"


def test_an_override_ends_with_an_exception():
    agent = Agent(says("real"))
    with pytest.raises(KeyError), agent.override(model=says("fake")):
        raise KeyError
    assert agent.run_sync("x").value == "real"


def test_tasks_and_threads_do_not_meet():
    agent = Agent(says("real"))

    async def one(answer, barrier):
        if answer is None:
            await barrier.wait()
            return (await agent.run("x")).value
        with agent.override(model=says(answer)):
            await barrier.wait()
            return (await agent.run("x")).value

    async def main():
        barrier = asyncio.Barrier(3)
        return await asyncio.gather(*[one(answer, barrier) for answer in ("1", "2", None)])

    assert asyncio.run(main()) == ["1", "2", "real"]
    barrier = threading.Barrier(3)

    def in_thread(answer):
        if answer is None:
            barrier.wait(10)
            return agent.run_sync("x").value
        with agent.override(model=says(answer)):
            barrier.wait(10)
            return agent.run_sync("x").value

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(in_thread, ["1", "2", None])) == ["1", "2", "real"]


def test_an_override_reaches_an_agent_that_is_a_tool(start):
    inner = Agent(says("real"), name="inner")
    replies = [act("inner", task="part"), finish()]
    outer = Agent(
        FunctionModel(lambda messages: replies[turn_of(messages)]), tools=[inner.as_tool()]
    )
    with inner.override(model=says("fake"), instructions="Be brief."):
        run = start(outer, "whole").run
    assert run.tickets[0].result == "fake"
    assert run.children[0].messages[0]["content"].endswith("\nBe brief.\n")
    assert start(outer, "whole").tickets[0].result == "real"


@pytest.mark.parametrize("is_role", [False, True])
def test_an_override_reaches_roles(start, is_role):
    def reply(messages):
        if "part" in task_of(messages):
            return "real"
        return [block(spawn("a", "part"), wait_for("$a")), "2"][turn_of(messages)]

    def fake(messages):
        return "fake" if "part" in task_of(messages) else reply(messages)

    worker = Agent(FunctionModel(reply), protocol="chatty", name="worker")
    agent = Agent(
        FunctionModel(reply),
        protocol="chatty",
        roles={"Worker": Role(tools=[]) if is_role else worker},
    )
    with (agent if is_role else worker).override(model=FunctionModel(fake)):
        assert start(agent, "whole").tickets[0].result == "fake"
    assert start(agent, "whole").tickets[0].result == "real"


def test_an_override_reaches_an_agent_that_a_tool_calls(start):
    inner = Agent(says("real"))

    @tool
    async def ask() -> str:
        return (await inner.run("part")).value

    replies = [act("ask"), finish()]
    outer = Agent(FunctionModel(lambda messages: replies[turn_of(messages)]), tools=[ask])
    with inner.override(model=says("fake")):
        assert start(outer, "whole").tickets[0].result == "fake"


def test_an_override_reaches_runs_that_are_resumed_or_continued(store):
    agent = Agent(says("real"), store=store)
    run_id = interrupted(agent)
    with agent.override(model=says("fake")):
        result = agent.resume_sync(run_id)
        assert result.value == "fake"
    # A run that was started in the block continues outside of it with what the agent has there.
    assert result.run.send_sync("more").value == "real"
    with agent.override(model=says("fake")):
        assert result.run.send_sync("more").value == "fake"


def test_an_override_of_tools_limits_and_store():
    def fake_who() -> str:
        return "Nobody"

    fake_who.__name__ = "who"
    model = FunctionModel(lambda messages: [act("who"), finish()][turn_of(messages)])
    agent = Agent(model, tools=[who])
    store = TicketStore()
    with agent.override(tools=[fake_who], store=store, limits=Limits(turns=3), name="fake"):
        run = agent.run_sync("x").run
    assert run.tickets[0].result == "Nobody"
    assert [(one.run_id, one.agent) for one in store.runs()] == [(run.id, "fake")]
    assert run.log[0].setup["limits"]["steps"] == 3
    assert agent.store is None


def test_tools_that_need_approval_are_found_by_what_is_in_effect():
    @tool(needs_approval=True)
    def pay() -> str:
        return "paid"

    inner = Agent(says("1"), name="inner")
    outer = Agent(says("2"), tools=[inner.as_tool()])
    assert outer.run_sync("x").value == "2"
    with inner.override(tools=[pay]), pytest.raises(UsageError, match="'pay' needs approval"):
        outer.run_sync("x")
    assert outer.run_sync("x").value == "2"


def test_the_model_is_readable():
    model = says("1")
    agent = Agent(model)
    assert agent.model is model
    assert agent.replace(model=agent.model).model is model
