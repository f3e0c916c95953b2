"""LangGraph: `create_agent` with `ChatOpenAI`."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from gateway_clients.job import MAX_REQUESTS, MAX_TOKENS, Job


def answer(job: Job) -> str:
    model = ChatOpenAI(
        model="m", base_url=job.url, api_key=job.key, temperature=0, max_tokens=MAX_TOKENS
    )
    agent: Any = create_agent(model, [tool(function) for function in job.functions])
    # A step of the graph is a request or the calls of one.
    limit = {"recursion_limit": 2 * MAX_REQUESTS}
    state = agent.invoke({"messages": [("user", job.text)]}, limit)
    return str(state["messages"][-1].content)
