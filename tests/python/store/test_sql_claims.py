"""SQL functions that claim runs, keep the claims, and take runs over."""

import pytest


def ids(rows):
    return [row["run_id"] for row in rows]


def test_a_claim_leases_known_agents_and_leaves_the_others_alone(sql):
    for run_id, agent in [("r1", "clerk"), ("r2", "cook"), ("r3", "clerk")]:
        sql.submit(run_id, agent)
    claimed = sql.claim()
    assert ids(claimed) == ["r1", "r3"]
    assert [row["run_epoch"] for row in claimed] == [
        sql.run(name)["epoch"] for name in ("r1", "r3")
    ]
    assert [(row["run_first"], row["run_next"], row["run_claims"]) for row in claimed] == [
        (0, 0, 1),
        (0, 0, 1),
    ]
    assert sql.claim() == []
    assert ids(sql.claim(["cook"])) == ["r2"]
    assert sql.claim([]) == []


def test_slots_bound_a_claim_and_the_oldest_come_first(sql):
    for number in range(4):
        sql.submit(f"r{number}")
    assert ids(sql.claim(slots=1)) == ["r0"]
    assert ids(sql.claim(slots=2)) == ["r1", "r2"]
    assert sql.claim(slots=0) == []


def test_a_claim_gives_the_position_and_counts_claims_without_progress(sql):
    sql.submit("r1")
    for count in (1, 2, 3):
        (claimed,) = sql.claim()
        assert (claimed["run_claims"], claimed["run_next"]) == (count, 0)
        sql.end_lease("r1")
    # One event more than at the last claim is no progress: that is the claim's own.
    sql.rows("UPDATE callslip.run SET next = 1")
    assert sql.claim()[0]["run_claims"] == 4
    sql.end_lease("r1")
    sql.rows("UPDATE callslip.run SET next = 9, first = 2")
    (claimed,) = sql.claim()
    assert (claimed["run_claims"], claimed["run_first"], claimed["run_next"]) == (1, 2, 9)


def test_each_claim_fences_the_one_before_and_the_runs_that_it_covers(sql):
    sql.submit("r1")
    (first,) = sql.claim()
    sql.add_run("r1.T1", holder="r1", epoch=first["run_epoch"])
    sql.end_lease("r1")
    (second,) = sql.claim()
    assert second["run_epoch"] > first["run_epoch"]
    assert sql.run("r1.T1")["epoch"] == second["run_epoch"]


def test_a_shape_that_a_worker_refuses_holds_for_begun_runs_only(sql):
    sql.submit("r1")
    sql.rows("UPDATE callslip.run SET shape = 's'")
    assert ids(sql.claim(refused=["clerk s"])) == ["r1"]
    sql.end_lease("r1")
    sql.rows("UPDATE callslip.run SET next = 5")
    assert sql.claim(refused=["clerk s"]) == []
    assert ids(sql.claim(refused=["clerk other"])) == ["r1"]


def test_with_begun_only_no_new_run_is_claimed(sql):
    sql.submit("new")
    sql.submit("begun")
    sql.rows("UPDATE callslip.run SET next = 5 WHERE id = 'begun'")
    assert ids(sql.claim(begun_only=True)) == ["begun"]


@pytest.mark.parametrize("lease", [2.0, 0.25])
def test_a_lease_lasts_as_long_as_was_asked_for(sql, lease):
    sql.submit("r1")
    sql.claim(lease=lease)
    left = sql.value(
        "SELECT extract(epoch FROM vt - last_read_at)::float8 FROM pgmq.q_callslip_default"
    )
    assert lease <= left < lease + 1


def test_a_claim_drops_messages_of_no_run_and_free_keys(sql):
    sql.get("send", "gone", "default", "", 0.0, False)
    sql.call("begin_with", "r1", "clerk", None, "k", 0.0)
    assert sql.claim() == []
    assert (sql.messages(), sql.run("r1")) == ([], None)


def test_read_heads_leases_without_a_claim(sql):
    sql.submit("r1")
    epoch = sql.run("r1")["epoch"]
    rows = sql.call("read_heads", "default", 60.0, 5, ["clerk"], [], False)
    assert rows == [{"msg_id": sql.run("r1")["msg"], "id": "r1"}]
    assert sql.run("r1")["epoch"] == epoch
    assert sql.call("read_heads", "default", 60.0, 5, ["clerk"], [], False) == []


def test_is_leased_is_false_for_free_and_unknown_messages(sql):
    sql.submit("r1")
    msg = sql.run("r1")["msg"]
    assert sql.get("is_leased", "default", msg) is False
    sql.claim()
    assert sql.get("is_leased", "default", msg) is True
    assert sql.get("is_leased", "default", msg + 1) is False
    assert sql.get("is_leased", "default", None) is False


def test_a_run_that_is_given_back_comes_later_under_another_epoch(sql):
    sql.submit("r1")
    (claimed,) = sql.claim()
    sql.with_row("give_back", "r1", 10.0)
    run = sql.run("r1")
    assert run["is_later"]
    assert run["epoch"] > claimed["run_epoch"]
    assert (sql.messages(), sql.messages("later")) == ([], ["r1"])


def test_refuse_counts_no_claim_and_needs_the_present_epoch(sql):
    sql.submit("r1")
    (claimed,) = sql.claim()
    sql.get("refuse", "r1", claimed["run_epoch"] - 1, 10.0)
    assert sql.messages("later") == []
    sql.get("refuse", "r1", claimed["run_epoch"], 10.0)
    assert sql.messages("later") == ["r1"]
    assert sql.run("r1")["claims"] == 0


@pytest.mark.parametrize(("delay", "seconds"), [([0.5], 0.5), ([60.0], 60), ([], 10)])
def test_refuse_puts_a_run_off_for_as_long_as_was_asked_for(sql, delay, seconds):
    sql.submit("r1")
    (claimed,) = sql.claim()
    sql.get("refuse", "r1", claimed["run_epoch"], *delay)
    wait = "SELECT extract(epoch FROM vt - enqueued_at)::float8 FROM pgmq.q_callslip_later"
    assert seconds <= sql.value(wait) < seconds + 1


def test_a_beat_says_which_claims_are_held_and_which_have_an_inbox(sql):
    for run_id in ("r1", "r2", "r3"):
        sql.submit(run_id)
    epochs = {row["run_id"]: row["run_epoch"] for row in sql.claim(lease=5.0)}
    sql.get("tell", "r2", "say", None, '"hello"', None)
    asked = [epochs["r1"], epochs["r2"], epochs["r3"] - 1]
    rows = sql.call("beat", ["r1", "r2", "r3"], asked, 600.0)
    assert {row["run_id"]: row["has_inbox"] for row in rows} == {"r1": False, "r2": True}
    long = sql.rows(
        "SELECT message ->> 'run' AS run FROM pgmq.q_callslip_default "
        "WHERE vt > clock_timestamp() + interval '500 seconds' ORDER BY msg_id"
    )
    assert [row["run"] for row in long] == ["r1", "r2"]
    assert sql.call("beat", [], [], 60.0) == []


# Taking one run by its name.


def test_take_drives_a_run_that_rests_and_refuses_one_that_is_driven(sql):
    sql.add_run("r1", first=2, next=7, shape="s")
    (taken,) = sql.call("take", "r1", 60.0)
    assert (taken["taken"], taken["run_first"], taken["run_next"]) == (True, 2, 7)
    assert (taken["run_shape"], taken["run_over"]) == ("s", False)
    assert taken["run_epoch"] == sql.run("r1")["epoch"]
    (again,) = sql.call("take", "r1", 60.0)
    assert (again["taken"], again["run_epoch"]) == (False, 0)
    assert sql.call("take", "none", 60.0) == []


def test_take_waits_for_a_delay_and_finds_no_calls_and_no_free_keys(sql):
    sql.submit("r1", delay=60.0)
    assert sql.call("take", "r1", 60.0)[0]["taken"] is None
    sql.add_run("c1", is_call=True)
    assert sql.call("take", "c1", 60.0) == []
    sql.call("begin_with", "r2", "clerk", None, "k", 0.0)
    assert sql.call("take", "r2", 60.0) == []
    assert sql.run("r2") is None


def test_take_leaves_a_covered_run_to_a_driver_that_lives(sql):
    sql.submit("top")
    sql.claim()
    sql.add_run("child", holder="top")
    sql.get("tell", "child", "say", None, '"hello"', None)
    (taken,) = sql.call("take", "child", 60.0)
    assert (taken["taken"], taken["run_holder"]) == (False, "top")
    sql.end_lease("top")
    assert sql.call("take", "child", 60.0)[0]["taken"] is True
    assert sql.run("child")["holder"] is None
    assert sql.value("SELECT holder FROM callslip.inbox WHERE run = 'child'") == "child"


def test_cover_puts_a_run_under_the_claim_of_another(sql):
    sql.submit("top")
    (claimed,) = sql.claim()
    epoch = claimed["run_epoch"]
    sql.add_run("child", first=1, next=4)
    sql.get("tell", "child", "say", None, '"hello"', None)
    assert sql.call("cover", "child", "top", epoch) == [
        {"covered": True, "run_first": 1, "run_next": 4}
    ]
    child = sql.run("child")
    assert (child["holder"], child["epoch"], child["msg"]) == ("top", epoch, None)
    assert sql.messages() == ["top"]
    assert sql.value("SELECT holder FROM callslip.inbox") == "top"


def test_cover_needs_the_claim_and_a_run_that_nobody_drives(sql):
    sql.submit("top")
    sql.submit("driven", "cook")
    (top,), _ = sql.claim(), sql.claim(["cook"])
    epoch = top["run_epoch"]
    lost = [{"covered": False, "run_first": 0, "run_next": 0}]
    assert sql.call("cover", "driven", "top", epoch - 1) == lost
    assert sql.call("cover", "driven", "top", epoch) == lost
    assert sql.call("cover", "none", "top", epoch) == []
