"""Agents in the background: spawn_agent, wait_for_agents and references (chatty)."""

import asyncio
import json
import time

import pytest

from callslip import (
    Agent,
    ChattyProtocol,
    Limits,
    Role,
    ScriptedModel,
    ToolError,
    UsageError,
    replay,
    tool,
)
from scripted import (
    asked,
    block,
    finish,
    results_of,
    spawn,
    task_of,
    turn_of,
    wait_for,
    without_example,
)


@tool
def join(a: str, b: str) -> str:
    """Join two texts."""
    return f"{a}+{b}"


def leader(*script, worker):
    """A model whose runs with a role answer as `worker`, and whose root follows a script."""

    async def reply(messages):
        task = task_of(messages)
        if task.startswith("Your role: "):
            head, _, prompt = task.partition("\n\n")
            return await worker(head.removeprefix("Your role: "), prompt, messages)
        given = script[turn_of(messages)]
        return given(messages) if callable(given) else given

    return reply


async def answer(role, prompt, messages):
    if prompt == "fail":
        raise ConnectionError("no line")
    if prompt == "slow":
        await asyncio.sleep(0.3)
    return f"{role}: {prompt}"


@pytest.fixture(params=["async", "sync"])
def run(request):
    def run(agent, task="go"):
        if request.param == "sync":
            return agent.run_sync(task)
        return asyncio.run(agent.run(task))

    return run


def violation(result):
    (event,) = [event for event in result.run.log if event.kind == "violated"]
    return event.violation


def test_agents_are_spawned_and_waited_for_in_one_block(run):
    model = leader(
        block(spawn("plan", "a trip", "Planner"), spawn("x", "fail"), wait_for("$plan", "$x")),
        "done",
        worker=answer,
    )
    result = run(Agent(model, protocol="chatty", delegate=True))
    told = results_of(without_example(result)[3])
    assert told["plan"] == {"agent_id": "plan", "status": "IN_PROGRESS"}
    assert told["wait"][0] == {
        "agent_id": "plan",
        "role": "Planner",
        "status": "ok",
        "result": "Planner: a trip",
    }
    failed = told["wait"][1]
    assert (failed["agent_id"], failed["status"]) == ("x", "error")
    assert "ConnectionError: no line" in failed["error"]
    assert [(ticket.kind, ticket.outcome) for ticket in result.tickets] == [
        ("task", "ok"),
        ("task", "error"),
        ("tool_call", "ok"),
    ]
    for one in (result.run, *result.run.children):
        assert replay(one).export() == one.export()


def test_agents_of_earlier_turns_are_waited_for_in_the_order_asked(run):
    model = leader(
        block(spawn("a", "slow"), spawn("b", "fast")),
        block(("call_1", "join", {"a": "1", "b": "2"})),
        block(wait_for("b", "$a", "$b")),
        "done",
        worker=answer,
    )
    result = run(Agent(model, protocol="chatty", delegate=True, tools=[join]))
    assert [row["agent_id"] for row in results_of(without_example(result)[7])["wait"]] == ["b", "a"]


def test_waiting_twice_gives_the_same_result(run):
    model = leader(block(spawn("a", "x")), *[block(wait_for("$a"))] * 5, "done", worker=answer)
    result = run(Agent(model, protocol="chatty", delegate=True))
    assert result.run.violations == 0
    waits = [ticket.result for ticket in result.tickets[1:]]
    assert waits == [waits[0]] * 5


def test_a_call_of_another_tool_does_not_hide_an_agent(run):
    model = leader(
        block(spawn("call_1", "x")),
        block(("call_1", "join", {"a": "1", "b": "2"})),
        block(wait_for("$call_1", call_id="call_1")),
        "done",
        worker=answer,
    )
    result = run(Agent(model, protocol="chatty", delegate=True, tools=[join]))
    assert result.tickets[2].result[0]["result"] == "Worker: x"


@pytest.mark.parametrize(
    ("calls", "code"),
    [
        ([wait_for("$a"), spawn("a", "x")], "wait_not_last"),
        ([wait_for("$nobody")], "bad_reference"),
        ([("b", "join", {"a": "1", "b": "2"}), wait_for("$b")], "bad_reference"),
        ([spawn("a", "x"), wait_for("$$a")], "bad_reference"),
        ([spawn("a", "x"), ("w", "wait_for_agents", {"agent_ids": []})], "invalid_argument"),
        ([spawn("a", "x"), ("w", "wait_for_agents", {"agent_ids": "$a"})], "invalid_argument"),
        ([("a", "spawn_agent", {"role": "R", "prompt": "$b"}), spawn("b", "x")], "bad_reference"),
        ([("a", "spawn_agent", {"role": "R", "prompt": ""})], "invalid_argument"),
        ([("a", "spawn_agent", {"prompt": "x"})], "missing_argument"),
    ],
)
def test_what_agents_are_not(calls, code):
    model = leader(block(*calls), "done", worker=answer)
    result = Agent(model, protocol="chatty", delegate=True, tools=[join]).run_sync("go")
    assert violation(result)["code"] == code
    assert result.tickets == []


def test_an_unknown_agent_is_told_those_there_are():
    model = leader(
        block(spawn("a", "x"), spawn("b", "x")), block(wait_for("$c")), "done", worker=answer
    )
    result = Agent(model, protocol="chatty", delegate=True).run_sync("go")
    assert violation(result)["hint"] == "there are '$a', '$b'"


def test_a_diamond_runs_in_the_order_of_its_references(run):
    began, ended = {}, {}

    async def worker(role, prompt, messages):
        began[role] = time.monotonic()
        until = began[role] + 60
        while role in ("Left", "Right") and not {"Left", "Right"} <= began.keys():
            # Neither ends before the other has begun.
            assert time.monotonic() < until
            await asyncio.sleep(0.01)
        ended[role] = time.monotonic()
        return f"{role}({prompt})"

    model = leader(
        block(
            spawn("top", "start", "Top"),
            spawn("left", "$top", "Left"),
            spawn("right", "$top", "Right"),
            ("both", "join", {"a": "$left", "b": "$right"}),
            spawn("end", "$both", "End"),
            wait_for("$end"),
        ),
        lambda messages: json.dumps(results_of(asked(messages)[2])["wait"][0]["result"])[1:-1],
        worker=worker,
    )
    result = run(Agent(model, protocol="chatty", delegate=True, tools=[join]))
    assert result.value == "End(Left(Top(start))+Right(Top(start)))"
    assert min(began["Left"], began["Right"]) >= ended["Top"]
    assert began["End"] >= max(ended["Left"], ended["Right"])


def test_what_refers_to_an_agent_that_failed_is_not_run(run):
    model = leader(
        block(
            spawn("bad", "fail"),
            ("use", "join", {"a": "$bad", "b": "x"}),
            spawn("next", "$bad"),
            wait_for("$next"),
        ),
        "done",
        worker=answer,
    )
    result = run(Agent(model, protocol="chatty", delegate=True, tools=[join]))
    told = results_of(without_example(result)[3])
    assert "uses the result of call 'bad', which failed" in told["use"]
    assert told["wait"][0]["status"] == "error"
    assert len(result.run.children) == 1


def test_three_agents_work_at_the_same_time(run):
    at_work = []

    async def worker(role, prompt, messages):
        at_work.append(prompt)
        # None ends before all have begun.
        until = time.monotonic() + 60
        while len(at_work) < 3 and time.monotonic() < until:
            await asyncio.sleep(0.01)
        return f"{len(at_work)} at work"

    calls = [spawn(name, name) for name in "abc"]
    model = leader(block(*calls, wait_for("$a", "$b", "$c")), "done", worker=worker)
    result = run(Agent(model, protocol="chatty", delegate=True))
    told = results_of(without_example(result)[3])["wait"]
    assert [one["result"] for one in told] == ["3 at work"] * 3


@pytest.mark.parametrize("at_end", ["wait", "cancel"])
def test_agents_never_waited_for_follow_on_open_tickets(run, at_end):
    model = leader(block(spawn("a", "slow")), "done", worker=answer)
    result = run(Agent(model, protocol="chatty", delegate=True, on_open_tickets=at_end))
    assert result.tickets[0].outcome == {"wait": "ok", "cancel": "cancelled"}[at_end]
    assert result.run.children[0].finished


def test_roles_have_their_own_model_tools_protocol_and_limits(run):
    @tool
    def look(at: str) -> str:
        """Look."""
        return f"saw {at}"

    thinker = ScriptedModel(
        [
            '{"thought": "t", "action": "look", "args": "{\\"at\\": \\"it\\"}"}',
            finish("thought"),
        ]
    )
    helper = Agent(ScriptedModel(["helped"]), protocol="chatty", delegate=True, name="helper")
    model = leader(
        block(
            spawn("t", "think", "Thinker"),
            spawn("h", "help", "Helper"),
            spawn("o", "other", "Other"),
            wait_for("$t", "$h", "$o"),
        ),
        "done",
        worker=answer,
    )
    agent = Agent(
        model,
        protocol="chatty",
        delegate=True,
        roles={
            "Thinker": Role(model=thinker, protocol="react", tools=[look], limits=Limits(turns=2)),
            "Helper": helper,
        },
    )
    assert "Thinker" in agent.system_prompt
    result = run(agent)
    told = [row["result"] for row in results_of(without_example(result)[3])["wait"]]
    assert told == ["thought", "helped", "Other: other"]
    tasks = [child.task for child in result.run.children]
    assert tasks == ["think", "help", "Your role: Other\n\nother"]


def test_a_role_without_a_model_has_that_of_the_one_that_spawns():
    model = leader(block(spawn("a", "x", "A"), wait_for("$a")), "done", worker=answer)
    agent = Agent(
        model, protocol="chatty", delegate=True, tools=[join], roles={"A": Role(tools=[])}
    )
    result = agent.run_sync("go")
    child = result.run.children[0]
    assert "join" not in child.messages[0]["content"]
    assert result.tickets[1].result[0]["result"] == "A: x"


def test_a_child_that_reaches_its_limit_is_an_error_of_its_own(run):
    async def worker(role, prompt, messages):
        return block(("c", "join", {"a": str(turn_of(messages)), "b": ""}))

    model = leader(block(spawn("a", "x", "A"), wait_for("$a")), "done", worker=worker)
    agent = Agent(
        model,
        protocol="chatty",
        delegate=True,
        tools=[join],
        roles={"A": Role(limits=Limits(turns=3))},
    )
    result = run(agent)
    (row,) = results_of(without_example(result)[3])["wait"]
    assert "LimitExceeded" in row["error"]
    assert result.value == "done"


def test_spawning_is_not_offered_where_it_is_not_wanted():
    model = ScriptedModel([block(spawn("a", "x")), "done"])
    agent = Agent(model, protocol="chatty", delegate=False)
    assert "spawn_agent" not in agent.system_prompt
    assert violation(agent.run_sync("go"))["code"] == "unknown_tool"


@pytest.mark.parametrize(
    "name", ["spawn_agent", "wait_for_agents", "search_tools", "describe_tool"]
)
@pytest.mark.parametrize("protocol", ["chatty", "react", "ticket"])
def test_no_tool_has_a_name_of_the_runtimes(name, protocol):
    @tool(name=name)
    def other(role: str) -> str:
        """Spawn."""
        return role

    with pytest.raises(ToolError, match=f"expected another name for a tool: '{name}'"):
        Agent(ScriptedModel([]), protocol=protocol, tools=[other])


@pytest.mark.parametrize("roles", [[Role()], [], "A", Role()])
def test_roles_are_a_mapping(roles):
    with pytest.raises(UsageError) as caught:
        Agent(ScriptedModel([]), protocol="chatty", delegate=True, roles=roles)
    assert str(caught.value) == (
        "expected roles={'Reviewer': Role(…)}, a mapping to a Role or an Agent each: got "
        f"{type(roles).__name__}"
    )


@pytest.mark.parametrize(
    ("roles", "got"),
    [
        ({"A": 5}, "5 for 'A'; pass Role(…) or Agent(…)"),
        ({"A": None}, "None for 'A'; pass Role(…) or Agent(…)"),
        ({"A": {}}, "{} for 'A'; pass Role(…) or Agent(…)"),
        ({5: Role}, f"{Role!r} for 5; pass Role(…), an object of it"),
    ],
)
def test_a_role_is_prepared_as_one(roles, got):
    with pytest.raises(UsageError) as caught:
        Agent(ScriptedModel([]), protocol="chatty", delegate=True, roles=roles)
    assert str(caught.value) == f"expected a Role or an Agent for each role: got {got}"


def test_roles_are_refused_where_nothing_spawns():
    with pytest.raises(UsageError, match="as_tool"):
        Agent(ScriptedModel([]), protocol="react", roles={"A": Role()})


def test_results_of_agents_never_waited_for_come_with_the_last_turn():
    async def worker(role, prompt, messages):
        return "the result"

    async def reply(messages):
        if task_of(messages).startswith("Your role"):
            return "the result"
        if turn_of(messages) == 0:
            return block(spawn("a", "x"))
        if turn_of(messages) == 1:
            await asyncio.sleep(0.1)
            return block(("j", "join", {"a": "1", "b": "2"}))
        return "answer"

    agent = Agent(reply, protocol="chatty", delegate=True, tools=[join], limits=Limits(turns=2))
    result = agent.run_sync("go")
    assert result.stop_reason == "limit"
    assert "the result" in without_example(result)[-2]["content"]


def test_examples_of_the_built_in_prompt_are_valid():
    assert ChattyProtocol().lint([join]) == []
    prompt = ChattyProtocol(tool_tag="act").system_prompt(delegate=True)
    assert '<act>\n[{"call_id": "plan"' in prompt


def test_under_a_grammar_only_agents_there_are_can_be_waited_for():
    protocol = ChattyProtocol()
    without = protocol.grammar([join], delegate=True)
    assert "spawn_agent" in without.lark
    assert "wait_for_agents" not in without.lark
    grammar = protocol.grammar([join], delegate=True, agents=["plan"])
    assert "wait_for_agents" in grammar.lark
    assert "$plan" in grammar.lark


def test_at_a_time_limit_the_results_that_there_are_are_told():
    async def worker(role, prompt, messages):
        if prompt == "slow":
            await asyncio.sleep(60)
        return "the result"

    calls = [spawn("a", "slow"), spawn("b", "fast"), wait_for("$a", "$b")]
    model = leader(block(*calls), "answer", worker=worker)
    agent = Agent(model, protocol="chatty", delegate=True, limits=Limits(seconds=2))
    result = asyncio.run(agent.run("go"))
    assert (result.value, result.stop_reason) == ("answer", "limit")
    slow, fast = results_of(without_example(result)[3])["wait"]
    assert (slow["status"], fast["result"]) == ("error", "the result")
    assert replay(result.run).export() == result.run.export()


def test_a_role_and_a_prompt_may_be_results_of_other_kinds():
    @tool
    def choose(n: int) -> str:
        """Choose a role."""
        return "Reviewer"

    @tool
    def facts(n: int) -> dict[str, int]:
        """Find facts."""
        return {"n": n}

    model = leader(
        block(
            ("who", "choose", {"n": 1}),
            ("what", "facts", {"n": 2}),
            spawn("a", "$what", "$who"),
            wait_for("$a"),
        ),
        "done",
        worker=answer,
    )
    result = Agent(model, protocol="chatty", delegate=True, tools=[choose, facts]).run_sync("go")
    (row,) = results_of(without_example(result)[3])["wait"]
    assert (row["role"], row["result"]) == ("Reviewer", 'Reviewer: {"n":2}')


def test_a_name_that_is_no_text_is_refused():
    with pytest.raises(UsageError) as caught:
        Agent(ScriptedModel([]), name=None)
    assert str(caught.value) == "expected name to be text: got None"
