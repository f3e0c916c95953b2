"""The time of `prune` beside large results that stay, as a multiple of the time without them.

    python benches/prune.py [--pruned 2000] [--results 200000] [--postgres]

Two stores get the same runs to delete; in one of them, younger runs have large results that stay.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from callslip import Agent, TicketStore, tool
from postgres import Server

CALLS = 20
"""Large results of each run that stays."""

FINISH = '{"thought": "", "action": "FINISH", "final_answer": "done", "task_successful": true}'


@tool
def read(number: int) -> str:
    """Read a document."""
    return f"{number:>6}" * 1000


def call(number: int) -> str:
    return f'{{"thought": "", "action": "read", "args": {{"number": {number}}}}}'


def fill(store: TicketStore, pruned: int, results: int) -> None:
    """Write the runs that are deleted, and then those that stay."""
    said: Iterator[str] = iter(())
    agent = Agent(lambda _: next(said), store=store, tools=[read])
    for number in range(pruned):
        said = iter([call(-number), FINISH])
        agent.run_sync("Read one.")
    for first in range(0, results, CALLS):
        said = iter([*map(call, range(first, first + CALLS)), FINISH])
        agent.run_sync("Read them.")


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
    with TicketStore(place) as store:
        fill(store, pruned, results)
        began = time.perf_counter()
        count = store.prune(keep=results // CALLS)
        took = time.perf_counter() - began
        assert count == pruned, count
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
