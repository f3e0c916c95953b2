"""Tools in prompts: as much of them as a budget allows, and the rest looked up."""

from __future__ import annotations

import asyncio
import json
import re
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest
from pydantic import Field

from callslip import (
    Agent,
    ChattyProtocol,
    OpenAPI,
    ReactProtocol,
    Role,
    ScriptedModel,
    TicketProtocol,
    TicketStore,
    ToolError,
    replay,
    tool,
)
from callslip.tools import Tool, ToolSource
from callslip.tools._schema_tool import SchemaTool
from scripted import (
    act,
    asked,
    block,
    call,
    finish,
    give,
    load,
    results_of,
    spawn,
    task_of,
    turn_of,
    wait_for,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

PROTOCOLS: dict[str, Any] = {
    # Scripts continue with the outcomes of calls, which take their time under load.
    "ticket": partial(TicketProtocol, grace=60),
    "chatty": ChattyProtocol,
    "react": ReactProtocol,
}
WORDS = ["apple", "bread", "cheese", "date", "egg", "fig", "grape", "honey"]


def stock(word: str) -> Tool[..., Any]:
    def look(shelf: int, order: str = "asc") -> str:
        return f"{word} on {shelf}, {order}"

    description = f"Tell how much {word} there is."
    return Tool(look, name=f"stock_{word}", description=description, effect="pure")


def functions(count: int = 80) -> list[Any]:
    """Tools with words of their own, eight of them with words that can be looked for."""
    words = [*WORDS, *(f"thing{number}" for number in range(count - len(WORDS)))]
    return [stock(word) for word in words]


def shop(count: int = 80) -> OpenAPI:
    """The same as operations of a document."""
    words = [*WORDS, *(f"thing{number}" for number in range(count - len(WORDS)))]
    shelf = {"name": "shelf", "in": "path", "required": True, "schema": {"type": "integer"}}
    order = {"name": "order", "in": "query", "schema": {"type": "string"}}
    paths = {
        f"/stock/{{shelf}}/{word}": {
            "get": {
                "operationId": f"stock_{word}",
                "summary": f"Tell how much {word} there is.",
                "tags": ["food" if word in WORDS else "things"],
                "parameters": [shelf, order],
            }
        }
        for word in words
    }
    document = {"openapi": "3.1.0", "info": {"title": "Shop", "version": "1"}, "paths": paths}

    def handler(word: str) -> Any:
        def look(shelf: int, order: str = "asc") -> str:
            return f"{word} on {shelf}, {order}"

        return look

    return OpenAPI(document, handlers={f"stock_{word}": handler(word) for word in words})


SOURCES = {"functions": functions, "document": shop}


def steps(protocol: str, calls: Sequence[tuple[str, dict[str, Any]]], answer: str) -> list[str]:
    """The replies of a model that makes these calls one after the other."""
    if protocol == "react":
        return [*(act(name, **arguments) for name, arguments in calls), finish(answer)]
    if protocol == "chatty":
        named = [(f"c{number}", *one) for number, one in enumerate(calls)]
        return [*(block(one) for one in named), answer]
    replies = []
    for number, (name, arguments) in enumerate(calls, 1):
        route = name if " " in name else f"POST /{name}"
        replies += [call(route, arguments), load(f"T{number}")]
    return [*replies, give(answer)]


def seen(result: Any) -> str:
    """All that the model was told."""
    return "\n".join(m["content"] for m in result.messages if m["role"] == "user")


def outcomes(result: Any) -> list[Any]:
    """What the calls of a run gave: JSON, or the words of an error."""
    completed = [event for event in result.run.log if event.kind == "ticket_completed"]
    return [one.result if one.outcome == "ok" else one.error for one in completed]


# The option.


@pytest.mark.parametrize("kind", PROTOCOLS.values())
@pytest.mark.parametrize("tokens", [0, -1, True, 1.5, "8000", None])
def test_the_budget_is_a_number_of_tokens(kind: Any, tokens: Any) -> None:
    message = f"expected tool_tokens to be a whole number from 1: got {tokens!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        kind(tool_tokens=tokens)


@pytest.mark.parametrize("kind", PROTOCOLS.values())
@pytest.mark.parametrize("source", SOURCES)
def test_prompts_are_within_the_budget(kind: Any, source: str) -> None:
    tools = SOURCES[source]()
    bare = len(kind().system_prompt())
    floor = len(kind(tool_tokens=1).system_prompt(tools)) - bare
    sizes = []
    for tokens in (100, 400, 700, 1_000, 1_500, 3_000, 6_000, 10**30):
        size = len(kind(tool_tokens=tokens).system_prompt(tools)) - bare
        assert size <= max(floor, 4 * tokens)
        sizes.append(size)
    assert sizes[0] < sizes[3] < sizes[-1]
    assert "search_tools" in kind(tool_tokens=100).system_prompt(tools)
    assert "search_tools" not in kind(tool_tokens=10**30).system_prompt(tools)


@pytest.mark.parametrize("kind", PROTOCOLS.values())
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("tokens", [1, 900, 2_000, 20_000])
def test_no_prompt_teaches_what_is_refused(kind: Any, source: str, tokens: int) -> None:
    assert kind(tool_tokens=tokens).lint(SOURCES[source]()) == []


def test_a_template_has_the_same_tools() -> None:
    protocol = ReactProtocol(template="Tools: {tools}", tool_tokens=1)
    prompt = protocol.system_prompt(functions())
    assert prompt.startswith("Tools: - search_tools: Find tools by words of their names")
    assert "There are 80 tools, too many to show with their arguments" in prompt


# Looking up.


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("how", ["sync", "async", "streamed"])
def test_a_tool_is_found_described_and_called(protocol: str, source: str, how: str) -> None:
    name = "stock_cheese" if source == "functions" else "GET /stock/{shelf}/cheese"
    calls = [
        ("search_tools", {"query": "how much chees is left"}),
        ("describe_tool", {"name": name}),
        (name, {"shelf": 3}),
    ]
    replies = steps(protocol, calls, "enough")
    model = ScriptedModel(replies, chunk_size=7 if how == "streamed" else None)
    agent = Agent(model, protocol=PROTOCOLS[protocol](tool_tokens=1), tools=SOURCES[source]())
    result = agent.run_sync("go") if how == "sync" else asyncio.run(agent.run("go"))
    model.assert_done()
    assert result.value == "enough"
    assert [ticket.tool for ticket in result.tickets] == ["search_tools", "describe_tool", name]
    found, described, called = outcomes(result)
    shown = f"POST /{name}" if protocol == "ticket" and source == "functions" else name
    assert found["tools"][0].startswith(f"{shown}(shelf: int, order?: str")
    assert found["tools"][0].endswith("  # Tell how much cheese there is.")
    assert described["signature"].startswith(f"{shown}(shelf: int, order?: str")
    assert described["description"] == "Tell how much cheese there is."
    assert described["parameters"]["properties"]["shelf"] == {"type": "integer"}
    assert described["parameters"]["required"] == ["shelf"]
    assert called == "cheese on 3, asc"
    assert "cheese on 3, asc" in seen(result)
    assert "cheese" not in agent.system_prompt
    assert replay(result.run).messages == result.messages


def test_look_ups_of_one_block_run_side_by_side_and_start_early() -> None:
    calls = [
        ("a", "search_tools", {"query": "honey"}),
        ("b", "describe_tool", {"name": "stock_honey"}),
        ("c", "stock_honey", {"shelf": 1}),
    ]
    model = ScriptedModel([block(*calls), "enough"], chunk_size=5)
    agent = Agent(model, protocol=ChattyProtocol(tool_tokens=1), tools=functions())
    result = asyncio.run(agent.run("go"))
    results = results_of(asked(result.messages)[2])
    assert results["a"]["tools"][0].startswith("stock_honey(")
    assert results["c"] == "honey on 1, asc"
    kinds = [event.kind for event in result.run.log]
    assert kinds.index("ticket_opened") < kinds.index("model_replied")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_unknown_name_is_an_error_with_the_nearest(protocol: str) -> None:
    calls = [("describe_tool", {"name": "stock_chese"})]
    model = ScriptedModel(steps(protocol, calls, "no"))
    agent = Agent(model, protocol=PROTOCOLS[protocol](tool_tokens=1), tools=functions())
    result = agent.run_sync("go")
    message = outcomes(result)[0]
    assert message.startswith("Error calling tool 'describe_tool': unknown ")
    assert "'stock_chese': " in message
    assert "stock_cheese'" in message


def test_what_is_not_found_says_what_there_is() -> None:
    replies = steps("react", [("search_tools", {"query": "zeppelins"})], "no")
    agent = Agent(ScriptedModel(replies), protocol=ReactProtocol(tool_tokens=1), tools=shop())
    hint = "use other words; there are tools of food, things"
    assert outcomes(agent.run_sync("go")) == [{"tools": [], "more": 0, "hint": hint}]


def test_a_violation_in_a_crowd_names_the_look_up() -> None:
    model = ScriptedModel([act("zeppelin"), finish()])
    agent = Agent(model, protocol=ReactProtocol(tool_tokens=1), tools=functions())
    assert "look for it with search_tools" in agent.run_sync("go").messages[-2]["content"]


def test_look_ups_need_no_approval() -> None:
    @tool(needs_approval=True)
    def pay(amount: int) -> int:
        """Pay."""
        return amount

    replies = steps("react", [("search_tools", {"query": "pay"})], "done")
    with TicketStore() as store:
        agent = Agent(
            ScriptedModel(replies),
            protocol=ReactProtocol(tool_tokens=1),
            tools=[*functions(), pay],
            store=store,
        )
        result = agent.run_sync("go")
    assert outcomes(result) == [{"tools": ["pay(amount: int)  # Pay."], "more": 0}]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_tool_of_the_programs_takes_the_place_of_the_one_that_searches(protocol: str) -> None:
    @tool
    def search_tools(query: str) -> str:
        """Search the shed."""
        return f"no {query} in the shed"

    with pytest.raises(ToolError, match="expected another name for a tool: 'search_tools'"):
        Agent(ScriptedModel([]), protocol=protocol, tools=[*functions(), search_tools])


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("tokens", [1, 1_600, 10**9])
def test_functions_and_documents_stand_side_by_side(protocol: str, tokens: int) -> None:
    @tool
    def weigh(shelf: int) -> str:
        """Weigh all that is on a shelf."""
        return f"{shelf} kg"

    calls = [
        ("search_tools", {"query": "weigh a shelf"}),
        ("search_tools", {"query": "stock_fig"}),
        ("weigh", {"shelf": 3}),
        ("GET /stock/{shelf}/fig", {"shelf": 3}),
    ]
    replies = steps(protocol, calls if tokens == 1 else calls[2:], "done")
    agent = Agent(
        ScriptedModel(replies),
        protocol=PROTOCOLS[protocol](tool_tokens=tokens),
        tools=[weigh, shop()],
    )
    assert agent.protocol.lint([weigh, shop()]) == []
    results = outcomes(agent.run_sync("go"))
    assert results[-2:] == ["3 kg", "fig on 3, asc"]
    if tokens == 1:
        route = "POST /weigh" if protocol == "ticket" else "weigh"
        assert results[0]["tools"][0] == f"{route}(shelf: int)  # Weigh all that is on a shelf."
        assert results[1]["tools"][0].startswith("GET /stock/{shelf}/fig(shelf: int, order?: str)")


# Going on with a run.


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("source", SOURCES)
def test_a_run_that_looked_up_goes_on_from_any_place(protocol: str, source: str) -> None:
    name = "stock_fig" if source == "functions" else "GET /stock/{shelf}/fig"
    calls = [("search_tools", {"query": "fig"}), ("describe_tool", {"name": name})]
    replies = steps(protocol, [*calls, (name, {"shelf": 2})], "enough")
    tools = SOURCES[source]()

    def model(messages: Any) -> str:
        return replies[turn_of(messages)]

    def agent(store: Any, tokens: int) -> Agent:
        kind = PROTOCOLS[protocol](tool_tokens=tokens)
        return Agent(model, protocol=kind, tools=tools, store=store)

    whole = agent(None, 1).run_sync("go").run
    lines = whole.export().splitlines(keepends=True)
    for cut in range(1, len(lines) + 1):
        # Where there is more room the look-ups are not offered; this run has been.
        for tokens in (1, 10**9):
            with TicketStore() as store:
                run_id = store.import_run("".join(lines[:cut]))
                result = agent(store, tokens).resume_sync(run_id)
            assert result.value == "enough"
            assert [t.tool for t in result.tickets if t.outcome == "ok"][-1] == name
            assert whole.messages[0] == result.messages[0]


# Names.


@pytest.mark.parametrize("protocol", ["chatty", "react"])
@pytest.mark.parametrize("tokens", [1, 8_000])
@pytest.mark.parametrize(
    ("name", "given", "arguments"),
    [
        ("GET /stock/{shelf}/fig", {"shelf": 2}, {"shelf": 2}),
        ("stock_fig", {"shelf": 2, "order": "desc"}, {"shelf": 2, "order": "desc"}),
        ("GET /stock/2/fig", {}, {"shelf": 2}),
        ("/stock/2/fig?order=desc", {}, {"shelf": 2, "order": "desc"}),
    ],
)
def test_operations_go_by_every_name_that_means_one(
    protocol: str, tokens: int, name: str, given: dict[str, Any], arguments: dict[str, Any]
) -> None:
    model = ScriptedModel(steps(protocol, [(name, given)], "enough"), chunk_size=9)
    agent = Agent(model, protocol=PROTOCOLS[protocol](tool_tokens=tokens), tools=shop())
    result = asyncio.run(agent.run("go"))
    assert [ticket.tool for ticket in result.tickets] == ["GET /stock/{shelf}/fig"]
    opened = next(event for event in result.run.log if event.kind == "ticket_opened")
    assert opened.arguments == arguments
    assert outcomes(result) == [f"fig on 2, {arguments.get('order', 'asc')}"]


@pytest.mark.parametrize("protocol", ["chatty", "react"])
def test_a_name_that_means_no_operation_is_refused_with_the_nearest(protocol: str) -> None:
    replies = steps(protocol, [("GET /stock/2/figs", {})], "no")
    agent = Agent(ScriptedModel(replies, chunk_size=9), protocol=protocol, tools=shop())
    result = asyncio.run(agent.run("go"))
    assert result.tickets == []
    told = asked(result.messages)[2]["content"]
    assert "unknown route 'GET /stock/2/figs'" in told
    assert "'GET /stock/{shelf}/fig'" in told


# Grammars.


@pytest.mark.parametrize("kind", PROTOCOLS.values())
@pytest.mark.parametrize("source", SOURCES)
def test_the_grammar_of_a_crowd_is_small(kind: Any, source: str) -> None:
    tools = SOURCES[source](600)
    crowded = kind(tool_tokens=1_000).grammar(tools)
    every = kind(tool_tokens=10**9).grammar(tools)
    assert len(crowded.lark) * 2 < len(every.lark)
    assert all(word in crowded.gbnf for word in ("stock_thing591", "describe_tool")) or (
        "GET /stock/{shelf}/thing591" in crowded.gbnf
    )


# What an agent is made of is made once.


class Counted(ToolSource):
    """Says how often it was asked for its tools."""

    def __init__(self) -> None:
        self.asked = 0

    def as_tools(self) -> Sequence[Tool[..., Any]]:
        self.asked += 1
        return functions()


def test_a_source_is_asked_once_for_an_agent_and_its_roles() -> None:
    source = Counted()

    def model(messages: Any) -> str:
        if task_of(messages).startswith("Your role: "):
            return "looked"
        return [block(spawn("a", "look", role="Looker"), wait_for("$a")), "done"][turn_of(messages)]

    agent = Agent(
        model,
        protocol=ChattyProtocol(tool_tokens=1),
        tools=[source],
        roles={"Looker": Role()},
    )
    assert "spawn_agent(" in agent.system_prompt
    assert "search_tools(" in agent.system_prompt
    assert "There are 80 tools" in agent.system_prompt
    assert agent.run_sync("go").value == "done"
    assert source.asked == 1


def test_the_last_level_has_no_tools_that_start_runs() -> None:
    helper = Agent(ScriptedModel([]), protocol="chatty", name="helper").as_tool()
    agent = Agent(
        ScriptedModel([]),
        protocol=ChattyProtocol(tool_tokens=1),
        tools=[*functions(), helper],
        delegate=True,
    )
    assert "81 tools" in agent.system_prompt
    assert agent._setup.toolbox.find("helper") is not None
    last = agent._last_setup.system_prompt
    assert "80 tools" in last
    assert "spawn_agent" not in last
    assert "helper" not in last
    assert json.loads(agent._setup.toolbox.tool_set.search("helper", False))["more"] == 0


class Stop(TypedDict):
    """Where a trip goes."""

    city: Annotated[str, Field(description="In capitals.")]
    nights: Annotated[int, Field(ge=1, le=14)]


def plan(
    seats: Annotated[int, Field(ge=1, le=9)],
    stops: Annotated[list[Stop], Field(max_length=5)],
    code: Annotated[str | None, Field(pattern="^[A-Z]{3}$", description="The code.")] = None,
) -> str:
    """Plan a trip."""
    return f"{seats} {stops} {code}"


NOTES = [
    "seats: 1 to 9",
    "stops: at most 5 items",
    "stops[]: Where a trip goes.",
    "stops[].city: In capitals.",
    "stops[].nights: 1 to 14",
    "code: pattern ^[A-Z]{3}$",
]


def planned(source: str) -> Any:
    """The tool as a function, as servers of MCP offer it, and as an operation."""
    own = Tool(plan)
    if source == "function":
        return [own]
    if source == "mcp":
        return [
            SchemaTool(
                lambda _arguments, _context: "done",
                name="plan",
                description="Plan a trip.",
                parameters=own.parameters,
            )
        ]
    schema = json.loads(json.dumps(own.parameters).replace("#/$defs/", "#/components/schemas/"))
    schemas = schema.pop("$defs")
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    # Short documents are shown whole in the ticket protocol.
    post = {"summary": "Plan a trip.", "description": "Soon. " * 400, "requestBody": body}
    paths = {"/plan": {"post": post}}
    document = {"openapi": "3.1.0", "paths": paths, "components": {"schemas": schemas}}
    return OpenAPI(document, handlers={"POST /plan": plan})


@pytest.mark.parametrize("kind", PROTOCOLS.values(), ids=PROTOCOLS)
@pytest.mark.parametrize("source", ["function", "mcp", "document"])
def test_limits_and_fields_are_told(kind: Any, source: str) -> None:
    prompt = kind().system_prompt(planned(source))
    for note in NOTES:
        assert prompt.count(f"\n  {note}\n") == 1, prompt
    assert "The code." not in prompt
