"""`callslip runs`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Iterator
from dataclasses import asdict
from itertools import islice

from callslip.cli._files import open_store
from callslip.cli._output import print_json, print_table, shortened
from callslip.runs._stored import state_word
from callslip.store import StoredRun
from callslip.store._database import StoreDatabase
from callslip.store._file import StoreFile

__all__ = ["run"]

_HEADING = ("RUN", "STATE", "AGENT", "STARTED (UTC)", "TURNS", "VIOLATIONS", "TASK")
_TASK = 60


def run(options: argparse.Namespace) -> int:
    """List runs."""
    with open_store(options.file) as file:
        waiting, asking = file.waiting(), file.waiting("result")
        found = list(
            islice(_matching(file, waiting.keys() | asking.keys(), options), options.limit)
        )
    tickets = [(one, waiting.get(one.run_id, []), asking.get(one.run_id, [])) for one in found]
    if options.json:
        rows = [
            (asdict(one), {"waiting": calls, "awaiting_result": asked})
            for one, calls, asked in tickets
        ]
        print_json([one | more for one, more in rows])
    else:
        print_table(_HEADING, [_row(*row) for row in tickets])
    return 0


def _matching(
    file: StoreFile | StoreDatabase,
    waiting: Collection[str],
    options: argparse.Namespace,
) -> Iterator[StoredRun]:
    for one in file.runs(agent=options.agent):
        if options.status not in (None, one.status):
            continue
        if options.owner not in (None, one.owner):
            continue
        if options.failed and one.error is None:
            continue
        if options.waiting and one.run_id not in waiting:
            continue
        yield one


def _row(one: StoredRun, waiting: list[str], asking: list[str]) -> tuple[str, ...]:
    state = state_word(one)
    states = ((waiting, "awaiting approval"), (asking, "awaiting a result"))
    if waiting or asking:
        state = "; ".join(f"{', '.join(tickets)} {what}" for tickets, what in states if tickets)
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(one.started_at))
    task = shortened(" ".join(one.task.split()), _TASK)
    return (one.run_id, state, one.agent, started, str(one.turns), str(one.violations), task)
