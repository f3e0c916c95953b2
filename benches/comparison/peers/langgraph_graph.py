"""LangGraph: the smallest graph that does the same, two functions on a list of plain messages."""

from __future__ import annotations

import json
import operator
from typing import Annotated, Any, TypedDict

from comparison.task import PROMPT, TASK, Run, Wait, add, text_model


class State(TypedDict):
    messages: Annotated[list[dict[str, Any]], operator.add]


def counter(turns: int, wait: Wait) -> Run:
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
