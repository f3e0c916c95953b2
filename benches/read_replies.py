"""Whole replies to Python objects, beside JSON parsers that get the JSON alone.

    python benches/read_replies.py [--rounds 9]

The parsers can't read an envelope, so that they are spared it: they get only the value or the
arguments that callslip finds in the reply. All take turns in one process, and the quickest of the
rounds counts. Megabytes are those of the JSON.
"""

from __future__ import annotations

import argparse
import gc
import re
import time
from collections.abc import Callable
from typing import Any

import jiter
import json_repair
import orjson
from replies import CONTENTS, chatty, dumps, react, records, ticket

from callslip import ChattyProtocol, Move, ReactProtocol, TicketProtocol

SIZES = {"1 KB": 1_000, "100 KB": 100_000, "5 MB": 5_000_000}
FENCE = re.compile(r"```(?:json)?\n(.*)\n```", re.DOTALL)

Read = Callable[[], object]


def quickest(readers: dict[str, Read], rounds: int) -> dict[str, float]:
    """Seconds that each takes, at best."""
    best: dict[str, float] = {}
    repeats: dict[str, int] = {}
    for name, read in readers.items():
        began = time.perf_counter()
        read()
        repeats[name] = max(1, int(0.01 / (time.perf_counter() - began + 1e-9)))
    for _ in range(rounds):
        for name, read in readers.items():
            gc.collect()
            gc.disable()
            began = time.perf_counter()
            for _ in range(repeats[name]):
                read()
            seconds = (time.perf_counter() - began) / repeats[name]
            gc.enable()
            best[name] = min(seconds, best.get(name, seconds))
    return best


def finish_value(reply: str, content: object) -> Read:
    protocol = TicketProtocol()
    move = protocol.parse(reply).move
    assert isinstance(move, Move.Finish)
    assert move.value == content
    return lambda: protocol.parse(reply).move


def call_arguments(protocol: ChattyProtocol | ReactProtocol, reply: str, content: object) -> Read:
    move = protocol.parse(reply).move
    assert isinstance(move, Move.Call)
    assert move.calls[0].arguments == content
    return lambda: protocol.parse(reply).move


def twice(loads: Callable[[Any], Any], text: bytes) -> Read:
    return lambda: loads(loads(text).encode())


def without_fence(loads: Callable[[Any], Any], text: str) -> Read:
    def read() -> object:
        found = FENCE.search(text)
        assert found
        return loads(found[1].encode())

    return read


def fenced_ticket(content: dict[str, Any]) -> str:
    reply = ticket(content).replace("<output>\n", "<output>\n```json\n")
    return reply.replace("\n</output>", "\n```\n</output>")


def clean(content: Any) -> dict[str, dict[str, Read]]:
    """For each form of a reply, who reads it."""
    alone = dumps(content)
    data, string = alone.encode(), dumps(alone).encode()
    fenced = f"```json\n{alone}\n```"
    return {
        "ticket: a value": {
            "callslip": finish_value(ticket(content), content),
            "jiter": lambda: jiter.from_json(data),
            "orjson": lambda: orjson.loads(data),
        },
        "chatty: arguments": {
            "callslip": call_arguments(ChattyProtocol(), chatty(content), content),
            "jiter": lambda: jiter.from_json(data),
            "orjson": lambda: orjson.loads(data),
        },
        "react: arguments as text": {
            "callslip": call_arguments(ReactProtocol(), react(content), content),
            "jiter": twice(jiter.from_json, string),
            "orjson": twice(orjson.loads, string),
        },
        "ticket: a value in a fence": {
            "callslip": finish_value(fenced_ticket(content), content),
            "jiter": without_fence(jiter.from_json, fenced),
            "orjson": without_fence(orjson.loads, fenced),
        },
    }


def sloppy(value: Any) -> str:
    """Write as careless models do: single quotes, Python's words, trailing commas, comments."""
    if isinstance(value, dict):
        members = "".join(f"{sloppy(key)}: {sloppy(item)}, " for key, item in value.items())
        return f"{{ // an object\n{members}}}"
    if isinstance(value, list):
        return "[" + "".join(f"{sloppy(item)}, " for item in value) + "]"
    if isinstance(value, str):
        inner = dumps(value)[1:-1].replace('\\"', '"').replace("'", "\\'")
        return f"'{inner}'"
    return repr(value)


def malformed(content: dict[str, Any]) -> dict[str, Read]:
    alone = sloppy(content)
    reply = (
        "<thoughts>\nThat is it.\n</thoughts>\n"
        f"<output>\n{{'type': 'RETURN', 'value': {alone}}}\n</output>"
    )
    data = alone.encode()
    return {
        "callslip": finish_value(reply, content),
        "json_repair": lambda: json_repair.loads(alone),
        "jiter": lambda: jiter.from_json(data),
        "orjson": lambda: orjson.loads(data),
    }


def outcome(read: Read, content: object) -> str:
    """Say what a reader makes of it."""
    try:
        value = read()
    except ValueError:
        return "refused"
    value = value.value if isinstance(value, Move.Finish) else value
    return "right" if value == content else "other values"


def main(rounds: int) -> None:
    print("MB/s:\n")
    print("| content | reply | size | callslip | jiter | orjson | callslip to jiter |")
    print("|---|---|---|---|---|---|---|")
    for kind, make in CONTENTS.items():
        for name, size in SIZES.items():
            content = make(size)
            megabytes = len(dumps(content).encode()) / 1e6
            for form, readers in clean(content).items():
                best = quickest(readers, rounds)
                speeds = " | ".join(f"{megabytes / seconds:.0f}" for seconds in best.values())
                ratio = best["jiter"] / best["callslip"]
                print(f"| {kind} | {form} | {name} | {speeds} | {ratio:.2f} |", flush=True)
    print("\nTrailing commas, single quotes, Python's words and comments:\n")
    print("| reader | what comes of it | 1 KB, MB/s | 100 KB, MB/s |")
    print("|---|---|---|---|")
    columns = []
    for size in (SIZES["1 KB"], SIZES["100 KB"]):
        content = records(size)
        readers = malformed(content)
        outcomes = {name: outcome(read, content) for name, read in readers.items()}
        able = {name: read for name, read in readers.items() if outcomes[name] != "refused"}
        megabytes = len(sloppy(content).encode()) / 1e6
        best = quickest(able, rounds)
        columns.append({name: f"{megabytes / seconds:.1f}" for name, seconds in best.items()})
    for name, comes in outcomes.items():
        print(f"| {name} | {comes} | {columns[0].get(name, '')} | {columns[1].get(name, '')} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    main(parser.parse_args().rounds)
