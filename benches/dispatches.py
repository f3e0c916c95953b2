"""What hours of dispatches do to the queue: claims as long as ever, with and without vacuum.

A dispatch wakes a run that rests, claims it and lets it rest again, by the statements that workers
use. Runs come in turn, many to a transaction, so that two cores hold the rate.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import psycopg

from callslip import TicketStore
from callslip.fleet import FleetStatus, status
from postgres import Server

# The same run comes again after ten seconds at 2,000 a second.
RUNS = 20_000
BATCH = 20
SLOTS = 64
ENDED = threading.Event()


class Claims:
    """How long claims took, in seconds, and how many runs they took."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds: list[float] = []
        self._runs = 0

    def add(self, seconds: float, runs: int) -> None:
        with self._lock:
            self._seconds.append(seconds)
            self._runs += runs

    def take(self) -> tuple[list[float], int]:
        """Return those since the last call."""
        with self._lock:
            taken = sorted(self._seconds), self._runs
            self._seconds, self._runs = [], 0
        return taken


def connect(url: str) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(url, autocommit=True, prepare_threshold=1)


def make_runs(url: str) -> list[str]:
    """Submit runs, and let them rest."""
    ids = [f"{number:026}" for number in range(RUNS)]
    with connect(url) as link:
        link.execute(
            "SELECT callslip.submit(id, 'steps', NULL, 'go', 'default', NULL, NULL, NULL, 0, NULL) "
            "FROM unnest(%s::text[]) AS id",
            [ids],
        )
        while claim(link):
            pass
    return ids


def claim(link: psycopg.Connection[tuple[object, ...]]) -> tuple[float, int] | None:
    """Claim as a worker does, and let what was claimed rest. Seconds and runs, if any."""
    began = time.perf_counter()
    rows = link.execute(
        "SELECT run_id, run_epoch FROM callslip.claim('default', 30, %s, '{steps}', '{}', false)",
        [SLOTS],
    ).fetchall()
    seconds = time.perf_counter() - began
    if not rows:
        return None
    link.execute(
        "SELECT callslip.rest(id, epoch, NULL) "
        "FROM unnest(%s::text[], %s::bigint[]) AS mine (id, epoch)",
        [[row[0] for row in rows], [row[1] for row in rows]],
    )
    return seconds, len(rows)


def work(url: str, claims: Claims) -> None:
    with connect(url) as link:
        while not ENDED.is_set():
            if claimed := claim(link):
                claims.add(*claimed)
            else:
                time.sleep(0.005)


def wake(url: str, ids: list[str], rate: float) -> None:
    """Wake so many runs a second, as decisions and messages do."""
    with connect(url) as link:
        due = time.monotonic()
        for first in itertools.cycle(range(0, RUNS, BATCH)):
            if ENDED.is_set():
                return
            batch = ids[first : first + BATCH]
            link.execute("SELECT callslip.wake(id) FROM unnest(%s::text[]) AS id", [batch])
            due += BATCH / rate
            time.sleep(max(0.0, due - time.monotonic()))


@contextlib.contextmanager
def held(url: str) -> Iterator[None]:
    """A transaction that sees the database as it is now, and keeps every row that it sees."""
    with psycopg.connect(url) as link:
        link.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        link.execute("SELECT 1 FROM callslip.run LIMIT 1")
        yield


def measure(url: str, name: str, parts: int, seconds: float, claims: Claims) -> None:
    sizes = (
        "SELECT pg_total_relation_size('pgmq.q_callslip_default') AS queue, "
        "pg_total_relation_size('callslip.run') AS run"
    )
    with TicketStore(url) as store:
        for part in range(1, parts + 1):
            claims.take()
            began = time.monotonic()
            time.sleep(seconds / parts)
            took, runs = claims.take()
            rate = runs / (time.monotonic() - began)
            (size,) = store.query(sizes)
            middle, high = statistics.median(took), took[int(len(took) * 0.99) - 1]
            print(
                f"| {name} | {part * seconds / parts / 60:.1f} | {rate:,.0f} | "
                f"{middle * 1000:.1f} / {high * 1000:.1f} | {size['queue'] / 2**20:.1f} | "
                f"{size['run'] / 2**20:.1f} | {told(status(store))} |",
                flush=True,
            )


def told(now: FleetStatus) -> str:
    return f"{now.dead_rows:,} | {now.oldest_transaction:.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="how long it goes on")
    parser.add_argument("--held", type=float, default=120.0, help="how long without vacuum")
    parser.add_argument("--naptime", default="1min", help="of the autovacuum of the database")
    parser.add_argument("--rate", type=float, default=2_000.0, help="dispatches a second")
    options = parser.parse_args()
    with Server(fsync=True) as server:
        server.execute(f"ALTER SYSTEM SET autovacuum_naptime = '{options.naptime}'")
        server.execute("SELECT pg_reload_conf()")
        url = server.new_database()
        ids = make_runs(url)
        claims = Claims()
        threads = [threading.Thread(target=work, args=(url, claims)) for _ in range(2)]
        threads.append(threading.Thread(target=wake, args=(url, ids, options.rate)))
        for thread in threads:
            thread.start()
        print(
            "| | minutes | dispatches a second | a claim, p50 / p99, ms | queue, MB | runs, MB | "
            "dead rows | oldest transaction |\n|---|---|---|---|---|---|---|---|"
        )
        try:
            measure(url, "vacuum", 12, options.seconds, claims)
            with held(url):
                measure(url, "held up", 4, options.held, claims)
            measure(url, "let go", 2, options.held, claims)
        finally:
            ENDED.set()
            for thread in threads:
                thread.join()


if __name__ == "__main__":
    main()
