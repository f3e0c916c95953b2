"""Queries of a store in a database: what is passed, what comes back, and what is refused."""

import json
import threading
import time

import psycopg
import pytest

from callslip import Agent, StoreError, TicketStore, tool
from fleets.here import call, finish, turns

pytestmark = pytest.mark.timeout(120)


@tool
def fail(words: str) -> str:
    """Fail."""
    raise ValueError(words)


@tool
def echo(words: str) -> str:
    """Say it again."""
    return words


def run_one(store, task, *replies):
    model = turns(*replies, finish("ok"))
    return Agent(model, tools=[fail, echo], name="clerk", store=store).run_sync(task).run.id


@pytest.mark.parametrize(
    ("condition", "parameters"),
    [
        ("turns > $1", [0]),
        ("turns > $1", [0.5]),
        ("started_at > $1", [0]),
        ("started_at > $1", [0.5]),
        ("started_at < $1", [10**30]),
        ("started_at < $1", [float("inf")]),
        ("agent = $1", ["clerk"]),
        ("agent = $1 AND turns = $2", ["clerk", 1]),
        ("coalesce($1, 5) = 5", [None]),
        ("($1 OR turns = 0)", [True]),
        ("$1 = '\\x0041'::bytea", [b"\0A"]),
        ("tenant IS NOT DISTINCT FROM $1", [None]),
        ("to_timestamp(started_at) > $1", ["2020-01-01"]),
        ("$1 > 5000000000", [6_000_000_000]),
    ],
)
def test_parameters_are_of_the_types_that_they_have(store, condition, parameters):
    run_id = run_one(store, "?")
    found = store.query(f"SELECT run_id FROM callslip.runs WHERE {condition}", parameters)
    assert found == [{"run_id": run_id}]


def test_a_limit_is_a_parameter_and_a_number_comes_back_as_one(store):
    assert store.query("SELECT n FROM generate_series(1, 9) AS n LIMIT $1", [2]) == [
        {"n": 1},
        {"n": 2},
    ]
    assert store.query("SELECT $1 AS a, $2 AS b, $3 AS c", [5, "x", None]) == [
        {"a": 5, "b": "x", "c": None}
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 7 AS one -- a comment",
        "SELECT 7 AS one; -- a comment; and another",
        "SELECT 7 AS one /* a comment; */ ;;  ",
        "SELECT 7 AS one WHERE ';' = $a$;$a$ AND 'a''; --' <> E'\\'; --';",
        "VALUES (7)",
        "WITH seven AS (SELECT 7 AS one) TABLE seven;",
    ],
)
def test_a_query_ends_as_it_may_end(store, sql):
    ((value,),) = (row.values() for row in store.query(sql))
    assert value == 7


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT nope(1)", r"function nope\(integer\) does not exist"),
        ("SELECT * FROM nope", 'relation "nope" does not exist'),
        ("SELECT * FROM nope.runs", 'relation "nope.runs" does not exist'),
        ("SELECT nope FROM callslip.runs", 'column "nope" does not exist'),
        ("SELECT 1; SELECT 2", "cannot insert multiple commands into a prepared statement"),
        ("SELECT 1) AS one, (SELECT 2", 'syntax error at or near "\\)"'),
        ("DELETE FROM callslip.run", "expected one SELECT, which reads: got another kind"),
        ("DELETE FROM callslip.run RETURNING id", "expected one SELECT, which reads: got another"),
        ("SELECT nextval('callslip.epoch')", "read-only transaction"),
        ("", "it is empty"),
        (" ; ", "it is empty"),
        ("-- nothing", "expected one SELECT, which reads: got another kind"),
    ],
)
def test_what_cannot_be_run_is_said_of_the_query(store, sql, said):
    with pytest.raises(StoreError, match=rf"^the query can't be run: .*{said}"):
        store.query(sql)
    assert store.query("SELECT 1 AS still") == [{"still": 1}]


def test_the_wrong_number_of_parameters(store):
    with pytest.raises(StoreError, match="the query can't be run: expected 1 parameters but got 0"):
        store.query("SELECT $1::int")


TEXTS = ["plain", 'it "broke" \\', "a\0b", "\\u0000", "\\\0\0", "\ufdd0\ufdd00\ufdd01"]


@pytest.mark.parametrize("words", TEXTS, ids=range(len(TEXTS)))
@pytest.mark.parametrize("is_compacted", [False, True])
def test_the_views_of_a_file_and_of_a_database_are_alike(store, tmp_path, words, is_compacted):
    rows = []
    with TicketStore(tmp_path / "runs.sqlite") as file:
        for one in (file, store):
            run_id = run_one(one, words, call("fail", words=words), call("echo", words=words))
            if is_compacted:
                one.compact(run_id)
            rows.append(
                one.query(
                    "SELECT runs.task, tickets.tool, tickets.description, tickets.arguments, "
                    "tickets.status, tickets.outcome, tickets.result, tickets.error "
                    "FROM tickets JOIN runs ON runs.run_id = tickets.run_id ORDER BY ticket"
                )
            )
    assert rows[0] == rows[1]
    assert rows[1][0]["error"] == f"Error calling tool 'fail': ValueError: {words}."
    assert rows[1][0]["task"] == words
    assert store.query("SELECT task FROM runs WHERE task = $1", [words]) == [{"task": words}]
    started = store.query("SELECT data FROM events WHERE kind IN ('run_started', 'compacted')")[0]
    assert json.dumps(words, ensure_ascii=False) in started["data"]


def test_who_reads_the_views_with_another_client_can_read_every_text(store, database):
    run_one(store, "?", call("fail", words="a\0b"))
    with psycopg.connect(database) as connection:
        error, arguments = connection.execute(
            "SELECT error, arguments FROM callslip.tickets"
        ).fetchone()
    assert error == "Error calling tool 'fail': ValueError: a\ufdd00b."
    assert arguments == '{"words":"a\\u0000b"}'


@pytest.fixture
def long_query(store, database):
    """A query that takes a minute, in a thread. It ends with the test."""
    raised = []

    def ask():
        try:
            store.query("SELECT pg_sleep(60) AS slept")
        except StoreError as error:
            raised.append(str(error))

    thread = threading.Thread(target=ask)
    thread.start()
    with psycopg.connect(database, autocommit=True) as connection:
        mine = "query LIKE '%pg_sleep(60)%' AND state = 'active' AND pid <> pg_backend_pid()"
        while not connection.execute(f"SELECT FROM pg_stat_activity WHERE {mine}").fetchall():
            time.sleep(0.01)
        yield thread
        connection.execute(f"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE {mine}")
    thread.join(30)
    assert raised == [] or "canceling statement" in raised[0], raised


def test_runs_go_on_while_a_query_takes_its_time(store, long_query):
    run_id = run_one(store, "?", call("echo", words="here"))
    assert store.run(run_id).stop_reason == "finished"
    assert [run.run_id for run in store.runs()] == [run_id]
    assert long_query.is_alive()


def test_a_store_is_closed_while_a_query_takes_its_time(store, long_query):
    run_one(store, "?")
    store.close()
    assert long_query.is_alive()
    with pytest.raises(StoreError, match="this store is closed"):
        store.runs()


def test_a_query_after_its_connection_broke(store, database):
    assert store.query("SELECT 1 AS one") == [{"one": 1}]
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert store.query("SELECT 1 AS one") == [{"one": 1}]
