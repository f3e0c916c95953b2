"""Tasks given to other runs: DELEGATE, delegate_task, agents as tools."""

import asyncio
import json
import time

import pytest

from callslip import (
    Agent,
    FunctionModel,
    Limits,
    ModelError,
    ProtocolError,
    ScriptedModel,
    TicketProtocol,
    ToolError,
    replay,
    tool,
)
from scripted import (
    act,
    asked,
    call,
    call_once,
    delegate,
    finish,
    give,
    load,
    task_of,
    turn_of,
    wait,
)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def by_task(scripts, default=None):
    """A model that follows the script of its run's task, turn by turn."""

    def reply(messages):
        script = scripts.get(task_of(messages), default)
        given = script[turn_of(messages)]
        if isinstance(given, BaseException):
            raise given
        return given(messages) if callable(given) else given

    return FunctionModel(reply)


def loaded(messages):
    """What the last LOAD_TICKET put before the model."""
    title, result = messages[-1]["content"].splitlines()[:2]
    assert title.startswith("Result of ticket T")
    return json.loads(result)


@pytest.fixture(params=["async", "sync"])
def run(request):
    def run(agent, task):
        if request.param == "sync":
            return agent.run_sync(task)
        return asyncio.run(agent.run(task))

    return run


def test_a_task_is_delegated_awaited_and_loaded(run):
    model = by_task(
        {
            "whole": [
                delegate("part"),
                wait("T1"),
                load("T1"),
                lambda messages: give({"got": loaded(messages)}),
            ],
            "part": [call("/add", {"a": 1, "b": 2}), wait("T1"), give({"n": 3})],
        }
    )
    result = run(Agent(model, protocol="ticket", tools=[add]), "whole")
    assert result.value == {"got": {"n": 3}}
    (ticket,) = result.tickets
    assert (ticket.id, ticket.kind, ticket.tool) == ("T1", "task", "DELEGATE")
    assert (ticket.description, ticket.status, ticket.outcome) == ("part", "COMPLETED", "ok")
    (child,) = result.run.children
    assert (child.id, child.task) == (f"{result.run.id}.T1", "part")
    assert child.stop_reason == "finished"
    assert [ticket.id for ticket in child.tickets] == ["T1"]
    for one in (result.run, child):
        assert replay(one).export() == one.export()


def test_the_model_goes_on_while_the_child_works():
    def slow(messages):
        time.sleep(0.4)
        return give("late")

    model = by_task({"whole": [delegate("part"), wait("T1"), give("ok")], "part": [slow]})
    result = Agent(model, protocol="ticket").run_sync("whole")
    second = asked(result.messages)[2]["content"]
    assert json.loads(second.partition("Tickets:\n")[2]) == [
        {"id": "T0", "description": "your own task: whole", "status": "IN_PROGRESS"},
        {"id": "T1", "description": "part", "status": "IN_PROGRESS"},
    ]


def test_await_loads_the_result_of_a_task_where_it_is_to(run):
    model = by_task(
        {
            "whole": [delegate("part"), wait("T1"), lambda messages: give(loaded(messages))],
            "part": [give([1, 2])],
        }
    )
    agent = Agent(model, protocol=TicketProtocol(await_loads=True, grace=60))
    assert run(agent, "whole").value == [1, 2]


def test_a_child_that_fails_is_loaded_as_an_error(run):
    model = by_task(
        {
            "whole": [
                delegate("part"),
                wait("T1"),
                load("T1"),
                lambda messages: give(loaded(messages)),
            ],
            "part": [ConnectionError("no line")],
        }
    )
    result = run(Agent(model, protocol="ticket"), "whole")
    assert list(result.value) == ["error"]
    assert "ConnectionError: no line" in result.value["error"]
    assert result.tickets[0].outcome == "error"
    assert result.run.children[0].stop_reason == "model_error"


KEY = "sk-ant-api03-0123456789abcdef"


def refuses(messages):
    raise PermissionError(f"{KEY} is not known to https://u:pw@models.test/?token=zzz")


@pytest.mark.parametrize("how", ["delegate", "tool"])
def test_what_a_model_client_says_is_told_to_no_other_model_unredacted(run, how):
    if how == "delegate":
        model = by_task(
            {"whole": [delegate("part"), wait("T1"), load("T1"), give("x")], "part": [refuses]}
        )
        agent = Agent(model, protocol="ticket")
    else:
        broken = Agent(FunctionModel(refuses), name="broken").as_tool()
        agent = Agent(ScriptedModel([act("broken", task="x"), finish()]), tools=[broken])
    result = run(agent, "whole")
    told = str(result.messages)
    assert "PermissionError: … is not known to https://…@models.test/?token=…" in told
    assert not [secret for secret in (KEY, "u:pw", "zzz") if secret in told]
    # Logs are kept and sent on, so they have no secrets either.
    log = str(result.run.children[0].log)
    assert not [secret for secret in (KEY, "u:pw", "zzz") if secret in log]


def test_the_program_has_the_exception_of_a_model_client_as_it_was_raised(run):
    with pytest.raises(ModelError) as failed:
        run(Agent(FunctionModel(refuses)), "whole")
    assert KEY in str(failed.value.__cause__)
    assert KEY not in str(failed.value.run.log)


def test_a_child_that_breaks_the_protocol_fails_and_its_parent_goes_on(run):
    model = by_task({"whole": [delegate("part"), wait("T1"), give("ok")], "part": ["nonsense"] * 9})
    result = run(Agent(model, protocol="ticket"), "whole")
    assert result.value == "ok"
    assert result.run.children[0].stop_reason == "violations"
    assert "ProtocolError" in result.tickets[0].error


def test_the_own_task_cannot_be_delegated():
    model = ScriptedModel([delegate(" the  task\n"), give("ok")])
    result = Agent(model, protocol="ticket").run_sync("the task")
    (event,) = [event for event in result.run.log if event.kind == "violated"]
    assert event.violation["code"] == "self_delegation"
    assert result.tickets == []


def test_a_blank_task_cannot_be_delegated():
    model = ScriptedModel([delegate("  "), give("ok")])
    result = Agent(model, protocol="ticket").run_sync("the task")
    assert result.run.violations == 1


def deeper(messages):
    """Delegates a task one level deeper, until that is refused."""
    level = int(task_of(messages).split()[-1])
    match turn_of(messages):
        case 0:
            return delegate(f"level {level + 1}")
        case 1 if "not executed" in messages[-1]["content"]:
            return give([level])
        case 1:
            return wait("T1")
        case 2:
            return load("T1")
        case _:
            return give([level, *loaded(messages)])


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_delegation_goes_as_deep_as_the_limit(run, depth):
    agent = Agent(deeper, protocol="ticket", limits=Limits(depth=depth))
    assert run(agent, "level 0").value == list(range(depth + 1))


def test_the_depth_of_the_root_holds_for_all_below():
    inner = Agent(deeper, protocol="ticket", limits=Limits(depth=9), name="inner")
    model = ScriptedModel([act("inner", task="level 1"), finish()])
    outer = Agent(model, tools=[inner.as_tool()], limits=Limits(depth=3))
    assert outer.run_sync("level 0").tickets[0].result == [1, 2, 3]


def test_a_chain_50_deep(run):
    agent = Agent(deeper, protocol="ticket", limits=Limits(depth=50, turns=5))
    result = run(agent, "level 0")
    assert result.value == list(range(51))
    deepest = result.run
    while deepest.children:
        (deepest,) = deepest.children
    assert deepest.id.count(".") == 50


def test_three_children_work_at_the_same_time(run):
    at_work = []

    async def model(messages):
        if task_of(messages) != "whole":
            at_work.append(task_of(messages))
            # None ends before all have begun.
            until = time.monotonic() + 60
            while len(at_work) < 3 and time.monotonic() < until:
                await asyncio.sleep(0.01)
            return give("ok" if len(at_work) == 3 else "alone")
        script = [*(delegate(f"part {n}") for n in range(3)), *(wait(f"T{n}") for n in (1, 2, 3))]
        return [*script, give("ok")][turn_of(messages)]

    agent = Agent(model, protocol=TicketProtocol(grace=0))
    result = run(agent, "whole")
    assert [ticket.result for ticket in result.tickets] == ["ok"] * 3


def test_1000_children_of_one_parent():
    async def model(messages):
        if task_of(messages) != "whole":
            await asyncio.sleep(0.1)
            return give(task_of(messages))
        turn = turn_of(messages)
        return delegate(f"part {turn}") if turn < 1000 else give("ok")

    limits = Limits(turns=None, tickets=None, open_tickets=None, runs=1000)
    agent = Agent(model, protocol=TicketProtocol(grace=0), limits=limits)
    result = asyncio.run(agent.run("whole"))
    assert [ticket.result for ticket in result.tickets] == [f"part {n}" for n in range(1000)]
    assert len(result.run.children) == 1000


def test_react_delegates_by_a_tool_where_it_is_allowed(run):
    model = by_task(
        {
            "whole": [act("delegate_task", task="part"), finish("whole")],
            "part": [act("add", a=1, b=2), finish("part")],
        }
    )
    result = run(Agent(model, tools=[add], delegate=True), "whole")
    (ticket,) = result.tickets
    assert (ticket.kind, ticket.tool, ticket.result) == ("task", "delegate_task", "part")
    assert asked(result.messages)[2]["content"] == "Observation: part"
    assert "delegate_task" not in Agent(model, tools=[add]).system_prompt


def test_react_cannot_delegate_its_own_task():
    model = ScriptedModel([act("delegate_task", task="the task"), finish()])
    result = Agent(model, delegate=True).run_sync("the task")
    (event,) = [event for event in result.run.log if event.kind == "violated"]
    assert event.violation["code"] == "self_delegation"


def research(protocol):
    own = {"react": finish("found"), "ticket": give("found")}
    answers = {**own, "chatty": "found", "native": "found"}
    return Agent(ScriptedModel([answers[protocol]]), protocol=protocol, name="research")


@pytest.mark.parametrize("inner", ["react", "chatty", "ticket", "native"])
@pytest.mark.parametrize("outer", ["react", "chatty", "ticket", "native"])
def test_agents_of_any_protocol_are_tools_of_any_other(run, outer, inner):
    model = ScriptedModel(call_once(outer, "research", {"task": "look"}, answer="ok"))
    agent = Agent(model, protocol=outer, tools=[research(inner).as_tool()])
    result = run(agent, "x")
    assert result.value == "ok"
    (ticket,) = result.tickets
    assert (ticket.kind, ticket.result) == ("task", "found")
    assert result.run.children[0].task == "look"


def test_an_agent_as_a_tool_has_a_name_a_description_and_works_alone():
    agent = research("chatty")
    asked = agent.as_tool(name="ask", description="Asks an expert.")
    assert (asked.name, asked.description) == ("ask", "Asks an expert.")
    assert asyncio.run(asked("look")) == "found"
    with pytest.raises(ToolError, match="as_tool"):
        Agent(ScriptedModel([]), name="two words").as_tool()


def test_an_agent_that_fails_as_a_tool_is_a_failed_call():
    broken = Agent(FunctionModel(lambda _: "nonsense"), name="broken").as_tool()
    model = ScriptedModel([act("broken", task="x"), finish()])
    result = Agent(model, tools=[broken]).run_sync("x")
    assert "The agent failed: ProtocolError" in asked(result.messages)[2]["content"]
    assert result.tickets[0].outcome == "error"


def test_at_the_last_level_no_agents_are_offered():
    inner = research("chatty").as_tool()
    model = ScriptedModel([act("research", task="x"), finish()])
    agent = Agent(model, tools=[inner, add], limits=Limits(depth=0))
    agent_run = agent.run_sync("x").run
    assert agent_run.violations == 1
    assert "research" not in agent_run.messages[0]["content"]
    assert "add" in agent_run.messages[0]["content"]


def test_runs_started_in_a_tool_by_hand_are_below_the_run_that_calls():
    inner = Agent(ScriptedModel([finish("in")] * 2), name="inner")
    seen = []

    @tool
    async def ask(question: str) -> str:
        """Ask."""
        result = await inner.run(question)
        seen.append(result.run)
        return result.value

    model = ScriptedModel([act("ask", question="q"), finish("out")])
    result = Agent(model, tools=[ask]).run_sync("x")
    assert result.run.children == seen
    (event,) = [event for event in seen[0].log if event.kind == "run_started"]
    assert (event.parent_run, event.parent_ticket) == (result.run.id, "T1")
    assert event.depth == 1


def test_a_child_never_sees_the_tickets_of_its_parent():
    model = by_task(
        {
            "whole": [call("/add", {"a": 1, "b": 1}), delegate("part"), wait("T2"), give("ok")],
            "part": [wait("T1"), give("ok")],
        }
    )
    result = Agent(model, protocol="ticket", tools=[add]).run_sync("whole")
    child = result.run.children[0]
    assert child.violations == 1
    assert "there is none yet" in asked(child.messages)[2]["content"]


def test_too_many_violations_of_a_parent_cancel_its_children():
    async def model(messages):
        if task_of(messages) == "part":
            await asyncio.sleep(60)
        return delegate("part") if turn_of(messages) == 0 else "nonsense"

    with pytest.raises(ProtocolError) as caught:
        asyncio.run(Agent(model, protocol=TicketProtocol(grace=0)).run("whole"))
    run = caught.value.run
    assert run.tickets[0].outcome == "cancelled"
    assert run.children[0].stop_reason == "cancelled"


@pytest.mark.parametrize("at_end", ["wait", "cancel"])
def test_open_tasks_at_the_end_are_waited_for_or_cancelled(run, at_end):
    async def model(messages):
        if task_of(messages) == "part":
            await asyncio.sleep(0.2)
            return give("ok")
        return delegate("part") if turn_of(messages) == 0 else give("ok")

    agent = Agent(model, protocol=TicketProtocol(grace=0), on_open_tickets=at_end)
    result = run(agent, "whole")
    expected = {"wait": ("ok", "finished"), "cancel": ("cancelled", "cancelled")}[at_end]
    assert (result.tickets[0].outcome, result.run.children[0].stop_reason) == expected


def test_delegate_is_in_the_prompt_where_it_is_offered():
    assert "DELEGATE" in Agent(ScriptedModel([]), protocol="ticket").system_prompt
    assert (
        "DELEGATE" not in Agent(ScriptedModel([]), protocol="ticket", delegate=False).system_prompt
    )
    assert "DELEGATE" in TicketProtocol().system_prompt(delegate=True)


def test_a_task_that_failed_is_not_delegated_once_more():
    model = by_task(
        {
            "whole": [delegate("part"), wait("T1"), delegate("part"), give("ok")],
            "part": [ConnectionError("no")],
        }
    )
    result = Agent(model, protocol="ticket").run_sync("whole")
    assert len(result.tickets) == 1
    assert result.run.violations == 1
