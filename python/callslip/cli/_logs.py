"""`callslip export`, `callslip import` and `callslip replay`."""

from __future__ import annotations

import argparse

from callslip.cli._files import (
    exported_runs,
    is_store,
    open_store,
    read_text,
    split_export,
)
from callslip.cli._output import print_text
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
    runs = list(split_export(read_text(options.log)))
    with TicketStore(options.file) as store:
        for lines in runs:
            print_text(store.import_run(lines))
    return 0


def _replay(options: argparse.Namespace) -> int:
    if is_store(options.file):
        with open_store(options.file) as file:
            runs = list(exported_runs(file, options.run))
    elif options.run:
        raise UsageError("expected RUN with the file of a store: got an export; leave RUN out")
    else:
        runs = list(split_export(read_text(options.file)))
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
