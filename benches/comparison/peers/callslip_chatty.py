"""callslip, chatty: the protocol of text that is nearest to a model's own tool calls."""

from __future__ import annotations

import json
from collections.abc import Sequence

from comparison.peers import callslip
from comparison.task import Run, Wait

FIRST = 2
"""Messages at the beginning of a run: the prompt and the task."""


def counter(turns: int, wait: Wait) -> Run:
    async def model(messages: Sequence[object]) -> str:
        turn = (len(messages) - FIRST) // 2
        if wait is not None:
            await wait(turn)
        return "ok" if turn == turns else call(turn)

    return callslip.loop(model, "chatty")


def call(turn: int) -> str:
    arguments = {"a": turn, "b": 1}
    block = json.dumps([{"call_id": f"c{turn}", "tool_name": "add", "arguments": arguments}])
    return f"<tool>{block}</tool>"
