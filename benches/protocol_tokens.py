"""What a run costs in each protocol: requests, and the tokens that its model reads and writes.

    python benches/protocol_tokens.py

Each run looks up three orders, which depend on nothing, and answers. Chatty and native make the
three calls in one reply, the others in three. Tokens are counted as four characters; what the
model reads is the messages of all requests and, in native, the tools that are passed with them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from callslip import Agent, tool
from callslip.models import ModelReply, NativeCall, ToolForm
from callslip.protocols import ProtocolName

ORDERS = (1001, 1002, 1003)
ANSWER = "All three are shipped."


@tool
def look_up(number: int) -> dict[str, object]:
    """Look an order up by its number.

    Args:
        number: The number of the order.
    """
    return {"number": number, "customer": f"customer {number}", "status": "shipped"}


@tool
def cancel(number: int, reason: str = "") -> str:
    """Cancel an order.

    Args:
        number: The number of the order.
        reason: Why, in a few words.
    """
    return f"cancelled {number}: {reason}"


def react(number: int) -> str:
    args = json.dumps({"number": number})
    return json.dumps({"thought": "next", "action": "look_up", "args": args})


def ticket(number: int) -> str:
    call = {"type": "CALL", "route": "/look_up", "payload": {"number": number}}
    return (
        f"<thoughts>next</thoughts>\n<output>{json.dumps(call | {'description': 'order'})}</output>"
    )


def chatty() -> str:
    calls = [
        {"call_id": f"call_{at}", "tool_name": "look_up", "arguments": {"number": number}}
        for at, number in enumerate(ORDERS, 1)
    ]
    return f"<tool>{json.dumps(calls)}</tool>"


def native() -> ModelReply:
    calls = [
        NativeCall(f"call_{at}", "look_up", json.dumps({"number": number}))
        for at, number in enumerate(ORDERS, 1)
    ]
    return ModelReply(calls=calls)


FINISH = {"thought": "done", "action": "FINISH", "final_answer": ANSWER, "task_successful": True}
RETURN = f'<thoughts>done</thoughts>\n<output>{{"type": "RETURN", "value": "{ANSWER}"}}</output>'
SCRIPTS: dict[ProtocolName, list[str | ModelReply]] = {
    "react": [*map(react, ORDERS), json.dumps(FINISH)],
    "chatty": [chatty(), ANSWER],
    "ticket": [*map(ticket, ORDERS), RETURN],
    "native": [native(), ANSWER],
}


def written(reply: str | ModelReply) -> int:
    """Return the characters that the model has written."""
    if isinstance(reply, str):
        return len(reply)
    return sum(len(call.tool) + len(call.arguments) for call in reply.calls)


class Model:
    """Gives replies one by one, and counts the characters of its requests."""

    accepts = frozenset({"tools", "tool_choice"})

    def __init__(self, replies: Sequence[str | ModelReply]) -> None:
        self.replies = iter(replies)
        self.requests = 0
        self.read = 0

    def __call__(
        self,
        messages: Sequence[dict[str, Any]],
        tools: Sequence[ToolForm] = (),
        tool_choice: object = None,
    ) -> str | ModelReply:
        self.requests += 1
        self.read += sum(len(message["content"]) for message in messages)
        for form in tools:
            self.read += len(form.name) + len(form.description) + len(json.dumps(form.parameters))
        return next(self.replies)


def main() -> None:
    print("| protocol | requests | tokens read | tokens written |\n|---|---|---|---|")
    for protocol, replies in SCRIPTS.items():
        model = Model(replies)
        agent = Agent(model, tools=[look_up, cancel], protocol=protocol)
        result = agent.run_sync("Have the orders 1001, 1002 and 1003 been shipped?")
        assert result.value == ANSWER
        tokens = sum(map(written, replies)) // 4
        print(f"| {protocol} | {model.requests} | {model.read // 4:,} | {tokens:,} |")


if __name__ == "__main__":
    main()
