"""SQL functions that share the claims among tenants."""

import pytest


def claimed(sql, slots=1, **options):
    return [row["run_id"] for row in sql.claim(slots=slots, **options)]


def test_tenants_take_turns(sql):
    for run_id, tenant in [("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("free", None)]:
        sql.submit(run_id, tenant=tenant)
    assert [claimed(sql) for _ in range(6)] == [["a1"], ["b1"], ["free"], ["a2"], ["a3"], []]


def test_one_claim_takes_of_each_tenant_in_turn(sql):
    for run_id, tenant in [("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")]:
        sql.submit(run_id, tenant=tenant)
    assert sorted(claimed(sql, 2)) == ["a1", "b1"]


def test_a_limit_holds_over_all_queues(sql):
    sql.submit("a1", tenant="a", limit=1)
    sql.submit("a2", tenant="a", limit=1, queue="other")
    assert claimed(sql, 5) == ["a1"]
    assert claimed(sql, 5, queue="other") == []
    sql.end_lease("a1")
    assert claimed(sql, 5, queue="other") == ["a2"]


def test_what_a_worker_cannot_drive_blocks_no_tenant(sql):
    sql.submit("a1", "cook", tenant="a")
    sql.submit("a2", tenant="a")
    assert claimed(sql, 5) == ["a2"]


def test_a_claim_notes_the_turns_of_the_tenants_that_it_took(sql):
    sql.submit("a1", tenant="a")
    sql.submit("b1", tenant="b")
    assert claimed(sql) == ["a1"]
    query = "SELECT name, turn FROM callslip.tenant WHERE turn > 0 ORDER BY turn"
    assert [row["name"] for row in sql.rows(query)] == ["a"]
    assert claimed(sql) == ["b1"]
    assert [row["name"] for row in sql.rows(query)] == ["a", "b"]


def test_forget_tenants_keeps_those_that_have_runs(sql):
    sql.submit("a1", tenant="a")
    sql.rows("INSERT INTO callslip.tenant (name) VALUES ('a'), ('gone'), ('')")
    sql.get("forget_tenants")
    names = sql.rows("SELECT name FROM callslip.tenant ORDER BY name")
    assert [row["name"] for row in names] == ["", "a"]


@pytest.mark.parametrize(
    ("tenants", "expected"),
    [(None, ["a1", "free"]), (["a"], ["a1"]), ([""], ["free"]), (["none"], [])],
)
def test_heads_query_names_the_messages_of_tenants(sql, tenants, expected):
    sql.submit("a1", tenant="a")
    sql.submit("free")
    query = sql.get("heads_query", "default", "pgmq.q_callslip_default AS q", "", "")
    for number, value in enumerate(["clock_timestamp()", "10", "%s::text[]"], 1):
        query = query.replace(f"${number}", value)
    found = sql.rows(query, *[tenants] * query.count("%s"))
    runs = {sql.run(name)["msg"]: name for name in ("a1", "free")}
    assert sorted(runs[row["msg_id"]] for row in found) == expected


def test_index_lanes_may_be_called_again(sql):
    for _ in range(2):
        sql.get("index_lanes", "q_callslip_default")
    names = sql.rows("SELECT indexname FROM pg_indexes WHERE tablename = 'q_callslip_default'")
    assert [row["indexname"] for row in names].count("q_callslip_default_lane") == 1
