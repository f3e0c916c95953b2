"""Logs of earlier and later versions in the store of a fleet."""

import json
from pathlib import Path

import psycopg
import pytest

from callslip import Agent, tool
from callslip.fleet import Fleet, status
from fleets.here import LONG, call, finish, make_due, pay, turns, until, working

pytestmark = pytest.mark.timeout(120)

KEPT = Path(__file__).parents[2] / "data" / "logs" / "version_1" / "react.jsonl"


def clerk():
    return Agent(turns(call("pay", amount=7), finish()), tools=[pay], name="clerk")


def set_version(url, present, wanted, *, due=False):
    """Write another version into the first event of all logs; have what was given back fall due."""
    with psycopg.connect(url, autocommit=True) as connection:
        changed = connection.execute(
            "UPDATE callslip.event SET data = replace(data, %s, %s) WHERE seq = 0",
            [f'"version":{present}', f'"version":{wanted}'],
        )
        assert changed.rowcount == 1
    if due:
        make_due(url)


def stored(web):
    """What must not change while a run can't be read."""
    return (
        web.query("SELECT seq, kind, data FROM callslip.event ORDER BY seq"),
        web.query("SELECT next, claims, shape, finished_at FROM callslip.run"),
        web.query("SELECT id, kind, ticket FROM callslip.inbox"),
    )


@pytest.mark.parametrize("is_known", [False, True], ids=["of a new shape", "of a known shape"])
async def test_a_log_of_a_later_version_is_given_back_untouched(
    web, database, is_known, caplog, monkeypatch
):
    monkeypatch.setattr("callslip.fleet._worker._ANNOUNCE", 0.2)
    fleet = Fleet(web)
    async with working(database, clerk()):
        run_id = await fleet.submit("clerk", "Pay 7.")
        await until(lambda: status(web).resting == 1, "the run rests")
    (first, *_) = web.run(run_id).export().splitlines()
    version = json.loads(first)["event"]["run_started"]["version"]
    set_version(database, version, version + 1)
    web._shared.tell(run_id, "approve", 1, None, None)
    before = stored(web)
    async with working(database, clerk()) as other:
        if is_known:
            (shape,) = web.query("SELECT shape FROM callslip.run")
            other._agents._fitting["clerk", shape["shape"]] = other._agents.find("clerk")
        await until(lambda: status(web).queues[1].in_progress == 1, "it was given back")
        await until(lambda: any(one.refused for one in status(web).workers), "it is counted")
        # While it is claimed, that is counted as a claim.
        await until(lambda: stored(web) == before, "nothing has changed")
        assert f"the log has version {version + 1}" in caplog.text
        # A worker that knows it.
        set_version(database, version + 1, version, due=True)
        assert (await fleet.result(run_id, timeout=LONG)).value == "done"


async def test_a_run_of_the_first_version_is_driven_to_its_end(web, database):
    @tool
    def once(n: int) -> str:
        """Work once."""
        return f"worked {n}"

    @tool(effect="pure", readonly=True)
    def look(what: str) -> object:
        """Look."""
        return {"seen": what}

    lines = KEPT.read_text().splitlines()[:18]
    assert json.loads(lines[0])["event"]["run_started"]["version"] == 1
    assert "ticket_opened" in json.loads(lines[-1])["event"]
    run_id = web.import_run(lines)
    agent = Agent(lambda messages: finish("old and done"), tools=[once, look], name="agent")
    async with working(database, agent):
        result = await Fleet(web).result(run_id, timeout=LONG)
    assert result.value == "old and done"
    # The call that was under way can't be made twice.
    assert [ticket.outcome for ticket in result.tickets] == ["retry", "error", "in_doubt"]
    assert [event.seq for event in web.run(run_id).log] == list(range(len(web.run(run_id).log)))
