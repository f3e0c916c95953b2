"""Agents whose models and tools depend on nothing but the task and the turn, in any process."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from callslip import Agent, Context, TicketProtocol, TicketStore, tool
from callslip._runtime.session import RunSession
from scripted import act, block, call, finish, give, task_of, turn_of, wait
from sequences.ledger import Ledger

PROTOCOLS = ("react", "chatty", "ticket")
ONCE = ("work", "slow", "pay", "sign")
"""The tools whose effect may be made once at most."""


def move(protocol: str, names: list[str], messages: list[dict[str, Any]]) -> str:
    """What the model replies: calls in some turns, then an answer."""
    task, turn = task_of(messages).split("\n")[0], turn_of(messages)
    calls = random.Random(task).randrange(1, 4)
    # Ticket: every second turn waits for the call of the one before.
    step = turn // 2 if protocol == "ticket" else turn
    chance = random.Random(f"{task}/{step}")
    if step >= calls:
        return {"react": finish("done"), "chatty": "done", "ticket": give("done")}[protocol]
    if protocol == "ticket":
        return (
            wait(f"T{step + 1}")
            if turn % 2
            else call(f"/{(one := pick(chance, names, task))[0]}", one[1])
        )
    if protocol == "react":
        name, arguments = pick(chance, names, task)
        return act(name, **arguments)
    rows = [pick(chance, names, f"{task}.{at}") for at in range(chance.choice((1, 1, 2, 3)))]
    return block(*((f"c{step}x{at}", *row) for at, row in enumerate(rows)))


def pick(chance: random.Random, names: list[str], task: str) -> tuple[str, dict[str, Any]]:
    name = chance.choice(names)
    if name in {"ask", "nested"}:
        return name, {"task": f"{task} {chance.randrange(1000)}"}
    return name, {"n": chance.randrange(1000)}


@contextmanager
def watching() -> Iterator[None]:
    """Note when each call was last let begin, which no thread can delay after the fact."""
    original = RunSession.may_begin

    def may_begin(session: RunSession, ticket: int) -> bool:
        now = time.monotonic_ns()
        let = original(session, ticket)
        if let:
            _let[session.run.id, f"T{ticket}"] = now
        return let

    RunSession.may_begin = may_begin  # type: ignore[method-assign]
    try:
        yield
    finally:
        RunSession.may_begin = original  # type: ignore[method-assign]
        _let.clear()


_let: dict[tuple[str, str], int] = {}


class Crew:
    """Agents of one protocol on one store: `top` gives tasks to `middle`, and that to `leaf`.

    Args:
        protocol: The name of their protocol.
        store: Where their runs are kept.
        ledger: Where each real call is written down.
    """

    def __init__(self, protocol: str, store: TicketStore, ledger: Ledger) -> None:
        self._protocol, self._store, self._ledger = protocol, store, ledger
        self.leaf = self._agent("leaf", [])
        self.middle = self._agent("middle", self._below(self.leaf))
        self.top = self._agent("top", self._below(self.middle))
        self.agents = {agent.name: agent for agent in (self.top, self.middle, self.leaf)}

    def _agent(self, name: str, more: list[Any]) -> Agent[Any]:
        tools = [*self._tools(), *more]
        names = [one.name for one in tools]
        protocol = TicketProtocol(grace=0) if self._protocol == "ticket" else self._protocol

        def whole(messages: list[dict[str, Any]]) -> str:
            return move(self._protocol, names, messages)

        async def later(messages: list[dict[str, Any]]) -> str:
            await asyncio.sleep(0.001)
            return move(self._protocol, names, messages)

        model = whole if name == "leaf" else later
        return Agent(model, protocol=protocol, tools=tools, store=self._store, name=name)  # type: ignore[arg-type]

    def _below(self, agent: Agent[Any]) -> list[Any]:
        @tool
        async def nested(task: str, context: Context) -> str:
            """Give a task to another agent, from inside a call."""
            self._note(context, "nested")
            return str((await agent.run(task)).value)

        return [agent.as_tool(name="ask", description="Give a task away."), nested]

    def _note(self, context: Context, name: str) -> None:
        run, ticket = context.run_id, context.ticket_id
        begun = _let.pop((run, ticket), None)
        self._ledger.write("call", run=run, ticket=ticket, tool=name, begun=begun)

    def _tools(self) -> list[Any]:
        @tool(effect="once")
        def work(n: int, context: Context) -> str:
            """Work."""
            self._note(context, "work")
            time.sleep(n % 3 / 1000)
            return "worked"

        @tool(effect="once")
        async def slow(n: int, context: Context) -> str:
            """Work slowly."""
            self._note(context, "slow")
            await asyncio.sleep(n % 7 / 1000)
            return "worked"

        @tool(effect="idempotent")
        def look(n: int, context: Context) -> int:
            """Look."""
            self._note(context, "look")
            return n

        @tool(effect="once", needs_approval=True)
        async def pay(n: int, context: Context) -> str:
            """Pay."""
            self._note(context, "pay")
            return f"paid {n}"

        @tool(effect="once", needs_approval=True)
        def sign(n: int, context: Context) -> str:
            """Sign."""
            self._note(context, "sign")
            return f"signed {n}"

        return [work, slow, look, pay, sign]
