"""Instructions: where they stand in a prompt, when they are asked for, and whose runs have them."""

import asyncio
import json
import threading
from dataclasses import dataclass

import pytest

from callslip import (
    Agent,
    ChattyProtocol,
    FunctionModel,
    Limits,
    ModelError,
    ReactProtocol,
    Role,
    ScriptedModel,
    TicketProtocol,
    TicketStore,
    UsageError,
    replay,
    tool,
)
from scripted import (
    act,
    block,
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

KINDS = {"react": ReactProtocol, "chatty": ChattyProtocol, "ticket": TicketProtocol}
ANSWERS = {"react": finish("done"), "chatty": "done", "ticket": give("done")}
PLACES = {"react": "{instructions}", "chatty": "${instructions}", "ticket": "{{instructions}}"}
TOOLS = {
    "react": "{tools}",
    "chatty": "<tool></tool>{AVAILABLE_TOOLS_INTERFACE}",
    "ticket": "{{tool_spec}}",
}
TEXT = "You serve the customers of ACME: {be} ${brief} {{now}}."


@dataclass
class Deps:
    user: str


def greet(context):
    return f"The user is {context.deps.user}."


def prompt_of(run):
    return run.messages[0]["content"]


@tool
def weather(city: str) -> str:
    """Get the weather."""
    return city


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("returns", [None, int])
def test_instructions_are_the_end_of_the_built_in_prompt(kind, returns):
    def agent(**options):
        model = ScriptedModel([ANSWERS[kind]])
        return Agent(model, protocol=kind, tools=[weather], returns=returns, **options)

    plain, instructed = agent(), agent(instructions=f"\n  {TEXT}\n")
    assert TEXT not in plain.system_prompt
    assert not plain.system_prompt.endswith("\n\n")
    assert instructed.system_prompt == f"{plain.system_prompt}\n{TEXT}\n"
    assert agent(instructions=" \n").system_prompt == plain.system_prompt


@pytest.mark.parametrize("kind", KINDS)
def test_a_template_has_the_place_in_its_own_style(kind):
    template = f"A {PLACES[kind]} B {TOOLS[kind]} C"
    protocol = KINDS[kind](template=template)
    agent = Agent(ScriptedModel([]), protocol=protocol, instructions=TEXT)
    assert agent.system_prompt.startswith(f"A {TEXT} B ")
    assert agent.system_prompt.endswith(" C")
    assert Agent(ScriptedModel([]), protocol=protocol).system_prompt.startswith("A  B ")


@pytest.mark.parametrize("kind", KINDS)
def test_instructions_follow_a_template_without_the_place(kind):
    protocol = KINDS[kind](template=f"A {TOOLS[kind]} C\n")
    agent = Agent(ScriptedModel([]), protocol=protocol, instructions=TEXT)
    plain = Agent(ScriptedModel([]), protocol=protocol).system_prompt
    assert agent.system_prompt == f"{plain}\n{TEXT}\n"


def test_persona_is_another_name_of_the_place_in_react():
    protocol = ReactProtocol(template="You are a clerk. {persona}\n{tools}")
    agent = Agent(ScriptedModel([]), protocol=protocol, instructions="Be kind.")
    assert agent.system_prompt.startswith("You are a clerk. Be kind.\n")
    assert agent.system_prompt.count("Be kind.") == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_built_in_template_can_be_read_and_changed(kind):
    protocol = KINDS[kind]()
    assert PLACES[kind] in protocol.template
    assert TOOLS[kind].removeprefix("<tool></tool>") in protocol.template
    same = KINDS[kind](template=protocol.template)
    assert same == protocol
    assert same.system_prompt([weather]) == protocol.system_prompt([weather])
    changed = KINDS[kind](template=f"Changed.\n\n{protocol.template}")
    assert changed.system_prompt([weather]).startswith("Changed.\n\n")
    assert "weather" in changed.system_prompt([weather])
    assert TEXT in changed.system_prompt([weather], instructions=TEXT)


def test_the_template_of_a_file_is_read(tmp_path):
    path = tmp_path / "prompt.txt"
    path.write_text("{tools} {instructions}")
    protocol = ReactProtocol(template=path)
    assert protocol.template == path
    assert protocol.system_prompt(instructions="Be brief.").endswith(" Be brief.")


def test_instructions_that_name_a_tool_are_not_taken_for_the_template():
    protocol = ReactProtocol(template="{tools}")
    Agent(ScriptedModel([]), protocol=protocol, instructions="Never ask for execute_python_code.")


@pytest.mark.parametrize("given", [1, b"x", ["x"], str, "\ud800"])
def test_other_instructions_are_refused(given):
    with pytest.raises(UsageError, match="instructions"):
        Agent(ScriptedModel([]), instructions=given)


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path):
    """A store; that of a file writes a part of each log apart."""
    with TicketStore(None if request.param == "memory" else tmp_path / "runs.sqlite") as store:
        yield store


def by_run(how):
    """Run a task in one of the ways that there are. Returns the run."""

    async def streamed(agent, task, **options):
        async with agent.stream(task, **options) as run:
            async for _ in run:
                pass
        return run.run

    ways = {
        "sync": lambda agent, task, **options: agent.run_sync(task, **options).run,
        "async": lambda agent, task, **options: asyncio.run(agent.run(task, **options)).run,
        "stream": lambda agent, task, **options: asyncio.run(streamed(agent, task, **options)),
    }
    return ways[how]


@pytest.fixture(params=["sync", "async", "stream"])
def start(request):
    return by_run(request.param)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_function_is_called_once_a_run(start, is_async):
    contexts = []

    def now(context):
        contexts.append(context)
        return f" Call {len(contexts)} for {context.deps.user}. "

    async def later(context):
        await asyncio.sleep(0)
        return now(context)

    model = ScriptedModel([act("weather", city="Oslo"), finish("1"), finish("2")])
    agent = Agent(model, tools=[weather], instructions=later if is_async else now)
    first = start(agent, "x", deps=Deps("Ann"))
    second = start(agent, "x", deps=Deps("Bob"))
    assert prompt_of(first) == f"{agent.system_prompt}\nCall 1 for Ann.\n"
    assert prompt_of(second) == f"{agent.system_prompt}\nCall 2 for Bob.\n"
    assert [(one.run_id, one.ticket_id, one.tool) for one in contexts] == [
        (first.id, "", "instructions"),
        (second.id, "", "instructions"),
    ]
    kept = [one.log[0] for one in (first, second)]
    assert [one.instructions["text"] for one in kept] == ["Call 1 for Ann.", "Call 2 for Bob."]
    # A store keeps one setup of all runs.
    assert kept[0].setup == kept[1].setup
    assert replay(first.export()).messages == first.messages


def test_text_is_kept_with_the_run(start):
    run = start(Agent(ScriptedModel([finish()]), instructions="Be brief."), "x")
    assert run.log[0].setup["instructions"] == "Be brief."
    plain = start(Agent(ScriptedModel([finish()])), "x")
    assert "instructions" not in plain.log[0].setup
    assert replay(run.export()).messages == run.messages


def test_a_function_that_fails_is_raised_and_nothing_is_written_down(start):
    def broken(context):
        raise KeyError("no such user")

    store = TicketStore()
    agent = Agent(ScriptedModel([finish()]), instructions=broken, store=store)
    with pytest.raises(KeyError, match="no such user"):
        start(agent, "x")
    assert store.runs() == []
    assert start(agent.replace(instructions="Be brief."), "x").finished


@pytest.mark.parametrize("returned", [None, 3, b"x"])
def test_a_function_returns_text(start, returned):
    agent = Agent(ScriptedModel([finish()]), instructions=lambda context: returned)
    with pytest.raises(UsageError, match="instructions returns to be text"):
        start(agent, "x")


def test_a_function_that_gives_no_text_leaves_no_trace(start):
    agent = Agent(ScriptedModel([finish()]), instructions=lambda context: "")
    assert prompt_of(start(agent, "x")) == Agent(ScriptedModel([])).system_prompt


def test_a_sync_function_does_not_hold_the_event_loop():
    entered, left = threading.Event(), threading.Event()

    def slow(context):
        entered.set()
        assert left.wait(10)
        return "Be brief."

    async def main():
        task = asyncio.ensure_future(Agent(ScriptedModel([finish()]), instructions=slow).run("x"))
        while not entered.is_set():
            await asyncio.sleep(0.001)
        left.set()
        return await task

    assert "Be brief." in asyncio.run(main()).messages[0]["content"]


def test_a_resumed_run_has_the_text_that_it_was_started_with(store):
    calls = []

    def now(context):
        calls.append(context)
        return f"Call {len(calls)}."

    def failing(messages):
        raise RuntimeError("no service")

    agent = Agent(FunctionModel(failing), instructions=now, store=store)
    with pytest.raises(ModelError) as caught:
        agent.run_sync("x")
    run_id = caught.value.run.id
    again = agent.replace(model=ScriptedModel([finish(), finish("more")]))
    result = again.resume_sync(run_id)
    assert result.messages[0]["content"].endswith("\nCall 1.\n")
    store.compact(run_id)
    assert result.run.send_sync("More?").messages[0]["content"].endswith("\nCall 1.\n")
    assert len(calls) == 1


def counting():
    calls = []

    def instructions(context):
        calls.append(context)
        return f"Call {len(calls)} for {context.deps.user}."

    return calls, instructions


def test_a_delegated_task_has_the_text_of_its_run(start):
    def reply(messages):
        if task_of(messages) == "part":
            return give("1")
        return [delegate("part"), wait("T1"), load("T1"), give("2")][turn_of(messages)]

    calls, instructions = counting()
    agent = Agent(FunctionModel(reply), protocol="ticket", instructions=instructions)
    run = start(agent, "whole", deps=Deps("Ann"))
    (child,) = run.children
    assert prompt_of(child).endswith("\nCall 1 for Ann.\n")
    assert child.log[0].instructions["text"] == "Call 1 for Ann."
    assert len(calls) == 1


@pytest.mark.parametrize("role", [None, Role(tools=[]), Role(protocol="react")])
def test_a_role_has_the_text_of_the_run_that_spawns_it(start, role):
    def reply(messages):
        if "part" in task_of(messages):
            return finish("1") if role is not None and role.protocol else "1"
        replies = [block(spawn("a", "part", "Worker"), wait_for("$a")), "2"]
        return replies[turn_of(messages)]

    calls, instructions = counting()
    agent = Agent(
        FunctionModel(reply),
        protocol="chatty",
        delegate=True,
        instructions=instructions,
        roles=None if role is None else {"Worker": role},
    )
    run = start(agent, "whole", deps=Deps("Ann"))
    assert prompt_of(run.children[0]).endswith("\nCall 1 for Ann.\n")
    assert len(calls) == 1


def test_another_agent_has_its_own_instructions_and_the_same_deps(start):
    calls, instructions = counting()
    inner = Agent(ScriptedModel([finish("1")]), name="inner", instructions=instructions)
    outer = Agent(
        ScriptedModel([act("inner", task="part"), finish("2")]),
        tools=[inner.as_tool()],
        instructions="I am the outer one.",
    )
    run = start(outer, "whole", deps=Deps("Ann"))
    assert prompt_of(run).endswith("\nI am the outer one.\n")
    assert prompt_of(run.children[0]).endswith("\nCall 1 for Ann.\n")
    assert [one.run_id for one in calls] == [run.children[0].id]


def test_a_child_that_is_started_after_a_crash_has_the_text_of_its_run(store):
    """The log ends where the child is to start."""

    def reply(messages):
        if task_of(messages) == "part":
            return give("1")
        return [delegate("part"), wait("T1"), load("T1"), give("2")][turn_of(messages)]

    _, instructions = counting()
    agent = Agent(FunctionModel(reply), protocol="ticket", instructions=instructions)
    lines = agent.run_sync("whole", deps=Deps("Ann")).run.export().splitlines(keepends=True)
    opened = next(at for at, line in enumerate(lines) if "ticket_opened" in line)
    run_id = store.import_run("".join(lines[: opened + 1]))
    calls, instructions = counting()
    result = agent.replace(store=store, instructions=instructions).resume_sync(run_id)
    assert result.value == "2"
    assert prompt_of(result.run.children[0]).endswith("\nCall 1 for Ann.\n")
    assert calls == []


def test_long_instructions_are_kept_whole():
    long = "Be brief. " * 10_000
    result = Agent(ScriptedModel([finish()]), instructions=long, limits=Limits(turns=1)).run_sync(
        "x"
    )
    assert (
        json.loads(result.run.export().splitlines()[0])["event"]["run_started"]["setup"][
            "instructions"
        ]
        == long.strip()
    )


def test_a_store_keeps_one_setup_of_runs_with_different_instructions(tmp_path):
    with TicketStore(tmp_path / "runs.sqlite") as store:
        model = FunctionModel(lambda messages: finish())
        agent = Agent(model, instructions=lambda context: f"You are {context.run_id}.", store=store)
        runs = [agent.run_sync("x", limits=Limits(turns=turns)).run for turns in range(1, 9)]
        assert all(prompt_of(store.run(run.id)).endswith(f"You are {run.id}.\n") for run in runs)
        assert store.query("SELECT count(*) AS blobs FROM blob") == [{"blobs": 1}]


def test_a_run_that_is_cancelled_before_it_has_instructions_never_began():
    async def main():
        entered = asyncio.Event()

        async def waits(context):
            entered.set()
            await asyncio.Event().wait()

        store = TicketStore()
        agent = Agent(ScriptedModel([]), instructions=waits, store=store)
        task = asyncio.ensure_future(agent.run("x"))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return store.runs()

    assert asyncio.run(main()) == []


async def go_on(how, agent, run):
    if how == "resume":
        agent.store.run(run.id).send("again")
        return await agent.resume(run.id)
    if how == "send":
        return await run.send("again")
    if how == "start":
        return await agent.start(run=run.id, say="again")
    async with agent.stream(run=run.id, say="again") as stream:
        async for _ in stream:
            pass
        return stream.result


@pytest.mark.parametrize("how", ["resume", "send", "start", "stream"])
def test_a_finished_run_takes_its_next_turn_with_the_text_of_the_first(store, how):
    async def main():
        calls, instructions = counting()
        model = ScriptedModel([finish("one"), finish("two")])
        agent = Agent(model, instructions=instructions, store=store)
        run = (await agent.run("x", deps=Deps("Ann"))).run
        result = await go_on(how, agent, run)
        return result.value, len(calls), prompt_of(result.run)

    value, calls, prompt = asyncio.run(main())
    assert (value, calls) == ("two", 1)
    assert prompt.endswith("\nCall 1 for Ann.\n")


@pytest.mark.parametrize("how", ["resume", "start"])
def test_a_run_whose_model_failed_goes_on_with_its_text(store, how):
    async def main():
        calls, instructions = counting()
        model = ScriptedModel([ConnectionError("away"), finish("two")])
        agent = Agent(model, instructions=instructions, store=store)
        with pytest.raises(ModelError) as failed:
            await agent.run("x", deps=Deps("Ann"))
        run_id = failed.value.run.id
        result = await (agent.resume(run_id) if how == "resume" else agent.start(run=run_id))
        return result.value, len(calls)

    assert asyncio.run(main()) == ("two", 1)
