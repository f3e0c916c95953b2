"""Copies of agents, in this process and in another one."""

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import pytest

from callslip import (
    Agent,
    ChattyProtocol,
    Context,
    KeepLast,
    Limits,
    OpenAPI,
    ReactProtocol,
    Role,
    ScriptedModel,
    TicketProtocol,
    TicketStore,
    Tool,
    UsageError,
    as_model,
    ask_user,
    tool,
)
from callslip.mcp import MCPServer
from scripted import act, finish

DOCUMENT = {
    "openapi": "3.0.0",
    "info": {"title": "shop", "version": "1"},
    "servers": [{"url": "http://127.0.0.1"}],
    "paths": {"/a": {"get": {"operationId": "a", "responses": {"200": {"description": "ok"}}}}},
}


@dataclass
class City:
    name: str


def look(word: str) -> str:
    """Look a word up."""
    return word


@tool(readonly=True, concurrency=2)
def seek(word: str) -> str:
    """Seek a word."""
    return word


def model(messages):
    return finish()


def instructions(context: Context) -> str:
    return "Be brief."


def check(*_):
    return None


def asks(arguments, context):
    return False


AGENTS = {
    "plain": lambda: Agent(model),
    "options": lambda: Agent(
        model,
        instructions=instructions,
        returns=City,
        check_answer=check,
        check_task=check,
        limits=Limits(turns=3),
        history=KeepLast(3),
        name="desk",
        stop=["END"],
    ),
    "tools": lambda: Agent(
        model,
        tools=[
            look,
            seek,
            tool(name="again", needs_approval=asks, timeout=3)(look),
            Tool.from_schema(look, name="third", parameters={"properties": {"word": {}}}),
            ask_user,
        ],
    ),
    "protocols": lambda: Agent(model, protocol=ReactProtocol(strict=True)),
    "chatty": lambda: Agent(model, protocol=ChattyProtocol(), roles={"A": Role(tools=[look])}),
    "ticket": lambda: Agent(model, protocol=TicketProtocol(grace=1), returns=int),
    "agents": lambda: Agent(model, tools=[Agent(model, tools=[look]).as_tool(name="below")]),
    "late": lambda: Agent(as_model("openai:gpt-5-mini")),
    "scripted": lambda: Agent(ScriptedModel([act("seek", word="x"), finish()]), tools=[seek]),
    "replaced": lambda: Agent(model, tools=[look]).replace(limits=Limits(turns=2)),
    "no model": lambda: Agent(None, tools=[seek]),
}
COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda value: pickle.loads(pickle.dumps(value))}
copied = pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)


@copied
@pytest.mark.parametrize("make", AGENTS.values(), ids=AGENTS)
def test_an_agent_is_copied(make, copied):
    agent = make()
    again = copied(agent)
    assert again is not agent
    assert again.system_prompt == agent.system_prompt
    assert again.limits == agent.limits
    assert [one._spec() for one in again._tools] == [one._spec() for one in agent._tools]
    assert [one.gate and one.gate.limit for one in again._tools] == [
        one.gate and one.gate.limit for one in agent._tools
    ]
    assert copied(again).system_prompt == agent.system_prompt


@copied
def test_a_copy_has_a_script_of_its_own(copied):
    agent = AGENTS["scripted"]()
    again = copied(agent)
    for one in (agent, again):
        assert one.run_sync("?").tickets[0].result == "x"


@copied
def test_a_store_is_that_of_its_path(copied, tmp_path):
    agent = Agent(model, store=tmp_path / "runs.sqlite")
    run_id = agent.run_sync("?").run.id
    assert copied(agent).resume_sync(run_id).value == "done"


def test_copies_in_this_process_share_what_is_open():
    store, server = TicketStore(), MCPServer.stdio("python")
    agent = Agent(model, store=store, tools=[look])
    assert copy.deepcopy(agent).store is store
    assert copy.deepcopy(server) is server
    shop = Agent(model, tools=OpenAPI(DOCUMENT))
    assert copy.deepcopy(shop).system_prompt == shop.system_prompt


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"tools": [tool(name="f")(lambda x: x)]}, r"a tool as <Tool 'f'>.*at the top of a module"),
        ({"instructions": lambda context: "x"}, r"instructions as .*at the top of a module"),
        ({"store": TicketStore()}, "one in memory; pass the path of a file"),
        ({"tools": OpenAPI(DOCUMENT)}, r"got OpenAPI\(…\).*make the agent where it is used"),
        ({"server": MCPServer.stdio("python")}, r"got MCPServer\(…\).*where it is used"),
        ({"model": lambda messages: finish()}, r"got model as .*; pass as_model"),
        (
            {"tools": [Agent(model, instructions=lambda context: "x").as_tool(name="below")]},
            "instructions as",
        ),
    ],
)
def test_what_cannot_be_pickled_is_named(options, named):
    if "server" in options:
        agent = options["server"]  # an agent would start it
    else:
        agent = Agent(options.pop("model", model), **options)
    with pytest.raises(UsageError, match=named):
        pickle.dumps(agent)


def test_an_agent_works_in_another_process():
    agent = Agent(ScriptedModel([finish("done there")]), tools=[ask_user], returns=str)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        result = pool.submit(Agent.run_sync, agent, "?", answer=check).result()
    assert (result.value, result.run.task) == ("done there", "?")
