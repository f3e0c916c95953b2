"""Origins of calls that nobody asked to trace: they are traced when they are read."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from callslip import Agent, Context, ScriptedModel, TicketStore, tool
from callslip.events import TicketOpened
from callslip.testing import Say

ALL = ["react", "chatty", "ticket", "native"]


@tool
def book(city: str, day: str = "") -> str:
    """Book a table."""
    return f"the number is 44172, {city}"


@tool
def pay(number: int, to: str) -> str:
    """Pay."""
    return "paid"


async def waited(answer: Any) -> Any:
    return await answer


def script(say: Say) -> list[Any]:
    return [
        say.call("book", city="Oslo", day="2026-03-04"),
        say.call("pay", number=44172, to="Ada"),
        say.finish("done"),
    ]


def words(ticket: Any) -> dict[str, str]:
    return {pointer: str(origin) for pointer, origin in ticket.origins.items()}


FOUND = [
    {"/city": "from the task", "/day": "from the task (date)"},
    {"/number": "from T1", "/to": "from nowhere"},
]
TASK = "Book a table in Oslo on March 4th 2026."


@pytest.mark.parametrize("protocol", ALL)
def test_they_are_those_that_are_traced_before_the_call(protocol):
    say = Say(protocol)
    tools = [book, pay]
    quiet = Agent(ScriptedModel(script(say)), tools=tools, protocol=protocol).run_sync(TASK)
    asks = [book, tool(needs_approval=True)(pay._function)]
    asking = Agent(ScriptedModel(script(say)), tools=asks, protocol=protocol)
    asked = asking.run_sync(TASK, approve=lambda _: True)
    assert [words(ticket) for ticket in quiet.tickets] == FOUND
    assert dict(quiet.tickets[1].origins) == dict(asked.tickets[1].origins)
    # The log of a run in which nobody asks does not grow.
    opened = [one for one in quiet.run.events() if isinstance(one, TicketOpened)]
    assert [one.origins for one in opened] == [{}, {}]


def test_what_came_later_is_no_origin_of_an_earlier_call():
    say = Say("react")
    replies = [
        say.call("pay", number=44172, to="Grace"),
        say.call("book", city="Oslo"),
        say.finish("done"),
        say.call("pay", number=44172, to="Grace"),
        say.finish("done"),
    ]
    agent = Agent(ScriptedModel(replies), tools=[book, pay])
    result = agent.run_sync("Pay.")
    assert words(result.tickets[0]) == {"/number": "from nowhere", "/to": "from nowhere"}
    run = result.run
    asyncio.run(waited(run.send("Pay Grace.")))
    assert words(run.tickets[2]) == {"/number": "from T2", "/to": "from message 1"}
    # Those of earlier calls stay as they were.
    assert words(run.tickets[0]) == {"/number": "from nowhere", "/to": "from nowhere"}


def test_a_stored_run_has_them_too_and_a_compacted_one_has_those_of_its_log(tmp_path: Path):
    say = Say("react")
    with TicketStore(tmp_path / "runs.sqlite") as store:
        agent = Agent(ScriptedModel(script(say)), tools=[book, pay], store=store)
        run_id = agent.run_sync(TASK).run.id
        assert [words(ticket) for ticket in store.run(run_id).tickets] == FOUND
        assert [dict(ticket.origins) for ticket in store.tickets(run=run_id)] == [{}, {}]
        store.compact(run_id)
        assert [dict(ticket.origins) for ticket in store.run(run_id).tickets] == [{}, {}]


def test_a_tool_and_a_check_of_approval_find_them():
    seen = []

    def check(arguments: dict[str, Any], context: Context) -> bool:
        seen.append(str(context.origins["/to"]))
        return False

    @tool(needs_approval=check)
    def send(to: str, context: Context) -> str:
        """Send it."""
        seen.append(str(context.origins["/to"]))
        return "sent"

    say = Say("react")
    model = ScriptedModel([say.call("send", to="Ada"), say.finish("done")])
    Agent(model, tools=[send]).run_sync("Send it to Ada.", approve=lambda _: True)
    assert seen == ["from the task"] * 2


def test_tickets_with_them_are_copied_and_written():
    say = Say("react")
    result = Agent(ScriptedModel(script(say)), tools=[book, pay]).run_sync(TASK)
    ticket = result.tickets[0]
    for copied in (copy.deepcopy(ticket), pickle.loads(pickle.dumps(ticket))):
        assert copied == ticket
        assert copied.origins == ticket.origins
    assert json.loads(ticket.to_json())["origins"]["/city"]["kind"] == "task"


def test_references_have_the_label_of_their_ticket():
    say = Say("chatty")
    block = json.dumps(
        [
            {"call_id": "a", "tool_name": "book", "arguments": {"city": "Oslo"}},
            {"call_id": "b", "tool_name": "pay", "arguments": {"number": 1, "to": "$a"}},
        ]
    )
    reply = say.call("book", city="Oslo")
    head, _, tail = reply.partition("[")
    tail = tail.rpartition("]")[2]
    reply = f"{head}{block}{tail}"
    result = Agent(
        ScriptedModel([reply, say.finish("done")]), tools=[book, pay], protocol="chatty"
    ).run_sync("Book in Oslo.")
    assert (result.tickets[1].origins["/to"].kind, result.tickets[1].origins["/to"].where) == (
        "reference",
        "T1",
    )
