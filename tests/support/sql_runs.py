"""The SQL functions of the PostgreSQL store, called directly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg.sql import SQL, Identifier, Placeholder

__all__ = ["Database"]

Row = dict[str, Any]


class Database:
    """A session of a database that is ready for a store, with short ways to set up its rows."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.session = psycopg.connect(url, autocommit=True, row_factory=dict_row)

    def empty(self) -> None:
        """Remove all runs and messages. A new database for each test would take longer."""
        self.rows("UNLISTEN *")
        names = self.rows(
            "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE "
            "schemaname = 'callslip' OR schemaname = 'pgmq' AND starts_with(tablename, 'q_')"
        )
        self.session.execute("; ".join(f"DELETE FROM {row['name']}" for row in names))

    def rows(self, sql: str, *values: object) -> list[Row]:
        """Run a statement."""
        found = self.session.execute(sql, values or None)  # type: ignore[arg-type]
        return [] if found.description is None else found.fetchall()

    def value(self, sql: str, *values: object) -> Any:
        """Run a statement, and return the only value of its only row."""
        ((value,),) = (row.values() for row in self.rows(sql, *values))
        return value

    def call(self, function: str, *arguments: object) -> list[Row]:
        """Call a function that returns rows."""
        places = ", ".join(["%s"] * len(arguments))
        return self.rows(f"SELECT * FROM callslip.{function}({places})", *arguments)

    def get(self, function: str, *arguments: object) -> Any:
        """Call a function that returns one value."""
        places = ", ".join(["%s"] * len(arguments))
        return self.value(f"SELECT callslip.{function}({places})", *arguments)

    def with_row(self, function: str, run_id: str, *more: object) -> Any:
        """Call a function whose first argument is the row of a run."""
        places = "".join(", %s" for _ in more)
        sql = f"SELECT callslip.{function}(run{places}) FROM callslip.run WHERE id = %s"
        return self.value(sql, *more, run_id)

    def run(self, run_id: str) -> Row | None:
        """Return the row of a run."""
        found = self.rows("SELECT * FROM callslip.run WHERE id = %s", run_id)
        return found[0] if found else None

    def add_run(self, run_id: str, **columns: object) -> Row:
        """Insert a run that has begun and has no message, unless `columns` says otherwise."""
        values = {"id": run_id, "agent": "clerk", "epoch": 1, "next": 3} | columns
        values |= {"started_at": 1.0, "updated_at": 1.0}
        self._insert("run", values)
        row = self.run(run_id)
        assert row is not None
        return row

    def add_ticket(self, run_id: str, number: int, **columns: object) -> None:
        """Insert an open ticket of a run."""
        key = self.value("SELECT key FROM callslip.run WHERE id = %s", run_id)
        values = {"run": key, "id": number, "kind": "tool", "tool": "pay", "description": "Pays."}
        self._insert("ticket", values | {"turn": 1, "opened_at": 1.0} | columns)

    def _insert(self, table: str, values: Row) -> None:
        statement = SQL("INSERT INTO callslip.{} ({}) VALUES ({})").format(
            Identifier(table),
            SQL(", ").join(map(Identifier, values)),
            SQL(", ").join(Placeholder() * len(values)),
        )
        self.session.execute(statement, list(values.values()))

    def submit(self, run_id: str, agent: str = "clerk", **options: Any) -> list[Row]:
        """Submit a run: `queue`, `tenant`, `owner`, `key`, `limit`, `delay`, `backlog`."""
        return self.call(
            "submit",
            run_id,
            agent,
            "{}",
            options.pop("task", "go"),
            options.pop("queue", "default"),
            options.pop("tenant", None),
            options.pop("owner", None),
            options.pop("key", None),
            options.pop("limit", None),
            options.pop("delay", 0.0),
            options.pop("backlog", None),
        )

    def claim(
        self,
        known: Sequence[str] = ("clerk",),
        *,
        queue: str = "default",
        lease: float = 60.0,
        slots: int = 10,
        refused: Sequence[str] = (),
        begun_only: bool = False,
    ) -> list[Row]:
        """Claim runs of these agents."""
        return self.call("claim", queue, lease, slots, list(known), list(refused), begun_only)

    def messages(self, queue: str = "default") -> list[str]:
        """Return the runs of a queue's messages, in order."""
        sql = f"SELECT message ->> 'run' AS run FROM pgmq.q_callslip_{queue} ORDER BY msg_id"
        return [row["run"] for row in self.rows(sql)]

    def inbox(self, run_id: str) -> list[tuple[str, int | None, str | None]]:
        """Return kind, ticket and body of what a run's inbox has."""
        sql = "SELECT kind, ticket, body FROM callslip.inbox WHERE run = %s ORDER BY id"
        return [(row["kind"], row["ticket"], row["body"]) for row in self.rows(sql, run_id)]

    def end_lease(self, run_id: str) -> None:
        """Let the lease of a run's message end, as time would."""
        row = self.run(run_id)
        assert row is not None
        queue = "later" if row["is_later"] else row["queue"]
        self.rows(
            f"UPDATE pgmq.q_callslip_{queue} SET vt = clock_timestamp() WHERE msg_id = %s",
            row["msg"],
        )
