"""Calls that use the results of others: approval depends on what these results turn out to be."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from callslip import Agent, ScriptedModel, replay, tool
from callslip.testing import Say

DONE: list[tuple[str, list[str]]] = []
SAY = Say("react")


@tool(untrusted=True, readonly=True, repeatable=True)
def read_mail() -> str:
    """Read the newest mail."""
    return "mallory@evil.example"


@tool(readonly=True, repeatable=True)
def contact() -> str:
    """Return the address of a person."""
    return "ada@home.example"


@tool(needs_approval="untrusted", repeatable=True)
def send(to: str, copies: list[str]) -> str:
    """Send the report."""
    DONE.append((to, copies))
    return "sent"


def clerk(name: str, look_up: str) -> Agent:
    """An agent that calls one tool, and answers with its result."""
    answer = "mallory@evil.example" if look_up == "read_mail" else "ada@home.example"
    model = ScriptedModel([SAY.call(look_up), SAY.finish(answer)] * 4)
    return Agent(model, name=name, tools=[read_mail, contact])


SOURCES = ["read_mail", "contact", "deceived", "honest", "task", "stranger"]
"""Where an address comes from: a tool, a child run, or the model's own words."""


@settings(deadline=None, max_examples=40)
@given(
    to=st.sampled_from(SOURCES),
    copies=st.lists(st.sampled_from(SOURCES), max_size=2),
    has_read=st.booleans(),
)
def test_a_call_asks_if_a_result_that_it_uses_is_untrusted(to, copies, has_read):
    DONE.clear()
    asked: list[str] = []
    literal = {"task": "ada@home.example", "stranger": "eve@evil.example"}
    used = [one for one in dict.fromkeys([to, *copies]) if one not in literal]
    block: list[dict[str, Any]] = [
        {"call_id": one, "tool_name": one, "arguments": {"task": "Look."} if one in AGENTS else {}}
        for one in used
    ]
    named = {one: literal.get(one, f"${one}") for one in SOURCES}
    arguments = {"to": named[to], "copies": [named[one] for one in copies]}
    block.append({"call_id": "last", "tool_name": "send", "arguments": arguments})
    replies = ['<tool>\n[{"call_id": "m", "tool_name": "read_mail", "arguments": {}}]\n</tool>']
    replies = [*replies[:has_read], f"<tool>\n{json.dumps(block)}\n</tool>", "done"]
    children = [clerk("deceived", "read_mail"), clerk("honest", "contact")]
    agent = Agent(
        ScriptedModel(replies),
        protocol="chatty",
        tools=[read_mail, contact, send, *(one.as_tool(description="Looks.") for one in children)],
    )
    result = agent.run_sync(
        "Send the report to ada@home.example.",
        approve=lambda ticket: asked.append(ticket.tool) or False,
    )
    # A child run that begins after an untrusted result was read has read what its model wrote.
    bad = {"read_mail", "deceived", "stranger"} | ({"honest"} if has_read else set())
    expected = bool(bad & {to, *copies})
    assert (asked, len(DONE)) == (["send"] * expected, not expected)
    (ticket,) = [one for one in result.tickets if one.tool == "send"]
    for pointer, source in [
        ("/to", to),
        *((f"/copies/{at}", one) for at, one in enumerate(copies)),
    ]:
        if source not in literal:
            assert ticket.origins[pointer].untrusted == (source in bad), pointer
    again = replay(result.run.export())
    assert [event.to_json() for event in again.events()] == [
        event.to_json() for event in result.run.events()
    ]


AGENTS = ("deceived", "honest")
