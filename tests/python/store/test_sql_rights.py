"""Who may do what in the database, and that each SQL function has a test of its own."""

import re
from pathlib import Path

import psycopg
import pytest

TELLS = {"run_with", "tell", "is_cancelled", "due_near", "due", "submit"}
WRITTEN = {"run", "event", "ticket", "blob", "run_content", "inbox", "watch", "worker"}


def functions(sql):
    """Names and signatures of the store's functions."""
    return sql.rows(
        "SELECT proname AS name, oid::regprocedure::text AS signature, prosecdef AS is_definer, "
        "proconfig AS settings FROM pg_proc WHERE pronamespace = 'callslip'::regnamespace"
    )


def test_each_function_is_called_in_a_test_of_its_own(sql):
    here = Path(__file__)
    texts = [path.read_text("utf-8") for path in here.parent.glob("test_sql_*.py") if path != here]
    texts.append((here.parents[2] / "support" / "sql_runs.py").read_text("utf-8"))
    text = "\n".join(texts)
    names = {row["name"] for row in functions(sql)}
    assert [
        one for one in names if not re.search(rf"""["']{one}["']|callslip\.{one}\(""", text)
    ] == []


def test_functions_run_as_their_owner_with_a_fixed_path(sql):
    for row in functions(sql):
        assert row["is_definer"], row
        assert row["settings"] == ["search_path=pg_catalog, pg_temp"], row


@pytest.mark.parametrize("role", ["callslip_worker", "callslip_client", "stranger"])
def test_each_role_calls_its_functions_only(sql, role):
    if role == "stranger":
        sql.rows("DROP ROLE IF EXISTS stranger")
        sql.rows("CREATE ROLE stranger")
    may = {
        row["name"]
        for row in functions(sql)
        if sql.value("SELECT has_function_privilege(%s, %s, 'execute')", role, row["signature"])
    }
    every = {row["name"] for row in functions(sql)}
    assert may == {"callslip_worker": every, "callslip_client": TELLS, "stranger": set()}[role]


@pytest.mark.parametrize(
    ("role", "written"),
    [("callslip_worker", WRITTEN), ("callslip_client", {"watch"})],
)
def test_each_role_writes_its_tables_only(sql, role, written):
    tables = sql.rows("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'callslip'")
    for row in tables:
        for right in ("insert", "update", "delete"):
            query = "SELECT has_table_privilege(%s, %s, %s)"
            may = sql.value(query, role, f"callslip.{row['name']}", right)
            assert may is (row["name"] in written), (row, right)
        assert sql.value(query, role, f"callslip.{row['name']}", "select")


def test_a_client_tells_a_run_something_and_writes_no_log(sql):
    sql.add_run("r1")
    sql.rows("SET ROLE callslip_client")
    assert sql.get("tell", "r1", "say", None, '"a"', None) == "told"
    for statement in (
        "UPDATE callslip.run SET epoch = 0",
        "DELETE FROM callslip.inbox",
        "INSERT INTO callslip.event VALUES (1, 1, 1, 'moved', '{}')",
        "SELECT callslip.claim('default', 60, 1, '{clerk}', '{}', false)",
        "SELECT callslip.end_call('r1', 1, NULL)",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            sql.rows(statement)
    sql.rows("RESET ROLE")
    assert sql.inbox("r1") == [("say", None, '"a"')]
