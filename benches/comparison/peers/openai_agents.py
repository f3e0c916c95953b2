"""OpenAI Agents SDK: `Agent` and `Runner` with a `Model`; its chat completions model for faults."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from comparison.durable import FILE
from comparison.task import PROMPT, TASK, Run, Wait, add


def output(turn: int, turns: int) -> Any:
    """Return what the model answers in this turn."""
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    if turn < turns:
        arguments = json.dumps({"a": turn, "b": 1})
        return ResponseFunctionToolCall(
            type="function_call", call_id=f"c{turn}", name="add", arguments=arguments
        )
    text = ResponseOutputText(type="output_text", text="ok", annotations=[])
    return ResponseOutputMessage(
        id="m", type="message", role="assistant", status="completed", content=[text]
    )


def counter(turns: int, wait: Wait) -> Run:
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool

    class Counting(Model):
        async def get_response(self, *args: Any, **named: Any) -> ModelResponse:
            items = named["input"] if "input" in named else args[1]
            turn = 0 if isinstance(items, str) else (len(items) - 1) // 2
            if wait is not None:
                await wait(turn)
            return ModelResponse(output=[output(turn, turns)], usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    agent = Agent(name="counter", instructions=PROMPT, model=Counting(), tools=[function_tool(add)])
    config = RunConfig(tracing_disabled=True)

    async def run() -> str:
        found = await Runner.run(agent, TASK, max_turns=turns + 5, run_config=config)
        return str(found.final_output)

    return run


def transfers(
    base: str, transfer: Callable[[str, float], Awaitable[str]], timeout: float | None
) -> Run:
    from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, function_tool
    from openai import AsyncOpenAI

    options = {} if timeout is None else {"timeout": timeout}
    client = AsyncOpenAI(base_url=base, api_key="none", **options)
    agent = Agent(
        name="bank",
        instructions=PROMPT,
        model=OpenAIChatCompletionsModel("gpt-4o", openai_client=client),
        tools=[function_tool(transfer)],
    )

    async def run() -> str:
        found = await Runner.run(agent, TASK, run_config=RunConfig(tracing_disabled=True))
        return str(found.final_output)

    return run


def stored(turns: int, function: Any) -> Any:
    """Return an agent whose model looks at the results to know where it is."""
    from agents import Agent, Model, ModelResponse, Usage, function_tool

    class Counting(Model):
        async def get_response(self, *args: Any, **named: Any) -> ModelResponse:
            items = named["input"] if "input" in named else args[1]
            turn = sum(one.get("type") == "function_call_output" for one in items)
            return ModelResponse(output=[output(turn, turns)], usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    tools = [function_tool(function)]
    return Agent(name="counter", instructions=PROMPT, model=Counting(), tools=tools)


async def in_session(agent: Any, folder: Path, number: int, turns: int) -> str:
    from agents import RunConfig, Runner, SQLiteSession

    session = SQLiteSession(f"run-{number}", folder / FILE)
    config = RunConfig(tracing_disabled=True)
    found = await Runner.run(agent, TASK, session=session, max_turns=turns + 5, run_config=config)
    session.close()
    return str(found.final_output)


async def kept(folder: Path, turns: int, runs: int, tool: Any) -> None:
    agent = stored(turns, tool)
    await asyncio.gather(*(in_session(agent, folder, number, turns) for number in range(runs)))


async def resumed(folder: Path, turns: int, tool: Any) -> str:
    """Ask again in the same session: it has what was said, and a run that ended is not resumed."""
    return await in_session(stored(turns, tool), folder, 0, turns)
