"""What the benchmarks of reading read: the same content as JSON alone and inside replies."""

from __future__ import annotations

import json
import random
from typing import Any

RNG = random.Random(7)
TEXT = (
    "the agent reads a reply and calls the tool with arguments that fit its schema because every "
    'value counts é ü "quoted" line\n'
)
WORDS = TEXT.split(" ")


def dumps(value: object) -> str:
    """Write JSON as models do."""
    return json.dumps(value, ensure_ascii=False)


def words(count: int) -> str:
    return " ".join(RNG.choice(WORDS) for _ in range(count))


def record(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": words(3),
        "price": round(RNG.random() * 1000, 2),
        "tags": [words(1) for _ in range(3)],
        "active": RNG.random() < 0.5,
        "note": words(12),
        "parent": None,
        "size": {"w": RNG.randrange(500), "h": RNG.randrange(500)},
    }


def records(size: int) -> dict[str, Any]:
    """Records whose JSON has about so many bytes: ids, floats, short strings, nested objects."""
    rows: list[dict[str, Any]] = []
    length = 0
    while length < size:
        rows.append(record(len(rows)))
        length += len(dumps(rows[-1]).encode()) + 2
    return {"rows": rows}


def text(size: int) -> dict[str, Any]:
    """One long string."""
    return {"text": words(size // 5)}


CONTENTS = {"records": records, "text": text}


def ticket(content: dict[str, Any]) -> str:
    output = dumps({"type": "RETURN", "value": content})
    return f"<thoughts>\nThat is it.\n</thoughts>\n<output>\n{output}\n</output>"


def chatty(content: dict[str, Any]) -> str:
    calls = dumps([{"call_id": "a", "tool_name": "store", "arguments": content}])
    return f"I will store it.\n<tool>\n{calls}\n</tool>"


def react(content: dict[str, Any]) -> str:
    return dumps({"thought": "Now.", "action": "store", "args": dumps(content)})
