"""A store file, read while another process owns it. No event of it is changed."""

from __future__ import annotations

import json
import sqlite3
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from callslip import _core
from callslip._base.usage import Usage
from callslip.errors import StoreError, UnknownRun
from callslip.runs import Run
from callslip.runs._stored import StoredRun
from callslip.store._store import TicketStore, open_stores

__all__ = ["StoreFile", "is_open_here", "is_store_file"]

_APPLICATION = 0x6373_6C70
_MAGIC = b"SQLite format 3\0"
_BUSY = 10.0
"""Seconds to wait for another program's transaction."""


def is_store_file(path: Path) -> bool:
    """Whether a file is an SQLite database, and no export.

    Raises:
        StoreError: The file cannot be read.
    """
    try:
        if path.is_fifo():  # reading would remove its first bytes
            return False
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except IsADirectoryError as error:
        raise StoreError(f"{path} is a folder: pass the file of a store in it") from error
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error


def is_open_here(path: Path) -> bool:
    """Whether this process has the file of a store open."""
    return any(
        not store._closed and store.path is not None and Path(store.path).resolve() == path
        for store in list(open_stores)
    )


_WAITS = {"approval": "parked", "result": "awaits_result"}
"""The columns that say which tickets wait for approval and which for a result."""


class StoreFile:
    """The runs in the file of a store, read by its public views.

    Another process may own the file and write to it meanwhile. In that process itself, use its
    `TicketStore`: closing this object would release the locks of the file there.

    Args:
        path: The file.

    Raises:
        StoreError: The file cannot be read, or is not a store.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = self._connect()

    def _connect(self) -> sqlite3.Connection:
        if not is_store_file(self.path):
            raise StoreError(
                f"{self.path} is not the file of a store: pass the path of one, or of a new file"
            )
        address = self.path.absolute().as_uri()
        try:
            try:
                connection, marks = _opened(f"{address}?mode=ro")
            except sqlite3.OperationalError:
                # In a folder that is read-only, SQLite cannot make the file that processes share.
                connection, marks = _opened(f"{address}?immutable=1")
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be read: {error}") from error
        try:
            _check(self.path, *marks)
        except StoreError:
            connection.close()
            raise
        connection.row_factory = sqlite3.Row
        return connection

    def runs(self, *, agent: str | None = None) -> Iterator[StoredRun]:
        """Yield the runs, the latest first.

        Args:
            agent: The name of their agent; default any.
        """
        # As text, a task would end before its first character 0 with the SQLite of some Pythons.
        task = (
            "(SELECT coalesce(data -> '$.task', data -> '$.start.task') FROM events "
            "WHERE events.run_id = runs.run_id ORDER BY seq LIMIT 1) AS task_json"
        )
        query = (
            f"SELECT *, {task} FROM runs WHERE ?1 IS NULL OR agent = ?1 "  # noqa: S608  # a constant
            "ORDER BY started_at DESC, run_id"
        )
        for row in self._rows(query, agent):
            yield _stored_run(row)

    def run_ids(self, prefix: str) -> list[str]:
        """Return the ids that begin with a text, or the id that is equal to it."""
        found = [row["run_id"] for row in self._rows("SELECT run_id FROM runs")]
        return [prefix] if prefix in found else [one for one in found if one.startswith(prefix)]

    def waiting(self, what: Literal["approval", "result"] = "approval") -> dict[str, list[str]]:
        """Return the ids of the tickets that await approval or a result, by the id of their run."""
        columns = {
            row["name"] for row in self._rows("SELECT name FROM pragma_table_info('tickets')")
        }
        waiting: dict[str, list[str]] = {}
        # A file of an earlier version lacks one of them, or both.
        if (column := _WAITS[what]) in columns:
            for row in self._rows(f"SELECT run_id, ticket FROM tickets WHERE {column} = 1"):  # noqa: S608  # one of ours
                waiting.setdefault(row["run_id"], []).append(row["ticket"])
        return waiting

    def events(self, run_id: str, *, after: int = -1) -> list[str]:
        """Return the events of a run as lines of its export.

        Args:
            run_id: The id of the run.
            after: The `seq` of the event to begin after.
        """
        query = "SELECT seq, at, kind, data FROM events WHERE run_id = ? AND seq > ? ORDER BY seq"
        return [
            f'{{"seq":{row["seq"]},"at":{row["at"]!r},"event":{{"{row["kind"]}":{row["data"]}}}}}'
            for row in self._rows(query, run_id, after)
        ]

    def export(self, run_id: str) -> list[str]:
        """Return the lines that `Run.export` returns, with the bytes of all images and files first.

        Raises:
            UnknownRun: There is no such run.
        """
        lines = self.events(run_id)
        if not lines:
            raise UnknownRun(f"there is no run {run_id} in {self.path}")
        return [*self._contents(run_id), *lines]

    def _contents(self, run_id: str) -> Iterator[str]:
        if not list(self._rows("SELECT 1 FROM sqlite_master WHERE name = 'run_content'")):
            return
        query = (
            "SELECT content.hash, content.data FROM content "
            "JOIN run_content ON run_content.content = content.key "
            "JOIN run ON run.key = run_content.run WHERE run.id = ?"
        )
        for row in self._rows(query, run_id):
            content = {"sha256": row["hash"], "base64": b64encode(row["data"]).decode()}
            # The core knows these lines by their first characters.
            yield json.dumps({"content": content}, separators=(",", ":"))

    def run(self, run_id: str) -> Run[Any]:
        """Return a run with the runs below it, as they are now, in a store in memory.

        Raises:
            StoreError: There is no such run.
            ReplayError: The file has another log than this version can read.
        """
        store = TicketStore()
        todo = [run_id]
        for one in todo:
            store.import_run(self.export(one), trust=True)
            children = self._rows("SELECT run_id FROM runs WHERE parent_run = ?", one)
            todo += [row["run_id"] for row in children]
        return store.run(run_id)

    def _rows(self, query: str, *parameters: object) -> Iterator[sqlite3.Row]:
        try:
            with closing(self._connection.execute(query, parameters)) as cursor:
                yield from cursor
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be read: {error}") from error

    def close(self) -> None:
        """Close the connection to the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


_Marks: TypeAlias = tuple[int, int, list[tuple[str, str, str | None]]]
"""The program that made a file, the version of its tables, and the objects that it defines."""


def _opened(address: str) -> tuple[sqlite3.Connection, _Marks]:
    """Return a read-only connection, and the identity that the file declares."""
    connection = sqlite3.connect(address, uri=True, timeout=_BUSY)
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        objects = "SELECT type, name, sql FROM sqlite_master WHERE type <> 'index'"
        marks = (application, version, connection.execute(objects).fetchall())
    except sqlite3.Error:
        connection.close()
        raise
    return connection, marks


def _check(
    path: Path, application: int, version: int, objects: list[tuple[str, str, str | None]]
) -> None:
    """Check that a file is a store before anything is read that it defines itself."""
    if application != _APPLICATION:
        raise StoreError(f"{path} is the SQLite database of another program: pass another path")
    try:
        _core.Store.check_file(str(path), application, version, objects)
    except (TypeError, OverflowError) as error:
        raise StoreError(f"{path} cannot be read: its list of tables is damaged") from error


def _stored_run(row: sqlite3.Row) -> StoredRun:
    usage = Usage(
        row["input_tokens"], row["output_tokens"], row["cached_tokens"], row["cost"] or 0.0
    )
    own = StoredRun.__dataclass_fields__.keys() - {"task", "usage"}
    task = row["task_json"]
    return StoredRun(
        task=row["task"] if task is None else json.loads(task),
        usage=usage,
        **{name: row[name] for name in own},
    )
