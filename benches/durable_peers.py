"""What `store.py` is measured against: the disk, raw sqlite3 and LangGraph's checkpointers.

Each function does so many turns durably and returns how many commits it asked for. A turn is one
model reply, one call and its result.
"""

from __future__ import annotations

import asyncio
import itertools
import operator
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

REPLY = '{"thought": "next", "action": "add", "args": "{\\"a\\": %d, \\"b\\": 1}"}'


def syncs(path: Path, count: int, flush: Any) -> None:
    """Append 4 KB and sync it, again and again: what a disk makes of the smallest commit."""
    page = os.urandom(4096)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        for _ in range(count):
            os.write(file, page)
            flush(file)
    finally:
        os.close(file)


def raw(path: Path, records: Sequence[str], groups: Sequence[int] = (1,)) -> int:
    """Commit records to a table, in groups of these sizes in turn. Returns how many commits."""
    left, commits = iter(records), 0
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("pragma journal_mode = wal").fetchall()
        database.execute("pragma synchronous = full")
        database.execute("create table event (run, seq, body, primary key (run, seq))")
        for size in itertools.cycle(groups):
            group = list(itertools.islice(left, size))
            if not group:
                return commits
            database.execute("begin immediate")
            for place, body in enumerate(group):
                database.execute("insert into event values (?, ?, ?)", (commits, place, body))
            database.execute("commit")
            commits += 1
    raise AssertionError


class State(TypedDict):
    messages: Annotated[list[dict[str, str]], operator.add]
    left: int


def graph(checkpointer: Any) -> Any:
    """Alternate between a model and a tool, as LangGraph's own examples do."""
    from langgraph.graph import END, START, StateGraph

    async def model(state: State) -> dict[str, Any]:
        return {"messages": [{"role": "assistant", "content": REPLY % state["left"]}]}

    async def tool(state: State) -> dict[str, Any]:
        told = {"role": "user", "content": f"Observation: {state['left'] + 1}"}
        return {"messages": [told], "left": state["left"] - 1}

    def sync_model(state: State) -> dict[str, Any]:
        return {"messages": [{"role": "assistant", "content": REPLY % state["left"]}]}

    def sync_tool(state: State) -> dict[str, Any]:
        told = {"role": "user", "content": f"Observation: {state['left'] + 1}"}
        return {"messages": [told], "left": state["left"] - 1}

    def on(state: State) -> str:
        return "model" if state["left"] else END

    from langchain_core.runnables import RunnableLambda

    builder = StateGraph(State)
    builder.add_node("model", RunnableLambda(sync_model, model))
    builder.add_node("tool", RunnableLambda(sync_tool, tool))
    builder.add_edge(START, "model")
    builder.add_edge("model", "tool")
    builder.add_conditional_edges("tool", on)
    return builder.compile(checkpointer=checkpointer)


def begin(turns: int, thread: int) -> tuple[State, dict[str, Any]]:
    state: State = {"messages": [{"role": "user", "content": "count"}], "left": turns}
    limits = {"recursion_limit": 2 * turns + 5, "configurable": {"thread_id": str(thread)}}
    return state, limits


def langgraph(path: Path | None, turns: int) -> int:
    """Run one graph with `SqliteSaver`; each step is kept before the next begins."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    state, limits = begin(turns, 0)
    if path is None:
        graph(None).invoke(state, limits)
        return 0
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph(saver).invoke(state, limits, durability="sync")
        (count,) = saver.conn.execute("select count(*) from checkpoints").fetchone()
    return int(count)


async def langgraph_async(path: Path | None, turns: int, runs: int) -> int:
    """Run graphs side by side with `AsyncSqliteSaver`."""
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    async def all_of(compiled: Any) -> None:
        each = (begin(turns, thread) for thread in range(runs))
        keep = {} if path is None else {"durability": "sync"}
        await asyncio.gather(*(compiled.ainvoke(*args, **keep) for args in each))

    if path is None:
        await all_of(graph(None))
        return 0
    async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
        await all_of(graph(saver))
        async with saver.conn.execute("select count(*) from checkpoints") as cursor:
            row = await cursor.fetchone()
    return int(row[0]) if row else 0
