"""Files that released versions wrote are read, replayed and continued by this one."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Annotated

import psycopg
import pytest
from pydantic import Field

from callslip import TicketStore, UsageError, replay, tool
from callslip.fleet import migrate
from release.kept import agents, pay

RELEASED = Path(__file__).parents[2] / "data" / "released"
FOLDERS = sorted(folder for version in RELEASED.iterdir() for folder in version.iterdir())


def runs_in(folder):
    return json.loads((folder / "runs.json").read_text("utf-8"))


def log_of(folder, name):
    return (folder / f"{name}.jsonl").read_text("utf-8")


def seen(run):
    return {
        "id": run.id,
        "stop_reason": run.stop_reason,
        "turns": run.turns,
        "tickets": [[one.id, one.tool, one.outcome, str(one.result)] for one in run.tickets],
        "children": [child.id for child in run.children],
    }


@pytest.fixture(params=FOLDERS, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def folder(request):
    """What a version wrote with one kind of store."""
    return request.param


@pytest.fixture
def kept(request, folder, path):
    """That store."""
    sql = (folder / "store.sql").read_text("utf-8")
    place = path
    if folder.name == "sqlite":
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(sql)
    else:
        place = request.getfixturevalue("database")
        with psycopg.connect(place, autocommit=True) as connection:
            connection.execute("DROP SCHEMA callslip CASCADE")
            connection.execute(sql)
        migrate(place)
    with TicketStore(place) as store:
        yield store


def test_a_released_store_is_read_as_it_was_written(folder, kept):
    expected = runs_in(folder)
    roots = {run.run_id for run in kept.runs() if "." not in run.run_id}
    assert roots == {one["id"] for one in expected.values()}
    for name, one in expected.items():
        run = kept.run(one["id"])
        assert seen(run) == one, name
        assert run.export() == log_of(folder, name), name
        assert run.trace().turns, name


def test_a_released_log_is_replayed(folder):
    for name in runs_in(folder):
        if name != "compacted":
            assert replay(log_of(folder, name)).turns == runs_in(folder)[name]["turns"], name


def test_a_released_log_is_taken_into_every_store(folder, store):
    for name, one in runs_in(folder).items():
        if one["children"]:
            continue
        assert store.import_run(log_of(folder, name).splitlines()) == one["id"], name
        assert store.run(one["id"]).export() == log_of(folder, name), name


def test_a_run_that_a_released_version_began_is_continued(folder, kept):
    run_id = runs_in(folder)["open"]["id"]
    agent = agents(kept, paid=True)["open"]
    result = agent.resume_sync(run_id, approve=lambda ticket: True)
    assert result.value == "paid"
    assert result.tickets[0].result == "paid 7"
    assert replay(kept.run(run_id)).stop_reason == "finished"


def test_a_run_of_a_released_version_takes_another_turn(folder, kept):
    async def say_again(name):
        return await agents(kept)[name].start(run=runs_in(folder)[name]["id"], say="again")

    for name in ("react", "chatty", "ticket", "compacted"):
        before = runs_in(folder)[name]["turns"]
        assert asyncio.run(say_again(name)).run.turns > before, name


@tool
def report() -> str:
    """Report."""
    return "reported"


def paying(memo):
    if not memo:
        return pay

    @tool(name="pay", needs_approval=True)
    def pay_more(amount: float, memo: Annotated[str, Field(max_length=40)] = "none") -> str:
        """Pay, with words."""
        return f"paid {amount:g}, {memo}"

    return pay_more


@pytest.mark.parametrize("memo", [False, True], ids=["a tool more", "a parameter more"])
def test_a_deploy_continues_what_a_released_version_began(folder, kept, memo):
    run_id = runs_in(folder)["open"]["id"]
    agent = agents(kept, paid=True)["open"].replace(tools=[report, paying(memo)])
    assert agent.check(kept.run(run_id)) == []
    assert agent.check(kept) == []
    kept.run(run_id).approve("T1")
    result = agent.resume_sync(run_id)
    assert (result.value, result.tickets[0].arguments) == ("paid", {"amount": 7})
    assert result.tickets[0].result == ("paid 7, none" if memo else "paid 7")
    started = json.loads(log_of(folder, "open").partition("\n")[0])["event"]["run_started"]
    assert result.messages[0]["content"] == started["setup"]["prompt"]
    assert replay(kept.run(run_id)).stop_reason == "finished"


def test_a_deploy_without_a_tool_of_a_released_run_is_refused(folder, kept):
    run_id = runs_in(folder)["open"]["id"]
    agent = agents(kept, paid=True)["open"].replace(tools=[report])
    (why,) = agent.check(kept)
    assert why == (
        f"run {run_id} can't go on: the tool 'pay' is gone: keep it until the runs that have it "
        "are over"
    )
    with pytest.raises(UsageError, match="the tool 'pay' is gone.*call agent.hand_over"):
        agent.resume_sync(run_id)
    # It has no call under way, but its next one may be of any tool that it was started with.
    over = runs_in(folder)["react"]["id"]
    with pytest.raises(UsageError, match="the tool 'add' is gone"):

        async def say():
            agent = agents(kept)["react"].replace(tools=[report])
            return await agent.start(run=over, say="again")

        asyncio.run(say())
