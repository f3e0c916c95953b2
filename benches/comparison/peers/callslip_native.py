"""callslip, native: the tool calls of the model's own interface, as the peers use them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from comparison.peers import callslip
from comparison.task import TASK, Run, Wait

FIRST = 2
"""Messages at the beginning of a run: the prompt and the task."""


def model(turns: int, wait: Wait) -> Any:
    from callslip.models import ModelReply, NativeCall

    async def answer(messages: Sequence[object], *, tools: object, tool_choice: object) -> Any:
        turn = (len(messages) - FIRST) // 2
        if wait is not None:
            await wait(turn)
        if turn == turns:
            return ModelReply("ok")
        call = NativeCall(f"c{turn}", "add", json.dumps({"a": turn, "b": 1}))
        return ModelReply(calls=[call])

    return answer


def counter(turns: int, wait: Wait) -> Run:
    return callslip.loop(model(turns, wait), "native")


def transfers(
    base: str, transfer: Callable[[str, float], Awaitable[str]], timeout: float | None
) -> Run:
    return callslip.transfers(base, transfer, timeout, "native")


def stored(folder: Path, turns: int, function: Any) -> Any:
    return callslip.storing(model(turns, None), "native", folder, function)


async def kept(folder: Path, turns: int, runs: int, tool: Any) -> None:
    agent = stored(folder, turns, tool)
    await asyncio.gather(*(agent.run(TASK) for _ in range(runs)))


async def resumed(folder: Path, turns: int, tool: Any) -> str:
    return await callslip.continued(stored(folder, turns, tool))
