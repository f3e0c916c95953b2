"""Models that do anything: right moves, wrong ones, tasks for others, failures, in any form."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from typing import Any

from callslip import BoundedModel, ModelReply
from scripted import turn_of

Message = dict[str, str]
FORMS = ("whole", "async whole", "stream", "async stream", "stubborn")
PLAIN = ("quick", "slow", "slow_sync", "broken", "picky", "late", "narrow", "narrow_sync", "look")
ASKING = ("sign", "seal")
TURNS = 7
SPAWNED = re.compile(r'"call_id": "(a\d+)", "tool_name": "spawn_agent"')
GARBAGE = (
    "",
    "I would rather not.",
    '{"thought": "half of',
    "<tool>[]</tool>",
    '<tool>[{"tool_name": "nothing", "arguments": {}}]</tool>',
    '<output>{"type": "AWAIT", "ticket_id": "T999"}</output>',
    '{"thought": "t", "action": "quick", "args": "{}", "final_answer": "both"}',
)


class OutOfOrderError(Exception):
    """A model or a tool that fails."""


class Player:
    """`form` says how it replies, `tools` what it calls."""

    def __init__(self, protocol: str, form: str, tools: Sequence[str], *, long: bool) -> None:
        self.protocol = protocol
        self.form = form
        self.tools = tools
        self.long = long

    def model(self, gates: int | None) -> Any:
        make = {
            "whole": self.whole,
            "async whole": self.async_whole,
            "stream": self.stream,
            "async stream": self.async_stream,
            "stubborn": self.stubborn,
        }[self.form]
        return make if gates is None else BoundedModel(make, concurrency=gates)

    def whole(self, messages: Sequence[Message]) -> ModelReply:
        time.sleep(random.random() * 0.004)
        return ModelReply(self.say(messages), usage={"input_tokens": 5, "output_tokens": 2})

    async def async_whole(self, messages: Sequence[Message]) -> str:
        await asyncio.sleep(random.random() * 0.008)
        return self.say(messages)

    async def stubborn(self, messages: Sequence[Message]) -> str:
        """Take no notice of being cancelled."""
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(random.random() * 0.02)
        return self.say(messages)

    def stream(self, messages: Sequence[Message]) -> Iterator[str]:
        for piece in self.pieces(messages):
            if random.random() < 0.1:
                time.sleep(0.001)
            yield piece

    async def async_stream(self, messages: Sequence[Message]) -> AsyncIterator[str]:
        for piece in self.pieces(messages):
            if random.random() < 0.3:
                await asyncio.sleep(random.random() * 0.002)
            yield piece

    def pieces(self, messages: Sequence[Message]) -> Iterator[str]:
        text = self.say(messages)
        # Whoever reads slowly is to be waited for: there must be more than what a run may be ahead.
        size = 1 if self.long else random.choice((3, 20, 400))
        for at in range(0, len(text), size):
            if random.random() < 0.0005:
                raise OutOfOrderError("the line is down")
            yield text[at : at + size]

    def say(self, messages: Sequence[Message]) -> str:
        luck = random.random()
        if luck < 0.02:
            raise OutOfOrderError("no model today")
        if luck < 0.07:
            return random.choice(GARBAGE)
        turn = turn_of(messages)
        last = messages[-1]["content"]
        ends = turn >= TURNS or "Answer now" in last or random.random() < 0.15
        reply = {"ticket": self.ticket, "chatty": self.chatty, "react": self.react}
        return reply[self.protocol](messages, ends)

    def call(self) -> tuple[str, dict[str, Any]]:
        name = random.choice(self.tools)
        if name in {"helper", "expert"}:
            return name, {"task": part()}
        # At times a call that was made before.
        return name, {"n": random.choice((1, random.randrange(10**6)))}

    def thoughts(self) -> str:
        return "well, " * (120 if self.long else 1)

    def react(self, messages: Sequence[Message], ends: bool) -> str:
        if ends:
            end = {"action": "FINISH", "final_answer": "done", "task_successful": True}
            return json.dumps({"thought": self.thoughts(), **end})
        name, arguments = self.call()
        if random.random() < 0.15:
            name, arguments = "delegate_task", {"task": part()}
        args = json.dumps(arguments)
        return json.dumps({"thought": self.thoughts(), "action": name, "args": args})

    def chatty(self, messages: Sequence[Message], ends: bool) -> str:
        if ends:
            return f"{self.thoughts()} that is all."
        rows: list[dict[str, Any]] = []
        for at in range(random.randint(1, 3)):
            name, arguments = self.call()
            if rows and "n" in arguments and random.random() < 0.3:
                arguments = {"n": "$c0"}
            rows.append({"call_id": f"c{at}", "tool_name": name, "arguments": arguments})
        agents = SPAWNED.findall("".join(message["content"] for message in messages[2:]))
        for _ in range(random.choice((0, 0, 1, 2))):
            role = random.choice(("Clerk", "Poet", "Anyone"))
            prompt = f"${agents[-1]}" if agents and random.random() < 0.3 else part()
            agents.append(f"a{random.randrange(10**6)}")
            spawned = {"role": role, "prompt": prompt}
            row = {"call_id": agents[-1], "tool_name": "spawn_agent", "arguments": spawned}
            rows.append(row)
        if agents and random.random() < 0.5:
            waited = {"agent_ids": [f"${agent}" for agent in set(agents)]}
            rows.append({"call_id": "w", "tool_name": "wait_for_agents", "arguments": waited})
        return f"{self.thoughts()}\n<tool>{json.dumps(rows)}</tool>"

    def ticket(self, messages: Sequence[Message], ends: bool) -> str:
        rows = tickets(messages[-1]["content"])
        move: dict[str, Any]
        name, arguments = self.call()
        move = {"type": "CALL", "route": f"/{name}", "payload": arguments, "description": "a call"}
        luck = random.random()
        if ends:
            move = {"type": "RETURN", "value": {"tickets": len(rows)}}
        elif luck < 0.2:
            move = {"type": "DELEGATE", "task": part()}
        elif luck < 0.5 and rows:
            row = random.choice(rows)
            kind = "LOAD_TICKET" if row["status"] == "COMPLETED" else "AWAIT"
            move = {"type": kind, "ticket_id": row["id"]}
        return f"<thoughts>{self.thoughts()}</thoughts><output>{json.dumps(move)}</output>"


def part() -> str:
    return f"part {random.randrange(10**9)}"


def tickets(message: str) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = json.loads(message.rpartition("Tickets:\n")[2])
    except ValueError:
        return []  # the user's own words
    # The player's own task can't be awaited or loaded.
    return [row for row in rows if row["id"] != "T0"]
