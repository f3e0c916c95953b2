"""The statement that writes to logs: who may write, at which position, and what it leaves alone."""

import json
from pathlib import Path

import psycopg
import pytest

ROOT = Path(__file__).parents[3]
WRITE = (ROOT / "src" / "store" / "postgres" / "write.sql").read_text("utf-8")

RUN = {
    "agent": "clerk", "protocol": "react", "task": "go", "turns": 0, "violations": 0, "cost": 0,
    "input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "started_at": 1, "updated_at": 1,
}  # fmt: skip
TICKET = {
    "id": 1, "kind": "tool", "tool": "pay", "description": "Pays.", "turn": 1, "opened_at": 1,
    "opened_seq": 0, "parked": False, "attempts": 1, "untrusted": False,
}  # fmt: skip


@pytest.fixture
def write(sql):
    """Writes a batch of one run, and returns the runs that were written."""

    def write(run_id, position, count, *, epoch, new=False, opened=(), changed=(), **columns):
        own = {"id": run_id, "epoch": epoch, "is_new": new, "expected": position, "first": 0}
        runs = [RUN | own | {"next": position + count} | columns]
        events = list(range(position, position + count))
        values = [
            json.dumps(runs),
            60.0,
            [run_id] * count,
            events,
            [1.0] * count,
            ["told"] * count,
            [f'{{"n":{number}}}' for number in events],
            [None] * count,
            [],
            [],
            [],
            [],
            json.dumps([TICKET | {"run": run_id} | one for one in opened]),
            json.dumps([{"run": run_id, "id": 1} | one for one in changed]),
            [],
        ]
        with psycopg.RawCursor(sql.session) as cursor:
            return [row["id"] for row in cursor.execute(WRITE, values).fetchall()]

    return write


def log(sql, run_id):
    query = (
        "SELECT event.seq FROM callslip.event JOIN callslip.run ON run.key = event.run "
        "WHERE run.id = %s ORDER BY event.seq"
    )
    return [row["seq"] for row in sql.rows(query, run_id)]


def test_a_new_run_is_leased_and_goes_on_where_it_ended(sql, write):
    assert write("r1", 0, 2, epoch=5, new=True) == ["r1"]
    assert sql.get("is_leased", "default", sql.run("r1")["msg"])
    assert write("r1", 2, 3, epoch=5, turns=2, finished_at=9) == ["r1"]
    run = sql.run("r1")
    assert (run["next"], run["turns"], run["finished_at"]) == (5, 2, 9)
    assert log(sql, "r1") == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("position", "epoch"), [(2, 4), (2, 6), (1, 5), (3, 5), (0, 5)])
def test_another_epoch_or_position_writes_nothing(sql, write, position, epoch):
    write("r1", 0, 2, epoch=5, new=True)
    assert write("r1", position, 3, epoch=epoch, changed=[{"outcome": "ok"}]) == []
    assert (log(sql, "r1"), sql.run("r1")["next"]) == ([0, 1], 2)


def test_a_batch_that_is_sent_again_counts_as_written_and_is_not_written_twice(sql, write):
    write("r1", 0, 2, epoch=5, new=True)
    assert write("r1", 2, 1, epoch=5) == ["r1"]
    assert write("r1", 2, 1, epoch=5) == ["r1"]
    assert log(sql, "r1") == [0, 1, 2]


def test_a_new_run_does_not_replace_one_with_its_id(sql, write):
    write("r1", 0, 1, epoch=5, new=True, agent="clerk")
    assert write("r1", 0, 2, epoch=6, new=True, agent="cook") == []
    assert (sql.run("r1")["agent"], log(sql, "r1")) == ("clerk", [0])


@pytest.mark.parametrize(("epoch", "written"), [(5, ["r1.T1"]), (4, [])])
def test_a_new_child_run_needs_the_claim_that_covers_it(sql, write, epoch, written):
    write("r1", 0, 1, epoch=5, new=True)
    assert write("r1.T1", 0, 1, epoch=epoch, new=True, holder="r1", parent="r1") == written
    assert sql.messages() == ["r1"]


def test_an_imported_run_gives_up_a_key_that_is_taken(sql, write):
    write("r1", 0, 1, epoch=5, new=True, submit_key="k", owner="anna")
    write("r2", 0, 1, epoch=6, new=True, submit_key="k", owner="anna")
    write("r3", 0, 1, epoch=7, new=True, submit_key="k", owner="ben")
    assert [sql.run(name)["submit_key"] for name in ("r1", "r2", "r3")] == ["k", None, "k"]


def test_the_first_outcome_of_a_ticket_stays(sql, write):
    write("r1", 0, 1, epoch=5, new=True, opened=[{"parked": True}])
    ended = {"outcome": "ok", "completed_at": 2, "completed_seq": 1, "outcome_last": True}
    ended |= {"untrusted": False}
    write("r1", 1, 1, epoch=5, changed=[ended])
    late = {"outcome": "error", "completed_at": 3, "completed_seq": 2, "untrusted": True}
    write("r1", 2, 1, epoch=5, changed=[late])
    (ticket,) = sql.rows("SELECT * FROM callslip.ticket")
    assert (ticket["outcome"], ticket["completed_at"], ticket["completed_seq"]) == ("ok", 2, 1)
    assert (ticket["parked"], ticket["untrusted"]) == (False, False)
