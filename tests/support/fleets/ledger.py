"""What tools have really done: a table beside the store, written when a call takes effect."""

from __future__ import annotations

import os
import threading
from collections import defaultdict

import psycopg

_here = threading.local()


def make(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS effect "
            "(run text, ticket text, key text, tool text, pid int)"
        )


def note(url: str, run: str, ticket: str, key: str, tool: str) -> None:
    """Write down that a call takes effect now. A call may happen without this, never after it."""
    for last in (False, True):
        try:
            connection = getattr(_here, "connection", None)
            if connection is None:
                connection = _here.connection = psycopg.connect(url, autocommit=True)
            connection.execute(
                "INSERT INTO effect VALUES (%s, %s, %s, %s, %s)",
                (run, ticket, key, tool, os.getpid()),
            )
        except psycopg.OperationalError:
            _here.connection = None
            if last:
                raise
        else:
            return


def read(url: str) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Return the key and tool of each effect, by run and ticket."""
    effects = defaultdict(list)
    with psycopg.connect(url) as connection:
        for run, ticket, key, tool in connection.execute(
            "SELECT run, ticket, key, tool FROM effect"
        ):
            effects[run, ticket].append((key, tool))
    return effects
