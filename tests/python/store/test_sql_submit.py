"""SQL functions that begin and submit runs, and those for the messages of queues."""

import psycopg
import pytest


def test_a_submitted_run_has_one_message_in_its_queue(sql):
    assert sql.submit("r1", task="Pay.", tenant="acme", owner="anna", key="k") == [
        {"run_id": "r1", "is_new": True}
    ]
    run = sql.run("r1")
    assert (run["task"], run["given"], run["tenant"], run["owner"]) == (
        "Pay.",
        "{}",
        "acme",
        "anna",
    )
    assert (run["next"], run["is_later"], run["lane"]) == (0, False, "//acme")
    assert sql.messages() == ["r1"]


def test_the_same_key_is_the_same_run_for_one_owner_and_agent(sql):
    sql.submit("r1", owner="anna", key="k")
    assert sql.submit("r2", owner="anna", key="k") == [{"run_id": "r1", "is_new": False}]
    assert sql.submit("r3", owner="ben", key="k") == [{"run_id": "r3", "is_new": True}]
    assert sql.submit("r4", agent="other", owner="anna", key="k")[0]["is_new"]
    assert sql.submit("r5", key="k")[0]["is_new"]
    assert sql.submit("r6", key="k") == [{"run_id": "r5", "is_new": False}]
    assert sql.messages() == ["r1", "r3", "r4", "r5"]


def test_a_full_queue_takes_no_new_run_but_knows_a_key(sql):
    sql.submit("r1", key="k")
    assert sql.submit("r2", backlog=1) == [{"run_id": None, "is_new": False}]
    assert sql.submit("r3", key="k", backlog=1) == [{"run_id": "r1", "is_new": False}]
    assert sql.submit("r4", backlog=2)[0]["is_new"]
    assert sql.run("r2") is None


def test_a_delayed_run_waits_until_it_falls_due(sql):
    sql.submit("r1", queue="slow", delay=60.0, tenant="acme", limit=2)
    run = sql.run("r1")
    assert (run["is_later"], run["lane"], run["lanes"]) == (True, "/2/acme", 2)
    assert (sql.messages("later"), sql.messages("slow")) == (["r1"], [])
    sql.call("fall_due")
    assert sql.messages("later") == ["r1"]
    sql.end_lease("r1")
    sql.call("fall_due")
    assert (sql.messages("later"), sql.messages("slow")) == ([], ["r1"])
    assert sql.run("r1")["is_later"] is False


def test_what_falls_due_and_is_no_runs_message_is_dropped(sql):
    sql.get("send", "nobody", "default", "", 0.0, True)
    sql.call("fall_due")
    assert (sql.messages("later"), sql.messages()) == ([], [])


def test_the_submit_of_an_older_worker_takes_the_tenant_for_the_owner(sql):
    sql.call("submit", "r1", "clerk", "{}", "go", "default", "acme", "k", None, 0.0, None)
    assert (sql.run("r1")["tenant"], sql.run("r1")["owner"]) == ("acme", "acme")


def test_a_queue_is_made_once(sql):
    for _ in range(2):
        sql.get("make_queue", "new")
    names = [row["queue_name"] for row in sql.rows("SELECT queue_name FROM pgmq.meta")]
    assert names.count("callslip_new") == 1


@pytest.mark.parametrize("name", ["it's", "a;b", "a--b", "a$b", "x" * 60])
def test_a_queue_with_a_name_that_is_no_table_is_refused_and_not_made(sql, name):
    with pytest.raises(psycopg.errors.RaiseException, match="queue name"):
        sql.get("make_queue", name)
    with pytest.raises(psycopg.errors.RaiseException, match="queue name"):
        sql.submit("r1", queue=name)
    assert sql.run("r1") is None


def test_send_and_unsend_are_of_one_message(sql):
    first = sql.get("send", "r1", "default", "", 0.0, False)
    second = sql.get("send", "r2", "default", "//acme", 0.0, False)
    groups = sql.rows(
        "SELECT headers ->> 'x-pgmq-group' AS g FROM pgmq.q_callslip_default ORDER BY 1"
    )
    assert [row["g"] for row in groups] == ["//acme", "r1"]
    sql.get("unsend", "default", False, first)
    sql.get("unsend", "default", False, first)
    assert sql.messages() == ["r2"]
    sql.get("unsend", "default", True, second)
    assert sql.messages() == ["r2"]


def test_a_run_that_begins_here_is_leased_at_once(sql):
    ((begun),) = sql.call("begin_with", "r1", "clerk", "anna", "k", 60.0)
    assert begun["run_id"] == "r1"
    assert begun["run_epoch"] == sql.run("r1")["epoch"]
    assert sql.get("is_leased", "default", sql.run("r1")["msg"])
    # Another process with the same key gets the run, and no right to write it.
    assert sql.call("begin_with", "r2", "clerk", "anna", "k", 60.0) == [
        {"run_id": "r1", "run_epoch": None}
    ]
    assert sql.call("begin_with", "r3", "clerk", None, "k", 60.0)[0]["run_id"] == "r3"


def test_a_key_whose_process_is_gone_before_it_wrote_is_free(sql):
    sql.call("begin_with", "r1", "clerk", "anna", "k", 60.0)
    assert sql.get("run_with", "clerk", "anna", "k") == "r1"
    sql.end_lease("r1")
    assert sql.call("begin_with", "r2", "clerk", "anna", "k", 60.0)[0]["run_id"] == "r2"
    assert sql.run("r1") is None
    assert sql.messages() == ["r2"]
    assert sql.get("run_with", "clerk", "anna", "none") is None


@pytest.mark.parametrize(
    ("columns", "alone"),
    [
        ({"next": 0}, True),
        ({"next": 1}, False),
        ({"next": 0, "given": "{}"}, False),
        ({"next": 0, "is_call": True}, False),
    ],
)
def test_a_run_is_its_key_alone_until_it_has_anything_else(sql, columns, alone):
    sql.add_run("r1", **columns)
    assert sql.with_row("is_key_alone", "r1") is alone


def test_freeing_a_key_removes_row_message_and_inbox(sql):
    sql.call("begin_with", "r1", "clerk", None, "k", 60.0)
    sql.get("tell", "r1", "say", None, '"hello"', None)
    sql.with_row("free_key", "r1")
    assert (sql.run("r1"), sql.messages(), sql.inbox("r1")) == (None, [], [])


def test_an_id_that_there_is_begins_nothing(sql):
    sql.call("begin_with", "r1", "clerk", "anna", "k", 60.0)
    with pytest.raises(psycopg.errors.UniqueViolation, match="expected a new id of a run: got r1"):
        sql.call("begin_with", "r1", "clerk", "anna", "another", 60.0)
