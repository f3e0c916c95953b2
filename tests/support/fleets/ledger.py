"""What tools have really done: a table beside the store, written when a call takes effect."""

from __future__ import annotations

import os
import threading
from collections import defaultdict

import psycopg

_here = threading.local()


class _Kept:
    """A connection that is closed with its thread."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)

    def __del__(self) -> None:
        self.connection.close()


def make(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS effect "
            "(run text, ticket text, key text, tool text, pid int, attempt text UNIQUE)"
        )


def note(url: str, run: str, ticket: str, key: str, tool: str) -> None:
    """Write down that a call takes effect now. A call may happen without this, never after it."""
    # Once: what was written before its answer was lost is not written again.
    attempt = os.urandom(8).hex()
    for last in (False, True):
        try:
            kept = getattr(_here, "kept", None)
            if kept is None:
                kept = _here.kept = _Kept(url)
            kept.connection.execute(
                "INSERT INTO effect VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
                (run, ticket, key, tool, os.getpid(), attempt),
            )
        except psycopg.OperationalError:
            _here.kept = None
            if last:
                raise
        else:
            return


def read(url: str, run_id: str = "") -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Return the key and tool of each effect, by run and ticket; of one run and those below it."""
    effects = defaultdict(list)
    with psycopg.connect(url) as connection:
        for run, ticket, key, tool in connection.execute(
            "SELECT run, ticket, key, tool FROM effect WHERE starts_with(run, %s)", [run_id]
        ):
            effects[run, ticket].append((key, tool))
    return effects
