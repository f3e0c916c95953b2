"""Files that say they are stores and define something else: no command evaluates that."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from callslip import Agent, ScriptedModel, TicketStore
from random_cases import seeds

APPLICATION = 0x6373_6C70
VIEWS = {
    "runs": "run_id, agent, protocol, task, parent_run, parent_ticket, status, stop_reason, error, "
    "turns, violations, input_tokens, output_tokens, cached_tokens, cost, started_at, updated_at, "
    "finished_at",
    "tickets": "run_id, ticket, kind, tool, parked",
    "events": "run_id, seq, at, kind, data",
}
TABLES = ["run", "ticket", "event", "blob", "content", "run_content"]
COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
COMMANDS = [
    ["show", "FILE"],
    ["show", "FILE", "1"],
    ["runs", "FILE", "--waiting"],
    ["export", "FILE"],
    ["replay", "FILE"],
    ["watch", "FILE", "1"],
    ["approve", "FILE", "1", "T1"],
    ["prune", "FILE", "--older-than", "0s"],
    ["import", "FILE", "log.jsonl"],
    ["ask", "hi", "-m", "local", "--store", "FILE"],
    ["console", "FILE", "--no-open"],
]
CALLS = """
import contextlib, io, json, sys
from callslip.cli import main
for words in json.loads(sys.stdin.read()):
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        status = main(words)
    print(json.dumps([words, status, said.getvalue()]), flush=True)
"""


def endless(chance: random.Random, columns: str) -> str:
    """A query with these columns that never ends, or has no row for as long as anybody waits."""
    names = columns.split(", ")
    values = ", ".join(f"{chance.choice(['i', '1', 'NULL'])} AS {name}" for name in names)
    return f"{COUNT} SELECT {values} FROM n" + chance.choice(["", " WHERE i < 0", " ORDER BY i"])


def foreign(chance: random.Random) -> list[str]:
    """Statements that put something else in the place of some of a store's tables and views."""
    statements = []
    view = chance.choice(list(VIEWS))
    for name in {view, *chance.sample(list(VIEWS), chance.randrange(3))}:
        spelled = chance.choice([name, name.upper(), f'"{name}"'])
        statements += [
            f"DROP VIEW IF EXISTS {name}",
            chance.choice(
                [
                    f"CREATE VIEW {spelled} AS {endless(chance, VIEWS[name])}",
                    f"CREATE TABLE {spelled} ({VIEWS[name]})",
                ]
            ),
        ]
    if chance.random() < 0.5:
        table = chance.choice(TABLES)
        body = f"SELECT count(*) FROM ({endless(chance, 'x')})"
        made = (
            f"CREATE TRIGGER t{len(table)} AFTER {chance.choice(['INSERT', 'DELETE'])} ON {table}"
        )
        statements += [
            f"CREATE TABLE IF NOT EXISTS {table} (id, key, run, seq, at, kind, data)",
            f"{made} BEGIN {body}; END",
        ]
    if chance.random() < 0.3:
        table = chance.choice(TABLES)
        statements += [f"DROP TABLE IF EXISTS {table}", f"CREATE TABLE {table} (id, key)"]
    return statements


def make(path: Path, chance: random.Random) -> None:
    """Make a file that is marked as a store, out of a real one or out of nothing."""
    if chance.random() < 0.6:
        with TicketStore(path) as store:
            Agent(ScriptedModel(["hello"]), protocol="chatty", store=store).run_sync("go")
    with closing(sqlite3.connect(path)) as connection:
        for statement in foreign(chance):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        version = chance.choice([None, *range(7)])
        if version is not None:
            connection.execute(f"PRAGMA user_version = {version}")
        connection.commit()


@pytest.mark.random_cases
def test_no_command_evaluates_what_a_file_of_somebody_else_defines(tmp_path):
    with TicketStore(tmp_path / "runs.sqlite") as store:
        run = Agent(ScriptedModel(["hello"]), protocol="chatty", store=store).run_sync("go").run
        (tmp_path / "log.jsonl").write_text(run.export())
    calls, before = [], {}
    for seed in seeds(25):
        path = tmp_path / f"f{seed}.sqlite"
        make(path, random.Random(seed))
        before[path] = path.read_bytes()
        calls += [[path.name if word == "FILE" else word for word in words] for words in COMMANDS]
    # In a process that can be killed: SQLite does not look at signals.
    done = subprocess.run(
        [sys.executable, "-c", CALLS],
        input=json.dumps(calls), capture_output=True, text=True, cwd=tmp_path, check=False,
        timeout=60 + len(calls),
    )  # fmt: skip
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [words for words, _, _ in told] == calls, done.stderr
    for words, status, said in told:
        assert status == 2, (words, said)
        assert said.startswith("callslip: "), words
        assert any(
            part in said for part in ("marked as a store", "by a newer callslip", "another program")
        ), (words, said)
    assert {path: path.read_bytes() for path in before} == before


def test_what_users_have_added_to_their_store_is_left_alone(tmp_path, call):
    path = tmp_path / "runs.sqlite"
    with TicketStore(path) as store:
        Agent(ScriptedModel(["hello"]), protocol="chatty", store=store).run_sync("go")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE VIEW costs AS SELECT agent, sum(cost) FROM runs GROUP BY agent")
        connection.execute("CREATE INDEX mine ON run (agent)")
        connection.execute("ANALYZE")
        connection.commit()
    assert "hello" in call("show", str(path))[0]
    with TicketStore(path) as store:
        assert len(store.runs()) == 1
