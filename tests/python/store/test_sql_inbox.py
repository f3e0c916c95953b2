"""SQL functions that tell runs something: messages, decisions, results, cancellations."""

import psycopg
import pytest


def test_a_message_wakes_a_run_that_rests_and_stays_in_order(sql):
    sql.add_run("r1", claims=3)
    assert sql.get("tell", "r1", "say", None, '"one"', "anna") == "told"
    assert sql.get("tell", "r1", "say", None, '"two"', None) == "told"
    assert sql.inbox("r1") == [("say", None, '"one"'), ("say", None, '"two"')]
    assert sql.value("SELECT decided_by FROM callslip.inbox ORDER BY id LIMIT 1") == "anna"
    assert sql.messages() == ["r1"]
    assert sql.run("r1")["claims"] == 0


@pytest.mark.parametrize("what", ["outcome", "ended", "", "SAY"])
def test_nobody_may_tell_what_only_workers_know(sql, what):
    sql.add_run("r1")
    with pytest.raises(psycopg.errors.RaiseException, match=f"or resume: got {what}"):
        sql.get("tell", "r1", what, None, None, None)
    assert sql.inbox("r1") == []


def test_a_run_that_there_is_not_hears_nothing(sql):
    assert sql.get("tell", "none", "say", None, '"a"', None) == "no run"
    assert sql.rows("SELECT FROM callslip.inbox") == []


@pytest.mark.parametrize(
    ("what", "columns", "expected"),
    [
        ("approve", {"parked": True}, "told"),
        ("deny", {"parked": True}, "told"),
        ("answer", {"parked": True}, "not parked"),
        ("answer", {"awaits_result": True}, "told"),
        ("approve", {"awaits_result": True}, "not parked"),
        ("approve", {}, "not parked"),
        ("answer", {"awaits_result": False}, "not parked"),
    ],
)
def test_a_decision_is_for_a_ticket_that_waits_for_one(sql, what, columns, expected):
    sql.add_run("r1")
    sql.add_ticket("r1", 1, **columns)
    assert sql.get("tell", "r1", what, 1, "{}", "anna") == expected
    assert sql.get("tell", "r1", what, 2, "{}", "anna") == "not parked"
    assert len(sql.inbox("r1")) == (expected == "told")


def test_the_first_decision_wins(sql):
    sql.add_run("r1")
    sql.add_ticket("r1", 1, parked=True)
    assert sql.get("tell", "r1", "deny", 1, "{}", "anna") == "told"
    assert sql.get("tell", "r1", "approve", 1, "{}", "ben") == "decided"
    assert sql.inbox("r1") == [("deny", 1, "{}")]


def test_a_cancelled_run_takes_no_decision_nor_do_those_below_it(sql):
    sql.add_run("r1")
    sql.add_run("r1.T1", holder="r1")
    sql.add_ticket("r1.T1", 1, parked=True)
    assert sql.get("is_cancelled", "r1.T1") is False
    assert sql.get("tell", "r1", "cancel", None, None, None) == "told"
    assert [sql.get("is_cancelled", name) for name in ("r1", "r1.T1", "r10", "r")] == [
        True,
        True,
        False,
        False,
    ]
    assert sql.get("tell", "r1.T1", "approve", 1, "{}", "anna") == "cancelled"


@pytest.mark.parametrize(
    ("what", "columns", "expected"),
    [
        ("cancel", {"finished_at": 2.0}, "over"),
        ("cancel", {}, "told"),
        ("resume", {"finished_at": 2.0, "stop_reason": "model_error"}, "told"),
        ("resume", {"finished_at": 2.0, "stop_reason": "answer"}, "over"),
        ("resume", {}, "over"),
        ("say", {"finished_at": 2.0}, "told"),
    ],
)
def test_what_is_over_is_neither_cancelled_nor_resumed(sql, what, columns, expected):
    sql.add_run("r1", **columns)
    assert sql.get("tell", "r1", what, None, None, None) == expected


def test_a_run_is_resumed_once(sql):
    sql.add_run("r1", finished_at=2.0, stop_reason="model_error")
    assert sql.get("tell", "r1", "resume", None, None, None) == "told"
    assert sql.get("tell", "r1", "resume", None, None, None) == "over"


def test_a_message_does_not_begin_a_delayed_run_but_a_cancellation_does(sql):
    sql.submit("r1", delay=60.0)
    sql.get("tell", "r1", "say", None, '"a"', None)
    assert sql.messages("later") == ["r1"]
    sql.get("tell", "r1", "cancel", None, None, None)
    assert (sql.messages("later"), sql.messages()) == ([], ["r1"])


def test_a_message_ends_the_delay_of_a_run_that_has_begun(sql):
    sql.submit("r1", delay=60.0)
    sql.rows("UPDATE callslip.run SET next = 3")
    sql.get("tell", "r1", "say", None, '"a"', None)
    assert (sql.messages("later"), sql.messages()) == ([], ["r1"])


def test_a_message_for_a_covered_run_is_for_its_driver(sql):
    sql.add_run("top")
    sql.add_run("child", holder="top")
    sql.get("tell", "child", "say", None, '"a"', None)
    assert sql.value("SELECT holder FROM callslip.inbox WHERE run = 'child'") == "top"
    assert sql.messages() == ["top"]


def test_a_message_for_a_finished_child_run_waits_for_its_resumption(sql):
    sql.add_run("top")
    sql.add_run("child", holder="top", finished_at=2.0)
    assert sql.get("tell", "child", "say", None, '"a"', None) == "told"
    assert sql.value("SELECT holder FROM callslip.inbox") == "child"
    assert (sql.run("child")["holder"], sql.messages()) == (None, [])


def test_a_call_that_no_worker_has_is_cancelled_by_its_removal(sql):
    sql.submit("c1")
    sql.rows("UPDATE callslip.run SET is_call = true")
    assert sql.get("tell", "c1", "cancel", None, None, None) == "told"
    assert (sql.run("c1"), sql.messages()) == (None, [])


def test_put_tells_the_driver_of_a_run_that_has_a_message(sql):
    sql.submit("r1")
    sql.rows("LISTEN callslip_inbox")
    sql.with_row("put", "r1", "r1", "say", None, '"a"', "anna")
    assert sql.inbox("r1") == [("say", None, '"a"')]
    (told,) = sql.session.notifies(timeout=30, stop_after=1)
    assert told.payload == "r1"


@pytest.mark.parametrize(("holder", "expected"), [(None, "r1"), ("top", "top")])
def test_lock_holder_gives_the_run_whose_driver_drives_it(sql, holder, expected):
    sql.add_run("top")
    sql.add_run("r1", holder=holder)
    assert sql.call("lock_holder", "r1")[0]["id"] == expected
    assert sql.call("lock_holder", "none")[0]["id"] is None


def test_lock_holder_holds_the_lock_until_the_transaction_ends(sql):
    sql.add_run("r1")
    with psycopg.connect(sql.url) as other:
        other.execute("SELECT callslip.lock_holder('r1')")
        assert sql.rows("SELECT FROM callslip.run FOR UPDATE SKIP LOCKED") == []
    assert len(sql.rows("SELECT FROM callslip.run FOR UPDATE SKIP LOCKED")) == 1


def test_drop_late_removes_results_of_calls_that_have_one(sql):
    sql.add_run("r1")
    sql.add_ticket("r1", 1, outcome="cancelled")
    sql.add_ticket("r1", 2)
    for number, kind in [(1, "outcome"), (2, "outcome"), (None, "say")]:
        sql.with_row("put", "r1", "r1", kind, number, None, None)
    sql.get("drop_late", "r1")
    assert sql.inbox("r1") == [("outcome", 2, None), ("say", None, None)]
