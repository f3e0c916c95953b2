"""The examples of `docs/howto/engines.md`, as they stand there, on the engines themselves."""

import asyncio
import json
import logging
import os
import re
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import psycopg
import pytest
from celery.contrib.testing.worker import start_worker
from dbos import DBOS

from callslip import Agent, TicketStore
from callslip.fleet import Fleet
from fleets.here import pay
from scripted import turn_of

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "engines.md"
LONG = 60


def model(messages):
    if turn_of(messages) == 0:
        return json.dumps({"thought": "t", "action": "pay", "args": {"amount": 7}})
    return json.dumps(
        {"thought": "t", "action": "FINISH", "final_answer": "done", "task_successful": True}
    )


@pytest.fixture
def as_before():
    """A worker of Celery sets variables, and the level of the log, for all of its process."""
    environment, level = dict(os.environ), logging.root.level
    yield
    os.environ.clear()
    os.environ.update(environment)
    logging.root.setLevel(level)


@pytest.fixture
def store(database, monkeypatch):
    """The store of the module `agents`, which the examples import."""
    with TicketStore(database) as store:
        agents = ModuleType("agents")
        agents.store, agents.support = store, Agent(model, tools=[pay], name="support")
        monkeypatch.setitem(sys.modules, "agents", agents)
        yield store


@contextmanager
def example(name):
    """The module of an example."""
    code = re.search(rf"```python\n(# {name}\.py.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[1]
    module = sys.modules[name] = ModuleType(name)
    try:
        exec(compile(code, f"{name}.py", "exec"), module.__dict__)
        yield module
    finally:
        del sys.modules[name]


async def until(holds, what):
    end = time.monotonic() + LONG
    while not await asyncio.to_thread(holds):
        assert time.monotonic() < end, what
        await asyncio.sleep(0.02)


async def is_driven(store, fleet, database, sweep):
    """Check a run that rests and is approved, and one of which the engine was not told."""
    run_id = await fleet.submit("support", "Pay 7.")
    at_rest = "SELECT FROM callslip.run WHERE id = $1 AND msg IS NULL AND next > 0"
    await until(lambda: store.query(at_rest, [run_id]), "it rests")
    await asyncio.to_thread(store.run(run_id).approve, "T1")
    result = await fleet.result(run_id, timeout=LONG)
    assert (result.value, result.tickets[0].result) == ("done", "paid 7")
    with TicketStore(database) as other:
        run_id = await Fleet(other).submit("support", "Pay 7.")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE pgmq.q_callslip_default SET vt = vt - interval '31 seconds'")
    await sweep()
    await until(lambda: store.query(at_rest, [run_id]), "it is driven")


def test_celery(as_before, store, database, monkeypatch):
    monkeypatch.setenv("BROKER_URL", "memory://")
    with (
        example("on_celery") as module,
        start_worker(module.app, pool="threads", concurrency=2, perform_ping_check=False),
    ):

        async def sweep():
            module.sweep.delay()

        asyncio.run(is_driven(store, module.fleet, database, sweep))
        assert module.app.conf.beat_schedule["sweep"]["task"] in module.app.tasks


def test_dbos(store, database, tmp_path):
    config = {
        "name": "agents",
        "system_database_url": f"sqlite:///{tmp_path}/dbos.sqlite",
        "run_admin_server": False,
        "log_level": "ERROR",
    }
    DBOS(config=config)
    try:
        with example("on_dbos") as module:
            DBOS.launch()
            DBOS.register_queue("runs", polling_interval_sec=0.1)

            async def sweep():
                await module.sweep(None, None)

            asyncio.run(is_driven(store, module.fleet, database, sweep))
    finally:
        DBOS.destroy()
