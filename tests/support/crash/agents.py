"""The agents of the crash test: three protocols, tools of every effect, sync or async.

Each has others below it: those it delegates to, spawns, or calls as tools.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from callslip import Agent, Context, Limits, NotDone, Role, TicketStore, tool
from crash import jobs
from crash.ledger import Ledger, points, read

PROTOCOLS = tuple(jobs.MODELS)
PAUSE = 0.008
LEVELS = 2


def pause() -> float:
    """Mostly short; at times long enough for a kill to fall into it."""
    return random.random() * PAUSE * random.choice((0.1, 1, 3))


class Desk:
    """What tools and models share: the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def note(self, at: str, context: Context, **call: Any) -> None:
        ids = {"key": context.key, "run": context.run_id, "ticket": context.ticket_id}
        self.ledger.write(at, "tool", tool=context.tool, **ids, **call)

    def found(self, **wanted: Any) -> int | None:
        """The points of an effect that was made, told from the ledger."""
        for line in read(self.ledger.path):
            if line["at"] == "effect" and wanted.items() <= line.items():
                return points(line["job"], line["step"])
        return None

    def reconcile(self, context: Context) -> int:
        self.ledger.write("reconcile", "tool", key=context.key, ticket=context.ticket_id)
        found = self.found(key=context.key)
        if found is None:
            raise NotDone
        return found

    def tools(self, *, asynchronous: bool) -> list[Any]:
        """One tool of each effect, and those that look things up."""
        made = []
        options: dict[str, dict[str, Any]] = {
            "charge": {"effect": "once"},
            "ship": {"effect": "once", "reconcile": self.reconcile},
            "put": {"effect": "idempotent"},
            "look": {"effect": "pure", "readonly": True},
            "sign": {"effect": "once", "needs_approval": True},
            "seal": {"effect": "idempotent", "needs_approval": True},
        }
        for name, more in options.items():
            make = self.async_tool if asynchronous else self.sync_tool
            made.append(make(name, more))

        @tool(effect="pure")
        def audit(job: str, step: int, attempt: int, context: Context) -> int | None:
            """Say what a step in doubt was worth, or null if it was not done."""
            self.note("start", context, job=job, step=step, attempt=attempt)
            return self.found(job=job, step=step)

        @tool(effect="pure")
        def add(job: str, turn: int, a: int, b: int) -> int:
            """Add two numbers."""
            time.sleep(pause())
            return a + b

        return [*made, audit, add]

    def sync_tool(self, name: str, options: dict[str, Any]) -> Any:
        def work(job: str, step: int, attempt: int, context: Context) -> int:
            """Do a step of a job."""
            for at in ("start", "effect", "end"):
                self.note(at, context, job=job, step=step, attempt=attempt)
                time.sleep(pause())
            return points(job, step)

        return tool(name=name, **options)(work)

    def async_tool(self, name: str, options: dict[str, Any]) -> Any:
        async def work(job: str, step: int, attempt: int, context: Context) -> int:
            """Do a step of a job."""
            for at in ("start", "effect", "end"):
                self.note(at, context, job=job, step=step, attempt=attempt)
                await asyncio.sleep(pause())
            return points(job, step)

        return tool(name=name, **options)(work)

    def model(self, *, asynchronous: bool, streams: bool) -> Any:
        """Return a model of one of the four kinds there are."""

        def sync_stream(messages: Sequence[Any]) -> Iterator[str]:
            for text, seconds in self.asked(messages):
                time.sleep(seconds)
                yield text

        async def async_stream(messages: Sequence[Any]) -> AsyncIterator[str]:
            for text, seconds in self.asked(messages):
                await asyncio.sleep(seconds)
                yield text

        def sync_whole(messages: Sequence[Any]) -> str:
            return "".join(sync_stream(messages))

        async def async_whole(messages: Sequence[Any]) -> str:
            return "".join([text async for text in async_stream(messages)])

        if asynchronous:
            return async_stream if streams else async_whole
        return sync_stream if streams else sync_whole

    def asked(self, messages: Sequence[Any]) -> Iterator[tuple[str, float]]:
        """Give the pieces of a reply, each with a pause before it."""
        job, turn, text = jobs.reply(messages)
        self.ledger.write("start", "model", job=job.name, turn=turn)
        size = len(text) // 3 + 1
        for at in range(0, len(text), size):
            yield text[at : at + size], pause() / 3
        self.ledger.write("end", "model", job=job.name, turn=turn)


def agents(
    desk: Desk, store: TicketStore, *, asynchronous: bool, streams: bool
) -> dict[str, Agent]:
    model = desk.model(asynchronous=asynchronous, streams=streams)

    def agent(protocol: str, name: str, levels: int, **more: Any) -> Agent:
        tools = desk.tools(asynchronous=asynchronous) + more.pop("tools", [])
        limits = Limits(turns=None, tickets=None, runs=None, depth=levels)
        return Agent(
            model,
            protocol=protocol,  # type: ignore[arg-type]
            tools=tools,
            limits=limits,
            store=store,
            name=name,
            **more,
        )

    def crew(levels: int) -> dict[str, Agent]:
        """The agents for jobs with so many levels below them."""
        ticket = agent("ticket", "ticket", levels)
        if levels == 0:
            return {
                "ticket": ticket,
                "chatty": agent("chatty", "chatty", 0),
                "react": agent("react", "react", 0),
            }
        below = crew(levels - 1)
        roles = {"packer": Role(), "teller": below["react"]}
        helpers = [
            below["chatty"].as_tool(name="clerk"),
            below["ticket"].as_tool(name="expert", needs_approval=True),
        ]
        return {
            "ticket": ticket,
            "chatty": agent("chatty", "chatty", levels, roles=roles),
            "react": agent("react", "react", levels, tools=helpers, delegate=True),
        }

    return crew(LEVELS)
