"""The time of `prune` beside large results that stay, as a multiple of the time without them.

    python benches/prune.py [--pruned 2000] [--results 200000] [--postgres]

Two stores get the same runs to delete; in one of them, younger runs have large results that stay.
One run of each kind is driven, and its rows are copied, which takes seconds and not hours.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from callslip import Agent, TicketStore, tool
from postgres import Server

CALLS = 20
"""Large results of each run that stays."""

FINISH = '{"thought": "", "action": "FINISH", "final_answer": "done", "task_successful": true}'


@tool
def read(number: int) -> str:
    """Read a document."""
    return f"{number:>6}" * 700


def call(number: int) -> str:
    return f'{{"thought": "", "action": "read", "args": {{"number": {number}}}}}'


def drive(store: TicketStore, numbers: range) -> str:
    """Drive a run with these large results. Returns its id."""
    replies = iter([*map(call, numbers), FINISH])
    agent = Agent(lambda _: next(replies), store=store, tools=[read])
    return agent.run_sync("Read them.").run.id


COPY_SQLITE = """
CREATE TEMP TABLE number AS WITH RECURSIVE one (n) AS (
    SELECT 1 UNION ALL SELECT n + 1 FROM one WHERE n < :copies) SELECT n FROM one;
CREATE TEMP TABLE kept AS SELECT blob, row_number() OVER (ORDER BY blob) AS place FROM event
    WHERE run = :run AND kind = 'ticket_completed' AND blob IS NOT NULL GROUP BY blob;
CREATE TEMP TABLE base AS SELECT (SELECT max(key) FROM blob) AS blobs,
    (SELECT max(key) FROM run) AS runs, (SELECT count(*) FROM kept) AS places;
INSERT INTO blob SELECT blobs + (n - 1) * places + place, randomblob(32), data
    FROM number, base, kept JOIN blob ON blob.key = kept.blob;
INSERT INTO run ({run}) SELECT {run_values} FROM run, number, base WHERE key = :run;
INSERT INTO event ({event}) SELECT {event_values}
    FROM number, base, event LEFT JOIN kept USING (blob) WHERE run = :run;
INSERT INTO ticket ({ticket}) SELECT {ticket_values}
    FROM number, base, ticket LEFT JOIN kept USING (blob) WHERE run = :run;
DROP TABLE number; DROP TABLE kept; DROP TABLE base;
"""


def copy_in_file(path: Path, run_id: str, copies: int, seconds: float) -> None:
    """Copy the rows of a run of a file, each copy started so many seconds after the one before."""
    blob = "CASE WHEN place IS NULL THEN {0}.blob ELSE blobs + (n - 1) * places + place END"
    with closing(sqlite3.connect(path)) as file:
        ((run,),) = file.execute("SELECT key FROM run WHERE id = ?", [run_id])
        values = {
            "run": {
                "key": "runs + n",
                "id": f"printf('{'%08x' * 2}', {run}, n)",
                "started_at": f"started_at + n * {seconds}",
            },
            "event": {"run": "runs + n", "blob": blob.format("event")},
            "ticket": {"run": "runs + n", "blob": blob.format("ticket")},
        }
        columns: dict[str, str] = {}
        for table, changed in values.items():
            names = [row[1] for row in file.execute(f"PRAGMA table_info({table})")]
            columns[table] = ", ".join(names)
            columns[f"{table}_values"] = ", ".join(
                changed.get(name, f"{table}.{name}") for name in names
            )
        script = COPY_SQLITE.format(**columns)
        for name, value in {"copies": copies, "run": run}.items():
            script = script.replace(f":{name}", str(value))
        file.executescript(f"PRAGMA synchronous = off; BEGIN; {script} COMMIT;")


COPY_POSTGRES = """
CREATE TEMP TABLE copied ON COMMIT DROP AS
    SELECT n, nextval(pg_get_serial_sequence('callslip.run', 'key')) AS new
    FROM generate_series(1, {copies}) AS n;
CREATE TEMP TABLE kept ON COMMIT DROP AS SELECT DISTINCT blob AS old FROM callslip.event
    WHERE run = {key} AND kind = 'ticket_completed' AND blob IS NOT NULL;
CREATE TEMP TABLE blobs ON COMMIT DROP AS
    SELECT n, old, sha256(old || decode(to_hex(n + 268435456), 'hex')) AS hash FROM copied, kept;
INSERT INTO callslip.blob (hash, data)
    SELECT blobs.hash, data FROM blobs JOIN callslip.blob ON blob.hash = old;
INSERT INTO callslip.run ({run}) OVERRIDING SYSTEM VALUE
    SELECT {run_values} FROM callslip.run, copied WHERE key = {key};
INSERT INTO callslip.event ({event}) SELECT {event_values} FROM copied CROSS JOIN callslip.event
    LEFT JOIN blobs ON old = event.blob AND blobs.n = copied.n WHERE run = {key};
INSERT INTO callslip.ticket ({ticket}) SELECT {ticket_values} FROM copied CROSS JOIN callslip.ticket
    LEFT JOIN blobs ON old = ticket.blob AND blobs.n = copied.n WHERE run = {key};
"""


def copy_in_database(url: str, run_id: str, copies: int, seconds: float) -> None:
    """Copy the rows of a run of a database, as `copy_in_file`."""
    values = {
        "run": {
            "key": "copied.new",
            "id": "lpad(to_hex(copied.new), 16, '0')",
            "started_at": f"started_at + copied.n * {seconds}",
        },
        "event": {"run": "copied.new", "blob": "coalesce(blobs.hash, event.blob)"},
        "ticket": {"run": "copied.new", "blob": "coalesce(blobs.hash, ticket.blob)"},
    }
    with psycopg.connect(url) as database:
        ((key,),) = database.execute("SELECT key FROM callslip.run WHERE id = %s", [run_id])
        columns: dict[str, Any] = {"copies": copies, "key": key}
        for table, changed in values.items():
            rows = database.execute(
                "SELECT column_name FROM information_schema.columns "
                "WHERE table_schema = 'callslip' AND table_name = %s ORDER BY ordinal_position",
                [table],
            )
            names = [name for (name,) in rows]
            columns[table] = ", ".join(names)
            columns[f"{table}_values"] = ", ".join(
                changed.get(name, f"{table}.{name}") for name in names
            )
        for statement in COPY_POSTGRES.format(**columns).split(";\n"):
            if statement.strip():
                database.execute(statement)  # type: ignore[arg-type]  # no literal
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("VACUUM ANALYZE")


def fill(place: str | Path, pruned: int, results: int) -> None:
    """Write the runs that are deleted, and then those that stay."""
    copy: Callable[[Any, str, int, float], None]
    copy = copy_in_database if isinstance(place, str) else copy_in_file
    with TicketStore(place) as store:
        first = drive(store, range(1))
        second = drive(store, range(1, CALLS + 1)) if results else None
    if pruned > 1:
        copy(place, first, pruned - 1, -1.0)
    if second is not None and results > CALLS:
        copy(place, second, results // CALLS - 1, 1.0)


@contextmanager
def places(*, is_postgres: bool) -> Iterator[Callable[[str], str | Path]]:
    """A function that returns a new place of that name."""
    if is_postgres:
        with Server() as server:
            yield lambda _: server.new_database()
        return
    with tempfile.TemporaryDirectory() as folder:
        yield lambda name: Path(folder) / f"{name}.sqlite"


def seconds(place: str | Path, pruned: int, results: int) -> float:
    began = time.perf_counter()
    fill(place, pruned, results)
    print(f"filled in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    with TicketStore(place) as store:
        began = time.perf_counter()
        count = store.prune(keep=results // CALLS)
        took = time.perf_counter() - began
        assert count == pruned, count
        assert len(store.runs()) == results // CALLS
        return took


def main() -> None:
    parser = argparse.ArgumentParser(description="Time prune beside large results that stay.")
    parser.add_argument("--pruned", type=int, default=2000)
    parser.add_argument("--results", type=int, default=200_000)
    parser.add_argument("--postgres", action="store_true", help="default: SQLite")
    given = parser.parse_args()
    with places(is_postgres=given.postgres) as place:
        alone = seconds(place("alone"), given.pruned, 0)
        beside = seconds(place("beside"), given.pruned, given.results)
    print(f"{given.pruned} runs alone: {alone:.2f} s")
    print(f"beside {given.results} large results: {beside:.2f} s, {beside / alone:.2f} times")


if __name__ == "__main__":
    main()
