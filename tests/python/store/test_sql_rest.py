"""SQL functions that end the work on a run, wake runs, and name those that have something to do."""

import pytest


def claim(sql, *, tenant=None, limit=None):
    """Submit a run and claim it: its epoch."""
    sql.submit("r1", tenant=tenant, limit=limit)
    ((claimed),) = sql.claim()
    return claimed["run_epoch"]


def heard(sql):
    """Queues that were announced since `LISTEN`."""
    return [one.payload for one in sql.session.notifies(timeout=0)]


def test_a_run_rests_without_a_message_and_under_another_epoch(sql):
    epoch = claim(sql)
    assert sql.get("rest", "r1", epoch, None) == "rests"
    run = sql.run("r1")
    assert (run["msg"], run["is_later"], run["claims"], sql.messages()) == (None, False, 0, [])
    assert run["epoch"] > epoch
    assert sql.get("rest", "r1", epoch, None) == "lost"


def test_a_run_rests_for_a_time(sql):
    epoch = claim(sql)
    assert sql.get("rest", "r1", epoch, 60.0) == "rests"
    assert (sql.run("r1")["is_later"], sql.messages("later"), sql.messages()) == (True, ["r1"], [])


def test_a_run_with_an_inbox_does_not_rest(sql):
    epoch = claim(sql)
    sql.get("tell", "r1", "say", None, '"a"', None)
    assert sql.get("rest", "r1", epoch, None) == "inbox"
    assert sql.run("r1")["epoch"] == epoch
    sql.rows("DELETE FROM callslip.inbox")
    sql.rows("UPDATE callslip.run SET next = 3")
    sql.add_ticket("r1", 1, outcome="cancelled")
    sql.with_row("put", "r1", "r1", "outcome", 1, None, None)
    # What comes too late is no reason to go on.
    assert sql.get("rest", "r1", epoch, None) == "rests"


@pytest.mark.parametrize(("limit", "announced"), [(1, ["default"]), (None, [])])
def test_a_run_that_rests_makes_room_in_a_lane_with_a_limit(sql, limit, announced):
    epoch = claim(sql, tenant="acme", limit=limit)
    sql.rows("LISTEN callslip_queue")
    sql.get("rest", "r1", epoch, None)
    assert heard(sql) == announced


def test_make_room_is_for_lanes_with_a_limit(sql):
    sql.rows("LISTEN callslip_queue")
    for number, lane in enumerate(["", "//acme", "/2/acme"]):
        sql.add_run(f"r{number}", lane=lane, queue=f"q{number}")
        sql.with_row("make_room", f"r{number}")
    assert heard(sql) == ["q2"]


# Leaving a run.


def test_a_run_that_is_left_is_claimed_by_another_worker_at_once(sql):
    epoch = claim(sql)
    sql.get("leave", "r1", epoch - 1)
    assert sql.claim() == []
    sql.get("leave", "r1", epoch)
    ((again),) = sql.claim()
    assert again["run_epoch"] > epoch
    assert again["run_claims"] == 1


def test_a_finished_run_that_is_left_has_no_message(sql):
    epoch = claim(sql)
    sql.rows("UPDATE callslip.run SET finished_at = 2, next = 3")
    sql.get("leave", "r1", epoch)
    assert (sql.run("r1")["msg"], sql.messages()) == (None, [])


def test_a_finished_run_with_an_inbox_keeps_its_message(sql):
    epoch = claim(sql)
    sql.rows("UPDATE callslip.run SET finished_at = 2, next = 3")
    sql.get("tell", "r1", "say", None, '"a"', None)
    sql.get("leave", "r1", epoch)
    assert sql.messages() == ["r1"]


def test_a_call_that_is_left_keeps_its_claims(sql):
    epoch = claim(sql)
    sql.rows("UPDATE callslip.run SET is_call = true")
    sql.get("leave", "r1", epoch)
    assert sql.claim()[0]["run_claims"] == 2


def test_leaving_a_key_that_is_alone_frees_it(sql):
    ((begun),) = sql.call("begin_with", "r1", "clerk", None, "k", 60.0)
    sql.get("leave", "r1", begun["run_epoch"])
    assert (sql.run("r1"), sql.messages()) == (None, [])


def test_a_run_that_is_left_wakes_the_one_that_waits_for_it(sql):
    sql.add_run("top")
    epoch = claim(sql)
    sql.rows("UPDATE callslip.run SET finished_at = 2, next = 3, parent = 'top' WHERE id = 'r1'")
    sql.get("leave", "r1", epoch)
    assert sql.messages() == ["top"]


# Waking.


@pytest.mark.parametrize(
    ("columns", "messages"),
    [({}, ["r1"]), ({"finished_at": 2.0}, [])],
)
def test_wake_is_for_runs_that_are_not_over(sql, columns, messages):
    sql.add_run("r1", **columns)
    sql.get("wake", "r1")
    sql.get("wake", "r1")
    sql.get("wake", "none")
    assert sql.messages() == messages


def test_wake_ends_a_delay_and_reaches_the_run_that_covers(sql):
    sql.submit("r1", delay=60.0)
    sql.get("wake", "r1")
    assert (sql.messages(), sql.messages("later")) == (["r1"], [])
    sql.add_run("top")
    sql.add_run("child", holder="top")
    sql.get("wake", "child")
    assert sql.messages() == ["r1", "top"]


# What is due.


def due(sql, function, *arguments):
    return [row[function] for row in sql.call(function, *arguments)]


def test_due_near_names_the_runs_around_one_that_nobody_drives(sql):
    for run_id in ("top", "r1", "child", "stranger"):
        sql.submit(run_id)
    sql.rows("UPDATE callslip.run SET parent = 'top' WHERE id = 'r1'")
    sql.rows("UPDATE callslip.run SET parent = 'r1' WHERE id = 'child'")
    assert due(sql, "due_near", "r1") == ["top", "r1", "child"]
    assert due(sql, "due_near", "child") == ["r1", "child"]
    assert due(sql, "due_near", "none") == []
    sql.claim(slots=1)
    sql.rows("UPDATE callslip.run SET is_call = true WHERE id = 'child'")
    assert due(sql, "due_near", "r1") == ["r1"]


def test_due_names_what_has_waited_once_in_so_many_seconds(sql):
    for run_id in ("r1", "r2", "call"):
        sql.submit(run_id)
    sql.rows("UPDATE callslip.run SET is_call = true WHERE id = 'call'")
    assert due(sql, "due", 3600.0, 10) == []
    assert due(sql, "due", 0.0, 1) == ["r1"]
    sql.rows("UPDATE pgmq.q_callslip_default SET vt = vt - interval '1 hour'")
    assert sorted(due(sql, "due", 60.0, 10)) == ["r1", "r2"]
    assert due(sql, "due", 60.0, 10) == []
    assert due(sql, "due", 60.0, 0) == []


def test_due_names_runs_whose_delay_is_over_and_none_that_is_driven(sql):
    sql.submit("r1", delay=60.0)
    sql.submit("r2")
    sql.claim()
    assert due(sql, "due", 60.0, 10) == []
    sql.end_lease("r1")
    assert due(sql, "due", 60.0, 10) == ["r1"]
