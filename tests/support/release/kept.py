"""What a released version wrote: stores and the logs of their runs, which later versions must read.

`python -m release.kept tests/data/released/1.2.3` writes them, once, before the release; they are
never changed. `tests/python/store/test_released.py` reads those of every version.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from callslip import (
    Agent,
    ChattyProtocol,
    File,
    Limits,
    ReactProtocol,
    ScriptedModel,
    TicketProtocol,
    TicketStore,
    tool,
)
from postgres import Server
from scripted import act, block, call, delegate, finish, give, load, spawn, wait, wait_for

TASK = "Add 2 and 3"


@tool(readonly=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool(readonly=True)
def fetch(name: str) -> File:
    """Fetch a file."""
    return File(b"%PDF-1.4 of the test", media_type="application/pdf", name=name)


def agents(store: TicketStore, *, paid: bool = False) -> dict[str, Agent[Any]]:
    """Return an agent for each kind of run, with what its model says.

    Args:
        store: Where the runs are kept.
        paid: Whether the model of `open` goes on after the approval, or begins the run.
    """
    options: dict[str, Any] = {"store": store, "limits": Limits(turns=9)}
    sums = [act("add", a=2, b=3), finish("5")]
    ticket = [call("/add", {"a": 2, "b": 3}), wait("T1"), load("T1"), give("5")]
    with_child = [delegate("Add 2 and 3 as well"), wait("T1"), give("5")]
    chatty = [block(("c", "add", {"a": 2, "b": 3})), "5"]
    spawning = [block(spawn("s", TASK)), block(wait_for("$s")), "5"]
    paying = [finish("paid")] if paid else [act("pay", amount=7), finish("paid")]
    scripts: dict[str, tuple[Any, list[str], dict[str, Any]]] = {
        "react": (ReactProtocol(), sums, {"tools": [add]}),
        "ticket": (TicketProtocol(), ticket, {"tools": [add]}),
        "delegates": (TicketProtocol(), [*with_child[:1], give("5"), *with_child[1:]], {}),
        "chatty": (ChattyProtocol(), chatty, {"tools": [add]}),
        "spawns": (ChattyProtocol(), [*spawning[:1], "5", *spawning[1:]], {"delegate": True}),
        "typed": (ReactProtocol(), ["no JSON", finish(5)], {"returns": int}),
        "part": (ReactProtocol(), [act("fetch", name="a.pdf"), finish("5")], {"tools": [fetch]}),
        "compacted": (ReactProtocol(), sums, {"tools": [add]}),
        "failed": (ReactProtocol(), [finish("no", success=False)], {}),
        "open": (ReactProtocol(), paying, {"tools": [pay]}),
    }
    return {
        name: Agent(ScriptedModel(replies), protocol=protocol, name=name, **options, **own)
        for name, (protocol, replies, own) in scripts.items()
    }


async def write(folder: Path) -> None:
    """Write a store of each kind with a run of each agent, their logs, and how they ended."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "runs.sqlite"
        with TicketStore(path) as store:
            await _make(store, folder / "sqlite")
            with closing(sqlite3.connect(path)) as connection:
                sql = "\n".join(_dump(connection)) + "\n"
        (folder / "sqlite" / "store.sql").write_text(sql, "utf-8")
    with Server() as server:
        url = server.new_database()
        with TicketStore(url) as store:
            await _make(store, folder / "postgres")
        sql = server.dump(url, schema="callslip")
        (folder / "postgres" / "store.sql").write_text(sql, "utf-8")


async def _make(store: TicketStore, folder: Path) -> None:
    folder.mkdir(parents=True)  # noqa: ASYNC240  # nothing else runs
    ends: dict[str, dict[str, object]] = {}
    for name, agent in agents(store).items():
        run = agent.start(TASK)
        if name == "open":
            while not run.awaiting_approval:
                await asyncio.sleep(0.01)
        else:
            await asyncio.wait([asyncio.ensure_future(run)])
        if name == "compacted":
            store.compact(run.id)
        kept = store.run(run.id) if name != "open" else run
        (folder / f"{name}.jsonl").write_text(kept.export(), "utf-8")
        ends[name] = {
            "id": run.id,
            "stop_reason": kept.stop_reason,
            "turns": kept.turns,
            "tickets": [[one.id, one.tool, one.outcome, str(one.result)] for one in kept.tickets],
            "children": [child.id for child in kept.children],
        }
    (folder / "runs.json").write_text(json.dumps(ends, indent=1) + "\n", "utf-8")


def _dump(connection: sqlite3.Connection) -> list[str]:
    pragmas = [
        f"PRAGMA {name} = {connection.execute(f'PRAGMA {name}').fetchone()[0]};"
        for name in ("application_id", "user_version")
    ]
    return [*pragmas, *connection.iterdump()]


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1])))
