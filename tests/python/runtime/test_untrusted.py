"""Tickets say whether their results are untrusted: of which tools, in every store, and of child
runs that have read such results, whichever way these begin."""

import random

import pytest

from callslip import Agent, OpenAPI, ScriptedModel, TicketStore, UsageError, tool
from callslip.events import TicketCompleted, TicketOpened
from callslip.mcp import MCPServer
from callslip.tools import Tool
from scripted import PATIENT, act, block, delegate, finish, give, spawn, turn_of, wait, wait_for
from serving import SERVERS, python


@tool(untrusted=True)
def page(name: str = "home") -> str:
    """Read a page."""
    return f"the page {name}"


@tool
def plain(name: str = "home") -> str:
    """Read an own page."""
    return f"the own page {name}"


def scripted(*replies, **options):
    """An agent whose reply to a task depends on how many it has given."""
    options.setdefault("name", "clerk")

    def model(messages):
        return replies[min(turn_of(messages), len(replies) - 1)]

    return Agent(model, **options)


def flags(tickets):
    return {ticket.id: ticket.untrusted for ticket in tickets}


def check_everywhere(run, store=None, **expected):
    """Check the flags of a run in each place that lists its tickets."""
    assert flags(run.tickets) == expected
    assert flags(run.trace().tickets) == expected
    told = dict.fromkeys(expected, False)
    for event in run.log:
        if isinstance(event, TicketOpened | TicketCompleted):
            told[event.ticket_id] |= event.untrusted
    assert told == expected
    if store is None:
        return
    assert flags(store.tickets(run=run.id)) == expected
    assert flags(store.run(run.id).tickets) == expected


SCRIPT = [act("plain"), act("page"), act("plain", name="b"), act("inner", task="t"), finish()]


def outer(store, **options):
    inner = scripted(finish("inner"), name="inner", store=store).as_tool()
    return scripted(*SCRIPT, tools=[plain, page, inner], store=store, **options)


def test_every_store_keeps_it(store):
    run = outer(store).run_sync("go").run
    expected = {"T1": False, "T2": True, "T3": False, "T4": True}
    check_everywhere(run, store, **expected)
    exported = run.export()
    store.compact(run.id)
    compacted = store.run(run.id)
    assert flags(compacted.tickets) == flags(store.tickets(run=run.id)) == expected
    assert flags(compacted.trace().tickets) == expected
    with TicketStore() as other:
        imported = other.run(other.import_run(exported))
        assert flags(imported.tickets) == flags(other.tickets(run=run.id)) == expected


def test_a_run_without_untrusted_results_has_no_word_of_it(store):
    inner = scripted(finish("inner"), name="inner", store=store).as_tool()
    agent = scripted(act("plain"), act("inner", task="t"), finish(), tools=[plain, inner])
    run = agent.replace(store=store).run_sync("go").run
    check_everywhere(run, store, T1=False, T2=False)
    assert "untrusted" not in run.export()


def test_a_resumed_run_keeps_the_value_of_its_own_log(tmp_path):
    with TicketStore(tmp_path / "runs.sqlite") as store:
        run = outer(None).run_sync("go").run
        lines = run.export().splitlines(keepends=True)
        replied = [at for at, line in enumerate(lines) if "model_replied" in line]
        store.import_run(lines[: replied[1]])
        trusted = Tool(page, name="page")
        assert not trusted.untrusted
        inner = scripted(finish("inner"), name="inner", store=store).as_tool()
        later = scripted(*SCRIPT, tools=[plain, trusted, inner], store=store)
        assert later.check(store.run(run.id)) == []
        result = later.resume_sync(run.id)
        check_everywhere(result.run, store, T1=False, T2=True, T3=False, T4=True)


CHILDREN = {
    "ticket": [delegate("t"), wait("T1"), give("done")],
    "chatty": [block(spawn("s", "t")), block(wait_for("s")), "done"],
}
READING = {
    "ticket": [
        '<thoughts>t</thoughts><output>{"type": "CALL", "route": "NAME", "payload": {}, '
        '"description": "d"}</output>',
        wait("T1"),
        give("in"),
    ],
    "chatty": [block(("c", "NAME", {})), "in"],
}


@pytest.mark.parametrize("name", ["page", "plain"])
@pytest.mark.parametrize("protocol", CHILDREN)
def test_a_child_that_has_read_one_makes_its_ticket_untrusted(protocol, name):
    worker = [reply.replace("NAME", name) for reply in READING[protocol]]

    def model(messages):
        own = {line.strip() for message in messages for line in message["content"].splitlines()}
        is_worker = "t" in own
        return (worker if is_worker else CHILDREN[protocol])[turn_of(messages)]

    used = PATIENT if protocol == "ticket" else protocol
    agent = Agent(model, protocol=used, tools=[page, plain], delegate=True)
    run = agent.run_sync("go").run
    expected = {"T1": name == "page"} | ({"T2": name == "page"} if protocol == "chatty" else {})
    check_everywhere(run, **expected)


@pytest.mark.parametrize("name", ["page", "plain"])
def test_a_run_inside_a_tool_makes_the_ticket_of_its_call_untrusted(name):
    inner = scripted(act(name), finish("in"), name="inner", tools=[page, plain])

    @tool
    async def begin() -> str:
        """Begin another run."""
        return (await inner.run("t")).value

    result = scripted(act("begin"), act("plain"), finish(), tools=[begin, plain]).run_sync("go")
    check_everywhere(result.run, T1=name == "page", T2=False)


def test_what_is_written_after_one_stays_so_over_levels():
    """The task of a child and that of its own child were written by models that had read one."""
    lowest = scripted(finish("low"), name="lowest").as_tool()
    middle = scripted(act("lowest", task="t"), finish("mid"), name="middle", tools=[lowest])
    replies = [act("page"), act("middle", task="t"), finish()]
    run = scripted(*replies, tools=[page, middle.as_tool()]).run_sync("go").run
    check_everywhere(run, T1=True, T2=True)
    (child,) = run.trace().tickets[1].runs
    assert [ticket.untrusted for ticket in child.tickets] == [True]
    run = scripted(*replies[1:], tools=[page, middle.as_tool()]).run_sync("go").run
    (child,) = run.trace().tickets[0].runs
    assert [ticket.untrusted for ticket in child.tickets] == [False]


@pytest.mark.parametrize("name", ["page", "plain"])
def test_a_conversation_that_is_handed_over_has_read_what_it_tells(name):
    run = scripted(act(name), finish(), tools=[page, plain]).run_sync("go").run
    inner = scripted(finish("inner"), name="inner").as_tool()
    model = ScriptedModel([act("inner", task="t"), finish()])
    other = Agent(model, name="sales", tools=[inner])
    check_everywhere(other.hand_over_sync(run, say="go on").run, T1=name == "page")


@pytest.mark.parametrize("seed", range(20))
def test_tasks_inherit_it_in_random_runs(seed):
    draw = random.Random(seed)
    names = [draw.choice(["page", "plain", "inner", "other"]) for _ in range(8)]
    inner = scripted(finish("in"), name="inner").as_tool()
    other = scripted(act("page"), finish("in"), name="other", tools=[page]).as_tool()
    calls = [
        act(name, **({"name": str(at)} if name in ("page", "plain") else {"task": f"t{at}"}))
        for at, name in enumerate(names)
    ]
    run = scripted(*calls, finish(), tools=[plain, page, inner, other]).run_sync("go").run
    expected, read = {}, False
    for at, name in enumerate(names, 1):
        expected[f"T{at}"] = name in ("page", "other") or (name == "inner" and read)
        read = read or expected[f"T{at}"]
    check_everywhere(run, **expected)


# Which tools.


def spec_of(made):
    return {one.name: one.untrusted for one in made}


def test_functions_are_trusted_and_servers_are_not():
    assert (page.untrusted, plain.untrusted, Tool(lambda: 1, name="f").untrusted) == (
        True,
        *[False] * 2,
    )
    schema = {"type": "object", "properties": {}}
    assert Tool.from_schema(lambda: 1, name="f", parameters=schema, untrusted=True).untrusted

    class Shelf:
        @tool(untrusted=True)
        def read(self) -> str:
            """Read."""
            return "text"

    assert Shelf().read.untrusted
    assert not tool(external=True)(plain._function).untrusted
    assert tool(external=True, untrusted=True)(plain._function).untrusted
    with pytest.raises(UsageError, match="expected untrusted"):
        tool(untrusted=1)(plain._function)


OFFERING = f"""
import sys
sys.path.insert(0, {str(SERVERS)!r})
import handwritten
handwritten.speak_stdio()
"""


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ({}, [True, True]),
        ({"untrusted": False}, [False] * 2),
        ({"untrusted": ["*_1"]}, [False, True]),
    ],
)
def test_results_of_mcp_servers_are_untrusted(option, expected):
    with python(OFFERING, include=["tool_0", "tool_1"], **option) as server:
        assert isinstance(server, MCPServer)
        assert list(spec_of(server.as_tools()).values()) == expected
        agent = Agent(ScriptedModel([act("tool_0"), finish()]), tools=[server], protocol="react")
        check_everywhere(agent.run_sync("go").run, T1=expected[0])


DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "t", "version": "1"},
    "paths": {
        "/a": {"get": {"operationId": "a", "x-callslip": {"untrusted": False}}},
        "/b": {"get": {"operationId": "b"}},
        "/c": {"get": {"operationId": "c"}},
    },
}


class Client:
    base_url = "http://127.0.0.1:9"

    def request(self, method, url, **_):
        raise ConnectionError(f"{method} {url}")


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ({}, [True, True, False]),
        ({"untrusted": False}, [False, False, False]),
        ({"untrusted": ["/b"]}, [False, True, False]),
    ],
)
def test_results_of_operations_are_untrusted_and_those_of_own_handlers_are_not(option, expected):
    own = {"c": lambda: "own"}
    source = OpenAPI(DOCUMENT, client=Client(), handlers=own, retries=0, **option)
    calls = [
        f'<thoughts>t</thoughts><output>{{"type": "CALL", "route": "GET /{name}", "payload": {{}}, '
        '"description": "d"}</output>'
        for name in "abc"
    ]
    waits = [wait(f"T{number}") for number in (1, 2, 3)]
    script = [reply for pair in zip(calls, waits, strict=True) for reply in pair]
    agent = Agent(ScriptedModel([*script, give("done")]), tools=source, protocol=PATIENT)
    run = agent.run_sync("go").run
    check_everywhere(run, **{f"T{at}": flag for at, flag in enumerate(expected, 1)})
    assert [source.tools[f"GET /{name}"].untrusted for name in "abc"] == expected
