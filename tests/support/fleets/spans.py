"""When which run was worked on: a table of spans, which says how many were at once."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Mapping
from datetime import datetime

import psycopg


def make(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE span (run text, pid int, began timestamptz DEFAULT clock_timestamp(), "
            "ended timestamptz, number serial)"
        )


async def note(url: str, run_id: str, seconds: float) -> None:
    """Work for so long, and write down when."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        cursor = await connection.execute(
            "INSERT INTO span (run, pid) VALUES (%s, %s) RETURNING number", [run_id, os.getpid()]
        )
        row = await cursor.fetchone()
        await asyncio.sleep(seconds)
        await connection.execute("UPDATE span SET ended = clock_timestamp() WHERE number = %s", row)


def most_at_once(url: str, ended: Mapping[int, datetime]) -> Counter[str]:
    """Return how many runs of each tenant were worked on at once, at most.

    Args:
        url: The database.
        ended: When processes were killed, whose spans have no end.
    """
    changes = []
    with psycopg.connect(url) as connection:
        for tenant, pid, began, end in connection.execute(
            "SELECT tenant, pid, began, ended FROM span JOIN callslip.run ON run.id = span.run"
        ):
            changes += [(began, 1, tenant), (end or ended[pid], -1, tenant)]
    now: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for _, change, tenant in sorted(changes):
        now[tenant] += change
        most[tenant] = max(most[tenant], now[tenant])
    return most
