"""`callslip export`, `callslip import` and `callslip replay`."""

from __future__ import annotations

import argparse

from callslip.cli._files import (
    exported_runs,
    import_export,
    is_store,
    new_store,
    open_store,
    read_export,
)
from callslip.cli._output import print_text, report
from callslip.errors import ReplayError, UsageError
from callslip.store import TicketStore, replay

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Export, import or replay runs."""
    if options.command == "export":
        return _export(options)
    return _import(options) if options.command == "import" else _replay(options)


def _export(options: argparse.Namespace) -> int:
    with open_store(options.file) as file:
        for lines in exported_runs(file, options.run):
            for line in lines:
                print_text(line)
    return 0


def _import(options: argparse.Namespace) -> int:
    runs = read_export(options.log)
    # Nothing is written, and no file is made, if a run of it cannot be read.
    ids = [import_export(TicketStore(), lines, options.log, trust=options.trust) for lines in runs]
    status = 0
    with new_store(options.file) as store:
        known = {one.run_id for one in store.runs()}
        for run_id, lines in zip(ids, runs, strict=True):
            if run_id in known:
                report(
                    f"run {run_id} is in {store.address or options.file} already, and stays as "
                    "it is there: call import with another file to have both"
                )
                status = 1
            else:
                print_text(store.import_run(lines, trust=options.trust))
                known.add(run_id)
    return status


def _replay(options: argparse.Namespace) -> int:
    if is_store(options.file):
        with open_store(options.file) as file:
            runs = list(exported_runs(file, options.run))
            if not runs:
                report(f"there is no run in {file.path}")
    elif options.run:
        raise UsageError("expected RUN with the file of a store: got an export; leave RUN out")
    else:
        runs = read_export(options.file)
    status = 0
    for lines in runs:
        try:
            done = replay(lines)
        except ReplayError as error:
            print_text(str(error))
            status = 1
        else:
            print_text(f"run {done.id}: {len(done.log)} events, all the same")
    return status
