"""Runs that end at their first valid move: the calls are the value."""

import asyncio
import copy
import json

import pytest

from callslip import (
    Agent,
    ChattyProtocol,
    LimitExceeded,
    Limits,
    ModelError,
    ProtocolError,
    ScriptedModel,
    TicketStore,
    Tool,
    ToolError,
    UsageError,
    replay,
    tool,
)
from callslip.agent._one_move import OneMoveAgent, calls_of
from scripted import act, block, call, finish, give

PROTOCOLS = ("react", "ticket", "chatty")

ADD = Tool.from_schema(
    None,
    name="add",
    external=True,
    parameters={
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}},
        "required": ["a"],
    },
)
CITY = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def called(protocol, **arguments):
    match protocol:
        case "react":
            return act("add", **arguments)
        case "ticket":
            return call("add", arguments)
    return block(("c", "add", arguments))


def answered(protocol, value):
    match protocol:
        case "react":
            return finish(value)
        case "ticket":
            return give(value)
    return f"<answer>{json.dumps(value)}</answer>"


def agent_for(protocol, *replies, **options):
    return OneMoveAgent(ScriptedModel(replies), protocol=protocol, **{"tools": [ADD], **options})


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_first_valid_call_is_the_value(protocol):
    agent = agent_for(protocol, called(protocol), called(protocol, a="3"))
    result = agent.run_sync("add")
    own = {"id": "c"} if protocol == "chatty" else {}
    expected = [{**own, "tool": "add", "arguments": {"a": 3}, "coerced": ["/a"]}]
    assert calls_of(result) == result.value == expected
    assert (result.tickets, result.run.violations, result.stop_reason) == ([], 1, "finished")
    replay(result.run.export())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_drivers_on_a_loop_and_streams_end_there_too(protocol):
    async def stream(agent):
        async with agent.stream("add") as run:
            items = [item async for item in run]
        return run.result, items

    agent = agent_for(protocol, called(protocol, a=1))
    result, items = asyncio.run(stream(agent))
    assert calls_of(result)[0]["arguments"] == {"a": 1}
    assert items
    agent = agent_for(protocol, called(protocol, a=1))
    assert calls_of(asyncio.run(agent.run("add")))[0]["arguments"] == {"a": 1}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_is_one_of_the_type(protocol):
    wrong, right = answered(protocol, {}), answered(protocol, {"name": "Oslo"})
    result = agent_for(protocol, wrong, right, returns=CITY).run_sync("where?")
    assert (result.value, calls_of(result)) == ({"name": "Oslo"}, None)
    # A call is no answer, so it need not be of the type.
    result = agent_for(protocol, called(protocol, a=1), returns=int).run_sync("add")
    assert calls_of(result)[0]["tool"] == "add"


def test_an_answer_that_looks_like_calls_is_an_answer():
    calls = [{"tool": "add", "arguments": {"a": 1}}]
    result = agent_for("ticket", give(calls)).run_sync("x")
    assert (result.value, calls_of(result)) == (calls, None)


def test_several_calls_come_in_their_order():
    reply = block(("x", "add", {"a": 1}), ("y", "add", {"a": 1}), ("z", "add", {"a": 2, "b": 3}))
    calls = calls_of(agent_for("chatty", reply).run_sync("add"))
    assert [(one["id"], one["arguments"]) for one in calls] == [
        ("x", {"a": 1}),
        ("y", {"a": 1}),
        ("z", {"a": 2, "b": 3}),
    ]


def test_nothing_of_a_tool_is_called_and_nobody_is_asked():
    made = []

    @tool(readonly=True)
    def look(name: str) -> str:
        made.append(name)
        return name

    @tool(needs_approval=True)
    def pay(amount: int = 5) -> int:
        made.append(amount)
        return amount

    reply = block(("x", "look", {"name": "a"}), ("y", "pay", {}))
    agent = agent_for("chatty", reply, tools=[look, pay])
    result = agent.run_sync("go")
    assert [one["arguments"] for one in calls_of(result)] == [{"name": "a"}, {}]
    assert made == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_child_run_and_no_search_is_offered(protocol):
    expert = Agent(lambda _: "", name="expert").as_tool(description="knows")
    agent = agent_for(protocol, tools=[ADD, expert], delegate=True)
    for word in ("expert", "delegate_task", "spawn_agent", "DELEGATE"):
        assert word not in agent.system_prompt
    long = {"properties": {f"argument_number_{at}": {"type": "string"} for at in range(30)}}
    many = [
        Tool.from_schema(None, name=f"t{at}", external=True, parameters=long) for at in range(200)
    ]
    with pytest.raises(ToolError, match="expected tools that fit into the prompt: got 200"):
        agent_for(protocol, tools=many)


def test_no_call_refers_to_another():
    wrong = block(("x", "add", {"a": 1}), ("y", "add", {"a": "$x"}))
    result = agent_for("chatty", wrong, called("chatty", a=1)).run_sync("add")
    (violated,) = [e.violation for e in result.run.log if e.kind == "violated"]
    assert violated["code"] == "bad_reference"
    assert calls_of(result)[0]["arguments"] == {"a": 1}


def test_a_call_can_be_required_first():
    protocol = ChattyProtocol(first_move="call")
    agent = agent_for(protocol, "It is 3.", called("chatty", a=1))
    result = agent.run_sync("add")
    assert (calls_of(result)[0]["tool"], result.run.violations) == ("add", 1)


def test_limits_hold():
    with pytest.raises(ProtocolError):
        agent_for("react", *[act("add")] * 2, limits=Limits(max_violations=1)).run_sync("x")
    limits = Limits(turns=1, tickets=0)
    agent = agent_for("react", act("add"), act("add"), limits=limits, on_limit="raise")
    with pytest.raises(LimitExceeded, match="turns"):
        agent.run_sync("x")
    assert calls_of(agent_for("react", act("add", a=1), limits=limits).run_sync("x"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_stored_run_is_resumed_and_read(protocol, tmp_path):
    path = tmp_path / "runs.sqlite"

    def fails(_):
        raise RuntimeError("no model")

    with TicketStore(path) as store:
        with pytest.raises(ModelError) as raised:
            OneMoveAgent(fails, protocol=protocol, tools=[ADD], store=store).run_sync("add")
        run_id = raised.value.run.id
        other = Agent(ScriptedModel([]), protocol=protocol, tools=[ADD], store=store)
        with pytest.raises(UsageError, match="ends at its first call"):
            other.resume_sync(run_id, answer=lambda _: 1)
    with TicketStore(path) as store:
        agent = agent_for(protocol, called(protocol, a=1), store=store)
        assert calls_of(agent.resume_sync(run_id))[0]["arguments"] == {"a": 1}
    with TicketStore(path) as store:
        agent = agent_for(protocol, store=store)
        result = agent.resume_sync(run_id)
        assert calls_of(result)[0]["arguments"] == {"a": 1}
        assert result.value == calls_of(result)
        replay(result.run.export())
        assert "add" in result.to_html()
        assert [turn.number for turn in result.trace().turns]


def test_copies_and_replacements_end_there_too():
    agent = agent_for("react", act("add", a=1))
    for one in (agent.replace(name="b"), copy.deepcopy(agent), copy.copy(agent)):
        one_model = ScriptedModel([act("add", a=1)])
        assert calls_of(one.replace(model=one_model).run_sync("x"))
    with agent.override(model=ScriptedModel([act("add", a=2)])):
        assert calls_of(agent.run_sync("x"))[0]["arguments"] == {"a": 2}


def test_other_agents_write_nothing_of_it():
    result = Agent(ScriptedModel([finish()])).run_sync("x")
    assert "ends_at_call" not in result.run.export()
    assert calls_of(result) is None
