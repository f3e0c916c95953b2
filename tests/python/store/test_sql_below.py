"""SQL functions for child runs and calls that any worker takes."""

import psycopg
import pytest


@pytest.fixture
def epoch(sql):
    """The claim of a run of a tenant, whose ticket T1 is open."""
    sql.submit("top", "boss", tenant="acme", owner="anna", limit=2)
    ((claimed),) = sql.claim(["boss"])
    sql.rows("UPDATE callslip.run SET next = 3")
    sql.add_ticket("top", 1)
    return claimed["run_epoch"]


def submit_below(sql, epoch, *, number=1, call=False, queue=None, above="top"):
    values = ("top", epoch, above, number, f"top.T{number}", "clerk", None, "{}", "[]", "go")
    return sql.get("submit_below", *values, queue, call)


def test_a_child_run_has_tenant_owner_and_lane_of_the_run_above(sql, epoch):
    assert submit_below(sql, epoch) == "sent"
    child = sql.run("top.T1")
    assert (child["parent"], child["parent_ticket"]) == ("top", 1)
    assert (child["tenant"], child["owner"], child["lane"]) == ("acme", "anna", "/2/acme")
    assert (child["tells_parent"], child["is_call"], child["next"]) == (True, False, 0)
    assert sql.messages() == ["top", "top.T1"]


def test_a_call_has_no_tenant_and_may_have_a_queue(sql, epoch):
    assert submit_below(sql, epoch, call=True, queue="heavy") == "sent"
    call = sql.run("top.T1")
    assert (call["tenant"], call["lane"], call["is_call"]) == (None, "", True)
    assert sql.messages("heavy") == ["top.T1"]


def test_only_the_present_claim_submits(sql, epoch):
    assert submit_below(sql, epoch - 1) == "lost"
    assert sql.run("top.T1") is None


def test_submitting_again_changes_nothing(sql, epoch):
    assert [submit_below(sql, epoch) for _ in range(2)] == ["sent", "sent"]
    assert sql.messages() == ["top", "top.T1"]


def test_what_the_driver_drives_itself_is_inside(sql, epoch):
    sql.add_run("top.T1", holder="top", parent="top")
    assert submit_below(sql, epoch) == "inside"


def test_an_outcome_that_waits_is_not_asked_for_again(sql, epoch):
    submit_below(sql, epoch, call=True)
    ((call),) = sql.claim()
    assert sql.get("end_call", "top.T1", call["run_epoch"], '"paid"') is True
    assert sql.inbox("top") == [("outcome", 1, '"paid"')]
    assert submit_below(sql, epoch, call=True) == "sent"
    assert sql.run("top.T1") is None


def test_the_end_of_a_child_run_is_told_again_if_it_was_lost(sql, epoch):
    submit_below(sql, epoch)
    sql.rows("UPDATE callslip.run SET finished_at = 2, msg = NULL WHERE id = 'top.T1'")
    assert submit_below(sql, epoch) == "sent"
    assert sql.inbox("top") == [("ended", 1, None)]


# Ends.


def test_a_call_ends_once_and_by_who_holds_it(sql, epoch):
    submit_below(sql, epoch, call=True)
    ((call),) = sql.claim()
    assert sql.get("end_call", "top.T1", call["run_epoch"] - 1, '"paid"') is False
    assert sql.get("end_call", "top.T1", call["run_epoch"], '"paid"') is True
    assert sql.get("end_call", "top.T1", call["run_epoch"], '"again"') is False
    assert (sql.run("top.T1"), sql.messages()) == (None, ["top"])
    assert sql.inbox("top") == [("outcome", 1, '"paid"')]


def test_a_call_that_was_given_up_tells_nothing(sql, epoch):
    submit_below(sql, epoch, call=True)
    ((call),) = sql.claim()
    assert sql.get("end_call", "top.T1", call["run_epoch"], None) is True
    assert (sql.run("top.T1"), sql.inbox("top")) == (None, [])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("SELECT", [("ended", 1, None)]),
        ("UPDATE callslip.run SET finished_at = 2 WHERE id = 'top'", []),
        ("UPDATE callslip.ticket SET outcome = 'cancelled'", []),
        ("UPDATE callslip.run SET parent = 'none' WHERE id = 'top.T1'", []),
        ("UPDATE callslip.run SET parent_ticket = 2 WHERE id = 'top.T1'", []),
    ],
)
def test_the_run_above_hears_of_an_end_that_it_waits_for(sql, epoch, change, told):
    submit_below(sql, epoch)
    sql.rows(change)
    for _ in range(2):
        sql.with_row("tell_above", "top.T1", "ended", None)
    assert sql.inbox("top") == told


def test_a_run_that_ends_cancels_what_other_workers_have_below_it(sql, epoch):
    submit_below(sql, epoch)
    submit_below(sql, epoch, number=2, call=True)
    sql.add_run("inside", parent="top", holder="top")
    sql.get("end_below", "top")
    assert sql.inbox("top.T1") == []
    sql.rows("UPDATE callslip.run SET finished_at = 2 WHERE id = 'top'")
    sql.get("end_below", "top")
    assert sql.inbox("top.T1") == [("cancel", None, None)]
    # Nobody had taken the call.
    assert sql.run("top.T2") is None
    assert sql.inbox("inside") == []


def test_leaving_a_finished_child_run_tells_the_run_above(sql, epoch):
    submit_below(sql, epoch)
    ((child),) = sql.claim()
    sql.rows("UPDATE callslip.run SET finished_at = 2, next = 3 WHERE id = 'top.T1'")
    sql.get("leave", "top.T1", child["run_epoch"])
    assert sql.inbox("top") == [("ended", 1, None)]
    assert sql.messages() == ["top"]


@pytest.mark.parametrize(("tells", "locked"), [(True, 1), (False, 0)])
def test_lock_above_locks_the_run_that_is_told(sql, epoch, tells, locked):
    submit_below(sql, epoch)
    sql.rows("UPDATE callslip.run SET tells_parent = %s WHERE id = 'top.T1'", tells)
    with psycopg.connect(sql.url) as other:
        other.execute("SELECT callslip.lock_above('top.T1')")
        query = "SELECT FROM callslip.run WHERE id = 'top' FOR UPDATE SKIP LOCKED"
        assert len(sql.rows(query)) == 1 - locked


# What a tree has spent.


def test_spent_adds_up_a_tree_without_its_calls(sql):
    usage = {"input_tokens": 10, "output_tokens": 3, "cached_tokens": 1, "cost": 0.5}
    sql.add_run("top", **usage)
    sql.add_run("child", parent="top", **usage)
    sql.add_run("grandchild", parent="child", **usage)
    sql.add_run("call", parent="top", is_call=True, **usage)
    sql.add_run("stranger", **usage)
    sql.add_ticket("top", 1, kind="task")
    sql.add_ticket("top", 2)
    sql.add_ticket("child", 1)
    assert sql.call("spent", "top") == [
        {
            "input_tokens": 30,
            "output_tokens": 9,
            "cached_tokens": 3,
            "cost": 1.5,
            "tickets": 3,
            "runs": 1,
        }
    ]
    assert sql.call("spent", "child")[0]["input_tokens"] == 20
    assert sql.call("spent", "none")[0]["input_tokens"] is None
