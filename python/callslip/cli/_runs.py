"""`callslip runs`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice

from callslip._store_database import StoreDatabase
from callslip._store_file import StoreFile
from callslip.cli._files import open_store
from callslip.cli._output import print_json, print_table, shortened
from callslip.store import StoredRun

__all__ = ["run"]

_HEADING = ("RUN", "STATE", "AGENT", "STARTED (UTC)", "TURNS", "VIOLATIONS", "TASK")
_TASK = 60


def run(options: argparse.Namespace) -> int:
    """List runs."""
    with open_store(options.file) as file:
        waiting = file.waiting()
        found = list(islice(_matching(file, waiting, options), options.limit))
    if options.json:
        print_json([{**asdict(one), "waiting": waiting.get(one.run_id, [])} for one in found])
    else:
        print_table(_HEADING, [_row(one, waiting.get(one.run_id, [])) for one in found])
    return 0


def _matching(
    file: StoreFile | StoreDatabase,
    waiting: dict[str, list[str]],
    options: argparse.Namespace,
) -> Iterator[StoredRun]:
    for one in file.runs(agent=options.agent):
        if options.status not in (None, one.status):
            continue
        if options.failed and one.error is None:
            continue
        if options.waiting and one.run_id not in waiting:
            continue
        yield one


def _row(one: StoredRun, tickets: list[str]) -> tuple[str, ...]:
    state: str = one.stop_reason or "running"
    if tickets:
        state = f"{', '.join(tickets)} awaiting approval"
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(one.started_at))
    task = shortened(" ".join(one.task.split()), _TASK)
    return (one.run_id, state, one.agent, started, str(one.turns), str(one.violations), task)
