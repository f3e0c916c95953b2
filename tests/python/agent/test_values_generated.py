"""Whole runs with generated calls: what runs is exactly what a text of the conversation has."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from callslip import Agent, Limits, ScriptedModel, TicketStore, replay, tool
from callslip.events import Violated
from callslip.testing import Say
from stores import copy_store

GIVEN = ["Quarnt", "Belvix", "Ostrum"]
"""Names in the task."""
FOUND = {"Quarnt": "Hyldra", "Belvix": "Temsorq", "Hyldra": "Wobrick"}
"""Names that a look-up returns, by those that it is asked for."""
INVENTED = ["Jasplow", "Krintch", "Vumdel"]
NAMES = [*GIVEN, *FOUND.values(), *INVENTED]

DONE: list[tuple[str, ...]] = []


@tool(repeatable=True)
def send(to: str, about: str) -> str:
    """Send a letter."""
    DONE.append(("send", to, about))
    return "sent"


@tool(readonly=True, repeatable=True)
def find(name: str) -> str:
    """Find whom a person works for."""
    DONE.append(("find", name))
    # A look-up repeats what it was asked for, which vouches for nothing.
    return f"{name} works for {FOUND[name]}" if name in FOUND else f"nobody is called {name}"


@dataclass
class Expected:
    """What the rules say of each call.

    Attributes:
        level: The level of the agent.
        can_ask: Whether somebody can be asked for approval, who approves.
        known: The names that some text has.
        done: The calls that run.
        codes: The violations.
        refused: Calls that were refused.
        in_a_row: Refusals in a row under `strict`.
    """

    level: str
    can_ask: bool
    known: set[str] = field(default_factory=lambda: set(GIVEN))
    done: list[tuple[str, ...]] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    refused: set[tuple[str, ...]] = field(default_factory=set)
    in_a_row: int = 0

    def call(self, call: tuple[str, ...]) -> None:
        name, *values = call
        if self.level == "strict" and self.in_a_row >= 2:
            self.codes.append("unstated_value")
            return
        if set(values) <= self.known or self._is_made_again(call):
            self.in_a_row = 0
            self.done.append(call)
            if name == "find" and values[0] in FOUND:
                self.known.add(FOUND[values[0]])
            return
        self.codes.append("unstated_value")
        self.refused.add(call)
        self.in_a_row += 1

    def _is_made_again(self, call: tuple[str, ...]) -> bool:
        again = self.level == "stated" and call in self.refused
        return again and (call[0] == "find" or self.can_ask)


calls = st.one_of(
    st.tuples(st.just("send"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.tuples(st.just("find"), st.sampled_from(NAMES)),
)


def arguments(call: tuple[str, ...]) -> dict[str, Any]:
    return {"name": call[1]} if call[0] == "find" else {"to": call[1], "about": call[2]}


@settings(deadline=None)
@given(
    script=st.lists(calls, max_size=8),
    protocol=st.sampled_from(["react", "chatty", "ticket", "native"]),
    level=st.sampled_from(["stated", "strict"]),
    can_ask=st.booleans(),
)
def test_exactly_the_calls_run_whose_values_stand_somewhere(script, protocol, level, can_ask):
    DONE.clear()
    say = Say(protocol)
    expected = Expected(level, can_ask)
    for call in script:
        expected.call(call)
    replies = [say.call(call[0], **arguments(call)) for call in script]
    agent = Agent(
        ScriptedModel([*replies, say.finish("That is all.")]),
        tools=[send, find],
        protocol=protocol,
        values=level,
        limits=Limits(max_violations=20, turns=40),
    )
    approve = {"approve": lambda _: True} if can_ask else {}
    result = agent.run_sync(f"Write letters about {', '.join(GIVEN)}.", **approve)
    codes = [one.violation["code"] for one in result.run.events() if isinstance(one, Violated)]
    assert (DONE, codes) == (expected.done, expected.codes)
    # Whatever was not traced before is traced now, and says the same.
    for ticket in result.tickets:
        values = set(ticket.arguments.values())
        assert {one.is_stated for one in ticket.origins.values()} <= {True} or not (
            values <= expected.known
        )
    assert_replays(result.run)


@settings(deadline=None, max_examples=30)
@given(
    script=st.lists(calls, min_size=1, max_size=6),
    protocol=st.sampled_from(["react", "chatty", "ticket"]),
    level=st.sampled_from(["stated", "strict"]),
    killed_at=st.sets(st.integers(0, 7), max_size=3),
    compacts=st.booleans(),
)
def test_a_run_that_is_killed_and_resumed_refuses_the_same(
    script, protocol, level, killed_at, compacts
):
    DONE.clear()
    say = Say(protocol)
    expected = Expected(level, can_ask=False)
    for call in script:
        expected.call(call)
    replies = [*(say.call(call[0], **arguments(call)) for call in script), say.finish("Done.")]
    kills = {at for at in killed_at if at < len(replies)}

    def model(_: Any) -> str:
        at = model_at[0]
        if at in kills:
            kills.discard(at)
            # The store is left as by a killed process.
            path, copied = paths[-1], paths[-1].with_suffix(f".{at}")
            copy_store(path, copied)
            paths.append(copied)
            raise KeyboardInterrupt
        model_at[0] += 1
        return replies[at]

    model_at = [0]
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / "runs.sqlite"]
        run_id = None
        while True:
            with TicketStore(paths[-1]) as store:
                agent = Agent(
                    model,
                    tools=[send, find],
                    protocol=protocol,
                    values=level,
                    limits=Limits(max_violations=20, turns=40),
                    store=store,
                )
                try:
                    if run_id is None:
                        result = agent.run_sync(f"Write letters about {', '.join(GIVEN)}.")
                    else:
                        result = agent.resume_sync(run_id)
                    break
                except KeyboardInterrupt:
                    (run_id,) = [row.run_id for row in store.runs()]
            if compacts:
                with TicketStore(paths[-1]) as store:
                    store.compact(run_id)
    codes = [one.violation["code"] for one in result.run.events() if isinstance(one, Violated)]
    assert expected.done == DONE
    assert codes == expected.codes[len(expected.codes) - len(codes) :]


def assert_replays(run: Any) -> None:
    again = replay(run.export())
    assert [event.to_json() for event in again.events()] == [one.to_json() for one in run.events()]
    assert [json.loads(one.to_json()) for one in again.tickets] == [
        json.loads(one.to_json()) for one in run.tickets
    ]
