"""Prompt tokens of a ticket run by its number of calls: what a model reads in all its turns.

    python benches/ticket_tokens.py

Each call has its own arguments and a result of some 60 characters, as a look-up has. Tokens are
counted as four characters. `load` is a model that loads each result by a move of its own;
`inline` one that reads it in the next message, as the protocol tells it. Transcript is all
messages once; read is what all the requests of the run hold together.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from callslip import Agent, Limits, tool

CALLS = (10, 25, 50, 100, 200)


@tool
def look_up(number: int) -> dict[str, object]:
    """Look an order up by its number."""
    return {"number": number, "customer": f"customer {number}", "status": "shipped"}


def output(**move: object) -> str:
    return f"<thoughts>next</thoughts>\n<output>{json.dumps(move)}</output>"


def replies(calls: int, *, load: bool) -> list[str]:
    """What the model says in a run of so many calls."""
    moves = []
    for n in range(1, calls + 1):
        payload = {"number": 1000 + n}
        text = f"order {1000 + n}"
        moves.append(output(type="CALL", route="/look_up", payload=payload, description=text))
        if load:
            moves.append(output(type="LOAD_TICKET", ticket_id=f"T{n}"))
    return [*moves, output(type="RETURN", value="done")]


class Model:
    """Gives replies one by one, and counts the characters that it is shown."""

    def __init__(self, replies: Sequence[str]) -> None:
        self.replies = replies
        self.read = 0

    def __call__(self, messages: Sequence[dict[str, str]]) -> str:
        self.read += sum(len(message["content"]) for message in messages)
        return self.replies[(len(messages) - 2) // 2]


def main() -> None:
    print(f"{'calls':>6} {'way':>7} {'turns':>6} {'transcript':>11} {'read':>10}   tokens")
    for calls in CALLS:
        for way in ("load", "inline"):
            model = Model(replies(calls, load=way == "load"))
            agent = Agent(
                model, protocol="ticket", tools=[look_up], limits=Limits(turns=None, tickets=None)
            )
            result = agent.run_sync("Look all the orders up.")
            assert result.value == "done", result
            whole = sum(len(message["content"]) for message in result.messages) // 4
            turns = len(model.replies)
            print(f"{calls:>6} {way:>7} {turns:>6} {whole:>11,} {model.read // 4:>10,}")


if __name__ == "__main__":
    main()
