"""What `frameworks.py` measures: one agent that counts with a tool, in each framework.

Each function takes how many calls the model makes before it finishes, and what the model waits for
before each reply. It builds the agent once and returns a function that runs it. The models are in
this process, each of the kind that its framework has for that; nothing is traced or sent anywhere.
"""

from __future__ import annotations

import asyncio
import gc
import json
import operator
import warnings
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

PROMPT = "You solve tasks with tools."
TASK = "count"
REPLIES = [
    json.dumps({"thought": "next", "action": "add", "args": json.dumps({"a": n, "b": 1})})
    for n in range(2000)
]
FINISH = json.dumps(
    {"thought": "done", "action": "FINISH", "final_answer": "ok", "task_successful": True}
)

Wait = Callable[[int], Awaitable[None]] | None
"""Awaited by a model before the reply of this turn, from 0."""

Run = Callable[[], Awaitable[str]]


class Gate:
    """Holds every agent at its last reply until all are there, and then looks at the memory."""

    def __init__(self, turn: int, agents: int) -> None:
        self.turn = turn
        self.missing = agents
        self.open = asyncio.Event()
        self.resident = 0

    async def __call__(self, turn: int) -> None:
        if turn == self.turn:
            self.missing -= 1
            if self.missing == 0:
                self.resident = resident()
                self.open.set()
            await self.open.wait()


def resident() -> int:
    """Bytes of this process's memory that are in use."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def warm(run: Run, times: int = 3) -> None:
    """Run a few first: what is imported, made or cached once is no cost of an agent."""

    async def several() -> None:
        for _ in range(times):
            assert await run() == "ok"

    asyncio.run(several())
    gc.collect()


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def text_model(turns: int, wait: Wait) -> Callable[[Sequence[object]], Awaitable[str]]:
    """Answer in the react protocol; the messages say where the run is."""
    replies = [*REPLIES[:turns], FINISH]

    async def model(messages: Sequence[object]) -> str:
        turn = (len(messages) - 2) // 2
        if wait is not None:
            await wait(turn)
        return replies[turn]

    return model


def bare(turns: int, wait: Wait) -> Run:
    """What people write by hand: parse, call, append, ask again; no checks, limits or log."""
    model = text_model(turns, wait)
    tools = {"add": add}

    async def run() -> str:
        messages: list[dict[str, str]] = [
            {"role": "system", "content": PROMPT},
            {"role": "user", "content": TASK},
        ]
        while True:
            text = await model(messages)
            messages.append({"role": "assistant", "content": text})
            reply = json.loads(text)
            if reply["action"] == "FINISH":
                return str(reply["final_answer"])
            try:
                result = await tools[reply["action"]](**json.loads(reply["args"]))
                observation = result if isinstance(result, str) else json.dumps(result)
            except Exception as error:  # noqa: BLE001
                observation = f"Error calling tool {reply['action']!r}: {error}"
            messages.append({"role": "user", "content": f"Observation: {observation}"})

    return run


def callslip(turns: int, wait: Wait) -> Run:
    from callslip import Agent, Limits, tool

    limits = Limits(turns=None, tickets=None)
    agent = Agent(text_model(turns, wait), protocol="react", tools=[tool(add)], limits=limits)

    async def run() -> str:
        return str((await agent.run(TASK)).value)

    return run


def pydantic_ai(turns: int, wait: Wait) -> Run:
    from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart, UsageLimits
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    async def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = (len(messages) - 1) // 2
        if wait is not None:
            await wait(turn)
        if turn == turns:
            return ModelResponse(parts=[TextPart("ok")])
        return ModelResponse(parts=[ToolCallPart("add", {"a": turn, "b": 1}, f"c{turn}")])

    agent = Agent(FunctionModel(model), instructions=PROMPT, tools=[add])
    limits = UsageLimits(request_limit=None)

    async def run() -> str:
        return str((await agent.run(TASK, usage_limits=limits)).output)

    return run


def chat_model(turns: int, wait: Wait) -> Any:
    """Make a chat model for LangGraph; the messages say where the run is."""
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Counting(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "counting"

        def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
            return self

        def _generate(self, *_: Any, **__: Any) -> ChatResult:
            raise NotImplementedError

        async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
            turn = (len(messages) - 1 - isinstance(messages[0], SystemMessage)) // 2
            if wait is not None:
                await wait(turn)
            reply = AIMessage("ok")
            if turn < turns:
                call = {"name": "add", "args": {"a": turn, "b": 1}, "id": f"c{turn}"}
                reply = AIMessage("", tool_calls=[call])
            return ChatResult(generations=[ChatGeneration(message=reply)])

    return Counting(cache=False)


def langgraph(turns: int, wait: Wait) -> Run:
    """Run the agent that comes with LangGraph."""
    from langchain_core.tools import tool
    from langgraph.prebuilt import create_react_agent

    with warnings.catch_warnings():
        # It has a newer name in another package.
        warnings.simplefilter("ignore", DeprecationWarning)
        agent: Any = create_react_agent(chat_model(turns, wait), [tool(add)], prompt=PROMPT)
    config = {"recursion_limit": 3 * turns + 10}

    async def run() -> str:
        state = await agent.ainvoke({"messages": [("user", TASK)]}, config)
        return str(state["messages"][-1].content)

    return run


class State(TypedDict):
    messages: Annotated[list[dict[str, Any]], operator.add]


def langgraph_lean(turns: int, wait: Wait) -> Run:
    """Run the smallest graph that does the same: two functions on a list of plain messages."""
    from langgraph.graph import END, START, StateGraph

    answer = text_model(turns, wait)

    async def model(state: State) -> dict[str, Any]:
        return {"messages": [{"role": "assistant", "content": await answer(state["messages"])}]}

    async def tools(state: State) -> dict[str, Any]:
        reply = json.loads(state["messages"][-1]["content"])
        result = await add(**json.loads(reply["args"]))
        return {"messages": [{"role": "user", "content": f"Observation: {json.dumps(result)}"}]}

    def after(state: State) -> str:
        finished = json.loads(state["messages"][-1]["content"])["action"] == "FINISH"
        return END if finished else "tools"

    builder = StateGraph(State)
    builder.add_node("model", model)
    builder.add_node("tools", tools)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", after, ["tools", END])
    builder.add_edge("tools", "model")
    graph: Any = builder.compile()
    config = {"recursion_limit": 3 * turns + 10}

    async def run() -> str:
        begin = [{"role": "system", "content": PROMPT}, {"role": "user", "content": TASK}]
        state = await graph.ainvoke({"messages": begin}, config)
        return str(json.loads(state["messages"][-1]["content"])["final_answer"])

    return run


def openai_agents(turns: int, wait: Wait) -> Run:
    from agents import Agent, ModelResponse, RunConfig, Runner, Usage, function_tool
    from agents import Model as Base
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    def output(turn: int) -> Any:
        if turn < turns:
            arguments = json.dumps({"a": turn, "b": 1})
            return ResponseFunctionToolCall(
                type="function_call", call_id=f"c{turn}", name="add", arguments=arguments
            )
        text = ResponseOutputText(type="output_text", text="ok", annotations=[])
        return ResponseOutputMessage(
            id="m", type="message", role="assistant", status="completed", content=[text]
        )

    class Model(Base):
        async def get_response(self, *args: Any, **named: Any) -> ModelResponse:
            items = named["input"] if "input" in named else args[1]
            turn = 0 if isinstance(items, str) else (len(items) - 1) // 2
            if wait is not None:
                await wait(turn)
            return ModelResponse(output=[output(turn)], usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    agent = Agent(name="counter", instructions=PROMPT, model=Model(), tools=[function_tool(add)])
    config = RunConfig(tracing_disabled=True)

    async def run() -> str:
        found = await Runner.run(agent, TASK, max_turns=turns + 5, run_config=config)
        return str(found.final_output)

    return run


PEERS: dict[str, tuple[Callable[[int, Wait], Run], str]] = {
    "bare loop": (bare, "import asyncio, json"),
    "callslip": (callslip, "from callslip import Agent, Limits, tool"),
    "LangGraph, own graph": (
        langgraph_lean,
        "from langgraph.graph import END, START, StateGraph",
    ),
    "LangGraph, prebuilt agent": (
        langgraph,
        "from langgraph.prebuilt import create_react_agent",
    ),
    "pydantic-ai": (
        pydantic_ai,
        "from pydantic_ai import Agent; from pydantic_ai.models.function import FunctionModel",
    ),
    "OpenAI Agents SDK": (openai_agents, "from agents import Agent, Runner, function_tool"),
}
"""How an agent is made, and what a program imports for it."""
