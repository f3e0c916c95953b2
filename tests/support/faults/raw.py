"""Work on a database through Python's own sqlite3: what the shim itself is tried on."""

import contextlib
import ctypes
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

SHIM = ctypes.CDLL(None)


def commits(path: Path, say: Callable[[Any], None], synchronous: str, count: int) -> None:
    """Commit rows one by one; say each when SQLite says that it is there.

    Pages are small and the log is put back into the database often, so that a short run has calls
    of every kind: to the log, to the database, and to the log again from its start.
    """
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("pragma page_size = 1024")
        database.execute(f"pragma synchronous = {synchronous}")
        database.execute("pragma journal_mode = wal")
        database.execute("pragma wal_autocheckpoint = 8")
        database.execute("create table row (number integer primary key, text text)")
        say("table")
        for number in range(count):
            database.execute("insert into row values (?, ?)", (number, str(number) * 200))
            say(number)


def commit_until_power_is_cut(path: Path, say: Callable[[Any], None]) -> None:
    """Commit, go on after an error with the same connection, then lose power."""
    database = sqlite3.connect(path, isolation_level=None)
    # The first step answers "wal" or "delete"; that the change failed is told by the second.
    database.execute("pragma journal_mode = wal").fetchall()
    database.execute("pragma synchronous = full")
    database.execute("create table if not exists row (number integer primary key, text text)")
    for number in range(6):
        try:
            database.execute("insert into row values (?, ?)", (number, str(number) * 200))
            say(number)
        except sqlite3.OperationalError:
            say("failed")
    SHIM.faults_cut_power()


def repeat_a_failed_sync(path: Path, say: Callable[[Any], None]) -> None:
    """Do what must not be done: sync again, and believe it."""
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    for text in (b"first", b"second"):
        os.write(file, text)
        try:
            os.fsync(file)
        except OSError:
            say("failed")
            os.fsync(file)
        say(text.decode())
    SHIM.faults_cut_power()


def hang(path: Path, say: Callable[[Any], None]) -> None:
    """Never end."""
    say("here")
    threading.Event().wait()
