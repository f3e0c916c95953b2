"""Characters of a streamed reply that are never asked for, because what comes can count no more.

    python benches/early_stop.py

A model streams four characters at a time; what the agent takes of its first reply is counted. The
second reply is an answer, which ends the run. Nothing here is timed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence

from callslip import Agent, ChattyProtocol, ReactProtocol, TicketProtocol, Tool, tool
from callslip.protocols import Protocol

CHUNK = 4
PAGE = "The harbour lies in the north, behind a long mole of grey stone. " * 30
INVENTED = f"\nObservation: {PAGE}\n"


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"a {at}"


def react(action: str, *, at: str = "ship") -> str:
    return json.dumps({"thought": "t", "action": action, "args": json.dumps({"at": at})})


def chatty(name: str, *, at: str = "ship") -> str:
    call = {"call_id": "1", "tool_name": name, "arguments": {"at": at}}
    return f"<tool>{json.dumps([call])}</tool>"


def ticket(**fields: str) -> str:
    return f"<thoughts>t</thoughts>\n<output>{json.dumps(fields)}</output>"


FINISH = {
    "react": json.dumps(
        {"thought": "t", "action": "FINISH", "final_answer": "done", "task_successful": True}
    ),
    "chatty": "done",
    "ticket": ticket(type="RETURN", value="done"),
}
CASES: list[tuple[str, str, type[Protocol], str]] = [
    (
        "early stop",
        "an invented observation after the call",
        ReactProtocol,
        react("look") + INVENTED,
    ),
    ("early stop", "an invented result after the block", ChattyProtocol, chatty("look") + INVENTED),
    ("early refusal", "a tool that is not there", ReactProtocol, react("paint", at=PAGE)),
    ("early refusal", "a tool that is not there", ChattyProtocol, chatty("paint", at=PAGE)),
    (
        "early refusal",
        "a type that is not there",
        TicketProtocol,
        ticket(type="PAINT", description=PAGE),
    ),
    (
        "early refusal",
        "a ticket that is not there",
        TicketProtocol,
        ticket(type="AWAIT", ticket_id="T9", description=PAGE),
    ),
    (
        "early refusal",
        "a quote that is not escaped",
        ReactProtocol,
        f'{{"thought": "a "b"", {PAGE}',
    ),
]


def taken(protocol: Protocol, reply: str) -> int:
    """How many characters of the reply an agent takes."""
    counts: list[int] = []

    async def model(messages: Sequence[object]) -> AsyncIterator[str]:
        text = FINISH[protocol.name] if counts else reply
        counts.append(0)
        for start in range(0, len(text), CHUNK):
            counts[-1] += len(text[start : start + CHUNK])
            yield text[start : start + CHUNK]

    tools: list[Tool[..., str]] = [look]
    Agent(model, protocol=protocol, tools=tools).run_sync("look around")
    return counts[0]


def main() -> None:
    print("| | reply | protocol | characters | taken | saved |")
    print("|---|---|---|---|---|---|")
    for what, why, kind, reply in CASES:
        protocol = kind()
        read = taken(protocol, reply)
        saved = f"{1 - read / len(reply):.0%}"
        print(f"| {what} | {why} | {protocol.name} | {len(reply):,} | {read:,} | {saved} |")


if __name__ == "__main__":
    main()
